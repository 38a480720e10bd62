"""The rule by which the chapter *What capsules do and do not solve* judges claims."""

from statistics import mean, stdev

import pytest
import torch
from scipy import stats

from capsnet import CapsNet
from capsnet.data import ImageSet
from capsnet_book import claims, ledger, matched
from capsnet_book.claims import Claim, difference

MORE = {0: 1.2, 1: 1.8, 2: 1.1, 3: 1.4}
FEWER = {0: 1.0, 1: 1.3, 2: 1.0, 3: 1.1}
HUGE = {seed: 20 + error for seed, error in MORE.items()}
LESS_STILL = {seed: rate - 1 + seed / 10 for seed, rate in FEWER.items()}


@pytest.mark.parametrize(
    ("claim", "adjusted_p", "expected"),
    [
        (Claim(MORE, LESS_STILL), 0.01, "confirmed"),
        (Claim(LESS_STILL, MORE), 0.01, "refuted"),
        (Claim(MORE, LESS_STILL), 0.06, "open"),
        (Claim(MORE, FEWER, at_least=9.0), 0.06, "no difference as large as claimed"),
        (Claim(MORE, FEWER, at_least=9.0, other_rate=Claim(HUGE, FEWER)), 0.06, "open"),
        (Claim(MORE, LESS_STILL, fair=False), 0.01, "open"),
        (Claim({0: 2.0, 1: 2.1}, {0: 1.0, 1: 1.2}, paired=False), 0.01, "open"),
        (
            Claim(MORE, LESS_STILL, other_rate=Claim(LESS_STILL, MORE)),
            0.01,
            "depends on the learning rate",
        ),
        (Claim(MORE, LESS_STILL, other_rate=Claim(MORE, LESS_STILL)), 0.01, "confirmed"),
    ],
)
def test_a_verdict(claim: Claim, adjusted_p: float, expected: str) -> None:
    assert claims.verdict(claim, difference(claim), adjusted_p) == expected


def test_tables_of_other_analyses() -> None:
    declared, on_test = claims.declared(), claims.declared("test")
    head, *rows = claims.by_other_means()
    assert {row[0] for row in rows} == declared.keys() - {"error"} and len(head) == 4
    row = {name: rest for name, *rest in rows}["pooled CNN, 100 labels"]
    found = difference(declared["pooled CNN, 100 labels"])
    assert row[0] == f"{found.points:+.2f} ± {found.half:.2f}"
    more, fewer = (list(of.values()) for of in (on_test["pairs"].more, on_test["pairs"].fewer))
    low, high = stats.ttest_rel(more, fewer).confidence_interval(0.95)
    row = {name: rest for name, *rest in rows}["pairs"]
    assert row[1].endswith(f"{(high - low) / 2:.2f}")
    head, *rows = claims.by_row("places", "gpu", "middle")
    runs = ledger.trainings("places", "gpu")["CNN"].values()
    errors = [100 - run["middle"]["correct"] / 100 for run in runs]
    assert ("CNN", f"{mean(errors):.2f}", f"{stdev(errors):.2f}", "3") in rows and len(head) == 4


def test_claims_are_glued_for_the_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    glued: dict[str, str] = {}
    monkeypatch.setattr(claims, "glue", glued.__setitem__)
    assert claims.quoted("pairs") == {"pairs": claims.judged()["pairs"]}
    assert glued["pairs"].endswith("points more") and glued["verdict, pairs"] == "refuted"


@pytest.mark.parametrize(
    ("level", "errors"), [(4.0, 10.0), (3.0, 9.0), (2.5, 8.5), (1.0, 6.0), (2.0, 8.0)]
)
def test_errors_at_a_level_lie_on_straight_lines(level: float, errors: float) -> None:
    course = [(5.0, 11.0), (3.0, 9.0), (2.0, 8.0), (2.5, 7.0), (1.0, 6.0)]
    assert matched.at_level(course, level) == pytest.approx(errors)
    with pytest.raises(ValueError, match="no epoch falls"):
        matched.at_level(course, 0.5)


def test_networks_are_compared_where_all_their_runs_get() -> None:
    level = matched.common_level("3 iterations", "CNN")
    ends = {row: matched.courses(row) for row in ("3 iterations", "CNN")}
    lowest = [min(plain for plain, _ in run) for of in ends.values() for run in of.values()]
    assert level == max(lowest)
    claim = matched.at_common_level("CNN", "3 iterations")
    assert claim.more[0] == matched.at_level(ends["CNN"][0], level) and not claim.paired
    record = ledger.record("places", "CNN", 0, "gpu")
    last = (ledger.missed(record, "placed"), ledger.missed(record, "test"))
    assert ends["CNN"][0][-1] == pytest.approx(last)


def test_what_is_measured_on_a_network() -> None:
    torch.manual_seed(0)
    model = CapsNet((1, 28, 28), conv_channels=8, capsule_types=2)
    pixels = torch.randint(256, (120, 1, 28, 28), dtype=torch.uint8)
    images = ImageSet(pixels, torch.arange(120) % 10, tuple("0123456789"), "random")
    found = claims.of_network(model, images)
    out = model(images.images / 255)
    assert found["length"] == pytest.approx(out.lengths.max(dim=1).values.mean().item(), abs=1e-5)
    right = (out.lengths.argmax(dim=1) == images.labels).double().mean().item()
    assert found["accuracy"] == pytest.approx(right)
    assert found["sign"] < 1e-5 and 0 <= found["decided"] <= found["decided after 300"] <= 1
