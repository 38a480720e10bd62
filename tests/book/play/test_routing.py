"""The playground of routing: dragged, stepped and compared with ``capsnet``."""

import re
from typing import Any
from urllib.parse import parse_qs

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.functional import RoutingStep, dynamic_routing
from capsnet_book import parts
from helpers.board import DATA
from helpers.play import check_address, check_looks

PHASES = ["softmax", "sum", "squash", "agree"]


@pytest.fixture
def board(page_of: Any) -> Any:
    return page_of("routing", DATA)


def moved(tab: Any) -> Tensor:
    """The votes that the address says, [1, 6, 2, 2]."""
    tab.wait_for_timeout(400)  # the address follows when the reader rests
    check_address(tab, "votes")
    sent = parse_qs(tab.evaluate("location.hash").split("?")[1])["votes"][0]
    return torch.tensor([float(x) / 1000 for x in sent.split()]).double().view(1, 6, 2, 2)


def trace(votes: Tensor) -> list[RoutingStep]:
    steps: list[RoutingStep] = []
    dynamic_routing(votes, 8, trace=steps)
    return steps


def to(tab: Any, iteration: int, phase: str) -> None:
    tab.locator(".clock input").fill(str(4 * (iteration - 1) + PHASES.index(phase)))


def shares(tab: Any) -> Tensor:
    """The shares as the table says them, [6, 2]."""
    rows = tab.locator("tbody tr").all()
    return torch.tensor(
        [[float(row.locator("td").nth(k).inner_text()) for k in (0, 2)] for row in rows]
    )


def drag(tab: Any, parent: int, child: int, x: float, y: float) -> None:
    """Take the child's vote by its number to (x, y) in the parent's disc."""
    disc = tab.locator(".discs svg[role=group]").nth(parent)
    rim = disc.locator(".rim").bounding_box()
    knob = disc.locator(".knob").nth(child).bounding_box()
    tab.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2)
    tab.mouse.down()
    radius = rim["width"] / 2
    tab.mouse.move(rim["x"] + radius * (1 + x), rim["y"] + radius * (1 - y), steps=4)
    tab.mouse.up()


def test_the_six_parts_are_routed_as_capsnet_routes_them(board: Any) -> None:
    for number, step in enumerate(trace(parts.votes().double()), start=1):
        to(board, number, "squash")
        torch.testing.assert_close(shares(board), step.coupling[0].float(), atol=0.0051, rtol=0)
        a, b = step.v[0].norm(dim=1).tolist()
        said = board.locator(".says").first.inner_text()
        assert f"A is {a:.2f} long, B {b:.2f}" in said


def test_a_dragged_vote_changes_what_the_parents_say(board: Any) -> None:
    drag(board, 0, 4, 0.3, 0.8)  # child 5 goes over to those of A
    to(board, 3, "squash")
    votes = moved(board)
    torch.testing.assert_close(votes[0, 4, 0], torch.tensor([0.3, 0.8]).double(), atol=0.02, rtol=0)
    step = trace(votes)[2]
    torch.testing.assert_close(shares(board), step.coupling[0].float(), atol=0.0051, rtol=0)
    assert step.coupling[0, 4, 0] > 0.5
    a, b = step.v[0].norm(dim=1).tolist()
    assert f"A is {a:.2f} long, B {b:.2f}" in board.locator(".says").first.inner_text()


def test_it_goes_phase_by_phase_forwards_and_back(board: Any) -> None:
    pressed = board.locator(".phase[aria-pressed=true] strong")
    seen = [pressed.inner_text()]
    for _ in range(5):
        board.get_by_label("one phase on").click()
        seen.append(pressed.inner_text())
    assert seen == [*PHASES, "softmax", "sum"]
    board.locator(".discs .output").first.wait_for(state="attached")
    assert board.locator(".discs .output").first.get_attribute("d") is None  # not yet
    assert board.locator(".discs .ghost").first.get_attribute("d")  # but the last one's
    board.get_by_label("one phase back").click()
    assert pressed.inner_text() == "softmax"
    board.locator(".clock input").press("ArrowRight")
    assert pressed.inner_text() == "sum"
    assert board.locator(".clock output").inner_text() == "2 · sum"
    board.get_by_label("one iteration on").click()
    assert board.locator(".clock output").inner_text() == "3 · sum"
    board.get_by_label("one iteration back").click()
    assert board.locator(".clock output").inner_text() == "2 · sum"


def test_each_phase_shows_its_line_of_the_source(board: Any) -> None:
    shown = board.locator(".phase code").all_inner_texts()
    assert shown == DATA["lines"]
    assert shown[0] == "c = F.softmax(b, dim=2)"


def test_the_common_slip_is_one_switch_away(board: Any) -> None:
    board.get_by_label("children", exact=True).check()
    to(board, 3, "squash")
    votes = parts.votes()
    b = torch.zeros(1, 6, 2)
    for _ in range(3):
        c = F.softmax(b, dim=1)
        s = torch.einsum("nij,nijd->njd", c, votes)
        v = s * s.norm(dim=2, keepdim=True) / (1 + s.square().sum(dim=2, keepdim=True))
        b = b + torch.einsum("nijd,njd->nij", votes, v)
    torch.testing.assert_close(shares(board), c[0], atol=0.0051, rtol=0)
    assert shares(board).sum(dim=1).min() < 0.5  # of a whole
    to(board, 3, "softmax")
    assert "Each parent has one whole to give" in board.locator(".says").first.inner_text()


@pytest.mark.parametrize("preset", ["Nobody agrees", "Two camps", "All the same", "Opposites"])
def test_a_preset_is_routed_too(board: Any, preset: str) -> None:
    assert board.locator(".scene").is_visible()
    board.get_by_role("button", name=preset).click()
    assert not board.locator(".scene").is_visible()  # these are no votes of its parts
    to(board, 8, "squash")
    step = trace(moved(board))[7]
    torch.testing.assert_close(shares(board), step.coupling[0].float(), atol=0.0051, rtol=0)
    a, b = step.v[0].norm(dim=1).tolist()
    assert f"A is {a:.2f} long, B {b:.2f}" in board.locator(".says").first.inner_text()
    if preset in ("All the same", "Opposites"):  # routing has nothing to choose by
        torch.testing.assert_close(shares(board), torch.full((6, 2), 0.5))


def test_tasks_know_when_they_are_solved(board: Any) -> None:
    solved = board.locator(".try .solved")
    assert solved.count() == 0
    to(board, 3, "squash")
    drag(board, 0, 4, 0.35, 0.93)
    drag(board, 1, 4, -0.6, -0.6)
    assert solved.count() == 1
    board.get_by_role("button", name="Reset").click()
    assert solved.count() == 0
    board.get_by_label("children", exact=True).check()
    to(board, 8, "softmax")
    assert solved.count() == 1  # the third: a child gives hardly anything
    for child in range(6):
        drag(board, 1, child, 0.1, 0.97)
        drag(board, 0, child, [0.9, -0.9][child % 2], 0)
    assert solved.count() == 2


def test_a_vote_moves_by_the_keys(board: Any) -> None:
    vote = board.get_by_role("slider", name="vote of child 5 for A")
    before = vote.get_attribute("aria-valuetext")
    vote.focus()
    for _ in range(4):
        board.keyboard.press("ArrowUp")
    assert vote.get_attribute("aria-valuetext") != before
    up = parts.votes()[0, 4, 0, 1].item() + 0.2
    assert moved(board)[0, 4, 0, 1].item() == pytest.approx(up, abs=2e-3)


def test_a_finding_can_be_sent(board: Any, page_of: Any) -> None:
    drag(board, 1, 0, -0.2, 0.7)
    to(board, 5, "agree")
    sent = moved(board)
    there = page_of("routing", DATA, state=board.evaluate("location.hash").split("?")[1])
    assert there.locator(".clock output").inner_text() == "5 · agree"
    torch.testing.assert_close(shares(there), shares(board))
    torch.testing.assert_close(moved(there), sent)
    broken = page_of("routing", DATA, state="votes=1+2&t=99&over=nobody")
    assert broken.locator(".clock output").inner_text() == "1 · softmax"


@pytest.mark.parametrize("phone", [False, True])
def test_it_is_accessible_and_fits(page_of: Any, phone: bool) -> None:
    tab = page_of("routing", DATA, phone=phone)
    to(tab, 3, "agree")
    check_looks(tab)


def test_a_vote_moves_by_a_thumb(page_of: Any) -> None:
    tab = page_of("routing", DATA, phone=True)
    knob = tab.get_by_role("slider", name="vote of child 6 for B")
    knob.scroll_into_view_if_needed()
    box = knob.locator(".grip").bounding_box()
    assert min(box["width"], box["height"]) >= 40
    before = knob.get_attribute("aria-valuetext")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = tab.context.new_cdp_session(tab)
    there = tab.evaluate("scrollY")
    for kind, dy in (
        ("touchStart", 0),
        *(("touchMove", -k) for k in range(5, 65, 5)),
        ("touchEnd", None),
    ):
        points = [] if dy is None else [{"x": x, "y": y + dy}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert re.search(r"up -?\d", knob.get_attribute("aria-valuetext"))
    assert knob.get_attribute("aria-valuetext") != before
    after = knob.locator(".grip").bounding_box()
    assert (
        box["y"] - after["y"] > 40 and tab.evaluate("scrollY") == there
    )  # it moves, the page does not
