"""Who deviates in what, and how they train: the paper, and networks that many learn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from capsnet_lab.wild.deviations import DEVIATIONS, Deviation
from capsnet_lab.wild.wild_capsnet import WildCapsNet

# The paper's, as options of :class:`TrainingConfig`. Where it is silent, they are those of its
# authors' code: 300,000 steps, and no weights are averaged over them.
PAPER_RECIPE: dict[str, Any] = {
    "epochs": 640,
    "batch_size": 128,
    "learning_rate": 1e-3,
    "schedule": "exponential",
    "average": 0.0,
    "precision": "fp32",
}


class Published(NamedTuple):
    """An accuracy on MNIST that its authors name."""

    accuracy: float  # %
    what: str
    source: str


@dataclass(frozen=True)
class Implementation:
    """A network that others have written.

    Attributes:
        title: of the work, for credit.
        link: where it is.
        deviations: all of its own, in the network, its loss and its recipe.
        training: options of :class:`TrainingConfig` that it has and :data:`PAPER_RECIPE` has not.
        published: accuracies that it reports.
        remarks: what it does and ``--as`` does not.
        images: how many of MNIST's training images it learns from, all if None.
        name: its key in :data:`IMPLEMENTATIONS`, for the command line.
    """

    title: str
    link: str
    deviations: tuple[Deviation, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    remarks: str = ""
    images: int | None = None
    name: str = ""

    @property
    def recipe(self) -> dict[str, Any]:
        """How it trains, for :func:`capsnet_lab.wild.recipes.split_recipe`."""
        deviating = {k: v for d in self.deviations for k, v in d.recipe.items()}
        return {**PAPER_RECIPE, **deviating, **self.training}

    def without_overridden(self, recipe: Mapping[str, Any]) -> "Implementation":
        """Copy without the deviations that ``recipe`` overrides."""
        kept = (d for d in self.deviations if d.recipe.items() <= recipe.items())
        return replace(self, deviations=tuple(kept))

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.title}", f"  {self.link}"]
        lines.append(f"  capsnet train --as {self.name} --all --test")
        lines += [f"  {p.accuracy:.2f} % {p.what} ({p.source})" for p in self.published]
        if self.remarks:
            lines.append(f"  not so with --as: {self.remarks}")
        recipe = (f"{name.replace('_', ' ')} {value}" for name, value in self.recipe.items())
        lines.append(f"  recipe: {', '.join(recipe)}")
        return "\n".join(lines + [f"  - {d.name}: {d.code}" for d in self.deviations])

    def make(self, **options: Any) -> WildCapsNet:
        """Its network; options as of :class:`WildCapsNet`."""
        return WildCapsNet(deviations=[d.name for d in self.deviations], **options)


def named(names: str) -> tuple[Deviation, ...]:
    return tuple(DEVIATIONS[name] for name in names.split())


PAPER = "https://arxiv.org/abs/1710.09829"
GITHUB = "https://github.com/"
LABML = "https://nn.labml.ai/capsule_networks/"
LABML_LAYERS = (
    "softmax-over-children guard-1e-8 unit-w prediction-mask unsquared-margin mean-reconstruction "
    "no-shift constant-rate"
)
ADAMS_EPSILON = "Its Adam adds ε before the bias of the second moment is corrected."

_TABLE = {
    "paper": Implementation(
        "Sabour, Frosst, Hinton: Dynamic Routing Between Capsules",
        PAPER,
        published=(Published(99.75, "mean of three trainings, ± 0.005", PAPER + ", Table 1"),),
    ),
    "labml": Implementation(
        "labml.ai: annotated Capsule Networks",
        LABML,
        named(LABML_LAYERS + " normalised-images"),
        {"epochs": 10, "batch_size": 64},
        remarks=ADAMS_EPSILON,
    ),
    "labml-notebook": Implementation(
        "A notebook on labml's layers",
        LABML,
        named(LABML_LAYERS),
        {"epochs": 5, "batch_size": 16, "learning_rate": 1e-4},
        (Published(99.01, "after epoch 5", "the notebook's log"),),
    ),
    "adambielski": Implementation(
        "Adam Bielski: CapsNet-pytorch",
        GITHUB + "adambielski/CapsNet-pytorch",
        named(
            "one-iteration-more learned-prior bare-norm uniform-w mean-margin "
            "mean-reconstruction plateau-rate"
        ),
        {"epochs": 250},
        (Published(99.65, "with reconstruction", "README"),),
        "Without its option --with_reconstruction it has no decoder. Its rate ends at 1e-6 at "
        "least, and follows the loss on the test images (with --as, on the validation images, "
        "and with --all, in training).",
    ),
    "cezannec": Implementation(
        "Cezanne Camacho: capsule_net_pytorch",
        GITHUB + "cezannec/capsule_net_pytorch",
        named(
            "softmax-over-children bare-norm unit-w prediction-mask unsquared-margin no-shift "
            "constant-rate unshuffled"
        ),
        {"epochs": 3, "batch_size": 20},
        (
            Published(99.02, "after 3 epochs", "Capsule_Network.ipynb"),
            Published(98.90, "after 3 epochs", "a demonstration of the notebook"),
        ),
    ),
    "xifengguo": Implementation(
        "Xifeng Guo: CapsNet-Pytorch",
        GITHUB + "XifengGuo/CapsNet-Pytorch",
        named("view-without-permute stopped-gradient guard-beside-norm small-w rate-by-epoch"),
        {"epochs": 50, "batch_size": 100},
        (Published(99.66, "mean of three trainings after 50 epochs, ± 0.029", "README"),),
        "Its option --routings changes nothing.",
    ),
    "jindongwang": Implementation(
        "Jindong Wang: Pytorch-CapsuleNet",
        GITHUB + "jindongwang/Pytorch-CapsuleNet",
        named(
            "view-without-permute softmax-over-children batch-logits bare-norm "
            "squash-by-component unit-w batch-mask unsquared-margin mean-reconstruction "
            "normalised-images no-shift constant-rate"
        ),
        {"epochs": 30, "batch_size": 100},
        remarks="An answer is the class of the mask. The script trains on CIFAR-10 as it is.",
    ),
    "gram-ai": Implementation(
        "Kenta Iwasaki, Gram.AI: capsule-networks",
        GITHUB + "gram-ai/capsule-networks",
        named(
            "softmax-over-children bare-norm unit-w softmax-of-lengths one-shift-for-all "
            "constant-rate"
        ),
        {"epochs": 500, "batch_size": 100},
        (Published(99.7, "the best epoch, the 443rd", "README"),),
        "Its test images are shifted, too.",
    ),
    "sarasra": Implementation(
        "Sara Sabour: the authors' released code",
        GITHUB + "Sarasra/models/tree/master/research/capsules",
        named("routed-to-types digit-bias bare-norm released-start mean-margin halved-margin"),
        remarks=ADAMS_EPSILON,
    ),
    "naturomics": Implementation(
        "Huadong Liao: CapsNet-Tensorflow",
        GITHUB + "naturomics/CapsNet-Tensorflow",
        named(
            "relu-before-squash stopped-gradient digit-bias guard-1e-9 small-w glorot-start "
            "no-shift constant-rate"
        ),
        {"epochs": 50},
        (
            Published(
                99.64,
                "one training, the best of many looks at 5000 held-out training images, by its "
                "table of errors",
                "README",
            ),
        ),
        ADAMS_EPSILON,
        images=55_000,
    ),
    "timomernick": Implementation(
        "Timothy Mernick: pytorch-capsule",
        GITHUB + "timomernick/pytorch-capsule",
        named(
            "squash-over-children squash-over-classes softmax-over-children batch-logits "
            "bare-norm unit-w prediction-mask other-decoder normalised-images no-shift "
            "constant-rate new-optimiser"
        ),
        {"epochs": 10, "learning_rate": 1e-2},
        remarks="It stops at a loss below 0.0001.",
    ),
    "geron": Implementation(
        "Aurélien Géron: extra_capsnets.ipynb of Hands-On Machine Learning",
        GITHUB + "ageron/handson-ml",
        named(
            "two-iterations relu-before-squash guard-1e-7 uncut-w glorot-start "
            "mean-reconstruction no-shift constant-rate"
        ),
        {"epochs": 10, "batch_size": 50},
        (
            Published(
                99.53,
                "of the epoch that loses least on held-out images, after a checkpoint",
                "the notebook's log",
            ),
        ),
        "It holds out the first 5,000 images, not the last. " + ADAMS_EPSILON,
        images=55_000,
    ),
}
IMPLEMENTATIONS = {name: replace(made, name=name) for name, made in _TABLE.items()}


def found_in(deviation: Deviation) -> list[str]:
    """The names of the implementations that have a deviation."""
    return [name for name, made in IMPLEMENTATIONS.items() if deviation in made.deviations]
