"""The picture of the palette shows every quantity once, in its colour."""

from itertools import pairwise

from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch

from capsnet_book.figures import QUANTITIES, palette


def boxes(axes):
    return {patch.get_gid(): patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)}


def test_every_quantity_has_a_box_of_its_colour_and_its_symbol():
    (axes,) = palette().axes
    drawn = boxes(axes)
    assert drawn.keys() == QUANTITIES.keys()
    texts = [text.get_text() for text in axes.texts]
    for name, quantity in QUANTITIES.items():
        assert to_hex(drawn[name].get_facecolor()).upper() == quantity.colour
        assert texts.count(f"${quantity.latex}$") == 1


def test_arrows_join_boxes_and_steps_are_named():
    (axes,) = palette().axes
    texts = {text.get_text().replace("\n", " ") for text in axes.texts}
    assert {"squash", "sum over children", "softmax over parents", "next iteration"} <= texts
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 7


def test_no_box_lies_on_another():
    (axes,) = palette().axes
    figure = axes.figure
    figure.canvas.draw()
    extents = [box.get_window_extent() for box in boxes(axes).values()]
    assert not any(one.overlaps(other) for one, other in pairwise(extents))
