"""What the chapter *Other implementations* shows: source, folds, a board."""

import re
from html import unescape

import pytest

from capsnet_book import wild
from capsnet_lab.check.checker import RECIPE
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS
from helpers import ROOT


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("softmax-over-children",
         ["- share = over_parents", "+     return F.softmax(logits, dim=1)"]),
        ("two-iterations", ["- routing_iterations = 3", "+ routing_iterations = 2"]),
        ("guard-1e-9", ["- squash = squash", "+ return lambda lengths: (lengths.square() + epsilon)"
                        ".sqrt()"]),
        ("relu-before-squash", ["- activation = unchanged", "+ activation = relu"]),
        ("no-shift", ["+ shift = 0"]),
    ],
)  # fmt: skip
def test_the_change_of_the_source(name: str, changes: list[str]) -> None:
    found = wild.diff(DEVIATIONS[name])
    assert set(changes) <= set(found)
    assert not any('"""' in line for line in found)


def test_a_fold_says_all_of_a_deviation() -> None:
    costs = {"leak": "+0.50 points, 1 seed", "mean-margin, halved-margin": "+0.10 points"}
    page = wild.switchboard(costs, {"leak": "shares < 1"}).data
    folds = dict(re.findall(r"<details><summary><code>(.*?)</code>(.*?)</details>", page, re.S))
    assert list(folds) == list(DEVIATIONS)
    leak = unescape(folds["leak"])
    link = IMPLEMENTATIONS["sarasra-cifar10"].link
    for text in (DEVIATIONS["leak"].paper, DEVIATIONS["leak"].code, link, costs["leak"]):
        assert text in leak
    assert "shares < 1" in leak and "<em>Few labels, other data</em>" in leak
    assert "+0.10 points, with mean-margin<" in folds["halved-margin"]
    assert wild.NOT_ALONE in folds["bare-norm"] and RECIPE in folds["no-shift"]
    titles = {
        page.read_text().partition("\n# ")[2].partition("\n")[0]
        for page in (ROOT / "book").glob("*.md")
    }
    assert wild.ELSEWHERE.keys() <= DEVIATIONS.keys() and set(wild.ELSEWHERE.values()) <= titles


def test_the_board_says_who_has_what_and_what_it_costs() -> None:
    board = wild.board({"leak": "+0.50 points, 1 seed", "all of geron": "+1.00 points, 1 seed"})
    rows = {row["name"]: row for row in board["deviations"]}
    assert list(rows) == list(DEVIATIONS)
    networks = {each["name"]: each for each in board["networks"]}
    for name, made in IMPLEMENTATIONS.items():
        own = {deviation.name for deviation in made.deviations}
        assert own == {each for each, row in rows.items() if name in row["who"]}
        assert (name in networks) == bool(own)
    assert rows["leak"]["cost"] == "+0.50 points, 1 seed"
    assert networks["geron"]["cost"] == "+1.00 points, 1 seed"
