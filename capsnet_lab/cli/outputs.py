"""What commands print, draw and write."""

import argparse
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from torch import Tensor

from capsnet.files import write_atomically, write_json
from capsnet.text import columns, stderr_is_terminal
from capsnet.training import Evaluation
from capsnet_lab.cli.options import SHEET
from capsnet_lab.predict import Prediction


def print_evaluation(result: Evaluation) -> None:
    print(f"accuracy {result.accuracy:.2%} ({result.correct}/{result.total})")
    error = result.reconstruction
    squared = "" if error is None else f", squared error per image {error:.2f}"
    print(f"margin loss {result.margin:.5f}{squared}")
    print(f"\n{per_class_table(result.per_class, result.classes)}")
    print(f"\n{confusion_text(result.confusion, result.classes)}")


def per_class_table(per_class: Sequence[tuple[int, int]], classes: Sequence[str]) -> str:
    """Counts as ``977/980`` and percentages of each class, and of all together, as text."""
    correct, total = (sum(numbers) for numbers in zip(*per_class, strict=True))
    rows = [("class", "correct", "accuracy")]
    for name, (right, count) in zip([*classes, "all"], [*per_class, (correct, total)], strict=True):
        rows.append((name, f"{right}/{count}", f"{100 * right / count:.2f} %" if count else "–"))
    return columns(rows)


def confusion_text(confusion: Tensor, classes: Sequence[str]) -> str:
    """The confusion matrix as text: a row for each true class, a column for each predicted one."""
    rows = [("true \\ predicted", *classes)]
    for name, counts in zip(classes, confusion.tolist(), strict=True):
        rows.append((name, *(str(count or "·") for count in counts)))
    return columns(rows)


def print_predictions(
    predictions: Iterable[Prediction], total: int
) -> tuple[list[Prediction], list[Prediction]]:
    """Print each prediction as it comes, above a progress bar.

    A single picture gets the lengths of all capsules.

    Returns:
        the answers, of which the first SHEET that have an image keep it; and those of pictures
        that cannot be read.
    """
    from tqdm import tqdm

    answered: list[Prediction] = []
    failed: list[Prediction] = []
    images = 0
    hide = total == 1 or not stderr_is_terminal()
    for prediction in tqdm(predictions, total=total, unit=" pictures", leave=False, disable=hide):
        if not prediction.answer:
            failed.append(prediction)
            continue
        images += prediction.image is not None
        if images > SHEET:
            prediction = prediction._replace(image=None, reconstruction=None)
        answered.append(prediction)
        text = prediction.table() if total == 1 and prediction.lengths else prediction.line()
        with tqdm.external_write_mode():  # the bar is not written into
            print(text, flush=True)
    return answered, failed


def write_predictions(
    args: argparse.Namespace, answered: Sequence[Prediction], classes: Sequence[str], total: int
) -> None:
    """Write the files that were asked for; JSON first, because the drawing may fail."""
    if args.json:
        names = ("picture", "answer", "length", "lengths")
        rows = [{name: getattr(prediction, name) for name in names} for prediction in answered]
        write_json(args.json, rows)
        print(f"written: {args.json}")
    if args.sheet:
        from capsnet_lab import figures

        cells = [
            (prediction.image, prediction.reconstruction, Path(prediction.picture).name,
             f"{prediction.answer} {prediction.length or 0:.2f}", prediction.answer in classes)
            for prediction in answered if prediction.image is not None
        ]  # fmt: skip
        buffer = io.BytesIO()
        figures.contact_sheet(cells).savefig(buffer, format=args.sheet.suffix[1:].lower())
        write_atomically(args.sheet, buffer.getvalue())
        print(f"written: {args.sheet} ({len(cells)} of {total} pictures)")
