"""The paper again, in the page: the same numbers as PyTorch, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, save_weights
from capsnet.data import load, to_float
from capsnet.functional import RoutingStep, dynamic_routing
from capsnet_book import ledger

DIGITS = 20


@pytest.fixture
def ask(page_of: Any) -> Callable[..., Any]:
    """The result of a function of ``compare.js``."""
    script = "async ([what, ...given]) => (await import('./compare.js'))[what](...given)"
    tab = page_of("squash")
    return lambda *given: tab.evaluate(script, given)


def keep(folder: Path, **tensors: torch.Tensor) -> None:
    for name, tensor in tensors.items():
        (folder / f"{name}.bin").write_bytes(tensor.detach().contiguous().numpy().tobytes())


@torch.no_grad()
def test_the_page_sees_what_pytorch_sees(ask: Any, folder: Path) -> None:
    """Lengths, shares and drawings of test digits, within a thousandth."""
    path = ledger.path("page/weights.safetensors")
    model, _ = load_weights(path)
    (folder / "weights.bin").write_bytes(path.read_bytes())
    images = to_float(load("mnist", train=False).images[:DIGITS])
    trace: list[RoutingStep] = []
    found = model.read_out(model.encode(images, trace))
    keep(
        folder, images=images, lengths=found.lengths, shares=trace[-1].c,
        drawings=found.reconstruction,
    )  # fmt: skip
    differences = ask("digits", DIGITS)
    assert len(differences) == 3 and all(0 < most < 1e-3 for most in differences), differences


def test_procedure_1(ask: Any, folder: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    for shape in ((1152, 10, 16), (6, 2, 2), (5, 3, 4)):
        u_hat = torch.randn(1, *shape, generator=generator, dtype=torch.float64) / shape[0] ** 0.5
        prior = torch.randn(shape[:2], generator=generator, dtype=torch.float64)
        for given in (None, prior):
            trace: list[RoutingStep] = []
            dynamic_routing(u_hat, 5, given, trace)
            every = torch.cat([torch.cat([part.flatten() for part in step]) for step in trace])
            keep(folder, votes=u_hat, prior=prior, every=every)
            assert ask("routing", *shape, 5, given is not None) < 1e-6


@torch.no_grad()
def test_another_network_in_another_precision(ask: Any, folder: Path, tmp_path: Path) -> None:
    """Sizes that fit no block of the loops, colour, a prior, no decoder; half precision."""
    torch.manual_seed(0)
    model = CapsNet(
        (3, 23, 20), 3, 2, learn_prior=True, reconstruct=False, conv_channels=7, kernel_size=7,
        capsule_types=3, primary_dim=5, capsule_dim=6,
    )  # fmt: skip
    torch.nn.init.normal_(model.digits.prior)  # type: ignore[arg-type]
    images = torch.rand(1, 3, 23, 20)
    for dtype in (torch.float16, torch.float32, torch.int8):
        save_weights(tmp_path / "w.safetensors", model, dtype=dtype)
        (folder / "weights.bin").write_bytes((tmp_path / "w.safetensors").read_bytes())
        keep(folder, images=images, v=load_weights(tmp_path / "w.safetensors")[0].encode(images))
        assert ask("outputs") < 1e-5


def test_what_are_no_weights_is_said_in_a_line(ask: Any, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(path, CapsNet((1, 17, 17), 2, conv_channels=2, capsule_types=1), dtype=torch.int8)
    whole = path.read_bytes()
    for data, complaint in (
        (b"<!doctype html> not found", "expected a safetensors file, got 25 other bytes"),
        (whole[:100], "expected a safetensors file"),
        (whole[:-1], "the weights are cut short"),
        (whole.replace(b"fc1.weight.scale", b"fc1.weight.other"), "one without the other"),
        (whole.replace(b'"digits.weight"', b'"digits_weight"'), "expected digits.weight"),
    ):
        (folder / "weights.bin").write_bytes(data)
        said = ask("refusal")
        assert complaint in said and "\n" not in said
