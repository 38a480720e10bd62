"""The networks that ours are compared with, and what a record says of a trained one."""

import math

import pytest
import torch

from capsnet import CapsNet
from capsnet.data import ImageSet, centred, load, to_float
from capsnet.fast import arrange
from capsnet.functional import squash
from capsnet_lab.wild import WildCapsNet, WildLoss
from experiments import tasks
from experiments.networks import KINDS, amplified_softmax, with_coupling, without_competition

SMALL = {"conv_channels": 8, "capsule_types": 2, "hidden": [16, 16]}


@pytest.fixture(scope="module")
def test_digits() -> ImageSet:
    return load("mnist", train=False).subset(slice(200))


@pytest.mark.parametrize(
    ("kind", "side", "named", "error"),
    [
        ("cnn", 28, 35.4e6, 0.002),  # as the paper says
        ("cnn-pairs", 36, 24.56e6, 0.0002),
        ("cnn-small", 28, 6_804_224, 0.05),  # as many as capsules without their decoder
        ("cnn-pooled", 28, 6_804_224, 0.05),
        ("cnn-pooled", 40, sum(p.numel() for p in CapsNet((1, 40, 40)).parameters()), 0.05),
        ("cnn-drawing", 28, 8_215_568, 0.002),  # and with it
        ("cnn-dense", 28, 8_215_568 + 160, 0),  # as many weights as W, and biases
    ],
)
def test_parameters_of_a_cnn(kind: str, side: int, named: float, error: float) -> None:
    with torch.device("meta"):  # no numbers are drawn
        count = sum(p.numel() for p in KINDS[kind].make((1, side, side), 10).parameters())
    assert count == pytest.approx(named, rel=error)


def test_a_cnn_is_read_out_as_capsules_are() -> None:
    cnn = KINDS["cnn-drawing"].make((1, 28, 28), 10).eval()
    images, labels = torch.rand(3, 1, 28, 28), torch.tensor([4, 0, 9])
    out = cnn(images, labels)
    torch.testing.assert_close(out.capsules, squash(cnn.layers(images).view(3, 10, 16)))
    torch.testing.assert_close(out.lengths, out.capsules.norm(dim=2))
    torch.testing.assert_close(out.reconstruction, cnn.decoder(out.capsules, labels))
    torch.testing.assert_close(
        cnn(images).reconstruction, cnn.decoder(out.capsules, out.lengths.argmax(dim=1))
    )


def test_without_competition_a_share_grows_with_its_own_agreement_alone() -> None:
    model = with_coupling(without_competition, **SMALL)
    logits = torch.randn(2, 72, 10)
    changed = logits.clone()
    changed[:, :, 0] += 1
    c, other = without_competition(logits), without_competition(changed)
    assert torch.equal(c[:, :, 1:], other[:, :, 1:]) and bool((c[:, :, 0] < other[:, :, 0]).all())
    u_hat = model.digits.predict(torch.rand(2, 72, 8))
    assert not torch.equal(model.route(u_hat), WildCapsNet(**SMALL).route(u_hat))


@pytest.mark.parametrize("same_start", [False, True])
def test_louder_votes_are_those_of_a_larger_matrix(same_start: bool) -> None:
    torch.manual_seed(0)
    model = with_coupling(amplified_softmax, **SMALL, routing_iterations=1, same_start=same_start)
    torch.manual_seed(0)
    plain = CapsNet(**SMALL, routing_iterations=1)
    images = torch.rand(3, 1, 28, 28)
    quiet = plain(images).lengths
    plain.digits.weight.data *= 1 if same_start else 4
    for network in (model, arrange(model, "fast")):
        lengths = network(images).lengths
        torch.testing.assert_close(lengths, plain(images).lengths)
        assert torch.allclose(lengths, quiet, rtol=0.1) is same_start


@pytest.mark.parametrize("kind", ["penalised", "decayed"])
def test_a_loss_that_holds_capsules_short_is_ours_and_what_it_says(kind: str) -> None:
    made = KINDS[kind]
    assert made.make_loss is not None
    model = made.make(**SMALL)
    images, labels = torch.rand(4, 1, 28, 28), torch.arange(4)
    arranged = arrange(model, "fast")
    loss, plain = (of(arranged, 0.5)(images, labels) for of in (made.make_loss, WildLoss))
    if kind == "penalised":
        expected = 0.1 * model.primary_capsules(images).square().sum(dim=2).mean()
    else:
        expected = 0.5e-3 * sum(each.square().sum() for each in model.parameters())
    torch.testing.assert_close(loss - plain, expected, rtol=1e-3, atol=1e-6)
    added = torch.autograd.grad(loss - plain, model.primary.conv.weight, retain_graph=True)
    alone = torch.autograd.grad(expected, model.primary.conv.weight)
    torch.testing.assert_close(added, alone, rtol=1e-2, atol=1e-5)


def test_digits_are_distorted_and_placed_in_training_alone(test_digits: ImageSet) -> None:
    index = torch.arange(50)
    plain = to_float(test_digits.images[:50])
    bent, labels = tasks.distorted(test_digits, index, 0, tasks.fixed_generator())
    assert bent.shape == plain.shape and torch.equal(labels, test_digits.labels[:50])
    assert bool(((bent - plain).abs().mean(dim=(1, 2, 3)) > 0.005).all())
    large = centred(test_digits, 40)
    placed, _ = tasks.placed(large, index, 0, tasks.fixed_generator())
    inside = placed[:, :, 1:-1, 1:-1].sum(dim=(1, 2, 3))
    torch.testing.assert_close(placed.sum(dim=(1, 2, 3)), plain.sum(dim=(1, 2, 3)))  # nothing is
    assert float((inside < plain.sum(dim=(1, 2, 3))).float().mean()) > 0.1  # cut off at the edges
    assert tasks.TASKS["drawn"].test is tasks.TASKS["digits"].test


def test_the_record_says_how_the_routing_settles(test_digits: ImageSet) -> None:
    model = CapsNet(**SMALL, learn_prior=True)
    assert model.digits.prior is not None
    with torch.no_grad():
        model.digits.weight *= 30  # so that it routes
    found = tasks.routing_statistics(model, test_digits)
    assert model.digits.routing_iterations == 3
    assert (len(found["change"]), len(found["entropy"])) == (9, 10)
    assert found["entropy"][0] == 1 > found["entropy"][-1]  # equal shares at first
    first, second, third = model.routing_trace(to_float(test_digits.images[:128]))
    expected = (second.b - first.b).abs().mean().item()
    assert found["change"][0] == pytest.approx(expected, abs=1e-6)
    entropy = -(third.c * third.c.log()).sum(2).mean().item() / math.log(10)
    assert found["entropy"][2] == pytest.approx(entropy, abs=1e-5)
    with torch.no_grad():
        model.digits.prior[0, 0] = -2.0
    mean = pytest.approx(2 / model.digits.prior.numel(), abs=1e-6)
    assert tasks.routing_statistics(model, test_digits)["prior"] == {"mean": mean, "max": 2.0}


def test_the_record_says_how_long_the_primary_capsules_are(test_digits: ImageSet) -> None:
    model = CapsNet(**SMALL)
    seen = to_float(test_digits.images[:128])
    lengths, empty = (
        model.primary(model.conv(images).relu()).norm(dim=2) for images in (seen, seen[:1] * 0)
    )
    found = tasks.primary_lengths(model, test_digits)
    assert found["mean"] == pytest.approx(lengths.mean().item(), rel=1e-4)
    assert found["empty page"] == pytest.approx(empty.mean().item(), rel=1e-4)
    shorter = (lengths < found["shortest thousandth"]).float().mean().item()
    assert shorter == pytest.approx(0.001, abs=1e-4)
