"""Squash, the margin loss, and a roof and a wall, in the page: numbers are those of PyTorch."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet.functional import margin_loss, squash
from capsnet_book import parts
from capsnet_book.figures.parts import placed
from helpers.pages import drag, middle, numbers

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
# The arrow of each class: from where, how far (a signed part of the bar), if there is one.
ARROWS = """() => [...document.querySelectorAll(".play .each:not(.heads)")].map((row) => {
    const kind = row.querySelector(".pull").className.split(" ")[1];
    const long = Number(row.style.getPropertyValue("--long"));
    return kind === "none" ? 0 : kind === "up" ? long : -long;
})"""


def check_v(tab: Any) -> list[float]:
    """The arrow v is the squash of where the tip of s stands."""
    now = tab.evaluate(STANDS)
    v = squash(torch.tensor(now["s"], dtype=torch.float64), dim=0)
    turn = math.radians(now["turn"])
    drawn = now["v"] * torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
    torch.testing.assert_close(drawn, v, atol=0.01, rtol=0)
    return now["s"]


def test_v_follows_s_and_slopes_are_those_of_autograd(page_of: Any) -> None:
    tab = page_of("squash")
    now = tab.evaluate(STANDS)
    at = now["s"]
    for to in ((-1.2, 0.8), (0.3, -0.4), (0, 0), (-2.0, -1.0)):
        places = [(now["x0"] + x * now["r"], now["y0"] - y * now["r"]) for x, y in (at, to)]
        drag(tab, *places)
        at = check_v(tab)
        assert at == pytest.approx(to, abs=0.03)
    tab.get_by_label("length ‖s‖").fill("0.5")
    assert math.hypot(*check_v(tab)) == pytest.approx(0.5, abs=0.01)
    assert tab.locator(".said").inner_text().endswith("0.25 / 1.25 = 0.20")
    for r in (0.0, 0.2, 1.0, 3.0):
        s = torch.tensor([r, 0.0], dtype=torch.float64)
        matrix = torch.autograd.functional.jacobian(lambda x: squash(x, dim=0), s)
        slopes = tab.evaluate("async r => (await import('./squash.js')).slopes(r)", r)
        assert slopes["along"] == pytest.approx(matrix[0, 0].item(), abs=1e-9)
        assert slopes["across"] == pytest.approx(matrix[1, 1].item(), abs=1e-9)


def check_losses(
    tab: Any, lengths: list[float], present: list[int], down_weight: float = 0.5
) -> None:
    """Each class's loss, the sums and the arrows are those of the module, by autograd."""
    norms = torch.tensor(lengths, dtype=torch.float64, requires_grad=True)
    labels = torch.zeros(10, dtype=torch.float64)
    labels[present] = 1
    each = torch.stack([
        margin_loss(norms[None, [k]], labels[None, [k]], down_weight=down_weight)
        for k in range(10)
    ])  # fmt: skip
    (gradient,) = torch.autograd.grad(each.sum(), norms)
    assert numbers(tab, ".each output") == pytest.approx(each.tolist(), abs=0.0051)
    up, down = (-gradient).clamp(min=0).sum(), gradient.clamp(min=0).sum()
    said = f"Loss in all: {each.sum():.3f}. Pull up: {up:.2f}. Push down: {down:.2f}."
    assert tab.locator(".play .said").inner_text() == said
    assert tab.evaluate(ARROWS) == pytest.approx((-0.25 * gradient).tolist(), abs=0.002)


def test_the_margin_loss_and_its_arrows(page_of: Any) -> None:
    lengths = [0.0, 1.0, 0.9, 0.8, 0.1, 0.55, 0.31, 0.02, 0.95, 0.5]
    percent = ",".join(f"{100 * each:.0f}" for each in lengths)
    tab = page_of("margin", state=f"lengths={percent}&there=058")
    check_losses(tab, lengths, [0, 5, 8])
    tab.get_by_label("length of the capsule of 9").fill("0.2")
    tab.get_by_label("5 is in the image").uncheck()
    tab.get_by_label("9 is in the image").check()
    tab.get_by_label("fully, λ = 1").check()
    check_losses(tab, [*lengths[:9], 0.2], [0, 8, 9], 1.0)
    tab.get_by_role("button", name="Reset").click()
    tab.get_by_role("button", name="All the same").click()
    check_losses(tab, [0.5] * 10, [3])
    assert "+ 1, 2, 4–9" in tab.locator(".play .graphs svg").first.text_content()  # under 0's dot
    follow = tab.get_by_role("button", name="Follow the arrows")
    while follow.is_enabled():  # to where nothing pulls
        follow.click()
    shown = [float(each.input_value()) for each in tab.locator(".play input[type=range]").all()]
    assert shown == pytest.approx([0.9 if k == 3 else 0.1 for k in range(10)], abs=0.011)


def corners(tab: Any, where: str) -> list[Tensor]:
    """Of each polygon, x to the right and y up."""
    shapes = [each.get_attribute("points") for each in tab.locator(f"{where} polygon").all()]
    sign = torch.tensor([1.0, -1.0])
    return [
        sign * torch.tensor([[float(x) for x in pair.split(",")] for pair in shape.split()])
        for shape in shapes
    ]


def check_parts(tab: Any, W: Tensor, whole: str, *poses: Tensor) -> float:
    """The parts stand there, and the ghosts are what their matrices predict; how far apart."""
    for kind, where, shape in zip(parts.PAIR, poses, corners(tab, ".part"), strict=True):
        expected = torch.tensor(placed(kind, where)).float()
        torch.testing.assert_close(shape, expected, atol=0.02, rtol=0)
    j = parts.WHOLES.index(whole)
    votes = [W[i, j] @ where for i, where in enumerate(poses)]
    for name, vote in zip(("roof", "wall"), votes, strict=True):
        built = [placed(kind, where) for kind, where in parts.build(whole, vote)]
        for shape, outline in zip(corners(tab, f".by-{name}"), built, strict=True):
            torch.testing.assert_close(shape, torch.tensor(outline).float(), atol=0.02, rtol=0)
    distance = (votes[0] - votes[1]).norm().item()
    said = tab.locator(".said").inner_text()
    assert float(re.search(r"are ([\d.]+) apart", said)[1]) == pytest.approx(distance, abs=0.06)
    assert ("they agree" in said) == (distance <= 0.3)
    return distance


def test_a_roof_and_a_wall_predict_what_their_matrices_say(page_of: Any, data_of: Any) -> None:
    tab, W = page_of("parts"), data_of("parts")["W"]
    roof, wall = parts.pose(0, 0.4, 0), parts.pose(0, -0.2, 0)
    assert check_parts(tab, W, "house", roof, wall) < 1e-5
    tab.get_by_text("a boat", exact=True).click()
    assert check_parts(tab, W, "boat", roof, wall) > 1
    tab.get_by_text("a house", exact=True).click()
    tab.get_by_label("turn both").fill("170")
    angle = torch.tensor(170.0).deg2rad()
    turn = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]])
    both = torch.block_diag(turn, turn)
    assert check_parts(tab, W, "house", both @ roof, both @ wall) < 1e-5
    tab.get_by_role("button", name="Reset").click()
    x, y = middle(tab.locator(".part").first)
    unit = tab.locator(".plane").evaluate("view => view.getScreenCTM().a")
    drag(tab, (x, y), (x + 0.75 * unit, y + 0.1 * unit))
    far = check_parts(tab, W, "house", parts.pose(0.75, 0.3, 0), wall)
    assert far == pytest.approx((0.75**2 + 0.1**2) ** 0.5, abs=0.02)
