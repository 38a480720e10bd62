"""The paper's quantities in equations and in a page's styles: their names and coloured macros."""

from capsnet_lab.figures.style import QUANTITIES


def css_name(name: str) -> str:
    """A quantity's name in a macro and in a page's styles: ``u_hat`` is ``uhat``."""
    return name.replace("_", "")


# The macros of the book's equations, coloured: \qu, \quhat, \qb, \qc, \qs, \qv.
MACROS = {
    f"q{css_name(name)}": f"{{\\color{{{quantity.colour}}}{{{quantity.latex}}}}}"
    for name, quantity in QUANTITIES.items()
}
