"""The command line's figures, and what they refuse."""

import numpy as np
import pytest
import torch

from capsnet_lab import figures
from capsnet_lab.figures import style
from helpers import Refuses


def test_a_contact_sheet() -> None:
    """Twelve pictures, the last two in a second band, none wider than its cell."""
    images = torch.rand(12, 3, 6, 4)
    names = [f"{i}.png" for i in range(11)] + ["a file with a very long name.png"]
    answers = ["a 0.90"] * 11 + ["none of its long-winded classes 0.20"]
    cells = [
        (image, image / 2, name, answer, answer[0] == "a")
        for image, name, answer in zip(images, names, answers, strict=True)
    ]
    axes = figures.contact_sheet(cells).axes[0]
    for i, image in enumerate(images.permute(0, 2, 3, 1)):
        above, below = axes.images[2 * i : 2 * i + 2]
        assert np.array_equal(above.get_array(), image.numpy())
        assert np.array_equal(below.get_array(), image.numpy() / 2)
        left, right, bottom, top = above.get_extent()
        assert i % 10 < left < right < i % 10 + 1
        assert (bottom - top) / (right - left) == pytest.approx(6 / 4)  # y goes down
        assert below.get_extent()[3] > bottom
    words = [text.get_text() for text in axes.texts]
    assert words[-2:] == ["…y long name.png", "none of its\nlong-winded\nclasses 0.20"]
    assert axes.texts[-1].get_color() == style.MISTAKE
    assert axes.texts[-3].get_color() == style.INK


def test_a_dollar_in_a_name_begins_no_mathematics() -> None:
    image, names = torch.rand(1, 1, 4, 4), ["$x_{$", "US$ 5$^"]
    for figure in (
        figures.confusion_matrix(np.eye(2, dtype=int), names),  # without mistakes
        figures.contact_sheet([(image[0], None, names[0], names[1], True)]),
    ):
        shown = figure._repr_svg_()  # outside of the figure's own settings
        assert any(name in shown for name in names)
        assert figure.png().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(refuses: Refuses) -> None:
    cell = torch.zeros(2, 4, 4), None, "a.png", "a 0.90", True
    with refuses("[1 or 3, height, width], got [2, 4, 4]"):
        figures.contact_sheet([cell])
    with refuses("there is no picture to draw"):
        figures.contact_sheet([])
