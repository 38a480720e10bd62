"""Figures are checked by what they draw, not by their pixels."""

import pytest

from capsnet_book import figures

RECORDS = [
    {"epoch": epoch, "loss": 1 / epoch, "learning_rate": 0.001 * epoch} for epoch in (1, 2, 3)
]


def test_a_course_draws_loss_and_learning_rate():
    losses, rates = figures.course(RECORDS).axes
    assert list(losses.lines[0].get_xdata()) == [1, 2, 3]
    assert list(losses.lines[0].get_ydata()) == [1, 1 / 2, 1 / 3]
    assert list(rates.lines[0].get_ydata()) == [1, 2, 3]
    assert "× 1000" in rates.get_ylabel()
    assert losses.get_yscale() == "log"
    assert "epoch" in rates.get_xlabel()


def test_a_course_with_validation_has_its_loss_and_accuracy():
    records = [
        record | {"validation_loss": 2 / record["epoch"], "validation_accuracy": 0.5}
        for record in RECORDS
    ]
    losses, _, accuracy = figures.course(records).axes
    assert list(losses.lines[1].get_ydata()) == [2, 1, 2 / 3]
    assert list(accuracy.lines[0].get_ydata()) == [50, 50, 50]
    assert [text.get_text() for text in losses.get_legend().get_texts()] == [
        "training images",
        "validation images",
    ]


def test_a_course_draws_only_what_every_record_has():
    records = [RECORDS[0] | {"validation_accuracy": 0.5}, *RECORDS[1:]]
    assert len(figures.course(records).axes) == 2


def test_a_course_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one epoch"):
        figures.course([])


def test_loss_curves_draw_the_reconstruction_part():
    records = [{"step": 1, "loss": 1.0, "margin": 0.75, "reconstruction": 0.25}]
    (axes,) = figures.loss_curves(records).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[1.0], [0.75], [0.25]]
    assert axes.get_legend().get_texts()[2].get_text() == "0.0005 × reconstruction loss"
