"""Every figure of the book draws the numbers that it was given, from any device, legibly."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.quiver import Quiver
from matplotlib.text import Text

from capsnet_book import figures
from capsnet_book.figures import Scene, Sweep
from capsnet_book.figures.pairs import FIRST, SECOND
from capsnet_lab.figures import prediction, style

RNG = np.random.default_rng(0)
IMAGES = RNG.random((2, 1, 4, 5))
X = np.linspace(0.5, 2, 4)
SHARES = RNG.random((3, 2))  # [iterations, children]
VOTES, OUTPUTS = RNG.standard_normal((4, 2, 2)), RNG.standard_normal((1, 2, 2))
PARTS = Scene("parts", [("triangle", [1.0, 2.0, 0.0, 1.0])])
SEEN = np.array([[0] * 5, [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]])  # by the first child
PAIR = np.array([[0.0, 0.1], [0.3, -0.4]])  # two vectors, of lengths 0.1 and 0.5
SPREAD = RNG.random((3, 5))  # [amounts, capsules]
PAIRS = RNG.random((2, 2, 1, 4, 5)) / 2
RECORDS = [
    {
        "epoch": k, "step": k, "loss": 1 / k, "learning_rate": 0.001 * k, "margin": 0.5 / k,
        "reconstruction": 0.25 / k, "validation_loss": 2 / k, "validation_accuracy": 0.5,
    }
    for k in (1, 2, 3)
]  # fmt: skip
ROW: dict[str, Any] = {
    "row": "three", "n": 3, "declared": 3, "errors": [0.5, 0.4, 0.6], "mean": 0.5,
    "deviation": 0.1, "interval": 0.248, "minutes": 12.4, "unfinished": "", "paper": 0.25,
}  # fmt: skip
NOT_YET = dict.fromkeys(ROW) | {"row": "none", "n": 0, "declared": 3, "errors": []}
ARMS = (("a", 1.0), ("b", 2.0))
GROWTH = [
    {"name": name, "axis": size, "value": n, "train_bytes": 1e6 * share * n}
    for name, share in (("theirs", 2), ("ours", 1))
    for size in ("children", "parents")
    for n in (10, 20)
]


def case(draw: Callable[..., Any], *args: Any, drawn: dict[str, list[Any]], **options: Any) -> Any:
    """A figure, its arguments, and what has to be seen in it: see `seen`."""
    return pytest.param(draw, args, options, drawn, id=draw.__name__)


CASES = [
    case(
        figures.network, IMAGES[0], IMAGES[:, 0], np.eye(6, 3), VOTES, PAIR, IMAGES[1], grid=(1, 2),
        # The second of the pair is longer: its votes, its bar, and it alone is kept.
        drawn={
            "image": [
                IMAGES[0, 0], np.hstack([IMAGES[0, 0], np.zeros((4, 1)), IMAGES[1, 0]]),
                np.abs(VOTES[:, 1].T), IMAGES[1, 0],
            ],
            "box": [[0, 0, 2, 1], [3, 0, 2, 1], [6, 0, 2, 1], [0, 1, 1, 1], [1, 1, 1, 1]],
            "height": [[0.1, 0.5]],
            "text": ["image", "1 × 4 × 5", "6 × 3", "4 × 2 × 2", "routing", "2 × 2", "0.50", "4"],
        },
    ),
    case(
        figures.against_chance, {"votes": np.array([[0.01, 2.0], [1.9, 0.02]])},
        np.array([[False, True], [True, False]]),
        drawn={
            "steps": [[100, *[0] * 39], [*[0] * 34, 50, 0, 50, 0, 0, 0]], "x": [[1, 1]],
            "text": ["votes", "true digit", "absent digits"],
        },
    ),
    case(
        figures.before_squash,
        {"new": {"ink": np.array([0.11, 0.11, 90.0]), "no ink": np.array([0.11])}},
        np.array([0.1, 1.0, 100.0]), {"along": np.array([0.2, 0.5, 1e-6])},
        drawn={
            "steps": [[200 / 3, *[0] * 48, 100 / 3], [100, *[0] * 49]],
            "x": [[0.1, 1, 100]], "y": [[0.2, 0.5, 1e-6]],
            "text": ["new", "ink", "no ink", "along", "0.5", "0.999"],
        },
    ),
    case(
        figures.capsule_members,
        {"right": np.array([[2, 0, 1], [3, 0, 1]]), "wrong": np.array([[2, 1, 1], [2, 1, 2]])},
        grid=(2, 3),
        drawn={"box": [[1, 0, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1], [2, 1, 1, 1]]},
    ),
    case(
        figures.receptive_fields, RNG.random((1, 9, 9)), {"a": (0, 4, 2, 6), "b": (1, 1, 8, 8)},
        drawn={"box": [[1.5, -0.5, 5, 5], [7.5, 0.5, 1, 1]]},
    ),
    case(
        figures.against_amount,
        {"rotation, °": Sweep([-20, 0, 20], [0.5, 1.0, 0.75], [0.25, 0.9, 0.5], (-10, 10))},
        drawn={"x": [[-20, 0, 20]] * 2, "y": [[50, 100, 75], [0.25, 0.9, 0.5]]},
    ),
    case(
        figures.bent_against_plain,
        {"three": [[(4, 10), (2, 6)], [(3, 9), (2.5, 5)]], "CNN": [[(4, 11), (1.5, 7)]]},
        2.5, {"capsules, the paper": (0.75, 20)},
        drawn={
            "x": [[2.5, 2.5], [4, 2], [3, 2.5], [4, 1.5], [0.75]],
            "y": [[10, 6], [9, 5], [11, 7], [20]], "text": ["three", "CNN", "capsules, the paper"],
        },
    ),
    case(
        figures.runaway, VOTES[:, 0], 1, 2, "the seven",
        drawn={"y": [VOTES[:, 0][:, 0], VOTES[:, 0][:, 1], [0, 1]],
               "text": ["the seven"]},
    ),
    case(
        figures.in_training, {1: [9.0, 7.0], 3: [6.0, 8.0]}, {1: [0.5, 0.25], 3: [0.125, 0.25]},
        drawn={"y": [[9, 6], [7, 8], [8, 7], [0.5, 0.125], [0.375, 0.1875]], "x": [[1, 3]] * 6},
    ),
    case(
        figures.by_iteration, np.arange(2, 5), {"a": np.array([1, 0.1, 0.01]), "b": X[:3]},
        ["b", "faint"], "change", logarithmic="xy",
        drawn={"x": [[2, 3, 4]] * 2, "y": [[1, 0.1, 0.01], X[:3]], "text": ["a", "b"]},
    ),
    case(
        figures.squared_errors, {"black": np.array([9.0, 8.0]), "decoder": X[:2]}, ["0", "1"],
        drawn={"x": [[9, 8], X[:2]]},
    ),
    case(
        figures.pooled_features, IMAGES, np.array([[1.0, 3.0], [0.0, 2.0]]),
        drawn={"image": [*IMAGES[:, 0]], "height": [[1, 3], [0, 2]]},
    ),
    case(
        figures.pictured_vectors, IMAGES, np.array([[2.0, 0.0], [0.0, 1.0]]), ["0°", "45°"],
        drawn={"image": [*IMAGES[:, 0]], "arrows": [[[1, 0]], [[0, 0.5]]]},  # on one scale
    ),
    case(
        figures.orientation_field, IMAGES[:1, :, :1, :2], np.array([[[[0.0, 3]], [[3, 0]]]]),
        # A vector that points up, twice the angle, is a dash at 45 degrees.
        drawn={"image": [IMAGES[0, 0, :1, :2]], "arrows": [[[0.5**0.5] * 2, [1, 0]]]},
    ),
    case(
        figures.length_and_direction, {"shift, pixels": (np.arange(3), SPREAD, 10 * SPREAD)},
        drawn={"y": [np.median(SPREAD, axis=1), 10 * np.median(SPREAD, axis=1)]},
    ),
    case(
        figures.gallery, IMAGES, ["a", "b\n2"], per_row=1, rows=["up", "down"], mistakes=[1],
        drawn={"image": [*IMAGES[:, 0]], "text": ["a", "b\n2", "up", "down"]},
    ),
    case(
        figures.mistakes, IMAGES, np.array([0, 2]), np.array([[0.25, 0.75, 0], [0.5, 0, 0.375]]),
        ["a", "b", "c"],
        drawn={
            "image": [*IMAGES[:, 0]],
            "text": ["a → b", ".25 → .75", "c → a", ".38 → .50"],
        },
    ),
    case(
        figures.errors_by_draw,
        {"ten": {"capsules": [5.0, 7.0], "CNN": [8.0]}, "more": {"capsules": [1.0], "CNN": [2.0]}},
        drawn={
            "x": [[5, 7], [6], [8], [8], [1], [1], [2], [2]],
            "text": ["ten", "more", "capsules", "CNN"],
        },
    ),
    case(
        figures.margin_curves, X, {"loss": (X**2, 1 - X), "pull": (X, 0 * X)}, (0.9, 0.1),
        drawn={
            "y": [X**2, 1 - X, X, 0 * X], "x": [X, X, [0.9] * 2, [0.1] * 2],
            "text": ["m⁺ = 0.9", "loss", "pull"],
        },
    ),
    case(
        figures.wanted_lengths, IMAGES[0], np.array([0.25, 0.75]), np.array([False, True]),
        (0.9, 0.1), ["a", "b"],
        drawn={
            "image": [IMAGES[0, 0]], "width": [[0.25, 0.75]], "x": [[0.9] * 2, [0.1] * 2],
            "text": ["a", "b", "m⁻ = 0.1"],
        },
    ),
    case(
        figures.length_histogram, np.array([0.75, 0.8, 0.9, 0.2]), np.full(36, 0.1), (0.9, 0.1),
        bins=2,
        drawn={"height": [[25, 75], [100, 0]]},  # per cent of their own class
    ),
    case(
        figures.mean_lengths, {0.5: [0.1, 0.2], 1.0: [0.1, 0.15]}, {0.5: 0.25, 1.0: 0.18},
        drawn={"y": [[0.1, 0.2], [0.25] * 2, [0.1, 0.15], [0.18] * 2], "x": [[1, 2], [1, 2]]},
    ),
    case(
        figures.taken_apart, IMAGES, {"a": PAIRS}, ["x", "y"], mistakes=[1], alone=True,
        drawn={
            "image": [IMAGES[0, 0], IMAGES[1, 0]]
            + [pair[0, 0, :, :, None] * FIRST for pair in PAIRS]
            + [pair[1, 0, :, :, None] * SECOND for pair in PAIRS]
            + [np.einsum("dhw,dc->hwc", pair[:, 0], [FIRST, SECOND]) for pair in PAIRS],
            "text": ["x", "y", "image", "first", "second", "a"],
        },
    ),
    case(
        figures.stages, {"wide": IMAGES[0], "tall": IMAGES[1].transpose(0, 2, 1)},
        drawn={"image": [IMAGES[0, 0], IMAGES[1, 0].T], "text": ["wide", "tall"]},
    ),
    case(figures.palette, drawn={"text": [f"${q.latex}$" for q in style.QUANTITIES.values()]}),
    case(
        figures.intervals, {"one": (0.5, 0.25, 0.75), "two": (1.0, 0.5, 1.0)},
        drawn={"x": [[50, 100]], "ends": [[[25, 0], [75, 0]], [[50, 1], [100, 1]]]},
    ),
    case(
        figures.reliability, X[:2] / 2, np.array([0.5, 0.9]), np.array([[0.25, 0.75], [0.5, 1.0]]),
        drawn={"x": [X[:2] / 2], "y": [[0.5, 0.9]], "ends": [[[0.25, 0.25], [0.25, 0.75]]]},
    ),
    case(
        figures.rejection, np.array([0.5, 1.0]), {"short": np.array([1.0, 0.5]), "small": X[:2]},
        drawn={"x": [[50, 100]] * 2, "y": [[100, 50], 100 * X[:2]]},
    ),
    case(
        figures.errors_beside_paper, {"rows": [ROW, NOT_YET]},
        drawn={"x": [[0.5, 0.4, 0.6], [0.5], [0.25]], "text": ["three", "none"]},
    ),
    case(
        figures.scenes, [PARTS, PARTS._replace(ghosts=[("house", [0.5, 0.25, 0.0, 1.0])])],
        drawn={"tips": [[[1, 2.3]], [[0.5, 0.55]]], "text": ["parts"]},
    ),
    case(
        figures.scene_and_votes, PARTS._replace(numbers=True), VOTES[:2], ["A", "B"],
        drawn={"tips": [[], VOTES[:2, 0], VOTES[:2, 1]], "text": ["A", "B", "1", "2"]},
    ),
    case(
        figures.routing_votes, VOTES, SHARES[:1].repeat(4, 0)[None], OUTPUTS, ["A", "B"],
        drawn={"tips": [[*VOTES[:, j], OUTPUTS[0, j]] for j in (0, 1)], "text": ["A", "B", "4"]},
    ),
    case(
        figures.routing_shares, SHARES, SHARES, ["A", "B"],
        drawn={"x": [[1, 2, 3]] * 4, "y": [*SHARES.T] * 2, "text": ["1", "2", "A", "B"]},
    ),
    case(
        figures.witnesses, IMAGES[0], [(1, 0), (0, 2)], 3, np.array([0.625, 0.25]), IMAGES[:, 0],
        [("all", IMAGES[0, 0])],
        drawn={
            "image": [0.35 * IMAGES[0, 0] + 0.65 * IMAGES[0, 0] * SEEN, IMAGES[0, 0],
                      IMAGES[1, 0], IMAGES[0, 0]],
            "text": ["62 %", "25 %", "all"],
        },
    ),
    case(
        figures.shares_by_routing, {"one": SHARES[0], "two": SHARES[1]}, "A",
        drawn={"width": [SHARES[0], SHARES[1]], "text": ["one", "two", "child"]},
    ),
    case(
        figures.share_histograms, np.array([[0.1] * 3, [0.1, 0.12, 0.1]]), 0.1, "the seven",
        drawn={"height": [[3, 0, 0], [2, 1, 0]]},  # equal shares are one bar
    ),
    case(
        figures.durations, {"slow": 390.4, "fast": 42.6},
        drawn={"width": [[390.4, 42.6]], "text": ["390", "43"]},
    ),
    case(
        figures.growth, GROWTH, {"theirs": "published", "ours": "here"}, ("children",),
        drawn={"y": [[20, 40], [10, 20]], "text": ["published", "here"]},
    ),
    case(
        figures.two_shares, {"one": (0.9, 0.25), "two": (0.1, 0.75)}, ("work", "time"),
        drawn={"width": [[90, 10, 25, 75]], "text": ["90 %", "75 %", "work", "time"]},
    ),
    case(
        figures.squash_arrows, np.array([[0.0, 2.0], [-1.5, 0.0]]), np.array([[0, 0.8], [-0.5, 0]]),
        drawn={"tips": [[[0, 2], [0, 0.8], [-1.5, 0], [-0.5, 0]]], "text": ["2 → 0.80"]},
    ),
    case(figures.squash_curves, X, X / 4, X / 3, X / 2, drawn={"y": [X / 4, X / 3, X / 2]}),
    case(
        figures.relative_errors, X, {"ours": 1e-7 + 0 * X, "theirs": 1 / X, "exact": 0 * X},
        drawn={"y": [1e-7 + 0 * X, 1 / X, 0 * X]},
    ),
    case(
        figures.sweeps, IMAGES[None, :, 0], ["a"], ["−1", "+1"], "added", "number",
        drawn={"image": [np.hstack([IMAGES[0, 0], np.ones((4, 2)), IMAGES[1, 0]])]},
    ),
    case(
        figures.property_map, np.array([[0.04, -1.26], [2.0, 0.5]]), ["1", "2"], ["ink", "slant"],
        "number", "spreads",
        drawn={"image": [[[0.04, -1.26], [2, 0.5]]], "text": ["0", "−1.3", "+2.0", "+0.5"]},
    ),
    case(
        figures.following, {"slant": (X, X**2), "ink": (X[:2], X[2:])},
        drawn={"x": [[0.25, 4], X, X[:2]], "y": [[0.25, 4], X**2, X[2:]]},  # and the diagonal
    ),
    case(
        figures.effects, {"one": (0.25, 0.125), "two": (0.5, 0.25)}, ["two"],
        drawn={"x": [[0, 0], [0.25], [0.5]], "ends": [[[0.125, 0], [0.375, 0]]]},
    ),
    case(
        figures.switched,
        {
            "there": {name: [figures.Arm(y, 0.25), figures.Arm(y / 2, 0)] for name, y in ARMS},
            "here": {name: [figures.Arm(y, 9, [0.5, 2.5]), figures.Arm(y, 0)] for name, y in ARMS},
        },
        ["off", "on"],
        drawn={
            "y": [[1, 0.5], [2, 1], [1, 1], [0.5, 2.5], [2, 2], [0.5, 2.5]],
            "ends": [[[-0.03, 0.75], [-0.03, 1.25]], [[0.97, 0.5], [0.97, 0.5]]],
            "text": ["off", "here", "there", "a"],
        },
    ),
    case(
        figures.costs, {"one": (-0.25, 0.1), "all of two": (0.5, 0.25)},
        drawn={
            "x": [[0, 0], [0.5], [-0.25]],
            "ends": [[[0.25, 0], [0.75, 0]], [[-0.35, 1], [-0.15, 1]]],
            "text": ["all of two", "one"],
        },
    ),
    case(
        figures.given, {"ours": np.array([[0.25, 0.75], [0.5, 0.5]]), "theirs": SHARES},
        drawn={"height": [[0.25, 0.5, 0.75, 0.5], SHARES.T.ravel()], "text": ["ours", "theirs"]},
    ),
    case(
        figures.who_has, {"leak": ["two"], "bias": ["one", "two"]}, ["one", "two"],
        drawn={"x": [[1], [0, 1]], "text": ["leak", "bias", "one", "two"]},
    ),
    case(
        figures.course, RECORDS,
        drawn={"y": [[1, 1 / 2, 1 / 3], [2, 1, 2 / 3], [1, 2, 3], [50, 50, 50]]},
    ),
    case(
        figures.loss_curves, RECORDS, 0.3, span=2,
        drawn={"y": [[0.5, 0.25, 0.5 / 3], [0.375, 0.625 / 3], [0.25, 0.125, 0.25 / 3]]},
    ),
    case(
        figures.watched, [0, 10], IMAGES, IMAGES[0], np.array([[0.1, 0.9], [0.2, 0.7]]),
        np.array([[0, 0.5, 1], [0.5, 0.5, 0.75]]), [0.25, 0.5], 1,
        drawn={
            "image": [IMAGES[0, 0], IMAGES[1, 0], IMAGES[0, 0]],
            "y": [[0.1, 0.2], [0.9, 0.7], [0.5, 0.5], [0.5, 0.5], [25, 50]],
            "ends": [[[0, 0], [0, 1]], [[1, 0.5], [1, 0.75]]],
            "text": ["the 1", "others", "0", "10"],
        },
    ),
    case(
        figures.confusion_matrix, np.array([[5, 2], [0, 7]]), ["a", "b"],
        drawn={"image": [[[0, 2], [0, 0]]], "text": ["5", "2", "7"]},  # mistakes alone in colour
    ),
    case(
        figures.reconstructions, IMAGES, IMAGES / 2, np.array([0, 1]), np.array([0, 2]),
        ["a", "b", "c"],
        drawn={"image": [*IMAGES[:, 0], *IMAGES[:, 0] / 2], "text": ["a", "b → c"]},
    ),
    case(
        prediction, IMAGES[0], IMAGES[1], np.array([0.1, 0.95]), ["a", "b"],
        drawn={"image": [*IMAGES[:, 0]], "width": [[0.1, 0.95]], "text": ["predicted: b"]},
    ),
]  # fmt: skip
every_figure = pytest.mark.parametrize(("draw", "args", "options", "drawn"), CASES)


def seen(figure: mpl.figure.Figure) -> dict[str, list[Any]]:
    """What a figure shows, from the first axes to the last."""
    found: dict[str, list[Any]] = defaultdict(list)
    for axes in figure.axes:
        found["image"] += [np.ma.filled(image.get_array(), 0) for image in axes.images]
        for line in axes.lines:
            found["x"].append(line.get_xdata())
            found["y"].append(line.get_ydata())
        boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        found["box"] += [[*box.get_xy(), box.get_width(), box.get_height()] for box in boxes]
        found["height"].append([box.get_height() for box in boxes])
        found["width"].append([box.get_width() for box in boxes])
        found["steps"] += [p.get_data().values for p in axes.patches if isinstance(p, StepPatch)]
        for drawn in axes.collections:
            if isinstance(drawn, LineCollection):
                found["ends"] += drawn.get_segments()
            elif isinstance(drawn, Quiver):
                found["arrows"].append(np.stack([drawn.U, drawn.V], axis=1))

        found["tips"].append([t.xy for t in axes.texts if getattr(t, "arrow_patch", None)])
    found["text"] = [text.get_text() for text in figure.findobj(Text)]
    return found


def contains_in_order(found: Iterable[Any], wanted: Iterable[Any]) -> bool:
    rest = iter(found)
    return all(
        any(
            np.shape(one) == np.shape(other) and np.allclose(one, other, atol=1e-6, equal_nan=True)
            for other in rest
        )
        for one in wanted
    )


def test_every_function_has_a_case() -> None:
    functions = {
        name
        for name, value in vars(figures).items()
        if callable(value) and getattr(value, "__annotations__", {}).get("return") is style.Figure
    }
    assert len(functions) > 40
    assert functions | {"prediction"} == {param.id for param in CASES}  # the command line's alone


@every_figure
def test_it_draws_what_it_was_given(draw, args, options, drawn) -> None:
    found = seen(draw(*args, **options))
    for kind, wanted in drawn.items():
        if kind == "text":
            assert set(wanted) <= set(found[kind])
        else:
            assert contains_in_order(found[kind], wanted), (kind, found[kind])


class Elsewhere(torch.Tensor):
    """As a tensor on a GPU: it becomes an array only once it was brought here."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def numpy(self):
        raise TypeError("this tensor is on another device")

    def __array__(self, *_):
        raise TypeError("this tensor is on another device")


def moved(value: Any) -> Any:
    """The same arguments, their arrays on another device."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value).as_subclass(Elsewhere)
    if type(value) in (list, tuple):
        return type(value)(map(moved, value))
    if isinstance(value, dict):
        return {key: moved(inner) for key, inner in value.items()}
    return value


@every_figure
def test_tensors_of_any_device_draw_the_same(draw, args, options, drawn) -> None:
    here, there = seen(draw(*args, **options)), seen(draw(*moved(args), **options))
    assert here.keys() == there.keys()
    assert here.pop("text") == there.pop("text")
    for kind in here:
        assert contains_in_order(there[kind], here[kind])


@every_figure
def test_it_is_a_picture_at_once_legible_and_without_a_trace(draw, args, options, drawn) -> None:
    before = dict(mpl.rcParams)
    start = time.process_time()
    figure = draw(*args, **options)
    png = figure.png()
    assert time.process_time() - start < 2  # seconds of one core; half of one is usual
    assert png.startswith(b"\x89PNG") and b"atplotlib" not in png  # whatever its version
    assert mpl.colors.to_hex(figure.get_facecolor()).upper() == style.PAPER
    assert figure.get_figwidth() <= style.WIDTH
    assert all(text.get_fontsize() >= 9 for text in figure.findobj(Text) if text.get_text())
    assert dict(mpl.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
