"""Reading the ledger."""

from collections.abc import Callable
from typing import Any

import pytest

from capsnet_book import ledger


def test_a_document_of_the_ledger() -> None:
    assert ledger.read("mnist/evaluation.json")["total"] == 10_000
    epochs = ledger.read("time-to-accuracy/99.0/metrics.jsonl")
    assert [epoch["epoch"] for epoch in epochs] == [1, 2]


def test_records_by_row_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "asked", asked := set[str]())
    row = "3 iterations, reconstruction"
    record = ledger.record("table-1", row, 1)
    named = [record[key] for key in ("experiment", "budget", "row", "seed")]
    assert named == ["table-1", "cpu", row, 1]
    found = ledger.trainings("table-1", "gpu")
    assert len(found) == 6 and list(found[row]) == [*range(10)]
    assert asked == {"experiments/table-1.jsonl"}


@pytest.mark.parametrize(
    ("ask", "given", "missing"),
    [
        (ledger.read, ["nothing.json"], r"nothing\.json: looked in"),
        (ledger.record, ["no", "row"], r"experiments/no\.jsonl: looked in"),
        (
            ledger.record,
            ["table-1", "No row", 7, "gpu"],
            "table-1, budget gpu, row 'No row', seed 7$",
        ),
        (ledger.trainings, ["places"], "places, budget cpu$"),
    ],
)
def test_what_is_not_there(ask: Callable[..., Any], given: list[Any], missing: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"the ledger has no .*{missing}"):
        ask(*given)
