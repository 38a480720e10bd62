"""The margin loss in the page: ten lengths to drag, their losses and their gradient."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from capsnet.functional import margin_loss
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
CLASSES = 10
# The arrow of each class: from where, how far (a signed part of the bar), if there is one.
ARROWS = """() => [...document.querySelectorAll(".play .each:not(.heads)")].map((row) => {
    const kind = row.querySelector(".pull").className.split(" ")[1];
    const long = Number(row.style.getPropertyValue("--long"));
    return kind === "none" ? 0 : kind === "up" ? long : -long;
})"""


def check_shown(tab: Any, lengths: list[float], there: list[int], down_weight: float = 0.5) -> None:
    """Each class's loss, the sums and the arrows are those of the module, by autograd."""
    norms = torch.tensor(lengths, dtype=torch.float64, requires_grad=True)
    present = torch.zeros(CLASSES, dtype=torch.float64)
    present[there] = 1
    each = torch.stack([
        margin_loss(norms[None, [k]], present[None, [k]], down_weight=down_weight)
        for k in range(CLASSES)
    ])  # fmt: skip
    (gradient,) = torch.autograd.grad(each.sum(), norms)
    shown = [float(text) for text in tab.locator(".play .each output").all_inner_texts()]
    assert shown == pytest.approx(each.tolist(), abs=0.0051)
    up, down = (-gradient).clamp(min=0).sum(), gradient.clamp(min=0).sum()
    said = f"Loss in all: {each.sum():.3f}. Pull up: {up:.2f}. Push down: {down:.2f}."
    assert tab.locator(".play .said").inner_text() == said
    assert tab.evaluate(ARROWS) == pytest.approx((-0.25 * gradient).tolist(), abs=0.002)


def test_losses_and_arrows_are_the_modules(page_of: Opens) -> None:
    lengths = [0.0, 1.0, 0.9, 0.8, 0.1, 0.55, 0.31, 0.02, 0.95, 0.5]
    state = "lengths=" + ",".join(f"{100 * each:.0f}" for each in lengths)
    tab = page_of("margin", state=f"{state}&there=058")
    check_shown(tab, lengths, [0, 5, 8])
    tab.get_by_label("length of the capsule of 9").fill("0.2")
    tab.get_by_label("5 is in the image").uncheck()
    tab.get_by_label("9 is in the image").check()
    lengths[9] = 0.2
    check_shown(tab, lengths, [0, 8, 9])
    tab.get_by_label("fully, λ = 1").check()
    check_shown(tab, lengths, [0, 8, 9], 1.0)
    check_address(tab, "there=089", "absent=fully", "20")


def test_a_bar_is_dragged_and_moved_by_keys(page_of: Opens) -> None:
    tab = page_of("margin")
    bar = tab.get_by_label("length of the capsule of 3")
    box = bar.bounding_box()
    y = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + 7 + 0.55 * (box["width"] - 14), y)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 7 + 0.8 * (box["width"] - 14), y)
    tab.mouse.up()
    assert float(bar.input_value()) == pytest.approx(0.8, abs=0.02)
    before = float(bar.input_value())
    bar.press("ArrowRight")
    assert float(bar.input_value()) == pytest.approx(before + 0.01)
    assert bar.get_attribute("aria-valuetext").endswith("; pulled up")


def test_nine_push_and_one_pulls_until_nobody_does(page_of: Opens) -> None:
    tab = page_of("margin")
    tab.get_by_role("button", name="All the same").click()
    check_shown(tab, [0.5] * CLASSES, [3])
    follow = tab.get_by_role("button", name="Follow the arrows")
    for _ in range(30):
        if follow.is_disabled():
            break
        follow.click()
    assert follow.is_disabled()
    lengths = [0.9 if k == 3 else 0.1 for k in range(CLASSES)]
    sliders = tab.locator(".play input[type=range]")
    shown = [float(each.input_value()) for each in sliders.all()]
    assert shown == pytest.approx(lengths, abs=0.011)
    tab.get_by_role("button", name="An empty page").click()
    check_shown(tab, [0.05] * CLASSES, [])
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("location.hash == ''")
    assert tab.get_by_label("3 is in the image").is_checked()


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, phone: bool) -> None:
    tab = page_of("margin", phone=phone)
    check_looks(tab)
    if phone:
        check_targets(tab)
