"""What arguments must be: numbers of things, class labels, dtypes; and what each error says."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.testing import assert_close

from capsnet import CapsuleLayer, Decoder, PrimaryCapsules, checks
from capsnet.checks import as_image_shape, as_int, check_dtype, class_mask
from capsnet.functional import dynamic_routing, margin_loss, reconstruction_loss, squash
from capsnet.layers import channels_to_capsules
from helpers import Refuses

HALF, F32, F64 = torch.bfloat16, torch.float32, torch.float64


@pytest.mark.parametrize("value", [3, np.int64(3), np.array(3), torch.tensor(3)])
def test_any_integer_becomes_pythons(value: Any) -> None:
    assert as_int("n", value) == 3 and type(as_int("n", value)) is int


def test_the_least_number_may_be_another() -> None:
    assert as_int("n", 0, minimum=0) == 0 and as_image_shape((np.int64(1), 2, 3)) == [1, 2, 3]


@pytest.mark.parametrize(
    "value",
    [0, -1, 2.5, 2.0, np.float64(2), np.array(2.5), np.array([2, 3]), torch.tensor(2.5),
     torch.tensor(2.9), torch.tensor([2, 3]), torch.ones(20, 20), "2", None, True, np.True_,
     torch.tensor(True)],
)  # fmt: skip
def test_what_is_no_integer_of_at_least_1_is_refused(refuses: Refuses, value: Any) -> None:
    with refuses("n must be a whole number of at least 1, got "):
        as_int("n", value)


def test_class_mask_makes_indices_one_hot() -> None:
    expected = torch.tensor([[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=torch.bool)
    assert_close(class_mask(torch.tensor([2, 0, 3]), 3, 4), expected)
    for nothing in (torch.zeros(0, dtype=torch.int64), torch.zeros(0, 4)):
        assert class_mask(nothing, 0, 4).shape == (0, 4)
    for mask in (torch.eye(3), torch.ones(3, 3, dtype=torch.bool), torch.zeros(3, 3).long()):
        assert class_mask(mask, 3, 3) is mask
    targets = torch.tensor([2, 0])
    with torch.device("meta"):  # any other default device would do
        assert class_mask(targets, 2, 3).device == targets.device


@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32],
)
def test_class_indices_of_any_integer_type(refuses: Refuses, dtype: torch.dtype) -> None:
    """And masks of any type, which count as numbers."""
    lengths, one_hot = torch.rand(2, 3), torch.tensor([[0, 0, 1], [1, 0, 0]])
    assert_close(class_mask(torch.tensor([2, 0]).to(dtype), 2, 3), one_hot.bool())
    expected = margin_loss(lengths, one_hot)
    assert_close(margin_loss(lengths, one_hot.to(dtype)), expected, rtol=0, atol=0)
    with refuses("class indices must lie in 0 … 2", "got 5"):
        margin_loss(lengths, torch.tensor([5, 1]).to(dtype))


def test_a_mask_may_be_soft_but_not_beyond_0_and_1(refuses: Refuses) -> None:
    soft = torch.tensor([[0.3, 0.7], [0.0, 1.0]])  # mixup's
    assert class_mask(soft, 2, 2) is soft
    for value in (7, -0.1, float("nan")):
        with refuses("a mask's values must lie in 0 … 1", f"got {value}"):
            margin_loss(torch.rand(1, 2), torch.tensor([[value, 0]]))


def test_class_mask_under_vmap_has_no_values_to_check() -> None:
    """As everywhere where they are not looked at, an index out of range gives a row of zeros."""
    mask = vmap(lambda label: class_mask(label, 1, 3))(torch.tensor([[2], [7]]))
    assert mask.tolist() == [[[False, False, True]], [[False] * 3]]


def test_class_mask_reads_no_value_where_that_would_wait_or_break_a_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert class_mask(torch.tensor([1, 7]), 2, 3).tolist() == [[False, True, False], [False] * 3]
    mask = torch.tensor([[7.0, -1.0]])
    assert class_mask(mask, 1, 2) is mask


def test_class_mask_refuses(refuses: Refuses) -> None:
    for shape in ([], [3], [1, 1], [2, 1], [2, 4], [3, 2], [1, 3], [2, 3, 1], [2, 2]):
        with refuses("class indices [2]", "a mask [2, 3]", f"got shape {shape}"):
            class_mask(torch.zeros(shape, dtype=torch.int64), 2, 3)
    for dtype in (F32, HALF, torch.bool):
        with refuses("class indices must be integers", f"got {dtype}"):
            class_mask(torch.zeros(2, dtype=dtype), 2, 3)
    for shape in ([2], [2, 3]):
        with refuses("class indices or a mask", "got torch.complex64"):
            class_mask(torch.zeros(shape, dtype=torch.complex64), 2, 3)
    for indices, got in [([3], 3), ([-1], -1), ([0, 5], 5), ([-2, 1], -2), ([-7, 9], -7)]:
        with refuses("class indices must lie in 0 … 2", f"got {got}"):
            class_mask(torch.tensor(indices), len(indices), 3)


@pytest.mark.parametrize("images", [HALF, F32, F64])
@pytest.mark.parametrize("weights", [HALF, F32, F64])
@pytest.mark.parametrize("autocast", [False, True])
def test_images_have_the_weights_dtype_unless_autocast_converts_them(
    refuses: Refuses, images: torch.dtype, weights: torch.dtype, autocast: bool
) -> None:
    """Whatever PyTorch's own convolution takes is taken, and nothing else."""
    convolution = torch.nn.Conv2d(1, 1, 1).to(weights)
    pixels = torch.zeros(1, 1, 1, 1, dtype=images)
    with torch.autocast("cpu", enabled=autocast):
        try:
            convolution(pixels)
        except RuntimeError:
            with refuses(f"images must be {weights}, as the weights are, got {images}"):
                check_dtype("images", pixels, weights)
        else:
            check_dtype("images", pixels, weights)


U_HAT, LENGTHS, IMAGES = torch.rand(1, 2, 3, 4), torch.rand(4, 3), torch.zeros(2, 1, 4, 3)
DECODER, LAYER, PRIMARY = Decoder(3, 4, (1, 2, 2)), CapsuleLayer(5, 4, 3, 2), PrimaryCapsules(2, 1)

MESSAGES = [  # a call that is refused, and parts of what it says
    (lambda: dynamic_routing(U_HAT.tolist()), "u_hat must be a torch.Tensor, got list"),
    (lambda: checks.device_of(torch.nn.ReLU()), "the network must have parameters, ReLU has none"),
    (lambda: squash(torch.ones(2, 3).long()), "s must be floating point, got torch.int64"),
    (lambda: dynamic_routing(U_HAT.long()), "u_hat must be floating point, got torch.int64"),
    (lambda: dynamic_routing(U_HAT, 0), "iterations must be a whole number of at least 1, got 0"),
    (lambda: dynamic_routing(U_HAT, 2.5), "iterations must be a whole number", "got 2.5"),
    *[
        (lambda shape=shape: dynamic_routing(torch.ones(shape)),
         f"u_hat must be [batch, in_capsules, out_capsules, out_dim], got shape {shape}")
        for shape in ([2, 3, 4], [1, 2, 3, 4, 5])
    ],
    *[
        (lambda shape=shape: dynamic_routing(U_HAT, 3, torch.zeros(shape)),
         f"prior must be [in_capsules, out_capsules] = [2, 3], got shape {shape}")
        for shape in ([3, 2], [2, 2], [1, 3], [2, 1], [1, 2, 3], [6])
    ],
    (lambda: dynamic_routing(U_HAT, 3, [[0.0]]), "prior must be a torch.Tensor, got list"),
    (lambda: dynamic_routing(U_HAT, 3, torch.zeros(2, 3).long()), "prior must be floating point"),
    (lambda: margin_loss(LENGTHS.long(), torch.arange(4)), "lengths must be floating point"),
    *[
        (lambda shape=shape: margin_loss(torch.ones(shape), torch.tensor([0, 1])),
         f"lengths must be [batch, classes], got shape {shape}")
        for shape in ([3], [2, 3, 1], [])
    ],
    *[
        (lambda shape=shape: reconstruction_loss(IMAGES, torch.zeros(shape)),
         f"one shape [batch, ...], got [2, 1, 4, 3] and {shape}")
        for shape in ([2, 1, 3, 4], [1, 1, 4, 3], [2, 12], [2, 3, 4])
    ],
    (lambda: reconstruction_loss(torch.zeros(4), torch.zeros(4)), "one shape [batch, ...]", "[4]"),
    # Bytes of 0 … 255 would be compared with intensities of 0 … 1.
    (lambda: reconstruction_loss(IMAGES, IMAGES.byte()), "images must be floating point"),
    (lambda: reconstruction_loss(IMAGES.byte(), IMAGES), "reconstruction must be floating point"),
    *[
        (lambda shape=shape: PRIMARY(torch.rand(shape)),
         f"features must be [batch, 2, height, width] of at least 9 × 9, got shape {shape}")
        for shape in ([1, 3, 9, 9], [1, 1, 9, 9], [1, 2, 8, 9], [1, 2, 9, 8], [2, 9, 9], [])
    ],
    *[
        (lambda shape=shape, dim=dim: channels_to_capsules(torch.rand(shape), dim),
         f"maps must be [batch, a multiple of capsule_dim = {dim}, height, width], "
         f"got shape {shape}")
        for shape, dim in [([2, 8, 3, 3], 5), ([2, 8, 3, 3], 16), ([2, 8, 3, 3], 0),
                           ([2, 8, 3, 3], -4), ([8, 3, 3], 4), ([1, 8, 2, 3, 3], 4)]
    ],
    *[
        (lambda name=name: PrimaryCapsules(**{"in_channels": 4, name: (3, 9)}),
         f"{name} must be a whole number", "got (3, 9)")
        for name in ("in_channels", "capsule_types", "capsule_dim", "kernel_size", "stride")
    ],
    *[
        (lambda labels=labels: margin_loss(LENGTHS, labels),
         f"targets must be a torch.Tensor, got {kind}")
        for labels, kind in (([0, 1, 2, 0], "list"), (np.zeros(4, int), "ndarray"))
    ],
    *[
        (lambda call=call, shape=shape, dtype=dtype: call(torch.zeros(shape, dtype=dtype)),
         f"{name} must be ", f"got {dtype}")
        for call, name, shape in (
            (PRIMARY, "features", (1, 2, 9, 9)), (LAYER, "capsules", (1, 5, 4)),
            (lambda v: DECODER(v, torch.tensor([0])), "capsules", (1, 3, 4)),
        )
        for dtype in (torch.int64, F64)
    ],
    (lambda: CapsuleLayer(5, 4, 3, 2, learn_prior="no"), "learn_prior must be True or", "'no'"),
    *[
        (lambda shape=shape: LAYER(torch.rand(shape)),
         f"capsules must be [batch, 5, 4], got shape {shape}")
        for shape in ([2, 5, 3], [2, 4, 4], [2, 4, 5], [5, 4], [2, 5, 4, 1], [2, 20])
    ],
    *[
        (lambda n=n: CapsuleLayer(*[0 if i == n else 3 for i in range(5)]), f"{name} must be")
        for n, name in enumerate(
            ("in_capsules", "in_dim", "out_capsules", "out_dim", "routing_iterations")
        )
    ],
    *[
        (lambda shape=shape: DECODER(torch.rand(shape), torch.tensor([0, 1])),
         f"capsules must be [batch, 3, 4], got shape {shape}")
        for shape in ([2, 3, 5], [2, 4, 4], [2, 4, 3], [2, 12], [2, 3, 4, 1])
    ],
    *[
        (lambda hidden=hidden: Decoder(3, 4, (1, 2, 2), hidden),
         f"hidden must be the units of two layers, got {hidden}")
        for hidden in ([], [5], [5, 6, 7], 512)
    ],
    *[
        (lambda shape=shape: as_image_shape(shape),
         f"image_shape must be [channels, height, width], got {shape}")
        for shape in ([28, 28], [1, 1, 28, 28], [], 28)
    ],
    (lambda: as_image_shape([1, 28, 2.5]), "image_shape[2] must be a whole number"),
    (lambda: Decoder(3, 4, (1, 2, 2), [5, 0]), "hidden[1] must be a whole number", "got 0"),
    (lambda: Decoder(0, 4, (1, 2, 2)), "num_classes must be a whole number", "got 0"),
    (lambda: Decoder(3, 0, (1, 2, 2)), "capsule_dim must be a whole number", "got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "parts"), [(call, parts) for call, *parts in MESSAGES])
def test_equations_and_layers_refuse(refuses: Refuses, call: Any, parts: list[str]) -> None:
    with refuses(*parts):
        call()
