"""Every figure of the book draws, names what it was given, and is legible."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.text import Text

import drawings
from capsnet_book import figures
from capsnet_book.figures import Panel, Scene
from capsnet_lab.figures import style

RNG = np.random.default_rng(0)
IMAGES, FIVE = RNG.random((2, 1, 4, 5)), RNG.random((5, 1, 4, 5))
X = np.linspace(0.5, 2, 4)
SHARES = RNG.random((3, 2))  # [iterations, children]
VOTES, OUTPUTS = RNG.standard_normal((4, 2, 2)), RNG.standard_normal((1, 2, 2))
LENGTHS = np.array([[0.25, 0.75], [0.5, 0.375]])
PARTS = Scene("parts", [("triangle", [1.0, 2.0, 0.0, 1.0])], numbers=True)
RECORDS = [{"step": k, "margin": 1 / k, "reconstruction": 2} for k in range(1, 30)]

# A figure, what it is given and has to name, and what else it is given.
CASES: list[tuple[Any, list[Any], dict[str, Any]]] = [
    (figures.against_chance, [{"votes": LENGTHS}, LENGTHS > 0.5, 34.0], {}),
    (figures.bars, [{"one": (0.9, 0.25), "two": (0.1, 0.75)}, ("work", "time"), "ms"], {}),
    (figures.before_squash, [{"new": {"ink": X, "none": X}}, X, {"along": X}], {}),
    (figures.bent_against_plain, [{"CNN": [[(4, 11), (1, 7)]]}, 2.5, {"paper": (1, 20)}], {}),
    (figures.by_change, [{"shift, px": (X[:2], X[2:], SHARES[:2])}, ("right", "long")], {}),
    (figures.capsule_members, [{"right": np.array([[2, 0, 1]])}, (2, 3)], {}),
    (figures.coupling_bars, [{"ours": SHARES, "theirs": SHARES}, "gives"], {}),
    (figures.coupling_histograms, [SHARES, 0.1, "the seven"], {}),
    (figures.curves, [[Panel("x", "y", {"a": (X, X), "b": (X, X)}, levels={"most": 2})]], {}),
    (figures.errors_added, [{"leak": (-2.0, 0.1), "all of two": (0.5, 0.25)}], {}),
    (figures.gallery, [IMAGES, ["a", "b\n2"], 1, ["up", "down"]], {}),
    (figures.image_in_training, [[0, 10], IMAGES, IMAGES[0], LENGTHS, SHARES[:2], X[:2], 1], {}),
    (figures.intervals, [{"one": (0.5, 0.25, 0.75), "two": (1.0, -0.5, 1.0)}, "right, %"], {}),
    (figures.intervals, [{"one": (0.5, 0.25, 0.75)}, "right", ["one"], {"the paper": 0.5}], {}),
    (figures.length_histogram, [X / 2, X / 4, (0.9, 0.1)], {}),
    (figures.lengths_and_margins, [IMAGES[0], X[:2], X[:2] > 1, (0.9, 0.1), ["a", "b"]], {}),
    (figures.lengths_by_iteration, [VOTES[:, 0], 1, 2, "the seven"], {}),
    (figures.loss_curves, [], {"records": RECORDS, "mean_image": 0.3}),
    (figures.membership, [{"leak": ["two"], "bias": ["one", "two"]}, ["one", "two"]], {}),
    (figures.misclassified, [IMAGES, np.array([0, 1]), LENGTHS, ["cat", "dog"]], {}),
    (figures.network, [IMAGES[0], IMAGES[:, 0], SHARES, VOTES, LENGTHS, IMAGES[1], (1, 1)], {}),
    (figures.orientation_field, [IMAGES[:1], RNG.random((1, 2, 4, 5))], {}),
    (figures.pair_reconstructions, [IMAGES, {"row": RNG.random((2, 2, 1, 4, 5))}, ["x", "y"]], {}),
    (figures.palette, [], {}),
    (figures.pictured_vectors, [IMAGES, LENGTHS, ["0°", "45°"]], {}),
    (figures.pooled_features, [IMAGES, -LENGTHS], {}),
    (figures.property_map, [LENGTHS, ["1", "2"], ["ink", "slant"], "number", "spreads"], {}),
    (figures.receptive_fields, [RNG.random((1, 9, 9)), {"a": (0, 4, 2, 6)}], {}),
    (figures.reconstructions, [FIVE, FIVE, np.arange(5) % 2, np.zeros(5, int), ["a", "b"]], {}),
    (figures.relative_errors, [X, {"ours": 1e-7 + 0 * X, "theirs": 1 / X}], {}),
    (figures.reliability, [X[:2] / 2, X[:2], LENGTHS], {}),
    (figures.routing_votes, [VOTES, RNG.random((1, 4, 2)), OUTPUTS, ["A", "B"]], {}),
    (figures.runs, [{"errors, %": {"one": [0.5, 0.4], "two": []}}, {"one": 0.25}], {}),
    (figures.scene_and_votes, [], {"scene": PARTS, "u_hat": VOTES[:2], "titles": ["A", "B"]}),
    (figures.scenes, [], {"drawn": [PARTS, PARTS._replace(ghosts=[("house", [1, 0, 0, 1])])]}),
    (figures.squared_errors, [{"black": X[:2], "decoder": X[:2]}, ["0", "1"]], {}),
    (figures.squash_arrows, [np.array([[0.0, 2], [-1.5, 0]]), np.array([[0, 0.8], [-0.5, 0]])], {}),
    (figures.sweeps, [IMAGES[None, :, 0], ["a"], ["−1", "+1"], "added", "number"], {}),
    (figures.walks, [{"true digit": RNG.standard_normal((5, 3))}], {}),
    (
        figures.votes_of_children,
        [IMAGES[0], [(1, 0)], 3, X[:1], IMAGES[:1, 0], [("all", IMAGES[1, 0])]],
        {},
    ),
]


def test_every_function_has_a_case() -> None:
    named = [getattr(figures, name) for names in figures.HOMES.values() for name in names.split()]
    drawing = {f.__name__ for f in named if f.__annotations__.get("return") is style.Figure}
    assert drawing - {"confusion_matrix"} == {draw.__name__ for draw, _, _ in CASES}


def words(given: Any) -> Iterator[str]:
    """The texts in nested arguments."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict | list | tuple):
        inner = [*given, *given.values()] if isinstance(given, dict) else given
        for each in inner:
            yield from words(each)


def trained(given: Any) -> Any:
    """The same arguments, their arrays as tensors that are parts of a graph."""
    if isinstance(given, np.ndarray):
        tensor = torch.from_numpy(given)
        return tensor.requires_grad_() if tensor.is_floating_point() else tensor
    if isinstance(given, Panel):
        return Panel(*map(trained, given))
    if type(given) in (list, tuple):
        return type(given)(map(trained, given))
    if isinstance(given, dict):
        return {key: trained(inner) for key, inner in given.items()}
    return given


@pytest.mark.parametrize(
    ("draw", "args", "options"), CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_it_draws_tensors_legibly_and_without_a_trace(draw, args, options) -> None:
    before = dict(mpl.rcParams)
    figure = draw(*trained(args), **options)
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    shown = "\n".join(text.get_text() for text in texts)
    assert [word for word in words(args) if word not in shown] == []
    assert all(text.get_fontsize() >= 9 for text in texts)
    assert mpl.colors.to_hex(figure.get_facecolor()).upper() == style.PAPER
    assert figure.get_figwidth() <= style.WIDTH
    assert dict(mpl.rcParams) == before


def test_a_budget_is_shown_with_its_costs() -> None:
    record = {"parameters": 8_215_568, "test": {"correct": 990, "total": 1000}}
    costs = {"two": {"step_ms": 12.4, "tensors_mib": 99.6}}
    _, two = figures.budget_table({"two": {0: record}}, costs).splitlines()
    assert two.split() == ["two", "1.00", "8,215,568", "12", "100"]


def test_words_on_strong_colours_keep_theirs_on_a_dark_page() -> None:
    figure = figures.property_map([[3.0, 0.1]], ["1"], ["ink", "slant"], "number", "spreads")
    strong, weak = [mpl.colors.to_hex(text.get_color()) for text in figure.axes[0].texts]
    assert strong.upper() not in drawings.INKS and weak.upper() in drawings.INKS
    assert figure.axes[0].images[0].cmap(0.5)[3] < 0.01  # no change is the page's ground
