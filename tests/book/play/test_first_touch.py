"""The first thing that a visitor does, a drag on a page that was just opened, breaks nothing."""

from typing import Any

import pytest
import torch

from helpers.pages import drag, draw_seven, greys, middle, numbers

HANDLES = {"parts": ".part", "routing": ".votes", "squash": "[role=slider]"}
BOXES = """() => [...document.querySelectorAll(".play svg")].filter((it) => it.checkVisibility())
    .map((it) => it.getBoundingClientRect()).map(({ x, y, width }) => [x, y, width])"""


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("widget", HANDLES)
def test_a_drag_moves_no_drawing_and_paints_no_ring_over_it(
    page_of: Any, widget: str, phone: bool
) -> None:
    tab = page_of(widget, phone=phone)
    handle = tab.locator(f".play {HANDLES[widget]}").first
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
    for name, value in (("Clear", ""), ("", "0.15")):
        if not name:
            draw_seven(tab)
            tab.get_by_role("slider", name="slant").fill(value)
            tab.get_by_text("alone, moved").wait_for()
        else:
            tab.get_by_role("button", name=name).click()
        tab.wait_for_selector(".play:not([aria-busy='true'])")
        tab.wait_for_timeout(400)  # the address follows after 300 ms
        shown, lengths = greys(tab, ".pad"), numbers(tab, ".bars .value")
        state = tab.evaluate("location.hash.split('?')[1]")
        assert state.startswith("drawing=") and len(state) < 1000
        tab = page_of("front", state=state)
        tab.wait_for_selector(".play:not([aria-busy='true'])")
        assert torch.equal(greys(tab, ".pad"), shown)
        assert numbers(tab, ".bars .value") == lengths
        assert tab.get_by_role("slider", name="slant").input_value() == (value or "0")


@pytest.mark.parametrize("phone", [False, True])
def test_nothing_drawn_is_said_without_covering_anything(page_of: Any, phone: bool) -> None:
    tab = page_of("front", phone=phone)
    tab.get_by_role("button", name="Clear").click()
    tab.locator(".says", has_text="empty page").wait_for()
    says, lengths, below = (
        tab.locator(f".play {place}").bounding_box() for place in (".says", ".lengths", ".below")
    )
    following = lengths if phone else below
    assert says["y"] + says["height"] <= following["y"]
    pad = tab.locator(".pad").bounding_box()
    assert not phone or pad["width"] < 0.65 * tab.viewport_size["width"]  # room for a thumb
