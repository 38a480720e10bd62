"""The README says what is so: its commands parse, its code runs, its numbers are the ledger's."""

import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from capsnet.training import TrainingConfig
from capsnet_book import ledger
from capsnet_lab.cli.options import make_parser
from helpers import ROOT
from picture import PICTURE, draw

README = (ROOT / "README.md").read_text()
CARD = ROOT / "results" / "mnist" / "README.md"
RUNS = [ROOT / "results" / "time-to-accuracy" / name for name in ("99.0", "longest")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_every_command_is_one() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    commands = [w for w in words if w and w[0] == "capsnet"]
    assert {w[1] for w in commands} == {"train", "evaluate", "predict"}
    for command in commands:
        make_parser().parse_args(command[1:])
    targets = {w[1] for w in words if w and w[0] == "make"}
    makefile = (ROOT / "Makefile").read_text()
    assert targets == {"book", "test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_without_make_the_same_is_typed() -> None:
    """What stands in for `make book`, and the notebooks alone, without the tests' folder."""
    page = (ROOT / "book" / "how.md").read_text()
    (typed,) = re.findall(r"Without `make`.*?```sh\n(.*?)```", page, re.DOTALL)
    makefile = (ROOT / "Makefile").read_text()
    for part in (
        "-m venv", "-r requirements.txt", "--no-deps", "--editable .",
        "cp package.json package-lock.json", "npm ci", "book/_tools/make_notebooks.py", "jb build",
    ):  # fmt: skip
        assert part in typed and part in makefile, part
    assert "`pytest --nbval notebooks -n auto`" in README


def test_the_code_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (code,), (shown,) = blocks("python"), blocks("text")
    exec(code, {})
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("run", RUNS)
def test_the_accuracies_are_those_of_the_runs(run: Path) -> None:
    evaluation = json.loads((run / "summary.json").read_text())
    correct, total = evaluation["correct"], evaluation["total"]
    accuracy = f"{100 * correct / total:.2f} % ({correct:,}/{total:,}, one seed)"
    cost = f"{evaluation['seconds'] / 60:.0f} minutes on two CPU cores"
    assert f"| [{evaluation['weights']['config']['epochs']}](" in README
    assert f") | {accuracy} | {cost} |" in README
    assert correct == total - len(evaluation["errors"])


def test_the_runs_are_those_of_the_commands() -> None:
    # The learning rate is the default.
    assert json.loads((RUNS[0] / "summary.json").read_text())["command"] == (
        f"capsnet train --dataset mnist --epochs 2 --learning-rate {TrainingConfig.learning_rate:g}"
    ).replace("0.003", "3e-3")
    evaluation = json.loads((CARD.parent / "evaluation.json").read_text())
    epochs = evaluation["weights"]["config"]["epochs"]
    assert f"--epochs {epochs} " in CARD.read_text()


def test_the_picture_is_of_the_committed_weights() -> None:
    committed, drawn = (
        np.asarray(Image.open(file).convert("L"), dtype=float)
        for file in (PICTURE, io.BytesIO(draw()))
    )
    assert committed.shape == drawn.shape
    # Grey levels of 255; the picture from weights of 32 epochs was 2 off.
    assert np.abs(committed - drawn).mean() < 0.1


def test_the_moving_picture_moves_and_is_light() -> None:
    (name,) = re.findall('src="([^"]+)"', README)
    with Image.open(ROOT / name) as picture:
        assert picture.n_frames > 1  # type: ignore[attr-defined]
    assert (ROOT / name).stat().st_size < 400e3


def test_the_speed_is_the_ledgers() -> None:
    bench = ledger.read("bench/speed-cpu.json")
    assert (bench["machine"]["threads"], bench["batch_size"]) == (2, 128)
    steps = bench["times_keeping_freed_memory"]["training step"]
    for network, how, name in (
        ("`capsnet`", "bfloat16, compiled", "capsnet fast, bf16, compiled"),
        ("labml, like ours", "bfloat16, compiled", "labml, bf16, compiled"),
        ("`capsnet`", "float32, compiled", "capsnet fast, fp32, compiled"),
        ("labml, as published", "float32", "labml"),
        ("XifengGuo, as published", "float32", "XifengGuo"),
    ):
        assert f"| {network} | {how} | {1e3 * steps[name]['median']:,.0f} |" in README
    launches = ledger.read("bench/launches-cuda.json")
    assert launches["batch_size"] == 128 and f"On an {launches['machine']['device']} it" in README
    for network, how, name in (
        ("`capsnet`", "bfloat16, one CUDA graph", "capsnet fast, bf16, as a graph"),
        ("`capsnet`", "float32, one CUDA graph", "capsnet fast, fp32, as a graph"),
        ("labml, as published", "TF32 convolutions, float32", "labml"),
        ("XifengGuo, as published", "TF32 convolutions, float32", "XifengGuo"),
    ):
        milliseconds = launches["rows"][name]["milliseconds"]
        assert f"| {network} | {how} | {milliseconds:.1f} |" in README


def test_links_lead_to_files() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", CARD):
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text):
            assert link.startswith("https://") or (page.parent / link).exists(), (page, link)
