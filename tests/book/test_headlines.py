"""Others' networks trained their own way, compared with what was published."""

from typing import Any

from capsnet_book import headlines


def record(wrong: int, epochs: int = 3) -> dict[str, Any]:
    """Of a training: so many wrong of a thousand test images."""
    return {
        "test": {"correct": 1000 - wrong, "total": 1000},
        "records": [{"epoch": 1}, {"epoch": epochs}],  # of a long one, not all are kept
    }


def test_headlines_of_what_there_is() -> None:
    def row(name: str, table: str) -> list[str]:
        return next(line.split() for line in table.splitlines() if line.startswith(name))

    assert len(headlines.accuracy_table({}).splitlines()) == 1  # what was not trained has no row
    some = headlines.accuracy_table(
        {
            "cezannec": {0: record(10), 1: record(12)},
            "ours, 3 epochs": {0: record(8)},
            "labml": {0: record(20, epochs=5)},
            "ours, 5 epochs": {0: record(7)},
            "adambielski": {0: record(5, epochs=250)},
        }
    )
    assert headlines.published_trainings()["paper"].keys() == {0, 1, 2}  # of both budgets
    assert row("cezannec", some)[1:] == [*("99.02/98.90", "3", "98.90", "(98.80–99.00)", "99.20")]
    assert row("labml ", some) == ["labml", "·", "5/10", "98.00", "99.30"]
    assert row("adambielski", some)[1:] == ["99.65", "250", "99.50", "·"]
