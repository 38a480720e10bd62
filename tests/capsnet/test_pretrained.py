"""Networks by name: from Python, and by the command without a path."""

from pathlib import Path

import pytest
from PIL import Image

import capsnet
from capsnet import data, pretrained
from capsnet.data import to_float
from capsnet_lab.cli import main
from helpers import ROOT, Refuses


def test_a_network_by_its_name() -> None:
    model = capsnet.load_pretrained("mnist-small")
    assert not model.training and sum(p.numel() for p in model.parameters()) == 1_280_720
    seven = to_float(data.load("mnist", train=False).images[:1])
    for network in (model, capsnet.load_pretrained("mnist")):
        assert network(seven).lengths.argmax() == 7


def test_a_name_that_is_none_and_weights_that_are_not_here(
    tmp_path: Path, refuses: Refuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refuses("expected the name of a network, mnist or mnist-small; got 'cifar'"):
        capsnet.load_pretrained("cifar")
    monkeypatch.setattr(pretrained, "__file__", str(tmp_path / "capsnet" / "pretrained.py"))
    with pytest.raises(FileNotFoundError, match="safetensors in a clone"):
        capsnet.load_pretrained("mnist")
    # As in a wheel.
    (tmp_path / "capsnet").mkdir()
    (tmp_path / "capsnet" / "mnist-small.safetensors").write_bytes(
        (ROOT / pretrained.PRETRAINED["mnist-small"]).read_bytes()
    )
    capsnet.load_pretrained("mnist-small")


@pytest.mark.parametrize(
    "weights", [[], ["mnist-small"], [ROOT / "results/page/weights.safetensors"]]
)
def test_a_picture_is_classified_by_the_small_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: list[object]
) -> None:
    Image.fromarray(data.load("mnist", train=False).images[0, 0].numpy()).save(tmp_path / "7.png")
    (tmp_path / "old.json").write_text("{}")
    words = ["--json", tmp_path / "old.json", *weights, tmp_path / "7.png"]
    assert main(["predict", *map(str, words)]) == 0
    assert "7.png: 7" in capsys.readouterr().out
