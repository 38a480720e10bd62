"""Reading the ledger; and what is installed holds none."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from capsnet_book import ledger
from helpers import ROOT


def test_a_document_of_the_ledger() -> None:
    assert ledger.read("mnist/evaluation.json")["total"] == 10_000
    epochs = ledger.read("time-to-accuracy/99.0/metrics.jsonl")
    assert [epoch["epoch"] for epoch in epochs] == [1, 2]
    found = ledger.summary("table-1")
    assert (found["experiment"], found["budget"], len(found["rows"])) == ("table-1", "cpu", 5)
    for row, seed in (("1 iteration", 0), ("3 iterations, reconstruction", 1)):
        record = ledger.record("table-1", row, seed)
        named = [record[key] for key in ("experiment", "budget", "row", "seed")]
        assert named == ["table-1", "cpu", row, seed]


def test_the_four_cells_of_table_1() -> None:
    for experiment, budget, images in (
        ("table-1", "cpu", 10_000),
        ("table-1", "gpu", 20_000),
        ("table-1-slower", "gpu", 20_000),
    ):
        found = ledger.table_1(budget, experiment)
        for name, end, row in (
            ("with reconstruction", 1, "3 iterations, reconstruction"),
            ("without reconstruction", 0, "1 iteration"),
        ):
            for seed in range(5):
                record = ledger.record(experiment, row, seed, budget)
                assert record["images"] == images
                assert found[name][end][seed] == ledger.missed(record)


def test_a_document_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"the ledger has no nothing\.json: looked in"):
        ledger.read("nothing.json")
    with pytest.raises(FileNotFoundError, match=r"no experiments/table-1/gpu/no-row/seed-7\.json"):
        ledger.record("table-1", "No row!", seed=7, budget="gpu")


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("3 iterations, reconstruction", "3-iterations-reconstruction"),
        ("reconstruction × 20", "reconstruction-20"),
        ("all of the released code's", "all-of-the-released-code-s"),
    ],
)
def test_the_folder_of_a_row(row: str, name: str) -> None:
    assert ledger.run_name(row) == name


@pytest.mark.slow
def test_an_installed_package_is_code_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 2e6
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.namelist()
    assert "capsnet/functional.py" in packed and "book/capsnet_book/ledger.py" in packed
    assert not [name for name in packed if name.endswith((".json", ".jsonl", ".safetensors"))]
