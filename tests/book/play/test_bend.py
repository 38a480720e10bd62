"""A digit turned, sheared and scaled in the page: the image and the lengths are PyTorch's."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet_book import ledger
from helpers.play import check_address, check_looks

TEST = load("mnist", train=False)
FIRST = [int((TEST.labels == k).nonzero()[0]) for k in range(10)]
DATA = {
    "digits": TEST.images[FIRST, 0],
    "amounts": {"degrees": [-60, 0, 60], "shear": [-1, 0, 1], "size": [0.4, 1, 1.4]},
    "accuracy": {key: [0.25, 1.0, 0.5] for key in ("degrees", "shear", "size")},
    "images": 300,
    "lengths": torch.linspace(0, 0.9, 10),
    "drawn": torch.zeros(28, 28),
}


@pytest.fixture
def bench(page_of: Any, folder: Path) -> Any:
    (folder / "data").mkdir(exist_ok=True)
    shutil.copy(ledger.path("page/weights.safetensors"), folder / "data/page.safetensors")
    return lambda **options: page_of("bend", DATA, **options)


def bent(image: Tensor, degrees: float, shear: float, size: float) -> Tensor:
    """As the chapter bends an image, [1, 1, 28, 28]."""
    angle = torch.tensor(degrees).deg2rad()
    rotation = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).view(2, 2)
    A = rotation @ torch.tensor([[1.0, shear], [0.0, 1.0]]) * size
    grid = F.affine_grid(F.pad(torch.linalg.inv(A), (0, 1))[None], list(image.shape), False)
    return F.grid_sample(image, grid, align_corners=False)


@pytest.mark.parametrize("change", [(0, 0, 1), (20, 0.2, 1), (-45, -0.7, 0.6), (3, 1, 1.4)])
def test_an_image_is_bent_as_the_chapter_bends_it(bench: Any, change: tuple[float, ...]) -> None:
    image = to_float(TEST.images[FIRST[7], None])
    found = bench().evaluate(
        """async ([image, change]) => {
            const { bend, matrix } = await import("./warp.js");
            return [...bend(image, matrix(...change))];
        }""",
        [image.flatten().tolist(), change],
    )
    torch.testing.assert_close(
        torch.tensor(found).view_as(image), bent(image, *change), atol=1e-4, rtol=0
    )


def test_the_network_reads_along(bench: Any) -> None:
    tab = bench()
    size = ledger.path("page/weights.safetensors").stat().st_size
    assert f"({size / 1e6:.1f} MB)" in tab.locator(".says").inner_text()  # nothing is loaded yet
    tab.get_by_label("turn", exact=True).fill("30")
    tab.wait_for_function("document.querySelector('.says').textContent.startsWith('It reads')")
    model, _ = load_weights(ledger.path("page/weights.safetensors"))
    with torch.no_grad():
        lengths = model(bent(to_float(TEST.images[FIRST[7], None]), 30, 0, 1)).lengths[0]
    shown = [float(text) for text in tab.locator(".bars .value").all_inner_texts()]
    assert shown == pytest.approx(lengths.tolist(), abs=0.0061)
    assert f"It reads a {int(lengths.argmax())}" in tab.locator(".says").inner_text()
    assert "75 % rightly" in tab.locator(".says").inner_text()  # half-way from 100 to 50
    check_address(tab, "degrees=30")
    there = bench(state=tab.evaluate("location.hash").split("?")[1])
    assert there.get_by_label("turn", exact=True).input_value() == "30"


def test_the_dot_runs_along_the_curve_of_the_slider(bench: Any) -> None:
    tab = bench()
    tab.get_by_label("size", exact=True).fill("0.7")
    tab.wait_for_selector(".plot:visible")
    graph = tab.locator(".plot:visible")
    assert graph.count() == 1 and "right answers by size" in graph.get_attribute("aria-label")
    tab.get_by_role("button", name="Reset").click()
    assert "right answers by turn" in tab.locator(".plot:visible").get_attribute("aria-label")


@pytest.mark.parametrize("phone", [False, True])
def test_it_is_accessible_and_fits(bench: Any, phone: bool) -> None:
    tab = bench(phone=phone)
    check_looks(tab)
