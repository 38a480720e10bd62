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


def test_two_calls_are_not_counted() -> None:
    calls: list[int] = []
    times = measure(lambda: calls.append(1), CPU, 3)
    assert len(calls) == 5
    assert 0 < times["min"] <= times["median"] <= times["max"] < 1000


def test_less_than_one_is_refused(refuses: Refuses) -> None:
    with refuses("steps must be at least 1", "got 0"):
        benchmark(CPU, 1, 0)
