"""How many pictures of digits are read right: the measurement, and what the ledger says."""

import json
from subprocess import CalledProcessError

import pytest

from capsnet_book import ledger
from experiments.studies import pictures
from experiments.studies.pictures import SOFT, STYLES


def test_a_set_of_pictures_is_read_three_ways() -> None:
    try:
        pictures.as_before()
    except CalledProcessError as error:
        pytest.skip(f"a clone without its history: {error}")
    digits = pictures.mnists()
    # Dark ink of uneven strength on light, as JPEG: what was read worst of MNIST's.
    kind = "uneven ink, dark on light, JPEG 75"
    found = pictures.measure(digits, range(100, 115), kind, *pictures.MNIST[kind])
    assert (found["first"], found["total"]) == (100, 15)
    assert found["before"] + len(found["won"]) - len(found["lost"]) == found["now"]
    assert found["before"] < found["naive"] <= found["now"]
    assert set(found["won"]) <= set(range(100, 115))
    found = pictures.measure(digits, range(4), "pencil", *STYLES["pencil"])
    assert found["naive"] < found["before"] == found["now"] == 4


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
