"""Runs that are cut off, killed or shared between processes, and what their folder holds."""

import contextlib
import dataclasses
import functools
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torch import Tensor

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, read_tensors, write_tensors
from capsnet.data import ImageSet
from capsnet.functional import margin_loss
from capsnet.multimnist import overlaid_batch
from capsnet.training.run import CHECKPOINT, LOCK, WEIGHTS
from capsnet_book.pairs import PairsLoss
from helpers import Refuses, tiny
from helpers.tiny import FP32, fit, parameters, records_in, tiny_model

ONE = dataclasses.replace(FP32, epochs=1)
needs_posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no forkserver")


@needs_posix
def test_killed_at_any_moment_it_ends_bit_identical(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    tiny.run(whole, "pairs")

    # Three changes of the folder come first, then four in each epoch, in which the checkpoint and
    # the metrics are opened under another name and renamed.
    for moment in (5, 7, 7, None):
        process = tiny.start(broken, "pairs", killed_at=moment)
        process.join()
        assert process.exitcode == (-signal.SIGKILL if moment else 0)
    assert (broken / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
    assert {e.name for e in broken.iterdir()} == {e.name for e in whole.iterdir()}  # no partials

    def without_times(out: Path) -> list[dict[str, Any]]:
        times = ("seconds", "images_per_second")
        return [{k: v for k, v in r.items() if k not in times} for r in records_in(out)]

    assert without_times(broken) == without_times(whole)


@pytest.mark.parametrize(
    ("schedule", "average", "frozen"),
    [("one-cycle", 0.0, False), ("exponential", 0.9, False), ("one-cycle", 0.9, True)],
)
def test_interrupted_between_epochs_it_ends_bit_identical(
    tmp_path: Path, digits: ImageSet, schedule: str, average: float, frozen: bool
) -> None:
    """Frozen layers have no state in the optimiser."""
    config = dataclasses.replace(FP32, epochs=3, schedule=schedule, average=average)

    def made(seed: int = 0) -> CapsNet:
        model = tiny_model()
        if not frozen:  # whatever weights it starts from, the checkpoint's count
            model.load_state_dict(tiny_model(seed).state_dict())
        model.conv.requires_grad_(not frozen)
        return model

    expected = made()
    fit(expected, digits, None, config)

    for epochs, seed in ((1, 0), (2, 5), (3, 7)):
        last = made(seed)
        fit(last, digits, None, config, out=tmp_path, stop_after=epochs)
    assert torch.equal(parameters(last), parameters(expected))


def test_a_finished_run_is_not_run_again(tmp_path: Path, digits: ImageSet) -> None:
    first = fit(tiny_model(), digits, None, ONE, out=tmp_path)
    model = tiny_model(seed=3)
    assert fit(model, digits, None, ONE, out=tmp_path) == first
    assert torch.equal(parameters(model), parameters(load_weights(tmp_path / WEIGHTS)[0]))


def twice(lengths: Tensor, labels: Tensor) -> Tensor:
    return 2 * margin_loss(lengths, labels)


def test_another_run_does_not_go_on(tmp_path: Path, digits: ImageSet, refuses: Refuses) -> None:
    def go_on(**changes: Any) -> list[dict[str, Any]]:
        usual = {"model": tiny_model(), "images": digits, "config": FP32, "tag": "one"}
        return fit(**{**usual, **changes}, out=tmp_path)

    go_on(stop_after=1)
    before = (tmp_path / CHECKPOINT).read_bytes()
    changed = functools.partial(dataclasses.replace, digits)
    other_class = tiny_model()
    other_class.__class__ = type("Other", (CapsNet,), {})  # as one that changes a method
    for changes, *words in (
        ({"config": dataclasses.replace(FP32, batch_size=32)}, "batch_size = 64", "32"),
        ({"model": tiny_model(capsule_dim=4)}, "capsule_dim = 8", "4"),
        ({"model": other_class}, "class = capsnet.model.CapsNet", "Other"),
        ({"images": digits.subset(slice(0, 100))}, "images = 128", "100"),
        ({"images": changed(images=255 - digits.images)}, "data"),
        ({"images": changed(labels=digits.labels.flip(0))}, "data"),
        ({"images": changed(classes=digits.classes[::-1])}, "data"),
        ({"tag": "two"}, "its task has tag = one", "yours has two"),
        (
            {"make_batch": overlaid_batch},
            "make_batch = capsnet.data.shifted_batch",
            "capsnet.multimnist.overlaid_batch",
        ),
        (
            {"make_loss": PairsLoss},
            "capsnet.training.loss.TrainingLoss",
            "capsnet_book.pairs.PairsLoss",
        ),
        ({"criterion": twice}, "capsnet.functional.margin_loss", "test_resume.twice"),
    ):
        with refuses(tmp_path / CHECKPOINT, "another run", *words):
            go_on(**changes)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert len(go_on()) == FP32.epochs


def test_a_damaged_checkpoint_changes_nothing(tmp_path: Path, digits: ImageSet, refuses) -> None:
    fit(tiny_model(), digits, None, ONE, out=tmp_path)
    path = tmp_path / CHECKPOINT
    tensors, document = read_tensors(path)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}

    def without(start: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return (
            {k: v for k, v in tensors.items() if not k.startswith(start)},
            {k: v for k, v in document.items() if not k.startswith(start)},
        )

    missing = ["optimizer.0.", "optimizer.0.exp_avg", "optimizer.3.step", "averaged.conv.weight"]
    missing += ["model.conv.weight", "random.cpu", "records", "stepped", "identity"]
    one = torch.zeros(1)
    for bad in (
        *map(without, missing),
        ({**tensors, "optimizer.1.exp_avg": one}, document),
        ({**tensors, "stranger": one}, document),
        ({**tensors, "random.cpu": one}, document),
        (tensors, {**document, "identity": "me"}),
        (tensors, {**document, "optimizer": []}),
    ):
        write_tensors(path, *bad)
        model = tiny_model(seed=4)
        with refuses(path):
            fit(model, digits, None, ONE, out=tmp_path)
        assert torch.equal(parameters(model), parameters(tiny_model(seed=4)))
    write_tensors(path, tensors, document)
    assert len(fit(tiny_model(), digits, None, ONE, out=tmp_path)) == 1
    cut = path.read_bytes()[:-100]
    path.write_bytes(cut)
    with refuses(path, "not a whole safetensors file"):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
    assert path.read_bytes() == cut


def test_a_folder_is_one_process_at_a_time(tmp_path: Path, digits: ImageSet, refuses) -> None:
    with (
        FileLock(tmp_path / LOCK),
        refuses("another process is training in", tmp_path),
    ):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
    (tmp_path / f".{CHECKPOINT}.123-ab.partial").write_bytes(b"half")  # of a killed process
    for _ in range(2):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
        assert not list(tmp_path.glob(".*partial"))


@contextlib.contextmanager
def small_disk() -> Iterator[Callable[[int], None]]:
    """What it yields makes the system refuse files of so many bytes, until the block's end."""
    resource = pytest.importorskip("resource", reason="Windows cannot limit a file's size")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_reported_and_keeps_the_checkpoint(tmp_path: Path, digits: ImageSet) -> None:
    config = dataclasses.replace(FP32, epochs=3)
    kept = {}
    model = tiny_model()
    steps = []

    def fill(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 3:  # in the second epoch: from now on, the system refuses large files
            kept["checkpoint"] = (tmp_path / CHECKPOINT).read_bytes()
            limit(100_000)

    model.register_forward_pre_hook(fill)
    message = f"cannot write {tmp_path / CHECKPOINT}: File too large"
    with small_disk() as limit, pytest.raises(OSError, match=message):
        fit(model, digits, None, config, out=tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == kept["checkpoint"]
    assert not list(tmp_path.glob(".*partial"))
    records = fit(tiny_model(), digits, None, config, out=tmp_path)
    assert [record["epoch"] for record in records] == [1, 2, 3]


def losses(out: Path) -> list[float]:
    return [record["loss"] for record in records_in(out)]


def two_processes(task: str, *outs: Path) -> list[int | None]:
    """What torchrun starts: on one machine, or one on each of two, with an ``out`` for each."""
    local = 2 // len(outs)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": 2}
    # gloo looks the host's own name up; on a machine without a network only the loopback answers.
    common |= {"LOCAL_WORLD_SIZE": local, "TORCHELASTIC_RUN_ID": "", "GLOO_SOCKET_IFNAME": "lo"}
    processes = []
    for rank in range(2):
        own = {"RANK": rank, "LOCAL_RANK": rank % local, "GROUP_RANK": rank // local}
        environment = {name: str(value) for name, value in (common | own).items()}
        processes.append(tiny.start(outs[rank // local], task, **environment))
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


@needs_posix
@pytest.mark.slow
@pytest.mark.parametrize(("machines", "task"), [(1, "pairs"), (2, "digits")])
def test_two_processes_learn_what_one_does(tmp_path: Path, machines: int, task: str) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "another disk"))
    tiny.run(one, task)
    # Machines need no common folder: the first one writes, and reads when a run goes on.
    if machines == 2:
        tiny.run(two, task, stop_after=2)
    assert two_processes(task, *[two, other][:machines]) == [0, 0]
    assert not other.exists()
    assert len(losses(one)) == (4 if task == "digits" else 3)
    assert losses(two) == pytest.approx(losses(one), abs=1e-5, rel=0)
    models = [load_weights(out / WEIGHTS)[0] for out in (one, two)]
    torch.testing.assert_close(parameters(models[0]), parameters(models[1]), rtol=0, atol=1e-3)
