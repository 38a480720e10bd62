"""How many pictures of digits are read right: the measurement, and what the ledger says."""

import json
import sys
from pathlib import Path

import pytest

from capsnet_book import ledger
from experiments import pictures
from experiments.pictures import SOFT, STYLES, Saved, main, measure


def test_a_set_of_pictures_is_read_three_ways() -> None:
    try:
        pictures.as_before()
    except OSError as error:
        pytest.skip(f"a clone without its history: {error}")
    digits = pictures.mnists()
    # Dark ink of uneven strength on light, as JPEG: what was read worst of MNIST's.
    uneven = Saved(pictures.inverted(pictures.uneven(140)), 75)
    found = measure("uneven", digits, range(100, 115), uneven)
    assert (found["first"], found["total"]) == (100, 15)
    assert found["before"] + len(found["won"]) - len(found["lost"]) == found["now"]
    assert found["before"] < found["naive"] <= found["now"]
    assert set(found["won"]) <= set(range(100, 115))
    pencil = measure("pencil", digits, range(4), STYLES["pencil"])
    assert pencil["naive"] < pencil["before"] == pencil["now"] == 4


def test_scikit_learn_is_asked_for_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main(tmp_path / "readings.json") == 1
    assert capsys.readouterr().err == (
        "scikit-learn's digits are not here: pip install scikit-learn\n"
    )
    assert not any(tmp_path.iterdir())


def test_the_record() -> None:
    """Nothing drawn is lost, and soft pictures are read as well as by the naive way."""
    record = ledger.read("pictures/readings.json")
    assert len(json.dumps(record)) < 20_000 and record["before"] == pictures.BEFORE
    sets = {(found["pictures"], found["first"]): found for found in record["sets"]}
    styles = [sets[name, 0] for name in STYLES]
    for way in ("before", "now"):
        assert sum(found[way] for found in styles) == sum(found["total"] for found in styles) == 200
    soft = [found for found in record["sets"] if found["digits"] == "scikit-learn"]
    assert {found["pictures"] for found in soft} == {"to 112, bicubic", *SOFT}
    assert sum(found["now"] for found in soft) >= sum(found["naive"] for found in soft)
    assert sets["to 112, bicubic", 0]["now"] >= sets["to 112, bicubic", 0]["naive"] > 180
