"""The pictures outside of chapters are what the committed weights make of test images."""

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from capsnet_book.figures.macros import css_name
from capsnet_lab.figures.style import QUANTITIES
from picture import DECIMAL, EMBEDDED, PICTURE, STRIP, draw, same_png, same_strip, strip, update


@pytest.fixture(scope="module")
def drawn() -> str:
    return strip()


def test_the_committed_pictures_are_of_the_committed_weights(drawn: str) -> None:
    assert same_strip(STRIP.read_bytes(), drawn.encode())
    assert same_png(PICTURE.read_bytes(), draw())


def test_a_picture_is_written_only_if_it_shows_something_else(tmp_path: Path, drawn: str) -> None:
    """Another machine's last digits would leave the clone dirty after `make book`."""
    path = tmp_path / "strip.svg"
    path.write_text(drawn, encoding="utf-8")
    rounded = re.sub(DECIMAL, lambda number: f"{float(number[0]) + 0.05:.2f}", drawn)
    update(path, rounded.encode(), same_strip)
    assert path.read_text(encoding="utf-8") == drawn
    pixels = re.findall(EMBEDDED, drawn)
    for changed in (drawn.replace("votes", "vote"), drawn.replace(pixels[0], pixels[-1])):
        update(path, changed.encode(), same_strip)
        assert path.read_text(encoding="utf-8") == changed
    grey = np.array(Image.open(PICTURE).convert("RGB"))
    grey[::3] ^= 1
    buffer = io.BytesIO()
    Image.fromarray(grey).save(buffer, "PNG")
    assert same_png(PICTURE.read_bytes(), buffer.getvalue())


def test_the_strip_can_stand_in_any_page_and_shows_a_seven(drawn: str) -> None:
    root = ET.fromstring(drawn)
    stages = [group.get("data-stage") for group in root.iter() if group.get("class") == "stage"]
    assert stages == ["image", "maps", "capsules", "votes", "lengths", "mask", "drawing"]
    names = {element.get("id") for element in root.iter() if element.get("id")}
    assert set(re.findall(r"url\(#([^)]+)\)", drawn)) == names  # nothing else is referred to
    # Only what has no meaning in colour is grey; the rest follows the page.
    colours = {f"var(--q-{css_name(name)}, {q.colour})" for name, q in QUANTITIES.items()}
    assert set(re.findall(r'fill="([^"]+)"', drawn)) - {"currentColor"} <= colours
    lengths = re.search(r'data-stage="lengths".*', drawn)[0]  # type: ignore[index]
    heights = [float(height) for height in re.findall(r' height="([\d.]+)"', lengths)]
    assert len(heights) == 10 and np.argmax(heights) == 7
