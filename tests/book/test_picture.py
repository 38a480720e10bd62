"""The strip at the head of the chapters is what the committed weights make of a seven."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from capsnet_book.figures.macros import css_name
from capsnet_lab.figures.style import QUANTITIES
from picture import (
    DECIMAL,
    EMBEDDED,
    PICTURE,
    STRIP,
    same_png,
    same_strip,
    strip,
    update,
)

STAGES = ["image", "maps", "capsules", "votes", "lengths", "mask", "drawing"]


@pytest.fixture(scope="module")
def drawn() -> str:
    return strip()


@pytest.fixture(scope="module")
def committed() -> str:
    return STRIP.read_text(encoding="utf-8")


def images(svg: str) -> list[np.ndarray]:
    found = (io.BytesIO(base64.b64decode(data)) for data in re.findall(EMBEDDED, svg))
    return [np.asarray(Image.open(file).convert("RGBA"), dtype=float) for file in found]


def test_the_strip_is_of_the_committed_weights(committed: str, drawn: str) -> None:
    assert same_strip(committed.encode(), drawn.encode())


def test_a_picture_is_written_only_if_it_shows_something_else(tmp_path: Path, drawn: str) -> None:
    """Another machine's last digits would leave the clone dirty after `make book`."""

    def rounded(svg: str) -> str:
        return re.sub(DECIMAL, lambda number: f"{float(number[0]) + 0.05:.2f}", svg)

    path = tmp_path / "strip.svg"
    path.write_text(drawn, encoding="utf-8")
    update(path, rounded(drawn).encode(), same_strip)
    assert path.read_text(encoding="utf-8") == drawn
    pixel = re.findall(EMBEDDED, drawn)
    for changed in (drawn.replace("votes", "vote"), drawn.replace(pixel[0], pixel[-1])):
        update(path, changed.encode(), same_strip)
        assert path.read_text(encoding="utf-8") == changed
    committed = PICTURE.read_bytes()
    grey = np.asarray(Image.open(io.BytesIO(committed)).convert("RGB"))
    for shift, same in ((1, True), (40, False)):
        buffer = io.BytesIO()
        moved = np.uint8(
            np.clip(
                grey.astype(int) + shift * (np.indices(grey.shape[:2])[0] % 3 == 0)[..., None],
                0,
                255,
            )
        )
        Image.fromarray(moved).save(buffer, "PNG")
        assert same_png(committed, buffer.getvalue()) == same


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
