"""A roof and a wall in the page: what they predict is what the chapter's matrices say."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet_book import parts
from capsnet_book.figures.parts import placed
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
W = torch.stack(
    [
        torch.stack([parts.matrix(*parts.SEEN[kind, whole]) for whole in parts.WHOLES])
        for kind in parts.PAIR
    ]
)
DATA = {
    "outlines": [parts.OUTLINES[kind] for kind in parts.PAIR],
    "W": W,
    "start": [[0, 0.4, 0], [0, -0.2, 0]],
}


@pytest.fixture
def board(page_of: Opens) -> Any:
    return page_of("parts", DATA)


def corners(tab: Any, where: str) -> list[Tensor]:
    """Of each polygon, x to the right and y up."""
    shapes = [each.get_attribute("points") for each in tab.locator(f"{where} polygon").all()]
    sign = torch.tensor([1.0, -1.0])
    return [
        sign * torch.tensor([[float(x) for x in pair.split(",")] for pair in shape.split()])
        for shape in shapes
    ]


def check(tab: Any, whole: str, *poses: Tensor) -> float:
    """The parts stand there, and the ghosts are what their matrices predict; how far apart."""
    for kind, where, shape in zip(parts.PAIR, poses, corners(tab, ".part"), strict=True):
        torch.testing.assert_close(
            shape, torch.tensor(placed(kind, where)).float(), atol=0.02, rtol=0
        )
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


def test_a_house_agrees_however_it_is_turned(board: Any) -> None:
    roof, wall = parts.pose(0, 0.4, 0), parts.pose(0, -0.2, 0)
    assert check(board, "house", roof, wall) < 1e-5
    board.get_by_text("a boat", exact=True).click()
    assert check(board, "boat", roof, wall) > 1
    board.get_by_text("a house", exact=True).click()
    board.get_by_label("turn both").fill("170")
    angle = torch.tensor(170.0).deg2rad()
    turn = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]])
    both = torch.block_diag(turn, turn)
    assert check(board, "house", both @ roof, both @ wall) < 1e-5
    assert board.locator(".try li").first.get_attribute("class") == "solved"
    check_address(board, "all=170")
    board.get_by_role("button", name="Reset").click()
    assert check(board, "house", roof, wall) < 1e-5
    board.wait_for_function("location.hash == ''")


def test_a_dragged_roof_agrees_no_more(board: Any) -> None:
    box = board.locator(".part").first.bounding_box()
    unit = board.locator(".plane").evaluate("view => view.getScreenCTM().a")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    board.mouse.move(x, y)
    board.mouse.down()
    board.mouse.move(x + 0.75 * unit, y + 0.1 * unit, steps=3)
    board.mouse.up()
    board.mouse.move(x, y)  # let go: it stays
    roof, wall = parts.pose(0.75, 0.3, 0), parts.pose(0, -0.2, 0)
    assert check(board, "house", roof, wall) == pytest.approx((0.75**2 + 0.1**2) ** 0.5, abs=0.02)
    board.get_by_label("turn the roof").fill("-35")
    check(board, "house", parts.pose(0.75, 0.3, -35), wall)
    check_address(board, "%2C-35&", "all=0")


def test_of_the_same_parts_a_boat(page_of: Opens) -> None:
    """By the keys alone, from a state in the address."""
    hull = parts.pose(-0.1, -0.3, 90)
    sail = parts.build("boat", W[1, 1] @ hull)[0][1]
    x, y = (round(number, 2) for number in sail[:2].tolist())
    tab = page_of("parts", DATA, state=f"whole=boat&roof={x - 0.2},{y},-90&wall=-0.1,-0.3,90")
    wall = parts.pose(-0.1, -0.3, 90)
    assert check(tab, "boat", parts.pose(x - 0.2, y, -90), wall) < 0.3
    roof = tab.get_by_role("slider", name="the roof", exact=True)
    for key in ("ArrowUp", *["ArrowRight"] * 4, "ArrowDown"):
        roof.press(key)
    assert check(tab, "boat", parts.pose(x, y, -90), wall) < 0.02
    assert f"right {x:.2f}" in roof.get_attribute("aria-valuetext").replace("−", "-")
    assert tab.locator(".try li").last.get_attribute("class") == "solved"
    assert "It is a boat!" in tab.locator(".said").inner_text()


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, phone: bool) -> None:
    tab = page_of("parts", DATA, phone=phone)
    check_looks(tab)
    tab.get_by_text("a boat", exact=True).click()
    check_looks(tab)
    if phone:
        check_targets(tab)
