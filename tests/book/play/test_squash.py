"""Squash in the page: s is dragged, v follows by equation (1), the slopes are autograd's."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from capsnet.functional import squash
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
# Where the two arrows and the tip stand, in units of the plane: x to the right, y up.
STANDS = """() => {
    const unit = document.querySelector(".play circle.unit").getBoundingClientRect();
    const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
    const [x0, y0] = middle(unit);
    const [x, y] = middle(document.querySelector(".play .knob").getBoundingClientRect());
    const v = document.querySelector(".play g.v");
    const turn = Number(/rotate\\((.*?)\\)/.exec(v.getAttribute("transform"))[1]);
    const long = Number(/translate\\((.*?)\\)/.exec(v.lastChild.getAttribute("transform"))[1]);
    const r = unit.width / 2;
    return { s: [(x - x0) / r, (y0 - y) / r], v: long / 52, turn: -turn, x0, y0, r };
}"""


def check_v(tab: Any) -> torch.Tensor:
    """The arrow v is the squash of where the tip of s stands."""
    now = tab.evaluate(STANDS)
    s = torch.tensor(now["s"], dtype=torch.float64)
    v = squash(s, dim=0)
    turn = math.radians(now["turn"])
    drawn = now["v"] * torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
    torch.testing.assert_close(drawn, v, atol=0.01, rtol=0)
    return s


def test_v_follows_s_that_is_dragged(page_of: Opens) -> None:
    tab = page_of("squash")
    now = tab.evaluate(STANDS)
    check_v(tab)
    knob = now["x0"] + now["s"][0] * now["r"], now["y0"] - now["s"][1] * now["r"]
    tab.mouse.move(*knob)
    tab.mouse.down()
    for x, y in ((-1.2, 0.8), (0.3, -0.4), (0, 0), (-2.0, -1.0)):
        tab.mouse.move(now["x0"] + x * now["r"], now["y0"] - y * now["r"])
        assert check_v(tab).tolist() == pytest.approx([x, y], abs=0.03)
    tab.mouse.up()
    tab.mouse.move(*knob)  # let go: nothing follows
    assert check_v(tab).tolist() == pytest.approx([-2.0, -1.0], abs=0.03)
    check_address(tab, "length=2.2", "turn=20")


def test_equation_and_sliders(page_of: Opens) -> None:
    tab = page_of("squash")
    tab.get_by_label("length ‖s‖").fill("0.5")
    assert tab.locator(".said").inner_text().endswith("0.25 / 1.25 = 0.20")
    tab.get_by_label("direction").fill("200")
    assert math.isclose(torch.linalg.vector_norm(check_v(tab)).item(), 0.5, abs_tol=0.01)
    check_address(tab, "length=0.5", "turn=200")
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("location.hash == ''")
    assert tab.get_by_label("length ‖s‖").input_value() == "2"


def test_slopes_are_those_of_autograd(page_of: Opens) -> None:
    tab = page_of("squash", state="show=nudge&length=1.3&turn=40")
    assert tab.get_by_label("a nudge").is_checked()
    said = tab.locator(".said").inner_text()
    for r in (0.0, 0.2, 1.0, 1.3, 3.0):
        s = torch.tensor([r, 0.0], dtype=torch.float64)
        matrix = torch.autograd.functional.jacobian(lambda x: squash(x, dim=0), s)
        mine = tab.evaluate("async r => (await import('./squash.js')).slopes(r)", r)
        assert mine["along"] == pytest.approx(matrix[0, 0].item(), abs=1e-9)
        assert mine["across"] == pytest.approx(matrix[1, 1].item(), abs=1e-9)
        if r == 1.3:
            assert f"{0.1 * matrix[0, 0]:.3f}" in said and f"{0.1 * matrix[1, 1]:.3f}" in said


def test_keys_move_the_tip(page_of: Opens) -> None:
    tab = page_of("squash", state="length=1&turn=0")
    tip = tab.get_by_role("slider", name="The tip of s")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"):
        tip.press(key)
    assert check_v(tab).tolist() == pytest.approx([0.8, 0.2], abs=0.03)
    assert f"length {math.hypot(0.8, 0.2):.2f}" in tip.get_attribute("aria-valuetext")


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, phone: bool) -> None:
    tab = page_of("squash", phone=phone)
    check_looks(tab)
    tab.get_by_text("a nudge", exact=True).click()
    check_looks(tab)
    if phone:
        check_targets(tab)
