"""The table of an experiment, and its picture."""

from typing import Any

from capsnet_book.figures import errors_beside_paper, summary_table

ROW: dict[str, Any] = {
    "row": "three", "n": 3, "declared": 3, "errors": [0.5, 0.4, 0.6], "mean": 0.5,
    "deviation": 0.1, "interval": 0.248, "minutes": 12.4, "unfinished": "", "paper": 0.25,
}  # fmt: skip
NOT_YET = ROW | {
    "row": "none", "n": 0, "errors": [], "mean": None, "deviation": None, "interval": None,
    "minutes": None, "paper": None,
}  # fmt: skip
ONE = NOT_YET | {"row": "one", "n": 1, "errors": [1.0], "mean": 1.0, "minutes": 1.0}
SUMMARY = {"rows": [ROW, ONE, NOT_YET]}


def test_the_table_says_what_there_is_and_what_is_missing() -> None:
    head, three, one, none = summary_table(SUMMARY).splitlines()
    assert head.split() == ["error,", "%", "95", "%", "n", "minutes", "paper,", "%"]
    assert three.split() == ["three", "0.50", "±", "0.10", "±", "0.25", "3", "12.4", "0.25"]
    assert one.split() == ["one", "1.00", "1", "of", "3", "1.0"]
    assert none.split() == ["none", "0", "of", "3"]
    head, one = summary_table({"rows": [ONE]}).splitlines()
    assert head.split() == ["error,", "%", "n", "minutes"]
    assert one.split() == ["one", "1.00", "1", "of", "3", "1.0"]


def test_the_picture_shows_every_training_and_the_paper() -> None:
    figure = errors_beside_paper(SUMMARY)
    (axes,) = figure.axes
    drawn = [line for line in axes.lines if len(line.get_xdata()) and line.get_marker() != "None"]
    assert [list(line.get_xdata()) for line in drawn] == [[0.5, 0.4, 0.6], [0.5], [0.25], [1], [1]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["three", "one", "none"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a training here", "the paper"]
