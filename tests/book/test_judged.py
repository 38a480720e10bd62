"""The rule by which the chapter *What capsules do and do not solve* judges claims."""

from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest
import torch
from scipy import stats

from capsnet import CapsNet
from capsnet.data import ImageSet
from capsnet_book import claims, ledger, matched
from capsnet_book.claims import Claim, difference

MORE = {0: 1.2, 1: 1.8, 2: 1.1, 3: 1.4}
FEWER = {0: 1.0, 1: 1.3, 2: 1.0, 3: 1.1}
LESS_STILL = {seed: rate - 1 + seed / 10 for seed, rate in FEWER.items()}
BETTER, WORSE, SAME = Claim(MORE, LESS_STILL), Claim(LESS_STILL, MORE), Claim(MORE, FEWER)
NEITHER = Claim(MORE, {seed: rate + 0.1 * (-1) ** seed for seed, rate in MORE.items()})
# Without the last run the difference is significant.
ALL_BUT_ONE = Claim(MORE | {4: 0.0}, LESS_STILL | {4: 1.0})
NONE_AS_LARGE = "no difference as large as claimed"


@pytest.mark.parametrize(
    ("claim", "adjusted_p", "expected"),
    [
        (BETTER, 0.01, "confirmed"),
        (WORSE, 0.01, "reversed here"),
        (replace(WORSE, words=claims.OF_FINDINGS), 0.01, "more errors"),
        (BETTER, 0.06, "open"),
        (replace(SAME, at_least=9.0), 0.06, NONE_AS_LARGE),
        (replace(SAME, at_least=0.75), 0.06, f"{NONE_AS_LARGE}, narrowly"),
        (replace(SAME, at_least=0.5), 0.06, "open"),
        (replace(SAME, at_least=0.75, other_rate=BETTER), 0.06, "open"),
        (replace(WORSE, rates=claims.SHORTER), 0.01, f"open: {claims.SHORTER}"),
        (replace(WORSE, rates=claims.SHORTER), 0.06, f"open: {claims.SHORTER}"),
        (replace(ALL_BUT_ONE, at_least=9.0), 0.06, f"{NONE_AS_LARGE}, narrowly"),
        (replace(SAME, at_least=9.0, rates=claims.SHORTER), 0.06, f"open: {claims.SHORTER}"),
        (replace(SAME, at_least=9.0, rates=claims.EDGE), 0.06, f"open: {claims.EDGE}"),
        (replace(SAME, at_least=9.0, rates=claims.EDGE, other_rate=SAME), 0.06, NONE_AS_LARGE),
        (replace(BETTER, rates=claims.SHORTER, other_rate=BETTER), 0.01, "confirmed"),
        (replace(SAME, at_least=2.0, ratio=True), 0.06, NONE_AS_LARGE),
        (replace(SAME, at_least=1.4, ratio=True), 0.06, "open"),
        (replace(SAME, at_least=1.4, ratio=True, other_rate=SAME), 0.06, "open"),
        (Claim({0: 2.0, 1: 2.1}, {0: 1.0, 1: 1.2}), 0.01, "open: fewer than three runs"),
        (replace(BETTER, other_rate=WORSE), 0.01, "depends on the learning rate"),
        (replace(BETTER, other_rate=BETTER), 0.01, "confirmed"),
        (replace(BETTER, by_writers=(BETTER, WORSE)), 0.01, "depends on the writers"),
        (replace(BETTER, by_writers=(BETTER, SAME)), 0.01, "confirmed"),
        (replace(BETTER, tuning=Claim({7: 1.2}, {7: 0.5})), 0.01, "confirmed"),
        (replace(BETTER, tuning=Claim({7: 0.5}, {7: 1.2})), 0.01, "confirmed, narrowly"),
        (
            replace(WORSE, at_least=9.0, other_rate=BETTER),
            0.01,
            f"{NONE_AS_LARGE}; its sign depends on the learning rate",
        ),
        (
            replace(NEITHER, at_least=9.0, other_rate=BETTER),
            0.01,
            f"{NONE_AS_LARGE}; whether there is one depends on the learning rate",
        ),
        (
            replace(BETTER, other_rate=WORSE, by_writers=(WORSE, BETTER)),
            0.01,
            "depends on the learning rate and the writers",
        ),
    ],
)
def test_a_verdict(claim: Claim, adjusted_p: float, expected: str) -> None:
    causes = [cause for cause, pair in claims.ways(claim).items() if claims.depends(*pair)]
    assert claims.verdict(claim, difference(claim), adjusted_p, causes) == expected


def test_what_a_verdict_depends_on_is_adjusted_over_all_claims() -> None:
    one = claims.declared()["together"]
    assert one.other_rate and claims.depends(one, one.other_rate)
    assert not claims.depends(one, one.other_rate, 0.06)
    assert not claims.judged()["together"][2].startswith("depends")


def test_two_pairs_are_too_few_to_be_paired() -> None:
    two = Claim({0: 2.0, 1: 2.1}, {0: 1.0, 1: 1.2})
    assert difference(two) == difference(replace(two, paired=False))
    assert difference(SAME).half < difference(replace(SAME, paired=False)).half


@pytest.mark.parametrize("runs", [3, 4])
def test_a_difference_is_found_nine_times_in_ten(runs: int) -> None:
    more = {seed: MORE[seed] for seed in range(runs)}
    found, rng = difference(Claim(more, FEWER)).found, np.random.default_rng(0)
    spread = stdev(more[seed] - FEWER[seed] for seed in more)
    draws = rng.normal(found, spread, (20_000, runs))
    power = np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue <= 0.05)
    assert power == pytest.approx(0.9, abs=0.01)


def test_a_ratio_is_that_of_geometric_means() -> None:
    more, fewer = ([*of.values()] for of in (MORE, FEWER))
    times, low, high = claims.ratio(SAME)
    assert times == pytest.approx(stats.gmean(more) / stats.gmean(fewer))
    interval = stats.ttest_rel(np.log(more), np.log(fewer)).confidence_interval(0.95)
    assert (low, high) == pytest.approx(np.exp(interval))


# Of each claim at a single learning rate: the tuning runs of its two networks, and one final run.
TUNED = {
    "routing, all images": ("all-images", "gpu", ("1 iteration", "3 iterations")),
    "pairs": ("multimnist", "gpu", ("CNN", "3 iterations")),
    "routing, pairs": ("multimnist", "gpu", ("1 iteration", "3 iterations")),
    "affine": ("places", "gpu", ("CNN", "3 iterations")),
    "routing, affine": ("places", "gpu", ("1 iteration", "3 iterations")),
    "shared W, affine": ("places", "gpu", ("3 iterations", "shared W")),
    "attacked": ("attacks", "cpu", ("CNN", "3 iterations")),
    "routing, attacked": ("attacks", "cpu", ("1 iteration", "3 iterations")),
}
for count in (10, 100):
    for name, row in (
        ("routing", "capsules, 1 iteration"),
        ("pooled CNN", "CNN"),
        ("CNN with decoder", "CNN, margin loss and decoder"),
    ):
        rows = f"{row}, {count} of each class", f"capsules, {count} of each class"
        TUNED[f"{name}, {count} labels"] = "labels", "cpu", rows


@pytest.mark.parametrize("name", TUNED)
def test_how_learning_rates_were_tuned(name: str) -> None:
    experiment, budget, networks = TUNED[name]
    tuning = ledger.trainings(experiment.replace("multimnist", "pairs") + "-tuning", budget)
    final = ledger.trainings(experiment, budget)
    epochs = {run["config"]["epochs"] for runs in final.values() for run in runs.values()}
    expected = ""
    for network in networks:
        tried = {}
        for row, runs in tuning.items():
            if row.startswith(f"{network}, rate"):
                config = next(iter(runs.values()))["config"]
                tried[config["learning_rate"]] = mean(
                    ledger.missed(run, "test") for run in runs.values()
                )
                if config["epochs"] not in epochs:
                    expected = claims.SHORTER
        assert len(tried) >= 3
        if min(tried, key=tried.__getitem__) in (min(tried), max(tried)):
            expected = expected or claims.EDGE
    assert claims.declared()[name].rates == expected


def test_runs_that_chose_a_rate_are_those_at_that_rate_and_on_other_draws() -> None:
    claim = claims.declared()["pooled CNN, 100 labels"]
    assert claim.tuning and not claim.tuning.more.keys() & claim.more.keys()
    tuning = ledger.trainings("labels-tuning")
    for tuned, row, rates in (
        (claim.tuning.more, "CNN", (0.001, 0.002, 0.004, 0.008)),
        (claim.tuning.fewer, "capsules", (0.003, 0.006, 0.012)),
    ):
        rows = [tuning[f"{row}, 100 of each class, rate {rate}"] for rate in rates]
        assert tuned[0] == min(ledger.missed(runs[0]) for runs in rows)
    assert difference(claim).points > 0 > claim.tuning.more[0] - claim.tuning.fewer[0]


def test_tables_of_other_analyses() -> None:
    declared = claims.declared()
    head, *rows = claims.by_other_means()
    assert {row[0] for row in rows} == declared.keys() - {"error"} and len(head) == 6
    assert all(len(row) == 6 for row in rows)
    row = {name: rest for name, *rest in rows}["pooled CNN, 100 labels"]
    found = difference(declared["pooled CNN, 100 labels"])
    assert row[0] == f"{found.points:+.2f} ± {found.half:.2f}"
    record = ledger.record("labels", "CNN, 100 of each class", 3)
    of_writers = [100 * (1 - record[k]["correct"] / record[k]["total"]) for k in ("unseen", "test")]
    by_writers = declared["pooled CNN, 100 labels"].by_writers or ()
    assert [each.more[3] for each in by_writers] == pytest.approx(of_writers)
    assert row[2:] == ["", *(difference(each).signed() for each in by_writers)]
    more, fewer = (list(of.values()) for of in (declared["pairs"].more, declared["pairs"].fewer))
    low, high = stats.ttest_rel(more, fewer).confidence_interval(0.95)
    row = {name: rest for name, *rest in rows}["pairs"]
    assert row[1].endswith(f"{(high - low) / 2:.2f}") and row[2:] == [""] * 3
    head, *rows = claims.by_row("places", "gpu", "middle")
    runs = ledger.trainings("places", "gpu")["CNN"].values()
    errors = [100 - run["middle"]["correct"] / 100 for run in runs]
    assert ("CNN", f"{mean(errors):.2f}", f"{stdev(errors):.2f}", "3") in rows and len(head) == 4


def test_claims_are_glued_for_the_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    glued: dict[str, str] = {}
    monkeypatch.setattr(claims, "glue", glued.__setitem__)
    assert claims.quoted("pairs") == {"pairs": claims.judged()["pairs"]}
    assert glued["pairs"].endswith("points higher") and glued["verdict, pairs"].startswith("open")


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
    more, _ = matched.at_common_level("CNN", "3 iterations")
    assert more[0] == matched.at_level(ends["CNN"][0], level)
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
