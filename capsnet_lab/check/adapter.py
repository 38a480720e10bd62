"""How to call anybody's capsule network, and which of the returned tensors is what."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from capsnet.checks import as_image_shape
from capsnet_lab.check.evidence import UserCodeError, sums_to_one, tensors_in, without_ones

CallFunction = Callable[[Any, Tensor, Tensor], Any]  # network, images, labels → what it returns


@dataclass(frozen=True)
class Adapter:
    """How to call a network, and how to reach its inside. Stages left out are not examined.

    The first argument of each function is the network, because copies of it are examined. Batches
    have 1 to 8 images, so code that fixes a batch size fails, and so does a ``.squeeze()`` without
    a dimension. Images are intensities from about 0 to 1; if your data loader preprocesses them,
    with Normalize for example, each function does so first. Labels are class indices. Join a
    decoder that is not part of the network to it in one module first::

        adapter = Adapter(
            call=lambda net, images, labels: net(images, labels),
            primary=lambda net, images: net.primary(net.conv(images).relu()),
            digits=lambda net, u: net.digits(u),
            loss=lambda net, images, labels: my_loss(*net(images, labels), images, labels),
        )

    Attributes:
        call: images and class indices → what the network returns in training: the capsules
            [n, classes, dim], their lengths [n, classes], the reconstruction that the loss uses, or
            several of these. By default ``net(images, labels)``, with indices or one-hot labels, or
            ``net(images)``.
        primary: images → u, the squashed primary capsules, [n, children, dim].
        digits: u → v, the class capsules, [n, classes, dim].
        routing: the name of the module that maps u to v, instead of ``primary`` and ``digits``. Its
            v is then examined even if the network returns only lengths.
        loss: images and class indices → the training loss.
        image_shape: [channels, height, width].

    Raises:
        ValueError: the shape is not three positive whole numbers, or there is a routing as well as
            a stage.
    """

    call: CallFunction | None = None
    primary: Callable[[Any, Tensor], Tensor] | None = None
    digits: Callable[[Any, Tensor], Tensor] | None = None
    loss: Callable[[Any, Tensor, Tensor], Tensor] | None = None
    image_shape: Sequence[int] = (1, 28, 28)
    routing: str | None = None

    def __post_init__(self) -> None:
        if self.routing is not None and (self.primary or self.digits):
            raise ValueError("expected an Adapter with routing, or primary and digits, got both")
        as_image_shape(self.image_shape)


class Output(NamedTuple):
    """What a network returns."""

    capsules: Tensor | None  # [n, classes, dim]
    lengths: Tensor | None  # [n, classes], as the network returns them
    reconstruction: Tensor | None  # shaped like the images
    raw: Tensor | None  # the capsules as the network returns them: the decoder may have seen these
    other_lengths: tuple[Tensor, ...]  # more of that shape, such as their softmax

    @property
    def answer(self) -> Tensor:
        """The capsules, or the lengths if no capsules are returned."""
        answer = self.lengths if self.capsules is None else self.capsules
        assert answer is not None
        return answer

    @property
    def norms(self) -> Tensor:
        """The lengths of the capsules, or the returned lengths if no capsules are returned."""
        return self.answer if self.capsules is None else self.capsules.norm(dim=2)


def read_output(returned: Any, images: Tensor) -> Output:
    """Recognise capsules, lengths and the reconstruction among returned tensors, by shape."""
    tensors = tensors_in(returned)
    batches = [x for x in tensors if x.dim() > 1 and len(x) == len(images)]
    pictures = [x for x in batches if is_reconstruction(x, images)]
    others = [x for x in batches if not is_reconstruction(x, images)]
    solid = [x for x in others if without_ones(x).dim() == 3]
    flat = [without_ones(x) for x in others if without_ones(x).dim() == 2]

    candidates = candidate_lengths([x for x in flat if x.requires_grad], solid)  # not a mask
    lengths = candidates[0] if candidates else None
    raw = choose_capsules(solid, lengths)
    capsules = None if raw is None else without_ones(raw)
    if capsules is not None and lengths is not None and capsules.shape[1] != lengths.shape[1]:
        capsules = capsules.transpose(1, 2)
    if capsules is None and lengths is None:
        got = [f"a tensor {list(tensor.shape)}" for tensor in tensors] or [type(returned).__name__]
        raise UserCodeError(
            "expected capsules [n, classes, dim] or lengths [n, classes] with a gradient, got "
            f"{', '.join(got)}"
        )
    reconstruction = pictures[0].reshape(images.shape) if pictures else None
    return Output(capsules, lengths, reconstruction, raw, tuple(candidates[1:]))


def is_reconstruction(tensor: Tensor, images: Tensor) -> bool:
    """Whether a tensor has the images' shape, or is flat with as many elements."""
    if tensor.numel() != images.numel():
        return False
    return tensor.dim() == 2 or without_ones(tensor).shape == without_ones(images).shape


def candidate_lengths(flat: list[Tensor], solid: list[Tensor]) -> list[Tensor]:
    """Tensors [n, classes] that may be the lengths, all of one shape."""
    sides = {side for x in solid for side in without_ones(x).shape[1:]}
    candidates = [x for x in flat if not sides or x.shape[1] in sides]
    alike = [x for x in candidates if x.shape == candidates[0].shape]
    return sorted(alike, key=sums_to_one)  # a softmax is not the lengths if these are there, too


def choose_capsules(solid: list[Tensor], lengths: Tensor | None) -> Tensor | None:
    """The first three-dimensional tensor that fits the lengths."""
    if lengths is not None:
        solid = [x for x in solid if lengths.shape[1] in without_ones(x).shape[1:]]
    elif len({without_ones(x).shape for x in solid}) > 1:
        shapes = " or ".join(str(list(x.shape)) for x in solid)
        raise UserCodeError(f"which of the tensors that it returns are the capsules, {shapes}?")
    return solid[0] if solid else None


def require_shape(expected: str, value: Any, dims: int, batch: int | None = None) -> Tensor:
    """Check the shape of what a stage returns; a single number is a scalar, whatever its shape."""
    if not isinstance(value, Tensor):
        raise UserCodeError(f"it must return {expected}, got {type(value).__name__}")
    shape = list(value.shape)
    if value.dim() != dims and (dims or value.numel() != 1):
        raise UserCodeError(f"it must return {expected}, got {shape}")
    if batch is not None and len(value) != batch:
        raise UserCodeError(f"its first dimension must be the batch's, {batch}, got shape {shape}")
    return value
