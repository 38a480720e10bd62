"""The table of an experiment."""

from typing import Any

from capsnet_book.figures import budget_table
from experiments.tables import summary_table

ROW: dict[str, Any] = {
    "row": "three", "n": 3, "declared": 3, "errors": [0.5, 0.4, 0.6], "mean": 0.5,
    "deviation": 0.1, "interval": 0.248, "minutes": 12.4, "unfinished": "", "paper": 0.25,
}  # fmt: skip
NOT_YET = dict.fromkeys(ROW) | {"row": "none", "n": 0, "declared": 3}
ONE = NOT_YET | {"row": "one", "n": 1, "mean": 1.0, "minutes": 1.0}


def test_the_table_says_what_there_is_and_what_is_missing() -> None:
    head, three, one, none = summary_table({"rows": [ROW, ONE, NOT_YET]}).splitlines()
    assert head.split() == ["error,", "%", "95", "%", "n", "minutes", "paper,", "%"]
    assert three.split() == ["three", "0.50", "±", "0.10", "±", "0.25", "3", "12.4", "0.25"]
    assert one.split() == ["one", "1.00", "1", "of", "3", "1.0"]
    assert none.split() == ["none", "0", "of", "3"]
    head, one = summary_table({"rows": [ONE]}).splitlines()
    assert head.split() == ["error,", "%", "n", "minutes"]
    assert one.split() == ["one", "1.00", "1", "of", "3", "1.0"]


def test_a_budget_is_shown_with_its_costs() -> None:
    def made(wrong: int) -> dict[str, Any]:
        test = {"correct": 1000 - wrong, "total": 1000}
        unseen = {"correct": 3000, "total": 3000}
        return {"parameters": 8_215_568, "test": test, "unseen": unseen}

    costs = {"two": {"step_ms": 12.4, "tensors_mib": 99.6}}
    head, two = budget_table({"two": {0: made(10), 1: made(30)}}, costs).splitlines()
    assert head.split() == ["wrong,", "%", "parameters", "ms", "a", "step", "MiB"]
    assert two.split() == ["two", "0.25,", "0.75", "8,215,568", "12", "100"]
