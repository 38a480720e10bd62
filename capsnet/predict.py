"""What a network says of anybody's pictures, a batch at a time."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsnet.data import to_float
from capsnet.model import CapsNet

BATCH = 16  # pictures at a time
# A shorter capsule is no answer. experiments/threshold.py: of 200 digits one is refused.
THRESHOLD = 0.49
BLANK = "blank"
SHEET = 100  # pictures on a contact sheet


@dataclass(frozen=True)
class Prediction:
    """What a network says of a picture; a blank one, or one that cannot be read, has no lengths."""

    picture: Path
    answer: str = BLANK  # or a class, or "no digit" and the like, or "" if it cannot be read
    error: ValueError | OSError | None = None  # why there are no lengths
    lengths: Sequence[float] = ()  # ‖v_k‖ of every class k
    image: Tensor | None = None  # as the network saw it, uint8 [channels, height, width]
    reconstruction: Tensor | None = None  # from the longest capsule; None without a decoder

    @property
    def name(self) -> str:
        """The path, with a question mark for what no text can hold."""
        return str(self.picture).encode(errors="replace").decode()

    def record(self, classes: Sequence[str]) -> dict[str, Any]:
        """Plain values, for JSON."""
        lengths = {name: round(v, 4) for name, v in zip(classes, self.lengths, strict=False)}
        length = max(lengths.values(), default=None)
        return {
            "picture": self.name, "answer": self.answer, "length": length, "lengths": lengths
        }  # fmt: skip


def find_pictures(paths: Sequence[Path]) -> list[Path]:
    """The files, and those in the folders, at any depth, but for hidden ones.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: there is no file in a folder.
    """
    found = []
    for path in paths:
        if not path.exists() and not path.is_symlink():  # of many, one link may be broken
            raise FileNotFoundError(f"no such file: {path}")
        files = [path]
        if path.is_dir():
            inside = {file: file.relative_to(path).parts for file in sorted(path.rglob("*"))}
            seen = [file for file, parts in inside.items() if not any(p[0] == "." for p in parts)]
            files = [file for file in seen if file.is_file()]
        if not files:
            raise ValueError(f"no pictures in {path}")
        found += files
    return found


def predict(
    model: CapsNet,
    classes: Sequence[str],
    pictures: Sequence[Path],
    style: str = "plain",
    threshold: float = THRESHOLD,
) -> Iterator[Prediction]:
    """One prediction for each picture, in order; one that cannot be read stops nothing.

    Args:
        model: the network, on its device.
        classes: the names of its classes.
        pictures: their files.
        style: how they are brought to the network's format, as for
            :func:`capsnet.data.pictures.read_picture`.
        threshold: where all capsules are shorter, the answer is none of the classes; 0 … 1.
    """
    from capsnet.data.pictures import Blank, read_picture  # which imports Pillow and SciPy

    device, shape = next(model.parameters()).device, tuple(model.config["image_shape"])
    nothing = "none of its classes" if style == "plain" else f"no {style}"
    for first in range(0, len(pictures), BATCH):
        batch: list[Tensor | ValueError | OSError] = []
        for path in pictures[first : first + BATCH]:
            try:
                batch.append(read_picture(path, shape, style))
            except (ValueError, OSError) as error:
                batch.append(error)
        # What cannot be read is black to the network, and its rows are left out.
        images = [i if isinstance(i, Tensor) else torch.zeros(shape).byte() for i in batch]
        with torch.no_grad():
            out = model(to_float(torch.stack(images).to(device)))
        lengths = out.lengths.tolist()
        drawn = out.reconstruction
        drawn = [None] * len(batch) if drawn is None else drawn.float().cpu()
        for i, path in enumerate(pictures[first : first + BATCH]):
            if not isinstance(image := batch[i], Tensor):
                blank = isinstance(image.__context__, Blank)
                yield Prediction(path, BLANK if blank else "", image)
                continue
            best = max(lengths[i])
            answer = classes[lengths[i].index(best)] if best >= threshold else nothing
            yield Prediction(path, answer, None, lengths[i], image, drawn[i])


def line(record: dict[str, Any], top: int | None = None) -> str:
    """A record in a line: picture, answer, length, or the ``top`` longest capsules' lengths."""
    head, lengths = f"{record['picture']}: {record['answer']}", record["lengths"]
    if not lengths:
        return head
    if top is None:
        return f"{head}  {record['length']:.3f}"
    longest = sorted(lengths, key=lengths.__getitem__, reverse=True)[:top]
    return f"{head}  {', '.join(f'{name} {lengths[name]:.3f}' for name in longest)}"


def table(records: Sequence[dict[str, Any]], classes: Sequence[str]) -> bytes:
    """The records as CSV: picture, answer, length, and a column for each class."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["picture", "answer", "length", *classes])
    for found in records:
        row = [found["lengths"].get(name, "") for name in classes]
        writer.writerow([found["picture"], found["answer"], found["length"], *row])
    return text.getvalue().encode()


def report(unreadable: Sequence[Prediction], total: int, note: str = "") -> str:
    """Ten of the pictures that cannot be read, how many others, and why the first cannot."""
    named = ", ".join(found.name for found in unreadable[:10])
    more = f" and {len(unreadable) - 10:,} more" if len(unreadable) > 10 else ""
    counts = f"{len(unreadable):,} of {total:,} pictures cannot be read{note}"
    return f"{counts}: {named}{more}; the first: {unreadable[0].error}"
