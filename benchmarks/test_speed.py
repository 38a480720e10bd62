"""Times, held by pytest-benchmark: ``make bench`` runs them and makes the tables.

In short form they also run with the tests, once each, so that they keep working.
"""

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import contestants
from benchmarks.contestants import BATCH, DEVICE, NAMES, Call
from capsnet.device import bfloat16_is_fast

ROUNDS = 7
WARM_UP = 3  # the first compiles


def measure(benchmark: BenchmarkFixture, call: Call, images: int = BATCH) -> None:
    benchmark.extra_info["images"] = images
    if benchmark.disabled:
        benchmark(call)  # once
        return
    benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=WARM_UP)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not contestants.possible(name):
        pytest.skip(f"this machine has no bfloat16, or no compiler, for {name}")
    torch.compiler.reset()
    return name


@pytest.mark.benchmark(group="matrix product")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
def test_matrix_product(benchmark: BenchmarkFixture, dtype: torch.dtype) -> None:
    product, benchmark.extra_info["flop"] = contestants.matrix_product(dtype)
    measure(benchmark, product)


@pytest.mark.benchmark(group="training step")
def test_training_step(benchmark: BenchmarkFixture, name: str) -> None:
    measure(benchmark, contestants.training_step(name))


@pytest.mark.benchmark(group="training step")
def test_half_way(benchmark: BenchmarkFixture) -> None:
    if not contestants.possible(contestants.HALF_WAY):
        pytest.skip("this machine has no bfloat16, or no compiler")
    torch.compiler.reset()
    benchmark.extra_info["name"] = contestants.HALF_WAY
    measure(benchmark, contestants.training_step(contestants.HALF_WAY))


@pytest.mark.benchmark(group="convolution")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("way", ["direct", "Fourier"])
def test_convolution(benchmark: BenchmarkFixture, way: str, dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 and not bfloat16_is_fast(DEVICE):
        pytest.skip("this machine has no bfloat16")
    torch.compiler.reset()
    measure(benchmark, contestants.convolution(way, dtype))


@pytest.mark.benchmark(group="evaluation")
def test_evaluation(benchmark: BenchmarkFixture, name: str) -> None:
    measure(benchmark, contestants.evaluation(name))


@pytest.mark.benchmark(group="routed layer")
def test_routed_layer(benchmark: BenchmarkFixture, name: str) -> None:
    measure(benchmark, contestants.routed_layer(name))
