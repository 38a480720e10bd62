"""The kernels for CUDA: interpreted by Triton, compiled for two GPUs, and run where one is."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

if not sys.platform.startswith("linux"):
    pytest.skip("Triton is for Linux", allow_module_level=True)

pytest.importorskip("triton", reason="PyTorch without CUDA brings no Triton")
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from capsnet import CapsNet
from capsnet.fast import FastCapsNet, arrange, fast_capsnet, fused, kernels, routing
from capsnet.functional import dynamic_routing, squash
from capsnet_lab.wild import WildCapsNet
from helpers.interpreted import routed

F64 = torch.float64
PAPER = torch.empty(1152, 10, 8, 16, device="meta")


@pytest.fixture(scope="module")
def interpreter() -> Iterator[ProcessPoolExecutor]:
    """A process in which Triton compiles nothing, which is settled when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield pool


# Images, shape, iterations, whether there is a prior, dtype, limit of the error.
CASES = [  # small: the interpreter takes a millisecond for each operation on a block
    (5, (19, 2, 2, 6), 2, True, torch.float32, 1e-5),  # two blocks of children
    (33, (2, 3, 2, 16), 3, False, torch.float32, 1e-5),  # two blocks of images
    (9, (2, 2, 17, 3), 2, True, torch.float16, 5e-3),
    (1, (1, 4, 1, 4), 1, True, torch.float32, 1e-5),
]
LARGE = [
    (33, (20, 5, 8, 16), 3, False, torch.float32, 1e-5),
    (5, (7, 3, 2, 6), 4, True, torch.float32, 1e-5),
    (130, (1152, 10, 8, 16), 3, False, torch.float32, 1e-5),
    (128, (1152, 10, 8, 16), 3, True, torch.bfloat16, 2e-2),
]


@pytest.mark.equation("procedure 1")
@pytest.mark.parametrize(
    ("on_a_gpu", "images", "shape", "iterations", "with_prior", "dtype", "limit"),
    [
        *(pytest.param(False, *case, id=f"interpreted-{n}") for n, case in enumerate(CASES)),
        *(pytest.param(True, *case, id=f"cuda-{n}") for n, case in enumerate(CASES + LARGE)),
    ],
)
def test_values_and_gradients_are_those_of_dynamic_routing(
    request: pytest.FixtureRequest,
    on_a_gpu: bool,
    images: int,
    shape: tuple[int, int, int, int],
    iterations: int,
    with_prior: bool,
    dtype: torch.dtype,
    limit: float,
) -> None:
    if on_a_gpu and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    i, j, k, d = shape
    given: list[Tensor] = [torch.randn(images, i, k), torch.randn(shape) / k**0.5]
    given += [torch.randn(i, j)] * with_prior
    given = [x.to(dtype) for x in given]
    grad = torch.randn(images, j, d)
    u, weight, *priors = exact = [x.to(F64).requires_grad_() for x in given]
    u_hat = torch.einsum("nik,ijkd->nijd", u, weight)
    v = dynamic_routing(u_hat, iterations, priors[0] if priors else None)
    expected = [v.detach(), *torch.autograd.grad(v, exact, grad.to(F64))]
    prior = given[2] if with_prior else None
    arguments = given[0], given[1], prior, iterations, grad
    if on_a_gpu:
        to = [x if x is None or isinstance(x, int) else x.cuda() for x in arguments]
        result = [x.cpu() for x in routed(*to)]
    else:
        interpreter = request.getfixturevalue("interpreter")
        result = interpreter.submit(routed, *arguments).result()
    assert result[0].dtype == torch.float32
    for found, wanted in zip(result, expected, strict=True):
        assert (found.to(F64) - wanted).norm() <= limit * wanted.norm()


def compile_for(capability: int, name: str, dtype: str, given: set[str], **constants: int) -> Any:
    """A kernel with the paper's sizes, for GPUs of a capability; pointers not given are None."""
    kernel = getattr(kernels, name)
    constants |= {**fused.sizes(PAPER), "CHILDREN": fused.CHILDREN_PER_PROGRAM}
    numbers = {"n": "i32", "children": "i32"}
    pointers = {
        argument: f"*{dtype if argument in ('u', 'grad_u_hat') else 'fp32'}"
        for argument in given | {"u", "weight"}
    }
    absent = dict.fromkeys(set(kernel.arg_names) - {*constants, *numbers, *pointers})
    signature = numbers | pointers | dict.fromkeys((*constants, *absent), "constexpr")
    order = kernel.arg_names
    source = ASTSource(
        fn=kernel,
        signature={argument: signature[argument] for argument in order},
        constexprs=constants | absent,
        # PyTorch's memory begins at a multiple of 16 bytes.
        attrs={(order.index(pointer),): [["tt.divisibility", 16]] for pointer in pointers},
    )
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=fused.LAUNCH)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capability", "dtype", "name", "given", "constants"),
    [
        (75, "fp16", "sum_kernel", {"v_sum", "sums", "grad_s", "prior"}, {}),
        (
            90, "bf16", "grad_kernel", {"v_sums", "grads_s", "grad_u_hat", "grad_prior"},
            {"ITERATIONS": 2},  # those after the second are the same code again
        ),
    ],
)  # fmt: skip
def test_they_compile_for_a_gpu_and_fit_into_its_registers(
    capability: int,
    dtype: str,
    name: str,
    given: set[str],
    constants: dict[str, int],
    tmp_path: Path,
) -> None:
    made = compile_for(capability, name, dtype, given, **constants)
    # Nothing goes from one thread to another, as it would if blocks were laid out otherwise.
    assert made.metadata.shared == 0 and "convert_layout" not in made.asm["ttgir"]
    # What does not fit into registers goes to memory and back: little may.
    binary = tmp_path / "kernel.cubin"
    binary.write_bytes(made.asm["cubin"])
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    done = subprocess.run([tool, "-res-usage", binary], capture_output=True, text=True, check=True)
    stack = int(done.stdout.split("STACK:")[1].split()[0])
    assert stack <= 256


def test_what_does_not_fit_is_left_to_the_loops() -> None:
    u = torch.empty(2, 1152, 8, device="meta")
    assert fused.is_supported(u, PAPER)
    assert not fused.is_supported(u.double(), PAPER)
    assert not fused.is_supported(u[:0], PAPER)
    for large in ((17, 8, 16), (10, 17, 16), (10, 8, 129)):
        assert not fused.is_supported(u, torch.empty(1152, *large, device="meta"))
    many, narrow = torch.empty(2**20, 1152, 8, device="meta"), PAPER[:, :1, :, :1]
    assert fused.is_supported(many[: 2**17], narrow) and not fused.is_supported(many, narrow)


@pytest.mark.parametrize("classes", [16, 17])
def test_auto_is_fast_where_there_are_kernels(
    fake_cuda: torch.device, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_cuda:
        model = CapsNet(num_classes=classes)
        others_shares = WildCapsNet(deviations=["leak"])
    assert isinstance(arrange(model), FastCapsNet) == (classes == 16)
    assert arrange(others_shares) is others_shares
    monkeypatch.setattr(fast_capsnet, "has_triton", lambda: False)
    assert arrange(model) is model


@pytest.mark.parametrize("with_prior", [False, True])
def test_cuda_is_given_the_kernels(
    fake_cuda: torch.device, with_prior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Mock(wraps=fused.FusedRouting.apply)
    monkeypatch.setattr(fused.FusedRouting, "apply", apply)
    with fake_cuda:
        u, weight = torch.rand(3, 6, 8), torch.rand(6, 10, 8, 16)
        prior = torch.rand(6, 10) if with_prior else None
        v = routing.routed_capsules(u, weight, 3, prior)
        assert v.shape == (3, 10, 16) and v.device == fake_cuda
        apply.assert_called_once_with(u, weight, prior, 3, squash, True)
        context = type("Context", (), {"squash": staticmethod(squash)})
        v_sums = torch.rand(3, 3, 10, 16)
        context.saved_tensors = u, weight, prior, v_sums, torch.rand_like(v_sums)
        monkeypatch.setattr(torch.func, "vjp", lambda f, x: (f(x), lambda grad: (grad,)))
        with pytest.raises(RuntimeError, match="has no second derivatives"):
            fused.FusedRouting.backward(context, v)
        with torch.no_grad():
            found = fused.FusedRouting.backward(context, v)
    for gradient, of in zip(found, (u, weight, prior), strict=False):
        assert (gradient is None) == (of is None)
        assert of is None or gradient.shape == of.shape
