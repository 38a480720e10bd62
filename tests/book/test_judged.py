"""The rule by which the chapter *What capsules do and do not solve* judges claims."""

import pytest
import torch
from scipy import stats

from capsnet import CapsNet
from capsnet.data import ImageSet
from capsnet_book import claims
from capsnet_book.claims import Claim, difference

MORE = {0: 1.2, 1: 1.8, 2: 1.1, 3: 1.4}
FEWER = {0: 1.0, 1: 1.3, 2: 1.0, 3: 1.1}
LESS_STILL = {seed: rate - 1 + seed / 10 for seed, rate in FEWER.items()}


@pytest.mark.parametrize("paired", [True, False])
def test_a_difference_is_scipys(paired: bool) -> None:
    found = difference(Claim(MORE, FEWER | {9: 5.0} if paired else FEWER, paired))
    test = stats.ttest_rel if paired else lambda a, b: stats.ttest_ind(a, b, equal_var=False)
    expected = test([*MORE.values()], [*FEWER.values()])
    low, high = expected.confidence_interval(0.95)
    assert (found.points - found.half, found.points + found.half) == pytest.approx((low, high))
    assert (found.p, found.seeds) == (pytest.approx(expected.pvalue), 4)


@pytest.mark.parametrize(
    ("claim", "adjusted_p", "expected"),
    [
        (Claim(MORE, LESS_STILL), 0.01, "confirmed"),
        (Claim(LESS_STILL, MORE), 0.01, "refuted"),
        (Claim(MORE, LESS_STILL), 0.06, "open"),
        (Claim(MORE, FEWER, at_least=9.0), 0.06, "no difference as large as claimed"),
        (Claim(MORE, LESS_STILL, fair=False), 0.01, "open"),
        (Claim({0: 2.0, 1: 2.1}, {0: 1.0, 1: 1.2}, paired=False), 0.01, "open"),
        (
            Claim(MORE, LESS_STILL, other_rate=Claim(LESS_STILL, MORE)),
            0.01,
            "depends on the learning rate",
        ),
        (Claim(MORE, LESS_STILL, other_rate=Claim(MORE, LESS_STILL)), 0.01, "confirmed"),
    ],
)
def test_a_verdict(claim: Claim, adjusted_p: float, expected: str) -> None:
    assert claims.verdict(claim, difference(claim), adjusted_p) == expected


def test_the_p_values_of_the_whole_family_are_adjusted() -> None:
    judged = claims.judged()
    adjusted = stats.false_discovery_control([found.p for found, _, _ in judged.values()])
    assert [p for _, p, _ in judged.values()] == pytest.approx(list(adjusted))
    assert all(p >= found.p for found, p, _ in judged.values())


def test_what_is_measured_on_a_network() -> None:
    torch.manual_seed(0)
    model = CapsNet((1, 28, 28), conv_channels=8, capsule_types=2)
    pixels = torch.randint(256, (120, 1, 28, 28), dtype=torch.uint8)
    images = ImageSet(pixels, torch.arange(120) % 10, tuple("0123456789"), "random")
    found = claims.of_network(model, images)
    out = model(images.images / 255)
    assert found["length"] == pytest.approx(out.lengths.max(dim=1).values.mean().item(), abs=1e-5)
    right = (out.lengths.argmax(dim=1) == images.labels).double().mean().item()
    assert found["accuracy"] == pytest.approx(right)
    assert found["sign"] < 1e-5 and 0 <= found["decided"] <= found["decided after 300"] <= 1
