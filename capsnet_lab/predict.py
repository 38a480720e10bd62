"""What a network says of anybody's pictures, a batch at a time."""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from capsnet.data import to_float
from capsnet.model import CapsNet

# What reads pictures imports Pillow and SciPy, and so is imported where it is needed.

BATCH = 16  # pictures at a time
# A shorter capsule is no answer. Of 200 digits one is refused (results/pictures).
THRESHOLD = 0.49


class Prediction(NamedTuple):
    """What a network says of a picture; one that is refused, or cannot be read, has no lengths."""

    picture: str  # its path, with a question mark for what no text can hold
    answer: str  # a class, "no digit" and the like, "several digits", "blank", or "": unreadable
    length: float | None  # of the longest capsule
    lengths: dict[str, float]  # ‖v_k‖ of every class k
    error: ValueError | OSError | None = None  # why there are no lengths
    image: Tensor | None = None  # as the network saw it, or what was found; uint8 [c, h, w]
    reconstruction: Tensor | None = None  # from the longest capsule; None without a decoder

    def line(self) -> str:
        """Picture, answer and its length."""
        length = f"  {self.length:.3f}" if self.lengths else ""
        return f"{self.picture}: {self.answer}{length}"

    def table(self) -> str:
        """Picture and answer, and below it a line for the length of each capsule."""
        width = max(map(len, self.lengths))
        rows = [f"  {name:<{width}}  {length:.3f}" for name, length in self.lengths.items()]
        return "\n".join([f"{self.picture}: {self.answer}", *rows])


def find_pictures(paths: Sequence[Path]) -> list[Path]:
    """The files as they are, and the pictures in the folders (:func:`pictures_in`)."""
    from capsnet_lab.pictures import pictures_in

    pictures = [pictures_in(path) if path.is_dir() else [path] for path in paths]
    return [*chain.from_iterable(pictures)]


def predict(
    model: CapsNet,
    classes: Sequence[str],
    pictures: Sequence[Path],
    preparation: str = "picture",
    threshold: float = THRESHOLD,
) -> Iterator[Prediction]:
    """One prediction for each picture, in order; one that cannot be read stops nothing.

    Args:
        model: the network, on its device; it is put into evaluation mode.
        classes: the names of its classes.
        pictures: their files.
        preparation: how they become images, as for :func:`capsnet_lab.pictures.read_picture`; the
            one that the network was trained with (:func:`capsnet_lab.folders.preparation_of`).
        threshold: where all capsules are shorter, the answer is none of the classes; 0 … 1.
    """
    from capsnet_lab.pictures import RefusedPicture, read_pictures

    model.eval()
    device = next(model.parameters()).device
    channels, height, width = model.image_shape
    nothing = "no digit" if preparation == "digit" else "none of its classes"
    for first in range(0, len(pictures), BATCH):
        batch = pictures[first : first + BATCH]
        images, errors = read_pictures(batch, (channels, height, width), preparation)
        with torch.no_grad():
            out = model(to_float(images.to(device)))  # what cannot be read is black
        reconstructed = (
            repeat(None) if out.reconstruction is None else out.reconstruction.float().cpu()
        )
        for i, (path, image, decoded) in enumerate(zip(batch, images, reconstructed, strict=False)):
            name = str(path).encode(errors="replace").decode()
            if error := errors.get(i):
                answer, shown = "", None
                if isinstance(error, RefusedPicture):
                    answer, shown = error.answer, image if error.ink is not None else None
                yield Prediction(name, answer, None, {}, error, shown)
                continue
            values = out.lengths[i].tolist()
            best = max(values)
            answer = classes[values.index(best)] if best >= threshold else nothing
            lengths = {name: round(value, 4) for name, value in zip(classes, values, strict=True)}
            yield Prediction(name, answer, round(best, 4), lengths, None, image, decoded)
