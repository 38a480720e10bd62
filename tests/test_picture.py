"""The strip at the head of the chapters is what the committed weights make of a seven."""

import base64
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from capsnet.figures.style import QUANTITIES
from capsnet_book.figures.macros import css_name
from picture import STRIP, strip

STAGES = ["image", "maps", "capsules", "votes", "lengths", "mask", "drawing"]
PNG = r"data:image/png;base64,([^\"]+)"
NUMBER = r"\d+\.\d+"


@pytest.fixture(scope="module")
def drawn() -> str:
    return strip()


@pytest.fixture(scope="module")
def committed() -> str:
    return STRIP.read_text(encoding="utf-8")


def images(svg: str) -> list[np.ndarray]:
    found = (io.BytesIO(base64.b64decode(data)) for data in re.findall(PNG, svg))
    return [np.asarray(Image.open(file).convert("RGBA"), dtype=float) for file in found]


def test_the_strip_is_of_the_committed_weights(committed: str, drawn: str) -> None:
    # Apart from images and decimals, which another machine may round in another way.
    def words(svg: str) -> str:
        return re.sub(NUMBER, "", re.sub(PNG, "", svg))

    assert words(committed) == words(drawn)
    numbers = (
        [float(n) for n in re.findall(NUMBER, re.sub(PNG, "", s))] for s in (committed, drawn)
    )
    np.testing.assert_allclose(*numbers, atol=0.11)
    for was, is_now in zip(images(committed), images(drawn), strict=True):
        assert was.shape == is_now.shape and np.abs(was - is_now).mean() < 1  # of 255


def test_the_strip_can_stand_in_any_page(committed: str) -> None:
    root = ET.fromstring(committed)
    stages = [group for group in root.iter() if group.get("class") == "stage"]
    assert [stage.get("data-stage") for stage in stages] == STAGES
    assert [text.text for text in root.iter() if text.tag.endswith("text")] == STAGES
    assert len(committed.encode()) < 25_000
    names = {element.get("id") for element in root.iter() if element.get("id")}
    assert set(re.findall(r"url\(#([^)]+)\)", committed)) == names  # nothing else is referred to
    assert "http" not in committed.replace("http://www.w3.org/2000/svg", "")
    # Only what has no meaning in colour is grey; the rest follows the page.
    colours = {f"var(--q-{css_name(name)}, {q.colour})" for name, q in QUANTITIES.items()}
    fills = set(re.findall(r'fill="([^"]+)"', committed))
    assert "currentColor" in fills and len(fills) == 4 and fills - {"currentColor"} <= colours


def test_the_strip_shows_a_seven(drawn: str) -> None:
    lengths = re.search(r'data-stage="lengths".*', drawn)[0]  # type: ignore[index]
    heights = [float(height) for height in re.findall(r' height="([\d.]+)"', lengths)]
    assert len(heights) == 10 and np.argmax(heights) == 7 and heights[7] > 0.9 * 44
    image, *_, drawing = images(drawn)
    assert np.corrcoef(image[..., 0].ravel(), drawing[..., 0].ravel())[0, 1] > 0.7
