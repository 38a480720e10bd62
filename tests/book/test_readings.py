"""What the ledger says of digits in pictures."""

from capsnet_book import ledger


def test_no_digit_is_lost_and_soft_pictures_are_read_as_well_as_without_preparation() -> None:
    sets = ledger.read("pictures/readings.json")["sets"]
    drawn = [found for found in sets if found["total"] == 20]
    assert all(found["before"] == found["now"] == 20 for found in drawn) and len(drawn) == 10
    soft = [found for found in sets if found["digits"] == "scikit-learn" and found["first"] == 300]
    assert sum(found["now"] for found in soft) >= sum(found["naive"] for found in soft)
