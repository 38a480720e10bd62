"""Our networks and our checker beside published code: what the records say, and whether they could
fail.
"""

import pytest
import torch

from capsnet_book import ledger
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS, WildCapsNet, WildLoss
from experiments.studies import strangers
from experiments.studies.originals import differences
from helpers.tiny import some_digits


def test_the_record() -> None:
    """All that runs computes what ours does; the rest is said to be out of reach."""
    networks = ledger.read("originals.json")["networks"]
    assert list(networks) == [name for name in IMPLEMENTATIONS if name != "paper"]
    ran = {name: found for name, found in networks.items() if found["runs"]}
    assert len({found["commit"] for found in ran.values()}) >= 7
    for name, found in networks.items():
        assert found["done"] and (found["differences"] is not None) == (name in ran)
    for found in ran.values():
        assert set(found["differences"]) == {"lengths", "loss", "gradients"}
        assert all(0 <= difference < 1e-9 for difference in found["differences"].values())


def test_the_checker_finds_in_others_code_what_was_read_in_it() -> None:
    networks = ledger.read("strangers.json")["networks"]
    assert networks.keys() == strangers.STRANGERS.keys() == strangers.READ.keys()
    ours = {made.link for made in IMPLEMENTATIONS.values()}
    for name, network in networks.items():
        assert network["found"] == network["read"] == sorted(strangers.READ[name].split())
        assert DEVIATIONS.keys() >= {*network["found"]}
        assert not any(link.endswith(name) for link in ours)


@pytest.mark.parametrize(
    ("deviations", "differ"),
    [
        ([], set()),
        (["guard-1e-9"], {"lengths", "loss", "gradients"}),
        (["stopped-gradient"], {"gradients"}),
        (["halved-margin"], {"loss", "gradients"}),
    ],
)
def test_a_difference_is_seen(deviations: list[str], differ: set[str]) -> None:
    torch.manual_seed(0)
    small = {"conv_channels": 4, "capsule_types": 2, "hidden": (9, 11)}
    model = WildCapsNet(**small).double()
    other = WildCapsNet(deviations=deviations, **small)
    for part, module in model.named_children():
        setattr(other, part, module)  # the same weights
    digits = some_digits(4)
    batch = digits.images.double() / 255, digits.labels
    found = differences(model, batch, (other(*batch).lengths, WildLoss(other)(*batch)))
    assert {name for name, difference in found.items() if difference > 1e-9} == differ
