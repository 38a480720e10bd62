"""The README says what is so: its commands parse, its code runs, its numbers are the ledger's."""

import io
import json
import re
import shlex

import numpy as np
from PIL import Image

from capsnet.training import TrainingConfig
from capsnet_book import ledger
from capsnet_lab.cli import make_parser
from capsnet_lab.cli.options import with_weights
from helpers import ROOT
from picture import PICTURE, draw

README = (ROOT / "README.md").read_text()
CARD = ROOT / "results" / "mnist" / "README.md"
RUN = ROOT / "results" / "time-to-accuracy" / "99.0"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_every_command_is_one() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    commands = [w for w in words if w and w[0] == "capsnet"]
    assert {w[1] for w in commands} == {"train", "evaluate", "predict"}
    for command in commands:
        make_parser().parse_args(with_weights(command[1:]))
    targets = {w[1] for w in words if w and w[0] == "make"}
    makefile = (ROOT / "Makefile").read_text()
    assert targets == {"book", "test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_code_runs() -> None:
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)
    assert names["out"].reconstruction.shape == (8, 1, 28, 28)  # type: ignore[attr-defined]


def test_the_numbers_are_those_of_the_run() -> None:
    evaluation = json.loads((RUN / "summary.json").read_text())
    # The command above it: its learning rate is the default.
    assert evaluation["command"] == (
        f"capsnet train --dataset mnist --epochs 2 --learning-rate {TrainingConfig.learning_rate:g}"
    ).replace("0.003", "3e-3")
    records = [json.loads(line) for line in (RUN / "metrics.jsonl").read_text().splitlines()]
    accuracy = f"{100 * evaluation['correct'] / evaluation['total']:.2f} %"
    assert f"{accuracy} on the test set" in README
    assert f"({evaluation['correct']:,}/{evaluation['total']:,}, one seed)" in README
    minutes = sum(record["seconds"] for record in records) / 60
    assert f"in {minutes:.0f} minutes" in README
    assert len(records) == 2
    assert evaluation["correct"] == evaluation["total"] - len(evaluation["errors"])


def test_the_committed_weights_do_what_is_said() -> None:
    evaluation = json.loads((ROOT / "results" / "mnist" / "evaluation.json").read_text())
    share = f"{100 * evaluation['correct'] / evaluation['total']:.2f} %"
    said = " ".join(README.split())
    assert f"reach {share} ({evaluation['correct']:,}/{evaluation['total']:,}, one seed)" in said
    epochs = evaluation["weights"]["config"]["epochs"]
    assert f"after {epochs} epochs" in said
    assert f"--epochs {epochs} " in CARD.read_text()


def test_the_model_card_says_what_was_evaluated() -> None:
    large, small = (ledger.read(f"{name}/evaluation.json") for name in ("mnist", "page"))
    card = CARD.read_text()
    for right, total in ((each["correct"], each["total"]) for each in (large, small)):
        assert f"| {100 * right / total:.2f} % ({right:,}/{total:,}) |" in card
    for digit, (right, total), (also, _) in zip(
        large["classes"], large["per_class"], small["per_class"], strict=True
    ):
        row = f"| {digit} | {total:,} | {100 * right / total:.2f} % | {100 * also / total:.2f} % |"
        assert row in card
    refused = ledger.read("pictures/threshold.json")["results/mnist"]
    said = " ".join(card.split())
    assert f"{refused['letters']['no digit']} of 200 letters" in said
    assert f"{refused['clothes']['no digit']} of 200 pictures of clothes" in said
    assert f"{refused['test']['refused']} of 10,000 digits" in said


def test_the_picture_is_of_the_committed_weights() -> None:
    committed, drawn = (
        np.asarray(Image.open(file).convert("L"), dtype=float)
        for file in (PICTURE, io.BytesIO(draw()))
    )
    assert committed.shape == drawn.shape
    # Grey levels of 255; the picture from weights of 32 epochs was 2 off.
    assert np.abs(committed - drawn).mean() < 0.1


def test_the_speed_is_the_ledgers() -> None:
    bench = ledger.read("bench/speed-cpu.json")
    steps, fast = bench["times"]["training step"], "capsnet fast, bf16, compiled"
    tensors = ledger.read("bench/memory-cpu.json")["peaks"]["training step"]
    said = " ".join(README.split())
    assert f"{1e3 * steps[fast]['median']:.0f} ms on {bench['machine']['threads']} threads" in said
    for name in ("labml", "XifengGuo", "adambielski"):
        ratio = steps[name]["median"] / steps[fast]["median"]
        assert f"{ratio:.1f} × as fast as {name}'s" in said
    assert f"{tensors[fast]['tensors'] / tensors['labml']['tensors']:.2f} of labml's memory" in said
    launches = ledger.read("bench/launches-cuda.json")
    rate = {name: row["images_per_second"] for name, row in launches["rows"].items()}
    ours = rate["capsnet fast, bf16, as a graph"]
    device = launches["machine"]["device"].removeprefix("NVIDIA ")
    exact = rate["capsnet fast, fp32, as a graph"] / rate["labml"]
    assert f"on an {device}, {ours:,} images a second in bfloat16" in said
    assert f"{ours / rate['labml']:.1f} × as fast as labml, and {exact:.1f} × in float32" in said


def test_links_lead_to_files() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", CARD):
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text):
            assert link.startswith("https://") or (page.parent / link).exists(), (page, link)
