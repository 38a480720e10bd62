"""The paper's quantities in equations and in a page's styles: names, colours, coloured macros."""

from capsnet_lab.figures.style import FAINT, MISTAKE, QUANTITIES


def css_name(name: str) -> str:
    """A quantity's name in a macro and in a page's styles: ``u_hat`` is ``uhat``."""
    return name.replace("_", "")


# The macros of the book's equations, coloured: \qu, \quhat, \qb, \qc, \qs, \qv.
MACROS = {
    f"q{css_name(name)}": f"{{\\color{{{quantity.colour}}}{{{quantity.latex}}}}}"
    for name, quantity in QUANTITIES.items()
}
# The colours of figures by their names in a page's styles, each with what it is on a dark page.
SHADES = {f"q-{css_name(name)}": (it.colour, it.dark) for name, it in QUANTITIES.items()} | {
    "faint": (FAINT, "#98A2AD"),
    "mistake": (MISTAKE, "#FF8A80"),
}
