"""The knobs of a capsule in the page: its drawings are PyTorch's, among any axes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet import Decoder
from capsnet.checkpoint import SCALE, load_weights, read_tensors
from capsnet_book import ledger
from capsnet_book.directions import draw
from capsnet_book.play.knobs import save_decoder
from helpers.capsule import DIGIT, found
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
# The grey of each canvas that is seen, from 0 to 1, the drawing first.
SEEN = """() => [...document.querySelectorAll(".play canvas")]
    .filter((each) => each.checkVisibility())
    .map((each) => {
        const { data } = each.getContext("2d").getImageData(0, 0, 28, 28);
        return [...data].filter((_, k) => k % 4 == 0).map((grey) => grey / 255);
    })"""
# What the scripts compute, before it becomes a canvas's 256 greys.
COMPUTED = """async ({ data, digit, example, seed }) => {
    const { unpack } = await import("./kit.js");
    const { Capsule } = await import("./moved.js");
    const { readWeights } = await import("./weights.js");
    const { tensors } = readWeights(await (await fetch("data/decoder.safetensors")).arrayBuffer());
    const capsule = new Capsule(unpack(await (await fetch("data.json")).json()));
    capsule.decoder = [1, 2, 3].map((n) =>
        ({ weight: tensors[`fc${n}.weight`], bias: tensors[`fc${n}.bias`] }));
    capsule.turn(seed);
    capsule.take(digit, example);
    const numbers = ({ v, table, axes }) => [[...v], [...table], [...axes]];
    return [[...capsule.draw()], ...numbers(capsule)];
}"""
GREY = 0.6 / 255  # a canvas rounds


@pytest.fixture(scope="module")
def weights(folder: Path) -> Iterator[Decoder]:
    """The decoder that the page gets, in 8 bits."""
    path = folder / "data" / "decoder.safetensors"
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    assert model.decoder is not None
    save_decoder(model.decoder, path)
    tensors, document = read_tensors(path)
    for name in document["int8"]:
        tensors[name] = tensors[name] * tensors.pop(name + SCALE).float()[:, None]
    decoder = Decoder(10, 16, (1, 28, 28))
    decoder.load_state_dict(tensors)
    yield decoder.requires_grad_(False)
    path.unlink()


@pytest.fixture(scope="module")
def data(weights: Decoder) -> dict[str, Any]:
    return found(weights)


def seen(tab: Any) -> Tensor:
    tab.wait_for_function("document.querySelector('.said').textContent.includes('way') == false")
    return torch.tensor(tab.evaluate(SEEN))  # [canvases, 784]


def numbers(tab: Any) -> Tensor:
    """The sixteen sliders."""
    each = tab.locator(".knob:not(.directions *) input")
    return torch.tensor(each.evaluate_all("all => all.map((one) => one.valueAsNumber)"))


def check_drawing(tab: Any, weights: Decoder, v: Tensor) -> None:
    expected = draw(weights, v[None], DIGIT)[0].flatten()
    torch.testing.assert_close(seen(tab)[0], expected, atol=GREY, rtol=0)


def test_drawings_are_those_of_pytorch(
    page_of: Opens, weights: Decoder, data: dict[str, Any]
) -> None:
    tab = page_of("knobs", data)
    for digit, example, seed in ((8, 0, 0), (0, 1, 0), (3, 2, 1), (9, 0, 2)):
        asked = {"digit": digit, "example": example, "seed": seed}
        drawn, v, table, axes = map(Tensor, tab.evaluate(COMPUTED, asked))
        own, rotation = data["capsules"][digit, example], axes.view(16, 16)
        expected = draw(weights, own[None], digit)[0].flatten()
        torch.testing.assert_close(drawn, expected, atol=1e-3, rtol=0)
        torch.testing.assert_close(rotation @ rotation.T, torch.eye(16), atol=1e-5, rtol=0)
        torch.testing.assert_close(v, own @ rotation, atol=1e-5, rtol=0)
        mixed = rotation.T @ data["tables"][digit]
        torch.testing.assert_close(table.view(16, 6), mixed, atol=1e-4, rtol=0)
        assert torch.equal(rotation, torch.eye(16)) == (seed == 0)


def test_sliders_by_keyboard(page_of: Opens, weights: Decoder, data: dict[str, Any]) -> None:
    tab = page_of("knobs", data)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    v = data["capsules"][DIGIT, 0]
    torch.testing.assert_close(numbers(tab), v, atol=0.0051, rtol=0)
    check_drawing(tab, weights, v)
    assert not asked  # no weights before something moves
    tab.locator(".knob input").nth(4).focus()
    for _ in range(20):
        tab.keyboard.press("ArrowRight")
    to = numbers(tab)[4]
    assert 0.18 < to - v[4] < 0.22
    moved = v.clone()
    moved[4] = to
    check_drawing(tab, weights, moved)
    assert len(asked) == 1 and asked[0].endswith("decoder.safetensors")
    assert f"‖v‖ = {moved.norm():.2f}" in tab.locator(".beside output").inner_text()
    check_address(tab, "v=0.0.0.0.")
    tab.get_by_role("button", name="Reset").click()
    check_drawing(tab, weights, v)
    tab.wait_for_function("location.hash === ''")


def test_a_direction_moves_all_numbers(
    page_of: Opens, weights: Decoder, data: dict[str, Any]
) -> None:
    tab = page_of("knobs", data)
    tab.get_by_text("6 directions").click()
    tab.locator(".directions input").nth(1).fill("0.2")
    tab.locator(".directions input").nth(4).fill("-0.1")
    directions = data["directions"][DIGIT]
    moved = data["capsules"][DIGIT, 0] + 0.2 * directions[1] - 0.1 * directions[4]
    check_drawing(tab, weights, moved)
    assert tab.locator(".directions output").all_inner_texts() == [
        "+0.00", "+0.20", "+0.00", "+0.00", "−0.10", "+0.00",
    ]  # fmt: skip
    tab.get_by_text("16 numbers").click()
    torch.testing.assert_close(numbers(tab), moved, atol=0.0051, rtol=0)


def test_turned_axes_keep_the_drawing(
    page_of: Opens, weights: Decoder, data: dict[str, Any]
) -> None:
    tab = page_of("knobs", data)
    before = numbers(tab)
    bars = tab.locator(".knob svg").first.get_attribute("aria-label")
    tab.get_by_role("button", name="Turn the axes").click()
    tab.wait_for_function("document.querySelector('.said').textContent.includes('differs')")
    v = data["capsules"][DIGIT, 0]
    check_drawing(tab, weights, v)
    turned = numbers(tab)
    assert (turned - before).abs().max() > 0.2
    torch.testing.assert_close(turned.norm(), before.norm(), atol=0.03, rtol=0)
    assert tab.locator(".knob svg").first.get_attribute("aria-label") != bars
    said = tab.locator(".said").inner_text()
    assert float(said.split()[-1].rstrip(".")) < 1e-5, said
    # A slider now means what a mixture of all sixteen meant.
    axes = torch.tensor(tab.evaluate(COMPUTED, {"digit": 8, "example": 0, "seed": 1})[3])
    tab.locator(".knob input").first.fill("0.5")
    turned = v @ axes.view(16, 16)
    turned[0] = 0.5
    check_drawing(tab, weights, turned @ axes.view(16, 16).T)


def test_a_walk(page_of: Opens, weights: Decoder, data: dict[str, Any]) -> None:
    for other, example in ((8, 1), (3, 2)):
        tab = page_of("knobs", data, state=f"tab=walk&to={other}.{example}.30")
        one, end = torch.zeros(2, 10, 16)
        one[DIGIT], end[other] = data["capsules"][DIGIT, 0], data["capsules"][other, example]
        one, end = one.flatten(), end.flatten()
        angle = torch.acos(F.cosine_similarity(one, end, dim=0))
        ends = torch.stack([one, end])
        weight = torch.tensor([0.7, 0.3])
        straight = weight @ ends
        on_circle = torch.sin(weight * angle) / torch.sin(angle) @ ends  # both are 0.95 long
        ways = torch.stack([straight, on_circle, one, end]).unflatten(1, (10, 16))
        drawn = weights(ways, torch.ones(4, 10)).flatten(1)
        expected = torch.stack([drawn[0], drawn[1], weight @ drawn[2:]])
        torch.testing.assert_close(seen(tab)[2:], expected, atol=GREY, rtol=0)
        lengths = tab.locator(".ways output").all_inner_texts()
        assert lengths == [f"length {straight.norm():.2f}", "length 0.95", ""]


def test_the_state_comes_back(page_of: Opens, weights: Decoder, data: dict[str, Any]) -> None:
    tab = page_of("knobs", data, state="digit=3.2&turn=2&v=" + ".".join(["50"] * 16))
    assert tab.get_by_role("radio", name="3", exact=True).first.is_checked()
    expected = draw(weights, data["capsules"][3, 2:] + 0.05, 3)[0].flatten()
    torch.testing.assert_close(seen(tab)[0], expected, atol=GREY, rtol=0)
    tab.get_by_role("button", name="another 3").click()
    expected = draw(weights, data["capsules"][3, :1], 3)[0].flatten()
    torch.testing.assert_close(seen(tab)[0], expected, atol=GREY, rtol=0)
    check_address(tab, "digit=3.0", "turn=2")
    nonsense = page_of("knobs", data, state="digit=99.7&turn=x&v=1.2&tab=constructor&to=a")
    check_drawing(nonsense, weights, data["capsules"][DIGIT, 0])


def test_weights_that_do_not_come(page_of: Opens, data: dict[str, Any]) -> None:
    tab = page_of("knobs", data)
    tab.route("**/decoder.safetensors", lambda route: route.abort())
    tab.get_by_role("button", name="Turn the axes").click()
    tab.wait_for_function("document.querySelector('.said').textContent.includes('did not come')")


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, data: dict[str, Any], phone: bool) -> None:
    tab = page_of("knobs", data, phone=phone, state="tab=numbers&turn=1")
    for show in ("16 numbers", "6 directions", "walk"):
        tab.get_by_text(show, exact=True).first.click()
        check_looks(tab)
        if phone:
            check_targets(tab)
