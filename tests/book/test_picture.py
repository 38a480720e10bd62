"""The pictures outside of chapters are what the committed weights make of test images."""

import re
import xml.etree.ElementTree as ET

import numpy as np

from picture import PICTURE, draw, same
from strip import CHAPTER, add_strip


def test_the_committed_picture_is_of_the_committed_weights() -> None:
    assert same(PICTURE.read_bytes(), draw())


def test_the_strip_shows_a_seven_in_the_page_s_colours() -> None:
    context = {"body": "<p/>", "pathto": "{}.html".format}
    add_strip(None, "book/margin", "", context)  # type: ignore[arg-type]
    root = ET.fromstring(f"<body>{context['body']}</body>")
    svg = "{http://www.w3.org/2000/svg}"
    stages = root.findall(f".//{svg}text")
    assert [stage.text for stage in stages] == [*CHAPTER]
    links = [link.get("href") for link in root.iter(f"{svg}a")]
    assert links == [f"book/{chapter}.html" for chapter in CHAPTER.values()]
    (lit,) = root.findall(f".//{svg}g[@class='stage here']")
    assert lit.find(f"{svg}text").text == "lengths"  # type: ignore[union-attr]
    heights = [float(bar.get("height", 0)) for bar in lit.iter(f"{svg}rect")]
    assert len(heights) == 10 and np.argmax(heights) == 7
    names = {element.get("id") for element in root.iter() if element.get("id")}
    assert set(re.findall(r"url\(#([^)]+)\)", context["body"])) == names
    # Only what has no meaning in colour is grey; the rest follows the page.
    colours = {f"var(--q-{quantity})" for quantity in ("u", "uhat", "v")}
    assert set(re.findall(r'fill="([^"]+)"', context["body"])) == {"currentColor", *colours}
