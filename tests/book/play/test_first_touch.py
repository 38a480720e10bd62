"""The first thing that a visitor does, a drag on a page that was just opened, breaks nothing."""

import re
from typing import Any

import pytest
import torch

from helpers.pages import drag, draw_seven, greys, middle, numbers, settled

HANDLES = [
    ("parts", ".part"), ("routing", ".part"), ("routing", ".votes"), ("squash", "[role=slider]"),
]  # fmt: skip
BOXES = """() => [...document.querySelectorAll(".play svg")].filter((it) => it.checkVisibility())
    .map((it) => it.getBoundingClientRect()).map(({ x, y, width }) => [x, y, width])"""


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize(("widget", "place"), HANDLES)
def test_a_drag_moves_no_drawing_and_paints_no_ring_over_it(
    page_of: Any, widget: str, place: str, phone: bool
) -> None:
    tab = page_of(widget, phone=phone)
    handle = tab.locator(f".play {place}").first
    handle.scroll_into_view_if_needed()
    before = tab.evaluate(BOXES)
    x, y = middle(handle)
    drag(tab, (x, y), (x + 12, y - 12))
    assert [*map(pytest.approx, before)] == tab.evaluate(BOXES)
    handle.press("ArrowLeft")
    assert handle.evaluate("it => getComputedStyle(it).outlineStyle") == "none"


def test_a_drawing_is_kept_in_the_address(page_of: Any) -> None:
    tab = page_of("front")
    draw_seven(tab)
    tab.get_by_role("slider", name="turn my digit").fill("10")
    tab.get_by_role("slider", name="slant").press("ArrowRight")

    def shown() -> tuple[torch.Tensor, list[float], list[str]]:
        """The pad and the reconstruction, the lengths, and the sliders."""
        tab.get_by_text("alone, moved").wait_for()
        settled(tab)
        sliders = [each.input_value() for each in tab.get_by_role("slider").all()]
        return greys(tab, ".digit"), numbers(tab, ".bars .value"), sliders

    pictures, *before = shown()
    tab.wait_for_function("location.hash.includes('drawing=')")  # it follows after 300 ms
    tab.wait_for_timeout(400)
    state = tab.evaluate("location.hash.split('?')[1]")
    assert len(state) < 1000
    cut = page_of("front", state=re.sub(r"(drawing=\d+\.\w{9})[^&]*", r"\1", state))
    assert cut.inner_text(".sent") == "This address is incomplete"
    assert greys(cut, ".pad").any()
    page_of("front", state=state)
    again, *after = shown()
    torch.testing.assert_close(again, pictures, rtol=0, atol=2 / 255)
    assert after == before


# What is dragged first on the front page, by how many of the picture's widths and heights, and what
# then moves: the answer, or the slider of the measure.
FIRST = {
    "the pad": (".pad", (0.2, 0.3), ".says"),
    "the top of the frame": (".handles .grasp >> nth=0", (0.05, 0), ".sliders output >> nth=0"),
    "the side of the frame": (".handles .grasp >> nth=1", (0.03, 0), ".sliders output >> nth=1"),
}


@pytest.mark.parametrize(("first", "phone"), [*zip(FIRST, [True, False, True], strict=True)])
def test_the_first_drag_on_the_front_page_does_what_it_shows(
    page_of: Any, first: str, phone: bool
) -> None:
    tab = page_of("front", phone=phone)
    place, (right, down), follows = FIRST[first]
    handle = tab.locator(f".play {place}")
    handle.scroll_into_view_if_needed()
    boxes = "() => [...document.querySelectorAll('.play canvas')].map((it) => it.offsetTop)"
    stand, said = tab.evaluate(boxes), tab.inner_text(follows)
    side = tab.locator(".pad").bounding_box()["width"]
    assert side == pytest.approx(tab.locator(".handled canvas").bounding_box()["width"], abs=1)
    assert not phone or side < 0.65 * tab.viewport_size["width"]  # room for a thumb
    (x, y), before = middle(handle), greys(tab, ".drawn canvas")
    drag(tab, (x, y), (x + right * side, y + down * side))
    settled(tab)
    assert tab.inner_text(follows) != said
    assert tab.evaluate(boxes) == stand
    assert (greys(tab, ".drawn canvas") - before).abs().max() > 0.05
    if first != "the pad":  # as far as the hand went, not further than there are digits
        box = handle.bounding_box()
        assert box["x"] + box["width"] / 2 == pytest.approx(x + right * side, abs=2)


def test_a_wheel_scrolls_the_page_until_the_reconstruction_is_touched(page_of: Any) -> None:
    tab = page_of("front")
    handles, stroke = tab.locator(".handles"), tab.locator(".sliders output").last
    x, y = middle(handles)
    tab.mouse.move(x, y)
    said = stroke.inner_text()
    tab.mouse.wheel(0, -200)
    tab.wait_for_timeout(100)
    assert stroke.inner_text() == said
    tab.mouse.down()
    tab.mouse.up()
    tab.mouse.wheel(0, -200)
    tab.get_by_text("alone, moved").wait_for()
    assert float(stroke.inner_text().split()[0]) > float(said.split()[0])


def test_two_fingers_make_strokes_thicker(page_of: Any) -> None:
    tab = page_of("front", phone=True)
    tab.locator(".drawn").scroll_into_view_if_needed()
    x, y = middle(tab.locator(".handles"))
    stroke = tab.locator(".sliders output").last
    said = stroke.inner_text()
    touch = tab.context.new_cdp_session(tab)
    for kind, apart in (("touchStart", 20), ("touchMove", 30), ("touchMove", 40), ("touchEnd", 0)):
        points = [{"x": x + way * apart, "y": y, "id": way + 1} for way in (-1, 1) if apart]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    tab.get_by_text("alone, moved").wait_for()
    assert float(stroke.inner_text().split()[0]) > float(said.split()[0])


def test_what_was_wrong_is_grey_once_it_is_right_again(page_of: Any) -> None:
    tab = page_of("front")
    turner = tab.get_by_role("slider", name="turn my digit")
    turner.fill("45")
    tab.locator(".wrong:not(.past, :empty)").first.wait_for()
    turner.fill("-5")
    tab.locator(".wrong.past:not(:empty)").first.wait_for()
    tab.wait_for_function("!document.querySelector('.wrong:not(.past, :empty)')")
