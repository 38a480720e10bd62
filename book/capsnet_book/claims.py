"""What papers claim about capsules, judged by one rule on the records of the ledger."""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from scipy import optimize, stats

from capsnet import CapsNet
from capsnet.data import ImageSet, to_float
from capsnet.functional import RoutingStep, dynamic_routing
from capsnet_book import glue, ledger, matched
from capsnet_book.statistics import t95

Errors = Mapping[int, float]  # percent of images classified wrongly, by seed
Table = list[tuple[str, ...]]  # for capsnet.text.columns

# Why a claim stays open although its interval would decide it: another learning rate of one of the
# two networks could change the answer. The verdict quotes these words.
SHORTER = "rates tuned in shorter runs"
EDGE = "a rate at the edge of those tried"
NOT_BEST = "a rate that is not the best of those tried"

LONG = {  # rows of the experiment "headline", whose recipes differ
    "cpu": ("W 0.01", "3 iterations, reconstruction"),
    "gpu": ("W 0.1", "3 iterations, reconstruction", "released schedule"),
}

NONE_AS_LARGE = "no difference as large as claimed"
OF_CLAIMS = "confirmed", "reversed here"
OF_FINDINGS = "fewer errors", "more errors"  # nobody claimed these


@dataclasses.dataclass(frozen=True)
class Claim:
    """The claim that the training runs `fewer` make fewer errors than the training runs `more`.

    Attributes:
        more: the error rates of one network, by seed.
        fewer: those of the network that is said to be better.
        paired: runs of one seed share initial weights or the draw of their images.
        at_least: the difference that the claim's source reports, in percentage points; 0 if none.
        ratio: `at_least` is a ratio: the source says that `more` makes so many times the errors.
        rates: why the learning rates may decide, one of the constants above, unless there is an
            `other_rate`; "" where each was the best of three or more in runs as long as these, and
            not the highest or lowest.
        words: what a significant difference is called, one with the claimed sign and the other.
        other_rate: the same claim at another learning rate.
        by_writers: the same claim on digits of the training writers, and on those of the others.
        tuning: the same claim in the runs that chose the rates, on draws of images of their own.
    """

    more: Errors
    fewer: Errors
    paired: bool = True
    at_least: float = 0.0
    ratio: bool = False
    rates: str = ""
    words: tuple[str, str] = OF_CLAIMS
    other_rate: "Claim | None" = None
    by_writers: "tuple[Claim, Claim] | None" = None
    tuning: "Claim | None" = None


@dataclasses.dataclass(frozen=True)
class Difference:
    """Percentage points of errors, `more` − `fewer`, and half of the 95 % interval.

    `found` is the true difference that so many runs would find significant nine times in ten.
    """

    points: float
    half: float
    p: float
    seeds: int
    found: float

    def __str__(self) -> str:
        """The error rate of `fewer`, compared with that of `more`: "0.12 ± 0.05 points lower"."""
        direction = "lower" if self.points > 0 else "higher"
        digits = 3 if self.half < 0.015 else 2 if self.half < 10 else 0
        return f"{abs(self.points):.{digits}f} ± {self.half:.{digits}f} points {direction}"

    def signed(self) -> str:
        """The difference as a table has it: "+0.12 ± 0.05", and 0.00 without a sign."""
        points = f"{self.points:+.2f}" if round(self.points, 2) else "0.00"
        return f"{points} ± {self.half:.2f}".replace("-", "−")

    def significant(self) -> bool:
        """Whether the p-value is at most 5 %, without an adjustment."""
        return self.p <= 0.05


def difference(claim: Claim) -> Difference:
    """The primary analysis of a claim.

    Student's t by seed, if the claim is paired and has at least three pairs; else Welch's.
    """
    seeds = sorted(claim.more.keys() & claim.fewer.keys())
    if claim.paired and len(seeds) >= 3:
        more, fewer = [claim.more[seed] for seed in seeds], [claim.fewer[seed] for seed in seeds]
        test = stats.ttest_rel(more, fewer)
    else:
        more, fewer = list(claim.more.values()), list(claim.fewer.values())
        test = stats.ttest_ind(more, fewer, equal_var=False)
    interval = test.confidence_interval(0.95)
    points = statistics.mean(more) - statistics.mean(fewer)
    half = (interval.high - interval.low) / 2
    detectable = half * smallest_found(float(test.df))
    return Difference(points, half, float(test.pvalue), min(len(more), len(fewer)), detectable)


@functools.cache
def smallest_found(degrees: float) -> float:
    """The true difference found in nine of ten tests, as a multiple of half the 95 % interval."""
    t = t95(degrees)

    def missed(errors: float) -> float:  # a true difference of so many standard errors
        return float(stats.nct.cdf(t, degrees, errors)) - 0.1

    return float(optimize.brentq(missed, 0, 4 * t)) / t


def ratio(claim: Claim) -> tuple[float, float, float]:
    """How many times the errors of `fewer` those of `more` are, and the 95 % interval's ends.

    The test is that of :func:`difference`, of the logarithms of the errors.
    """
    more = {seed: math.log(rate) for seed, rate in claim.more.items()}
    fewer = {seed: math.log(rate) for seed, rate in claim.fewer.items()}
    log = difference(Claim(more, fewer, claim.paired))
    return math.exp(log.points), math.exp(log.points - log.half), math.exp(log.points + log.half)


def gap(first: Claim, second: Claim) -> Difference:
    """By how much the difference of one claim is larger than that of another, by seed."""
    more, fewer = minus(first.more, second.more), minus(first.fewer, second.fewer)
    return difference(Claim(more, fewer, first.paired))


def depends(first: Claim, second: Claim, p: float | None = None) -> bool:
    """Whether it matters in which of two ways a claim is counted.

    It does if the two differences differ significantly, unless both are significant and agree in
    their sign. `p` is the p-value of their :func:`gap`, where it was adjusted.
    """
    p = gap(first, second).p if p is None else p
    differences = difference(first), difference(second)
    agree = differences[0].points * differences[1].points > 0
    agree = agree and all(result.significant() for result in differences)
    return p <= 0.05 and not agree


def ways(claim: Claim) -> dict[str, tuple[Claim, Claim]]:
    """The pairs of ways in which a claim is counted, by what the verdict calls them."""
    pairs = {}
    if claim.other_rate:
        pairs["the learning rate"] = claim, claim.other_rate
    if claim.by_writers:
        pairs["the writers"] = claim.by_writers
    return pairs


def excluded(claim: Claim) -> bool:
    """Whether the claimed difference, or ratio, lies above the interval, at each learning rate."""
    claims = [claim] if claim.other_rate is None else [claim, claim.other_rate]
    if claim.ratio:
        return all(ratio(rated)[2] < claim.at_least for rated in claims)
    return all(result.points + result.half < claim.at_least for result in map(difference, claims))


def narrowly(claim: Claim, holds: Callable[[Claim], bool]) -> str:
    """What to add to a verdict that does not hold without some seed, or with the tuning runs."""

    def without(claim: Claim, seed: int) -> Claim:
        more, fewer = ({s: e[s] for s in e if s != seed} for e in (claim.more, claim.fewer))
        return dataclasses.replace(claim, more=more, fewer=fewer)

    for seed in claim.more.keys() | claim.fewer.keys():
        other = claim.other_rate and without(claim.other_rate, seed)
        if not holds(dataclasses.replace(without(claim, seed), other_rate=other)):
            return ", narrowly"
    if claim.tuning:
        more = {**claim.more, **claim.tuning.more}
        fewer = {**claim.fewer, **claim.tuning.fewer}
        if not holds(dataclasses.replace(claim, more=more, fewer=fewer)):
            return ", narrowly"
    return ""


def verdict(claim: Claim, result: Difference, p: float, causes: Sequence[str]) -> str:
    """What the primary analysis says about a claim, by the rule that the chapter explains.

    `p` is the p-value after the Benjamini–Hochberg adjustment over all claims. `causes` are the
    keys of :func:`ways` on which the claim depends.
    """
    smaller = bool(claim.at_least) and excluded(claim)
    if causes:
        on = f"depends on {' and '.join(causes)}"
        counted = {way for cause in causes for way in map(difference, ways(claim)[cause])}
        what = "its sign" if all(map(Difference.significant, counted)) else "whether there is one"
        return f"{NONE_AS_LARGE}; {what} {on}" if smaller else on
    if result.seeds < 3:
        return "open: fewer than three runs"
    if claim.rates and not claim.other_rate:
        return f"open: {claim.rates}"
    if p <= 0.05:
        word = claim.words[0 if result.points > 0 else 1]
        return word + narrowly(claim, is_significant)
    if not smaller:
        return "open"
    return NONE_AS_LARGE + narrowly(
        claim, lambda reduced: excluded(reduced) and not is_significant(reduced)
    )


def is_significant(claim: Claim) -> bool:
    return difference(claim).significant()


def adjusted(differences: Mapping[Any, Difference]) -> dict[Any, float]:
    """The p-value of each difference after the Benjamini–Hochberg adjustment over all of them."""
    p = stats.false_discovery_control([result.p for result in differences.values()])
    return dict(zip(differences, map(float, p), strict=True))


@functools.cache  # a page asks several times, and the ledger is large
def judged() -> dict[str, tuple[Difference, float, str]]:
    """Every claim of :func:`declared`: its difference, adjusted p-value and verdict."""
    claims = declared()
    pairs = {(name, way): pair for name in claims for way, pair in ways(claims[name]).items()}
    gaps = adjusted({key: gap(*pair) for key, pair in pairs.items()})
    differences = {name: difference(claim) for name, claim in claims.items()}
    judged = {}
    for name, p in adjusted(differences).items():
        claim, result = claims[name], differences[name]
        causes = [way for way, pair in ways(claim).items() if depends(*pair, gaps[name, way])]
        judged[name] = result, p, verdict(claim, result, p, causes)
    return judged


def quoted(*names: str) -> dict[str, tuple[Difference, float, str]]:
    """These of :func:`judged`, glued for the prose as "name" and as "verdict, name"."""
    claims = {name: judged()[name] for name in names}
    for name, (result, _, text) in claims.items():
        glue(name, str(result))
        glue(f"verdict, {name}", text)
    return claims


def errors(experiment: str, row: str, budget: str = "cpu", sets: Sequence[str] = ()) -> Errors:
    """The error rates of a row of the ledger, by seed, on `sets` as in :func:`ledger.missed`."""
    runs = ledger.trainings(experiment, budget)[row]
    return {seed: ledger.missed(record, *sets) for seed, record in runs.items()}


def tuning_errors(row: str) -> Errors:
    """The errors with few labels of the runs that chose a row's learning rate, at that rate."""
    rate = ledger.record("labels", row, seed=3)["config"]["learning_rate"]
    return errors("labels-tuning", f"{row}, rate {rate}")


def by_other_means() -> Table:
    """A table: each claim as it is judged, by the other test, at the other rate, and by writers.

    "error" is left out, because it compares runs with a number, for which there is no other test.
    """
    head = "claim", "as judged", "other test", "other rate", "familiar writers", "test writers"
    table: Table = [head]
    for name, claim in declared().items():
        if name != "error":
            other_test = dataclasses.replace(claim, paired=not claim.paired)
            counted = claim, other_test, claim.other_rate, *(claim.by_writers or (None, None))
            table.append((name, *(difference(way).signed() if way else "" for way in counted)))
    return table


def by_row(experiment: str, budget: str = "cpu", *sets: str) -> Table:
    """A table: each row's mean error, its standard deviation, and how many runs it has."""
    table: Table = [("network", "error rate, %", "deviation", "runs")]
    for row, runs in ledger.trainings(experiment, budget).items():
        rates = [ledger.missed(record, *sets) for record in runs.values()]
        deviation = f"{statistics.stdev(rates):.2f}" if len(rates) > 1 else ""
        table.append((row, f"{statistics.mean(rates):.2f}", deviation, str(len(rates))))
    return table


def mean_of(first: Errors, second: Errors) -> Errors:
    """Seed by seed, the mean of two error rates."""
    return {seed: (first[seed] + second[seed]) / 2 for seed in first.keys() & second.keys()}


def minus(first: Errors, second: Errors) -> Errors:
    """Seed by seed, the difference of two error rates."""
    return {seed: first[seed] - second[seed] for seed in first.keys() & second.keys()}


def of_table_1(claim: str, experiment: str, sets: Sequence[str], **options: object) -> Claim:
    """A claim about the four networks of the paper's Table 1, at one learning rate."""
    rates = functools.partial(errors, experiment, budget="gpu", sets=sets)
    one, three = rates("1 iteration"), rates("3 iterations")
    one_with_decoder = rates("1 iteration, reconstruction")
    three_with_decoder = rates("3 iterations, reconstruction")
    more, fewer = {
        "routing": (mean_of(one, one_with_decoder), mean_of(three, three_with_decoder)),
        "reconstruction": (mean_of(one, three), mean_of(one_with_decoder, three_with_decoder)),
        "together": (minus(three, three_with_decoder), minus(one, one_with_decoder)),
    }[claim]
    return Claim(more, fewer, **options)  # type: ignore[arg-type]


@functools.cache  # a page asks several times, and the ledger is large
def declared() -> dict[str, Claim]:
    """The claims that compare training runs. The primary analysis of each is fixed here."""
    familiar, new = on_both_writers("unseen"), on_both_writers("test")
    claims = on_test_writers()
    for name, claim in on_both_writers().items():
        claims[name] = dataclasses.replace(claim, by_writers=(familiar[name], new[name]))
    return claims


def on_all_images() -> Errors:
    """The errors of every run of the paper's network on all images, of thirty epochs or more.

    Its augmentation is the paper's. The recipes differ, and the keys are no seeds.
    """
    rows = [("headline", budget, row) for budget in ("cpu", "gpu") for row in LONG[budget]]
    rows += [("published", "gpu", f"ours, {epochs} epochs") for epochs in (50, 250)]
    rows += [("all-images", "gpu", "3 iterations, rate 0.003")]
    rates = [errors(experiment, row, budget).values() for experiment, budget, row in rows]
    alone = ledger.read("time-to-accuracy/longest/summary.json")
    missed = 100 * (1 - alone["correct"] / alone["total"])
    return dict(enumerate([*itertools.chain(*rates), missed]))


def on_test_writers() -> dict[str, Claim]:
    """The claims whose errors were counted on test images only."""
    claims = {}
    ours = on_all_images()
    reached = "reached", "not reached"
    claims["error"] = Claim(more=dict.fromkeys(ours, 0.25), fewer=ours, words=reached)

    full = functools.partial(errors, "all-images", budget="gpu")
    one, three = full("1 iteration, rate 0.0015"), full("3 iterations, rate 0.003")
    claims["routing, all images"] = Claim(one, three, at_least=0.04, rates=EDGE)

    pairs = functools.partial(errors, "multimnist", budget="gpu")
    three = pairs("3 iterations, reconstruction")
    one = pairs("1 iteration, reconstruction")
    # Of the paper's Table 1, as ratios, because all our networks make more errors.
    to_three = functools.partial(Claim, fewer=three, ratio=True, rates=SHORTER)
    claims["pairs"] = to_three(pairs("baseline CNN"), paired=False, at_least=8.1 / 5.2)
    claims["routing, pairs"] = to_three(one, at_least=7.5 / 5.2)

    # On affine digits the paper compares at equal errors on plain digits, and so do we.
    at_equal = matched.at_common_level
    reported = (100 - 66) / (100 - 79)
    affine = at_equal("CNN", "3 iterations")
    claims["affine"] = Claim(*affine, paired=False, at_least=reported, ratio=True)
    claims["routing, affine"] = Claim(*at_equal("1 iteration", "3 iterations"), words=OF_FINDINGS)
    claims["shared W, affine"] = Claim(*at_equal("3 iterations", "shared W"))

    attacked = functools.partial(errors, "attacks", sets=["attacked"])
    three = attacked("3 iterations")
    claims["attacked"] = Claim(attacked("CNN"), three, paired=False, rates=EDGE)
    claims["routing, attacked"] = Claim(
        attacked("1 iteration"), three, rates=EDGE, words=OF_FINDINGS
    )
    return claims


def on_both_writers(*sets: str) -> dict[str, Claim]:
    """The claims whose errors were counted on test images and on unseen training images.

    `sets` are those on which errors are counted here, as in :func:`ledger.missed`.
    """
    errors_in = functools.partial(errors, sets=sets)
    claims = {}
    # What the claim's two means differ by in the paper's table.
    for name, at_least in (("routing", 0.015), ("reconstruction", 0.075), ("together", 0.05)):
        other = of_table_1(name, "table-1", sets)
        claims[name] = of_table_1(
            name, "table-1-slower", sets, at_least=at_least, rates=SHORTER, other_rate=other
        )

    lower, higher = (
        errors_in(experiment, "3 iterations, reconstruction", "gpu")
        for experiment in ("table-1-slower", "table-1")
    )
    for name, row, at_least, words in (
        ("paper's CNN", "baseline CNN", 0.14, OF_CLAIMS),
        ("CNN as large", "CNN as large", 0.0, OF_FINDINGS),
    ):
        cnn = errors_in("table-1", row, "gpu")
        other = Claim(cnn, higher, paired=False)
        claims[name] = Claim(
            cnn, lower, False, at_least, rates=SHORTER, words=words, other_rate=other
        )

    for count in (10, 100):
        suffix = f"{count} of each class"
        capsules = errors_in("labels", f"capsules, {suffix}")
        for name, row in (
            ("routing", "capsules, 1 iteration"),
            ("pooled CNN", "CNN"),
            ("CNN with decoder", "CNN, margin loss and decoder"),
        ):
            more, fewer = tuning_errors(f"{row}, {suffix}"), tuning_errors(f"capsules, {suffix}")
            claims[f"{name}, {count} labels"] = Claim(
                errors_in("labels", f"{row}, {suffix}"),
                capsules,
                words=OF_FINDINGS,
                tuning=Claim(more, fewer),
            )

    short, controls = (functools.partial(errors_in, name) for name in ("deviations", "controls"))
    plain = short("none")
    faster = controls("1 iteration, louder votes, W 0.025")
    # Their rate is the default. The experiment "fast-w-tuning" did better at twice that rate.
    claim = functools.partial(Claim, words=OF_FINDINGS, rates=NOT_BEST)
    claims["faster W, early"] = claim(plain, faster)
    claims["routing, early"] = claim(short("uniform-shares"), plain)
    claims["eight, early"] = claim(plain, controls("8 iterations"))
    claims["stopped gradient"] = claim(plain, short("stopped-gradient"), words=OF_CLAIMS)
    claims["stack"] = claim(errors_in("routings", "a stack of two"), plain, words=OF_CLAIMS)
    return claims


@torch.no_grad()
def of_network(model: CapsNet, images: ImageSet) -> dict[str, float]:
    """What is claimed about one network's capsules, measured on these images.

    Returns:
        By name: the mean of the longest length ("length") and the share of right answers
        ("accuracy"); the mean length of the primary capsules on an empty page ("empty page"); the
        share of primary capsules that give more than half to one parent ("decided"), and after 300
        iterations, on ten images, more than 0.9 ("decided after 300"); the share of images whose
        answer is the same after one iteration ("same answer"); and the largest difference between
        the lengths for u and for −u ("sign").
    """
    lengths, once, decided, sign = [], [], 0, 0.0
    for part in to_float(images.images).split(100):
        u = model.primary(F.relu(model.conv(part)))
        trace: list[RoutingStep] = []
        lengths.append(model.digits(u, trace).norm(dim=2))
        once.append(trace[0].v.norm(dim=2).argmax(dim=1))
        decided += int((trace[-1].c.amax(dim=2) > 0.5).sum())
        sign = max(sign, float((model.digits(-u).norm(dim=2) - lengths[-1]).abs().max()))
    longest, answers = torch.cat(lengths).max(dim=1)
    empty = model.primary(F.relu(model.conv(torch.zeros(1, *images.images.shape[1:]))))
    ten = model.primary(F.relu(model.conv(to_float(images.images[:10]))))
    long_trace: list[RoutingStep] = []
    dynamic_routing(model.digits.predict(ten), 300, trace=long_trace)
    return {
        "length": longest.mean().item(),
        "accuracy": (answers == images.labels).double().mean().item(),
        "empty page": empty.norm(dim=2).mean().item(),
        "decided": decided / (len(images) * u.shape[1]),
        "decided after 300": (long_trace[-1].c.amax(dim=2) > 0.9).double().mean().item(),
        "same answer": (torch.cat(once) == answers).double().mean().item(),
        "sign": sign,
    }
