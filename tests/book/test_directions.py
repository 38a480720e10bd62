"""Properties of a picture, and along which directions of a capsule they change."""

import math

import pytest
import torch

from capsnet import Decoder
from capsnet_book.directions import (
    PROPERTIES,
    STEPS,
    changes,
    handwriting,
    image_moments,
    reconstruct,
    sweep,
)


def test_moments_of_a_bar() -> None:
    bar = torch.zeros(20, 28)
    bar[4:14, 12:16] = 0.5
    measured = dict(zip(PROPERTIES, image_moments(bar[None])[0].tolist(), strict=True))
    expected = {"ink": 20, "slant": 0, "width": 1.25**0.5, "height": 8.25**0.5, "x": 13.5, "y": 8.5}
    torch.testing.assert_close(measured, {k: float(x) for k, x in expected.items()})


def test_a_bar_leans_is_as_wide_and_as_thick_as_it_was_made() -> None:
    bar = torch.zeros(28, 28)
    bar[4:24, 12:15] = 1  # 20 rows, 3 columns: its outline is 46 pixels long
    leaning = torch.stack([row.roll((13 - i) // 2) for i, row in enumerate(bar.unbind())])
    for picture, slant in ((bar, 0.0), (leaning, math.degrees(math.atan(0.5)))):
        found = handwriting(picture[None])[0]
        assert found[0].item() == pytest.approx(slant, abs=1.5)
        assert found[1].item() == pytest.approx(3, abs=0.4)
        assert found[2].item() == pytest.approx(2 * 60 / 46, abs=0.4)


def test_sweeps_are_reconstructions_one_by_one() -> None:
    torch.manual_seed(0)
    decoder = Decoder(3, 4, (1, 28, 28))
    v, ways = torch.randn(2, 4), torch.randn(5, 4)
    swept = sweep(decoder, v, 1, ways)
    assert swept.shape == (2, 5, len(STEPS), 28, 28) and not swept.requires_grad
    n, k, step = 1, 3, 7
    slots = torch.zeros(1, 3, 4)
    slots[0, 1] = v[n] + STEPS[step] * ways[k]
    alone = decoder(slots, torch.tensor([1]))[0, 0]
    torch.testing.assert_close(swept[n, k, step], alone)
    torch.testing.assert_close(reconstruct(decoder, slots[:, 1], 1)[0], alone)


def test_changes_are_slopes() -> None:
    """Of ink that grows by a pixel of brightness for each unit of the first number."""
    decoder = Decoder(2, 4, (1, 28, 28))
    with torch.no_grad():
        for p in decoder.parameters():
            p.zero_()
        for layer in (decoder.fc1, decoder.fc2, decoder.fc3):
            layer.weight[0, 0] = 1
        decoder.fc1.bias[0] = 1  # above zero, where ReLU does nothing
    v = torch.zeros(1, 4)
    found = changes(decoder, v, 0, torch.eye(4), torch.full((6,), 2.0))
    ink = torch.sigmoid(1 + STEPS)
    exact = (ink[-1] - ink[0]) / 2  # the sigmoid bends little so near
    torch.testing.assert_close(found[0, 0], exact, rtol=0.01, atol=0)
    assert found[1:].abs().max() < 1e-4
