"""A network that learns in the page: its loss and every gradient are those of PyTorch."""

from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet import CapsNet
from capsnet.checkpoint import save_weights
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet_book import ledger
from capsnet_book.play import learn
from capsnet_lab.wild import WildCapsNet
from helpers.pages import greys

GRADIENTS = """async ([images, labels, settings]) => {
    const { backward } = await import("./learning.js");
    const { CapsNet } = await import("./network.js");
    const { readWeights } = await import("./weights.js");
    const answer = await fetch("./learn.bin", { cache: "no-store" });
    const weights = readWeights(await answer.arrayBuffer());
    const [net, found] = [new CapsNet(weights), {}];
    for (const [name, { length }] of Object.entries(weights.tensors))
        found[name] = new Float32Array(length);
    let loss = 0;
    images.forEach((image, n) =>
        (loss += backward(net, Float32Array.from(image), labels[n], settings, found)));
    return [loss, Object.fromEntries(Object.entries(found).map(([name, x]) => [name, [...x]]))];
}"""
FIRST_WEIGHTS = """async config => {
    const { Learner } = await import("./learning.js");
    const { tensors } = new Learner(config, {});
    return Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, [...x]]));
}"""
COUNT = 3  # images of a sum of gradients


@pytest.mark.parametrize("lengthened", [1, 6])  # W: all lengths small, or some above m⁺
@pytest.mark.parametrize(
    ("iterations", "down_weight", "over"),
    [(1, 0.5, "parents"), (2, 1.0, "parents"), (3, 0.5, "parents"), (3, 0.5, "children")],
)
def test_loss_and_gradients(
    page_of: Any, folder: Path, lengthened: int, iterations: int, down_weight: float, over: str
) -> None:
    torch.manual_seed(0)
    model: CapsNet = learn.network()
    with torch.no_grad():
        model.digits.weight *= lengthened
    save_weights(folder / "learn.bin", model)
    if over == "children":
        weights = model.state_dict()
        model = WildCapsNet(deviations=["softmax-over-children"], **model.config)
        model.load_state_dict(weights)
    model.digits.routing_iterations = iterations
    model.double()
    _, held = learn.digits()
    images, labels = held.images[:COUNT].double() / learn.GREYS, held.labels[:COUNT]
    out = model(images, labels)
    margin = margin_loss(out.lengths, labels, down_weight=down_weight)
    loss = COUNT * (margin + learn.SHARE * reconstruction_loss(out.reconstruction, images))
    loss.backward()
    settings = {"iterations": iterations, "downWeight": down_weight, "over": over}
    asked = [images.flatten(1).tolist(), labels.tolist(), settings]
    found_loss, found = page_of("squash").evaluate(GRADIENTS, asked)
    assert found_loss == pytest.approx(loss.item(), abs=1e-5)
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        difference = torch.tensor(found[name]).double() - gradient.flatten()
        assert difference.abs().max() < 1e-4 * gradient.abs().max(), name


def test_first_weights_are_drawn_as_pytorch_draws_them(page_of: Any) -> None:
    torch.manual_seed(0)
    model = learn.network()
    found = page_of("squash").evaluate(FIRST_WEIGHTS, model.config)
    for name, weight in model.state_dict().items():
        drawn = torch.tensor(found[name])
        assert drawn.numel() == weight.numel(), name
        if weight.numel() > 1000:
            assert drawn.mean().item() == pytest.approx(0, abs=0.1 * weight.std().item()), name
            assert drawn.std().item() == pytest.approx(weight.std().item(), rel=0.05), name
            assert drawn.abs().max() == pytest.approx(weight.abs().max().item(), rel=0.05), name


# The most questions to the worker that were without an answer at a time.
OUTSTANDING = """() => {
    let open = 0;
    window.most = 0;
    window.Worker = class extends Worker {
        constructor(...given) {
            super(...given);
            this.addEventListener("message", () => open--);
        }
        postMessage(question) {
            most = Math.max(most, ++open);
            super.postMessage(question);
        }
    };
}"""


def test_it_learns_when_asked_and_is_compared_with_the_run_before(page_of: Any) -> None:
    tab = page_of("learn")
    record = ledger.read(learn.RECORD)
    assert f"{100 * record['correct'][-1]:.1f} % of the held-out" in tab.inner_text(".count")
    assert not any("digits.json" in url for url in tab.asked) and tab.workers == []
    recorded = greys(tab, ".cards canvas")
    tab.evaluate(OUTSTANDING)
    tab.get_by_role("button", name="Train").click()
    tab.wait_for_function("/^[1-9]/.test(document.querySelector('.count').textContent)")
    tab.wait_for_function("document.querySelectorAll('polyline.now')[1].points.numberOfItems > 2")
    for name in ("Pause", "Continue") * 3 + ("Pause",):
        tab.get_by_role("button", name=name).click()
    tab.get_by_text("Paused after").wait_for()
    assert tab.evaluate("most") == 1
    first, later = tab.evaluate(
        "[...document.querySelectorAll('polyline.now')[0].points].map((at) => at.y)"
        ".filter((_, k, all) => k === 0 || k === all.length - 1)"
    )
    assert later > first  # down on the page: the loss has fallen
    shown = greys(tab, ".cards canvas")
    assert (shown[::2] - recorded[::2]).abs().max() < 0.01  # the same twelve images
    assert (shown[1::2] - recorded[1::2]).abs().max() > 0.1
    tab.get_by_role("slider", name="λ").press("End")
    assert "Press Start again" in tab.inner_text(".said")
    tab.get_by_role("button", name="Start again").click()
    tab.get_by_role("button", name="Pause").wait_for()
    assert "λ = 1," in tab.inner_text(".legend.now")
    assert "λ = 0.5," in tab.inner_text(".legend.before")
    tab.get_by_role("button", name="Reset").click()
    assert torch.equal(greys(tab, ".cards canvas"), recorded)
    assert "PyTorch" in tab.inner_text(".legend.now")


def test_digits_that_cannot_be_loaded_are_no_end(page_of: Any, folder: Path) -> None:
    tab, digits = page_of("learn"), folder / "data/digits.json"
    digits.rename(digits.with_suffix(".away"))
    tab.get_by_role("button", name="Train").click()
    tab.get_by_text("got 404").wait_for()
    digits.with_suffix(".away").rename(digits)
    tab.get_by_role("button", name="Train").click()
    tab.get_by_text("Training on your machine").wait_for()
    assert "PyTorch" in tab.inner_text(".legend.before")  # not the run that did not begin
    tab.get_by_role("button", name="Reset").click()


def test_the_recorded_run_is_what_pytorch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    record = ledger.read(learn.RECORD)
    monkeypatch.setattr(learn, "STEPS", learn.EVERY)
    again = learn.course()
    assert again.keys() == record.keys()
    assert again["losses"] == pytest.approx(
        record["losses"][: learn.EVERY // learn.TOGETHER], rel=0.01
    )
