"""Reading the ledger."""

import json
from collections.abc import Callable
from pathlib import Path
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
    assert asked == {
        "experiments/table-1/cpu/3-iterations-reconstruction/seed-1", "experiments/table-1/gpu"
    }  # fmt: skip


def test_a_name_changes_with_its_own_records_alone(tmp_path: Path) -> None:
    names = [
        "experiments/table-1/gpu",
        "experiments/table-1/gpu/1-iteration/seed-1",
        "experiments/table-1/gpu/1-iteration/seed-10",
        "experiments/table-1/cpu",
    ]

    def contents() -> list[bytes | None]:
        return [ledger.stored(name, tmp_path) for name in names]

    file = tmp_path / ledger.records_file("table-1")
    assert contents() == [None] * 4
    file.parent.mkdir()
    record = ledger.record("table-1", "1 iteration", 1, "gpu")
    later = [record | {"seed": 10}, record | {"budget": "cpu"}]
    lines = [json.dumps(each) for each in (record, *later)]
    file.write_text(lines[0])
    first = contents()
    file.write_text("\n".join(lines))
    second = contents()
    assert first == [lines[0].encode(), lines[0].encode(), None, None]
    assert second[1:] == [line.encode() for line in lines] and second[0] != first[0]
    assert ledger.stored("none.json", tmp_path) is None


@pytest.mark.parametrize(
    ("ask", "given", "missing"),
    [
        (ledger.read, ["nothing.json"], r"nothing\.json: looked in"),
        (ledger.record, ["no", "row"], r"experiments/no\.jsonl: looked in"),
        (ledger.record, ["table-1", "No row, 10 %!", 7, "gpu"], "table-1/gpu/no-row-10/seed-7$"),
        (ledger.trainings, ["places"], "experiments/places/cpu$"),
    ],
)
def test_what_is_not_there(ask: Callable[..., Any], given: list[Any], missing: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"the ledger has no .*{missing}"):
        ask(*given)


def test_no_digit_is_lost_by_preparation() -> None:
    sets = ledger.read("pictures/readings.json")["sets"]
    drawn = [found for found in sets if found["total"] == 20]
    assert all(found["before"] == found["now"] == 20 for found in drawn) and len(drawn) == 10
    soft = [found for found in sets if found["digits"] == "scikit-learn" and found["first"] == 300]
    assert sum(found["now"] for found in soft) >= sum(found["naive"] for found in soft)
