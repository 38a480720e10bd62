"""``capsnet bench``: what it times, where the fast arrangement does not run too."""

import pytest
import torch

from capsnet.bench import benchmark, measure, table
from helpers import Refuses

CPU = torch.device("cpu")


def test_a_device_without_the_fast_arrangement_is_timed_in_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As MPS is; "fast" would be refused there."""
    for name in ("can_compile", "bfloat16_is_fast"):
        monkeypatch.setattr(f"capsnet.bench.{name}", lambda device: False)
    monkeypatch.setattr("capsnet.bench.FAST_DEVICES", ())
    result = benchmark(CPU, batch_size=1, steps=1)
    kinds = [(row["what"], row["arrangement"]) for row in result["rows"]]
    assert kinds == [("train", "plain"), ("evaluate", "plain")]
    assert len(table(result).splitlines()) == 4


def test_the_table_is_aligned() -> None:
    kinds = ("train", "fp32", True, 200.0), ("evaluate", "bf16", False, 8.04)
    rows = [
        {"what": what, "arrangement": "plain", "precision": precision, "compile": compile,
         "median": ms, "min": ms / 2, "max": 2 * ms}
        for what, precision, compile, ms in kinds
    ]  # fmt: skip
    machine = {"device": "a CPU", "torch": "2.6", "threads": 2}
    assert table({"machine": machine, "batch_size": 128, "steps": 7, "rows": rows}) == (
        "a CPU, torch 2.6, 2 threads, batch 128, median of 7 (least … most)\n"
        "what      arrangement  precision  compile  images/s  ms a step\n"
        "train           plain       fp32      yes       640      200.0  (100.0 … 400.0)\n"
        "evaluate        plain       bf16       no     15920        8.0     (4.0 … 16.1)"
    )


def test_two_calls_are_not_counted() -> None:
    calls: list[int] = []
    times = measure(lambda: calls.append(1), CPU, 3)
    assert len(calls) == 5
    assert 0 < times["min"] <= times["median"] <= times["max"] < 1000


def test_less_than_one_is_refused(refuses: Refuses) -> None:
    with refuses("steps must be at least 1", "got 0"):
        benchmark(CPU, 1, 0)
