"""What the chapter *In the wild* shows: source made for a deviation, folds, a board."""

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
         ["- return F.softmax(logits, dim=2)", "+ return F.softmax(logits, dim=1)"]),
        ("batch-logits", ["- b = b + agreed", "+ b = b + agreed.mean(dim=0, keepdim=True)"]),
        ("mean-margin", ["+ loss = loss / out.lengths.shape[1]"]),
        ("same-padding", ["- pad = valid", "+ pad = same"]),
        ("shared-w", ["- return self.digits.predict(u)", "+ weight = self.digits.weight"]),
        ("digit-bias", ["+ s = s + self.bias"]),
        ("prediction-mask", ["- return labels", "+ return None"]),
        ("guard-1e-9", ["+ return (lengths.square() + 1e-09).sqrt()"]),
        ("two-iterations", ["- routing_iterations = 3", "+ routing_iterations = 2"]),
        ("small-w", ["- nn.init.trunc_normal_(self.weight, std=0.1, a=-0.2, b=0.2)",
                     "+ return nn.init.normal_(weight, std=0.01)"]),
        ("constant-rate", ["- schedule = exponential", "+ schedule = constant"]),
        ("one-shift-for-all", ["+ images = image_set.images[index]"]),
    ],
)  # fmt: skip
def test_the_change_of_the_source(name: str, changes: list[str]) -> None:
    found = wild.diff(DEVIATIONS[name])
    assert set(changes) <= set(found)
    assert len(found) <= 8 and not any("raise " in line or '"""' in line for line in found)


def test_each_changes_the_source_in_a_way_of_its_own() -> None:
    changes = ["\n".join(wild.diff(deviation)) for deviation in DEVIATIONS.values()]
    assert all("+ " in change for change in changes) and len(set(changes)) == len(changes)


def test_a_fold_says_all_of_a_deviation() -> None:
    costs = {"leak": "+0.50 points, 1 seed", "mean-margin, halved-margin": "+0.10 points"}
    page = wild.switchboard(costs, {"leak": "shares < 1"}).data
    folds = dict(re.findall(r"<details><summary><code>(.*?)</code>(.*?)</details>", page, re.S))
    assert list(folds) == list(DEVIATIONS)
    leak = unescape(folds["leak"])
    assert DEVIATIONS["leak"].paper in leak and DEVIATIONS["leak"].code in leak
    assert IMPLEMENTATIONS["sarasra-cifar10"].link in leak
    assert "+0.50 points, 1 seed" in leak and "not measured" not in leak
    assert "shares < 1" in leak
    assert "+0.10 points, with mean-margin<br>" in folds["halved-margin"]
    assert "<em>Fewer labels, other data</em>" in folds["leak"] and "<em>" not in folds["no-shift"]
    assert "not measured alone" in folds["bare-norm"] and RECIPE in folds["no-shift"]


def test_the_chapters_that_are_named_exist() -> None:
    titles = {
        page.read_text().partition("\n# ")[2].partition("\n")[0]
        for page in (ROOT / "book").glob("*.md")
    }
    assert wild.ELSEWHERE.keys() <= DEVIATIONS.keys() and set(wild.ELSEWHERE.values()) <= titles


def test_the_tests_that_are_named_exist() -> None:
    for deviation in DEVIATIONS.values():
        file, _, function = wild.test_of(deviation).partition("[")[0].partition("::")
        assert f"def {function}(" in (ROOT / file).read_text()


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
    assert rows["bare-norm"]["cost"] == wild.NOT_ALONE
    assert rows["unit-w"]["change"] == wild.diff(DEVIATIONS["unit-w"])
    assert networks["geron"]["cost"] == "+1.00 points, 1 seed"
