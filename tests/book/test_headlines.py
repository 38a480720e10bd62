"""Others' networks trained their own way, compared with what was published."""

from typing import Any

from capsnet_book import headlines, ledger


def record(wrong: int, epochs: int = 3, precision: str = "fp32") -> dict[str, Any]:
    """Of a training: so many wrong of a thousand test images."""
    return {
        "test": {"correct": 1000 - wrong, "total": 1000},
        "records": [{"epoch": 1}, {"epoch": epochs}],  # of a long one, not all are kept
        "config": {"precision": precision},
    }


def test_a_command_for_each_headline() -> None:
    published = {
        "labml": {0: record(100, 2, "auto")},
        "cezannec": {0: record(100, 2)},
        "adambielski": {0: record(90, 2), 1: record(110, 2)},
    }
    assert headlines.commands(published, "cezannec", "labml", "adambielski").splitlines() == [
        "capsnet train --as cezannec --all --test",
        "    published: 98.90 %; here: 90.00 % after 2 of 3 epochs",
        "capsnet train --as labml --all --test",
        "    published: nothing; here: 90.00 % after 2 of 10 epochs, in bfloat16",
        "capsnet train --as adambielski --all --test",
        "    published: 99.65 %; here: 90.00 (89.00–91.00) % after 2 of 250 epochs, "
        "its rate led by the test images",
    ]


def test_headlines_of_what_there_is() -> None:
    def row(name: str, table: str) -> list[str]:
        return next(line.split() for line in table.splitlines() if line.startswith(name))

    nothing = headlines.accuracy_table({})
    assert row("xifengguo", nothing) == ["xifengguo", "99.66", "0/50", "·", "·"]
    assert "labml  " not in nothing  # nothing published, nothing trained
    some = headlines.accuracy_table(
        {
            "cezannec": {0: record(10), 1: record(12)},
            "ours, 3 epochs": {0: record(8)},
            "labml": {0: record(20, epochs=5)},
            "ours, 5 epochs": {0: record(7)},
            "adambielski": {0: record(5, epochs=250)},
        }
    )
    assert row("cezannec", some)[1:] == [*("99.02/98.90", "3", "98.90", "(98.80–99.00)", "99.20")]
    assert row("labml ", some) == ["labml", "·", "5/10", "98.00", "99.30"]
    assert row("adambielski", some)[1:] == ["99.65", "250", "99.50", "·"]


def test_published_trainings_are_of_both_budgets() -> None:
    found = headlines.published_trainings()
    on_cpu, on_gpu = (ledger.trainings("published", budget) for budget in ("cpu", "gpu"))
    for row in ("cezannec", "paper"):
        assert found[row].keys() == {0, 1, 2}
        for seed, record in found[row].items():
            assert record == (on_gpu if seed in on_gpu[row] else on_cpu)[row][seed]
    assert 0 in on_cpu["paper"] and 0 not in on_gpu["paper"]
