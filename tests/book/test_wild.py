"""What the chapter *Other implementations* shows: costs, source, a board."""

import pytest

from capsnet_book import wild
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS


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


def test_the_board_says_who_has_what_and_what_it_costs() -> None:
    costs = {"leak": "+0.50 points", "all of geron": "+1.00 points"}
    board = wild.board(costs | {"mean-margin, halved-margin": "+0.10 points"})
    rows = {row["name"]: row for row in board["deviations"]}
    assert list(rows) == list(DEVIATIONS)
    networks = {each["name"]: each for each in board["networks"]}
    for name, made in IMPLEMENTATIONS.items():
        own = {deviation.name for deviation in made.deviations}
        assert own == {each for each, row in rows.items() if name in row["who"]}
        assert (name in networks) == bool(own)
    assert rows["leak"]["cost"] == "+0.50 points"
    assert rows["halved-margin"]["cost"] == "+0.10 points, with mean-margin"
    assert rows["bare-norm"]["cost"] == wild.NOT_ALONE
    assert networks["geron"]["cost"] == "+1.00 points"
