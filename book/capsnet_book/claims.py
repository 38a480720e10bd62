"""What papers claim about capsules, judged by one rule on the records of the ledger."""

import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from scipy import stats

from capsnet import CapsNet
from capsnet.data import ImageSet, to_float
from capsnet.functional import RoutingStep, dynamic_routing
from capsnet_book import glue, ledger

Errors = Mapping[int, float]  # percent of images classified wrongly, by seed
Table = list[tuple[str, ...]]  # for capsnet.text.columns


@dataclasses.dataclass(frozen=True)
class Claim:
    """The claim that the training runs `fewer` make fewer errors than the training runs `more`.

    `paired` says that runs of one seed share their first weights or their images, so that their
    differences are analysed; otherwise Welch's test is used. `at_least` is the smallest difference
    that the claim's source reports, in percentage points, 0 if it reports none. `fair` is False
    where the learning rate was tuned only for the side that makes fewer errors. `other_rate` is
    the same claim at another learning rate.
    """

    more: Errors
    fewer: Errors
    paired: bool = True
    at_least: float = 0.0
    fair: bool = True
    other_rate: "Claim | None" = None


@dataclasses.dataclass(frozen=True)
class Difference:
    """Percentage points of errors, `more` − `fewer`, and half of the 95 % interval."""

    points: float
    half: float
    p: float
    seeds: int

    def __str__(self) -> str:
        """How many errors `fewer` makes, compared with `more`: "0.12 ± 0.05 points fewer"."""
        direction = "fewer" if self.points > 0 else "more"
        digits = 3 if self.half < 0.015 else 2
        return f"{abs(self.points):.{digits}f} ± {self.half:.{digits}f} points {direction}"

    def signed(self) -> str:
        """The difference as a table has it: "+0.12 ± 0.05"."""
        return f"{self.points:+.2f} ± {self.half:.2f}".replace("-", "−")


def difference(claim: Claim) -> Difference:
    """The primary analysis of a claim: Student's t by seed if it is paired, else Welch's."""
    if claim.paired:
        seeds = sorted(claim.more.keys() & claim.fewer.keys())
        more, fewer = ([of[seed] for seed in seeds] for of in (claim.more, claim.fewer))
        test = stats.ttest_rel(more, fewer)
    else:
        more, fewer = list(claim.more.values()), list(claim.fewer.values())
        test = stats.ttest_ind(more, fewer, equal_var=False)
    interval = test.confidence_interval(0.95)
    points = statistics.mean(more) - statistics.mean(fewer)
    half = (interval.high - interval.low) / 2
    return Difference(points, half, float(test.pvalue), min(len(more), len(fewer)))


def verdict(claim: Claim, found: Difference, adjusted_p: float) -> str:
    """What the primary analysis says about a claim, in the words that the chapter explains.

    `adjusted_p` is the p-value after the Benjamini–Hochberg adjustment over all claims.
    """
    if not claim.fair or found.seeds < 3:
        return "open"
    other = difference(claim.other_rate) if claim.other_rate else found
    opposite = other.points * found.points < 0
    if opposite and max(adjusted_p, other.p) <= 0.05:
        return "depends on the learning rate"
    if adjusted_p <= 0.05:
        return "confirmed" if found.points > 0 else "refuted"
    if 0 < claim.at_least > max(each.points + each.half for each in (found, other)):
        return "no difference as large as claimed"
    return "open"


def adjusted(found: Mapping[str, Difference]) -> dict[str, float]:
    """The p-value of each difference after the Benjamini–Hochberg adjustment over all of them."""
    p = stats.false_discovery_control([each.p for each in found.values()])
    return dict(zip(found, map(float, p), strict=True))


def judged() -> dict[str, tuple[Difference, float, str]]:
    """Every claim of :func:`declared`: its difference, adjusted p-value and verdict."""
    claims = declared()
    found = {name: difference(claim) for name, claim in claims.items()}
    return {
        name: (found[name], p, verdict(claims[name], found[name], p))
        for name, p in adjusted(found).items()
    }


def quoted(*names: str) -> dict[str, tuple[Difference, float, str]]:
    """These of :func:`judged`, glued for the prose as "name" and as "verdict, name"."""
    every = judged()
    for name in names:
        found, _, said = every[name]
        glue(name, str(found))
        glue(f"verdict, {name}", said)
    return {name: every[name] for name in names}


def errors(experiment: str, row: str, budget: str = "cpu", sets: Sequence[str] = ()) -> Errors:
    """The error rates of a row of the ledger, by seed, on `sets` as in :func:`ledger.missed`."""
    runs = ledger.trainings(experiment, budget)[row]
    return {seed: ledger.missed(record, *sets) for seed, record in runs.items()}


def by_other_means() -> Table:
    """A table: each claim as it is judged, by the other of the two tests, and on test images alone.

    "error" is left out, because it compares runs with a number, for which there is no other test.
    """
    table: Table = [("claim", "as judged", "the other test", "test images alone")]
    on_test = declared("test")
    for name, claim in declared().items():
        if name != "error":
            other = dataclasses.replace(claim, paired=not claim.paired)
            ways = (difference(each) for each in (claim, other, on_test[name]))
            table.append((name, *(way.signed() for way in ways)))
    return table


def by_row(experiment: str, budget: str = "cpu", *sets: str) -> Table:
    """A table: each row's mean error, its standard deviation, and how many runs it has."""
    table: Table = [("network", "error, %", "deviation", "runs")]
    for row, runs in ledger.trainings(experiment, budget).items():
        of = [ledger.missed(record, *sets) for record in runs.values()]
        deviation = f"{statistics.stdev(of):.2f}" if len(of) > 1 else ""
        table.append((row, f"{statistics.mean(of):.2f}", deviation, str(len(of))))
    return table


def mean_of(one: Errors, other: Errors) -> Errors:
    """Seed by seed, the mean of two error rates."""
    return {seed: (one[seed] + other[seed]) / 2 for seed in one.keys() & other.keys()}


def minus(one: Errors, other: Errors) -> Errors:
    """Seed by seed, the difference of two error rates."""
    return {seed: one[seed] - other[seed] for seed in one.keys() & other.keys()}


def of_table_1(claim: str, experiment: str, sets: Sequence[str] = (), **options: object) -> Claim:
    """A claim about the four networks of the paper's Table 1, at one learning rate."""
    of = functools.partial(errors, experiment, budget="gpu", sets=sets)
    one, three = of("1 iteration"), of("3 iterations")
    one_drawn, three_drawn = of("1 iteration, reconstruction"), of("3 iterations, reconstruction")
    more, fewer = {
        "routing": (mean_of(one, one_drawn), mean_of(three, three_drawn)),
        "reconstruction": (mean_of(one, three), mean_of(one_drawn, three_drawn)),
        "together": (minus(three, three_drawn), minus(one, one_drawn)),
    }[claim]
    return Claim(more, fewer, **options)  # type: ignore[arg-type]


@functools.cache  # a page asks several times, and the ledger is large
def declared(*sets: str) -> dict[str, Claim]:
    """The claims that compare training runs. The primary analysis of each is fixed here.

    `sets` are those on which errors are counted, as in :func:`ledger.missed`.
    """
    errors_in = functools.partial(errors, sets=sets)
    claims = {}
    # The ten training runs on all images with the augmentation of the paper and no other.
    all_images = [("W 0.01", "cpu"), ("W 0.1", "gpu")]
    all_images += [("3 iterations, reconstruction", budget) for budget in ("cpu", "gpu")]
    pooled = [e for row, budget in all_images for e in errors_in("headline", row, budget).values()]
    ours = dict(enumerate(pooled))
    claims["error"] = Claim(more=dict.fromkeys(ours, 0.25), fewer=ours)

    full = functools.partial(errors_in, "all-images", budget="gpu")
    one, three = full("1 iteration, rate 0.0015"), full("3 iterations, rate 0.003")
    claims["routing, all images"] = Claim(one, three, at_least=0.04)

    for name, at_least in (("routing", 0.04), ("reconstruction", 0.05), ("together", 0.05)):
        other = of_table_1(name, "table-1", sets)
        claims[name] = of_table_1(name, "table-1-slower", sets, at_least=at_least, other_rate=other)

    capsules = errors_in("table-1-slower", "3 iterations, reconstruction", "gpu")
    for name, row, at_least in (
        ("paper's CNN", "baseline CNN", 0.14),
        ("CNN as large", "CNN as large", 0.0),
    ):
        rates = errors_in("table-1", row, "gpu")
        fair = name == "paper's CNN"  # the other was tuned in shorter training runs only
        claims[name] = Claim(rates, capsules, paired=False, at_least=at_least, fair=fair)

    pairs = functools.partial(errors_in, "multimnist", budget="gpu")
    three = pairs("3 iterations, reconstruction")
    claims["pairs"] = Claim(pairs("baseline CNN"), three, paired=False)
    claims["routing, pairs"] = Claim(pairs("1 iteration, reconstruction"), three)

    places = functools.partial(errors_in, "places", budget="gpu")
    three = places("3 iterations")
    claims["affine"] = Claim(places("CNN"), three, paired=False, at_least=79 - 66)
    claims["routing, affine"] = Claim(places("1 iteration"), three)
    claims["shared W, affine"] = Claim(three, places("shared W"))

    for count in (10, 100):
        of_each = f"{count} of each class"
        capsules = errors_in("labels", f"capsules, {of_each}")
        for name, row in (
            ("routing", "capsules, 1 iteration"),
            ("pooled CNN", "CNN"),
            ("CNN with decoder", "CNN, margin loss and decoder"),
        ):
            claims[f"{name}, {count} labels"] = Claim(
                errors_in("labels", f"{row}, {of_each}"), capsules
            )

    attacked = functools.partial(errors, "attacks", sets=["attacked"])  # test images, all of them
    three = attacked("3 iterations")
    claims["attacked"] = Claim(attacked("CNN"), three, paired=False)
    claims["routing, attacked"] = Claim(attacked("1 iteration"), three)

    short, controls = (functools.partial(errors_in, name) for name in ("deviations", "controls"))
    plain = short("none")
    claims["faster W, early"] = Claim(plain, controls("1 iteration, louder votes, W 0.025"))
    claims["routing, early"] = Claim(short("uniform-shares"), plain, fair=False)
    claims["eight, early"] = Claim(plain, controls("8 iterations"))
    claims["stopped gradient"] = Claim(plain, short("stopped-gradient"))
    stack = errors_in("routings", "a stack of two")
    claims["stack"] = Claim(stack, plain, paired=False)
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
    long: list[RoutingStep] = []
    dynamic_routing(model.digits.predict(ten), 300, trace=long)
    return {
        "length": longest.mean().item(),
        "accuracy": (answers == images.labels).double().mean().item(),
        "empty page": empty.norm(dim=2).mean().item(),
        "decided": decided / (len(images) * u.shape[1]),
        "decided after 300": (long[-1].c.amax(dim=2) > 0.9).double().mean().item(),
        "same answer": (torch.cat(once) == answers).double().mean().item(),
        "sign": sign,
    }
