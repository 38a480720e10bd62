"""Two digits in the page: what is named and drawn is what PyTorch names and draws."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet.checkpoint import load_weights
from capsnet.data import load
from capsnet_book import ledger
from helpers.play import check_address, check_looks

TEST = load("mnist", train=False)
DIGITS = torch.stack([TEST.images[TEST.labels == k][:4, 0] for k in range(10)])

DATA = {"digits": DIGITS, "lengths": torch.zeros(10), "drawn": torch.zeros(2, 36, 36)}


@pytest.fixture
def bench(page_of: Any, folder: Path) -> Any:
    (folder / "data").mkdir(exist_ok=True)
    weights = ledger.path("multimnist/weights.safetensors")
    shutil.copy(weights, folder / "data/multimnist.safetensors")
    return lambda **options: page_of("pairs", DATA, **options)


def overlaid(first: int, second: int, right: int, down: int) -> torch.Tensor:
    """[1, 1, 36, 36]."""
    image = torch.zeros(36, 36)
    image[4:32, 4:32] += DIGITS[first, 0] / 255
    image[4 + down : 32 + down, 4 + right : 32 + right] += DIGITS[second, 0] / 255
    return image.clamp(max=1)[None, None]


def test_dragged_digits_are_named_as_pytorch_names_them(bench: Any) -> None:
    tab = bench()
    size = ledger.path("multimnist/weights.safetensors").stat().st_size
    assert f"({size / 1e6:.1f} MB)" in tab.locator(".says").inner_text()  # nothing is loaded yet
    canvas = tab.locator("canvas").first
    box = canvas.bounding_box()
    x, y, pixel = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 36
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 2 * pixel, y - 3 * pixel, steps=3)  # from 2 to the right to 4
    tab.mouse.up()
    tab.wait_for_function(
        "document.querySelector('.says').textContent.startsWith('It names')", timeout=30_000
    )
    check_address(tab, "x=4&y=-3")
    image = overlaid(4, 6, 4, -3)
    model, _ = load_weights(ledger.path("multimnist/weights.safetensors"))
    with torch.no_grad():
        v = model.encode(image)
        lengths = v.norm(dim=2)[0]
        drawn = model.decoder(v, torch.tensor([4]))[0, 0]
    assert set(lengths.topk(2).indices.tolist()) == {4, 6}
    assert "names 4 (green) and 6 (magenta)" in tab.locator(".says").inner_text()
    # The lengths may still be those of the place before: the last answer comes last.
    tab.wait_for_function(
        "want => Math.abs(Number(document.querySelectorAll('.bars .value')[4].textContent) - want)"
        " < 0.0061",
        arg=lengths[4].item(),
    )
    shown = [float(text) for text in tab.locator(".bars .value").all_inner_texts()]
    assert shown == pytest.approx(lengths.tolist(), abs=0.0061)
    tab.wait_for_timeout(300)
    green = tab.evaluate(
        """() => {
            const canvas = document.querySelectorAll("canvas")[1];
            const { data } = canvas.getContext("2d").getImageData(0, 0, 36, 36);
            return [...data].filter((_, k) => k % 4 === 1);
        }"""
    )
    torch.testing.assert_close(torch.tensor(green).view(36, 36) / 255, drawn, atol=0.006, rtol=0)


def test_the_sliders_move_it_too_and_a_finding_can_be_sent(bench: Any) -> None:
    tab = bench()
    tab.get_by_label("down").fill("-4")
    tab.get_by_role("group", name="second").get_by_label("9").check()
    check_address(tab, "b=9", "y=-4")
    there = bench(state=tab.evaluate("location.hash").split("?")[1])
    assert there.get_by_label("down").input_value() == "-4"
    check_address(there, "b=9")
    there.get_by_role("button", name="Reset").click()
    there.wait_for_function("!location.hash")


@pytest.mark.parametrize("phone", [False, True])
def test_it_is_accessible_and_fits(bench: Any, phone: bool) -> None:
    tab = bench(phone=phone)
    check_looks(tab)
