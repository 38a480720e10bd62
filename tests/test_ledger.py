"""Reading the ledger, in a clone and from an installed package."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from capsnet import ledger

ROOT = Path(__file__).parent.parent


def test_a_document_of_the_ledger() -> None:
    evaluation = ledger.read("mnist/evaluation.json")
    assert evaluation["total"] == 10_000


def test_the_records_of_a_run() -> None:
    records = ledger.read("time-to-accuracy/99.0/metrics.jsonl")
    assert [record["epoch"] for record in records] == [1, 2]


def test_a_document_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"the ledger has no nothing\.json: looked in"):
        ledger.read("nothing.json")


@pytest.mark.slow
def test_an_installed_package_brings_the_ledger_along(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
            "--disable-pip-version-check", "--wheel-dir", tmp_path, ROOT,
        ],
        check=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    kinds = {".json", ".jsonl", ".safetensors"}
    for path in (ROOT / "results").rglob("*.*"):
        if path.suffix in kinds:
            assert f"capsnet/{path.relative_to(ROOT).as_posix()}" in packed
