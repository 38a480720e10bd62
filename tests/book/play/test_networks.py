"""The networks of the pages load when they are asked, and compute what PyTorch computes."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet import CapsNet
from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.functional import margin_loss, squash
from capsnet_book import ledger
from capsnet_book.affnist import bend, matrix
from capsnet_book.directions import handwriting, reconstruct
from capsnet_book.play import front
from helpers.pages import SEVEN, drag, draw_seven, greys, middle, numbers, settled

LENGTHS = ".bars .value"


def network(name: str) -> CapsNet:
    return load_weights(ledger.path(f"{name}/weights.safetensors"))[0]


def answer(tab: Any, what: str) -> str:
    """What the widget says, once it says so and the newest question is answered."""
    script = "what => RegExp(what).test(document.querySelector('.says').textContent)"
    tab.wait_for_function(script, arg=what)
    settled(tab)
    return str(tab.inner_text(".says"))


def reconstruction(tab: Any) -> Tensor:
    """The pixels of what the front page's decoder drew, [1, 28, 28]."""
    return greys(tab, ".drawn canvas").view(1, 28, 28)


def seen_by(tab: Any, stroke: list[tuple[float, float]]) -> Tensor:
    """What the network is given of a stroke, by the page's own arithmetic, [1, 1, 28, 28]."""
    script = """async stroke => {
        const { centred, SIDE } = await import("./pad.js");
        return Array.from(centred([stroke.map((at) => at.map((x) => x * SIDE - 0.5))]));
    }"""
    return torch.tensor(tab.evaluate(script, stroke)).view(1, 1, 28, 28)


def last_drawn(tab: Any) -> list[list[tuple[float, float]]]:
    """What was drawn last, point by point, as the browser keeps it, in parts of the pad."""
    script = """async () => {
        const { lastDrawn, strokesOf, SIDE } = await import("./pad.js");
        const inParts = (at) => at.map((x) => (x + 0.5) / SIDE);
        return strokesOf(lastDrawn()).map((stroke) => stroke.map(inParts));
    }"""
    found: list[list[tuple[float, float]]] = tab.evaluate(script)
    return found


def check_cnn(tab: Any, images: Tensor) -> None:
    """The front page's CNN names the digit that PyTorch finds, with its probability in percent."""
    chance, digit = network("page-cnn")(images).lengths[0].softmax(dim=0).max(dim=0)
    named, percent = re.findall(r"\d+", tab.inner_text(".cnn"))
    assert int(named) == digit
    assert int(percent) == pytest.approx(100 * chance.item(), abs=1.1)  # rounded, "over 99"


@torch.no_grad()
def test_both_networks_say_what_is_drawn_on_the_front_page(page_of: Any) -> None:
    tab, model = page_of("front"), network("page")
    image = to_float(load("mnist", train=False).images[:1])  # the book's seven
    out = model(image)
    assert numbers(tab, LENGTHS) == [round(x, 2) for x in out.lengths[0].tolist()]
    torch.testing.assert_close(reconstruction(tab), out.reconstruction[0], rtol=0, atol=2 / 255)
    check_cnn(tab, image)
    assert tab.workers == []  # which load the weights
    for name in front.FOLDERS:
        correct = ledger.read(f"{name}/evaluation.json")["correct"]
        assert f"{correct / 100:.2f} %" in tab.inner_text(".facts")
    tab.get_by_role("button", name="Clear").click()
    answer(tab, "draw something")
    assert "Of the empty field" in tab.inner_text(".sure")
    nothing = model(torch.zeros(1, 1, 28, 28)).lengths[0]
    assert numbers(tab, LENGTHS) == pytest.approx(nothing.tolist(), abs=0.0051)
    draw_seven(tab)
    answer(tab, "^7, leaning")
    image = seen_by(tab, *last_drawn(tab))
    out = model(image)
    assert numbers(tab, LENGTHS) == pytest.approx(out.lengths[0].tolist(), abs=0.02)  # rounded
    check_cnn(tab, image)
    torch.testing.assert_close(reconstruction(tab), out.reconstruction[0], rtol=0, atol=0.1)
    tab.get_by_role("slider", name="turn my digit").fill("40")
    answer(tab, ".")
    turned = bent(image, 40, 0, 1)
    lengths = model(turned).lengths[0].tolist()
    assert numbers(tab, LENGTHS) == pytest.approx(lengths, abs=0.02)
    check_cnn(tab, turned)


@torch.no_grad()
@pytest.mark.parametrize("over", ["parents", "children"])
@pytest.mark.parametrize("vectors", ["permute", "reshape"])
def test_a_digit_goes_through_the_whole_network(page_of: Any, over: str, vectors: str) -> None:
    tab, model = (
        page_of("forward", state=f"digit=2&t=15&over={over}&vectors={vectors}"),
        network("page"),
    )
    image = greys(tab, ".pad").view(1, 1, 28, 28)
    maps = model.primary.conv(F.relu(model.conv(image)))
    u = (
        model.primary(F.relu(model.conv(image)))
        if vectors == "permute"
        else squash(maps.view(1, -1, 8))
    )
    u_hat = torch.einsum("nik,ijkd->nijd", u, model.digits.weight)
    b = torch.zeros(u_hat.shape[:3])
    for _ in range(4):
        v = squash(torch.einsum("nij,nijd->njd", b.softmax(2 if over == "parents" else 1), u_hat))
        b = b + torch.einsum("nijd,njd->nij", u_hat, v)
    lengths = v.norm(dim=2)[0]
    assert numbers(tab, LENGTHS) == pytest.approx(lengths.tolist(), abs=0.0051)
    longest = int(lengths.argmax())
    agreeing = int(((u_hat * v[:, None]).sum(3)[0, :, longest] > 0).sum())
    assert tab.inner_text(".said").startswith(f"{agreeing} of 288 votes")
    assert ("dim=1" in tab.inner_text(".listing")) == (over == "children")


def test_down_weight_changes_the_loss_and_leads_to_where_a_network_learns(page_of: Any) -> None:
    tab = page_of(
        "forward", state="digit=9&t=1"
    )  # after one iteration no length is near its margin
    before = numbers(tab, LENGTHS)
    for name, down_weight in (("0.5", 0.5), ("0", 0.0), ("1", 1.0)):
        tab.get_by_label(name, exact=True).last.check()
        assert numbers(tab, LENGTHS) == before
        loss = margin_loss(torch.tensor([before]), torch.tensor([9]), down_weight=down_weight)
        said = re.search(r"For a 9, the loss .* is ([\d.]+)\. ", tab.inner_text(".trained"))
        assert float(said[1]) == pytest.approx(loss.item(), abs=0.01)  # of rounded lengths
        target = tab.locator(".trained a").get_attribute("href")
        assert target == f"training.html#play-learn?lambda={name}"
    learn = page_of("learn", state=target.partition("?")[2])
    assert learn.get_by_role("slider", name="λ").input_value() == "1"


@torch.no_grad()
def test_a_capsule_is_decoded_at_any_length(page_of: Any) -> None:
    tab, model = page_of("decoder", state="digit=5&of=7"), network("page")
    v = model.encode(greys(tab, ".pad").view(1, 1, 28, 28))
    lengths, every = v.norm(dim=2), torch.arange(10)
    assert numbers(tab, ".thumbs output") == pytest.approx(lengths[0].tolist(), abs=0.0051)
    decoded = model.decoder(v.expand(10, 10, 16), every).flatten(1)
    torch.testing.assert_close(greys(tab, ".thumbs canvas"), decoded, rtol=0, atol=2 / 255)
    tab.get_by_role("slider", name="length").fill("0.9")
    stretched = 0.9 * v / lengths.unsqueeze(2)
    decoded = model.decoder(stretched, torch.tensor([7]))
    again = model.encode(decoded).norm(dim=2)[0]
    said = answer(tab, "answers 7, with")
    assert float(said.rstrip(".").split()[-1]) == pytest.approx(again[7].item(), abs=0.01)
    torch.testing.assert_close(
        greys(tab, "figure canvas")[1], decoded.flatten(), rtol=0, atol=2 / 255
    )


@torch.no_grad()
def test_a_short_capsule_is_seldom_its_digit_when_it_is_stretched() -> None:
    model, some = network("page"), load("mnist", train=False).subset(slice(50))
    v = model.encode(to_float(some.images))
    stretched = (0.9 * v / v.norm(dim=2, keepdim=True)).repeat_interleave(10, dim=0)
    every = torch.arange(10).repeat(50)
    again = model.encode(model.decoder(stretched, every)).norm(dim=2).argmax(dim=1)
    short = every != some.labels.repeat_interleave(10)
    right = (again == every)[short & (v.norm(dim=2).flatten() < 0.3)].float().mean()
    assert 1 / 6 < right < 1 / 4  # "seldom": about one in five
    assert (again == every)[~short].float().mean() > 0.9


def test_one_step_moves_a_digit_and_both_networks_answer(page_of: Any, data_of: Any) -> None:
    data, some = data_of("attacks"), {"cnn": network("page-cnn"), "capsules": network("page")}
    images, right = to_float(data["images"])[:, None], torch.eye(10, dtype=torch.bool)
    fooled = torch.zeros(2, 2, 10, dtype=torch.bool)  # gradient, network, digit
    for n, (name, one) in enumerate(some.items()):
        x = images.clone().requires_grad_()
        scores = one(x).lengths
        lead = scores.masked_fill(right, -torch.inf).amax(1) - scores.diagonal()
        (gradient,) = torch.autograd.grad(lead.sum(), x)
        sign = data["signs"][name].float()[:, None]
        assert (sign == gradient.sign()).float().mean() > 0.99  # one is tiny, here and there
        for epsilon in torch.arange(31) / 100:
            with torch.no_grad():
                moved = (images + epsilon * sign).clamp(0, 1)
                answers = torch.stack([each(moved).lengths.argmax(1) for each in some.values()])
            fooled[n] |= answers != torch.arange(10)
    assert fooled[0, 0].all() and fooled[1, 1].all()
    assert 0.7 < (fooled[0, 1].sum() + fooled[1, 0].sum()) / 20 < 0.9  # "usually"
    tab = page_of("attacks", state="digit=4&against=cnn")
    tab.get_by_role("slider", name="ε").fill("0.2")
    said = answer(tab, "At ε = 0.20")
    moved = (images[4:5] + 0.2 * data["signs"]["cnn"].float()[4, None, None]).clamp(0, 1)
    torch.testing.assert_close(greys(tab)[1], moved.flatten(), rtol=0, atol=1 / 255)
    with torch.no_grad():
        scores = [each(moved).lengths[0] for each in some.values()]
    shown = torch.tensor(numbers(tab, LENGTHS)).view(2, 10)
    expected = torch.stack([scores[0].softmax(0), scores[1]])
    torch.testing.assert_close(shown, expected, rtol=0, atol=0.0061)
    cnn, capsules = (int(each.argmax()) for each in scores)
    wrong = [", which is wrong" * (each != 4) for each in (cnn, capsules)]
    expected = f"the CNN answers {cnn}{wrong[0]}, and the capsules answer {capsules}{wrong[1]}."
    assert said == f"At ε = 0.20 {expected}"


def test_what_was_drawn_on_the_front_page_goes_along(page_of: Any) -> None:
    tab = page_of("front")
    draw_seven(tab)
    answer(tab, "^7, leaning")
    drawn, lengths = greys(tab, ".pad"), numbers(tab, LENGTHS)
    tab = page_of("forward")
    torch.testing.assert_close(greys(tab, ".pad"), drawn)
    assert numbers(tab, LENGTHS) == pytest.approx(lengths, abs=0.011)
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("location.hash.includes('digit=7')")
    seven = greys(tab, ".pad")
    assert not torch.equal(seven, drawn)
    tab.reload()
    tab.wait_for_selector("body[data-ready]", state="attached")
    torch.testing.assert_close(greys(tab, ".pad"), seven)
    tab.evaluate("localStorage.clear()")


@torch.no_grad()
def test_how_a_digit_was_written_is_read_out_and_bent(page_of: Any) -> None:
    read = ledger.read("page/handwriting.json")
    for digit in (2, 7):
        tab = page_of("front", state=f"digit={digit}")
        said = answer(tab, f"^{digit}, ")
        v = network("page")(greys(tab, ".pad").view(1, 1, 28, 28)).capsules[0, digit]
        measured = torch.tensor(read["fit"])[digit].T @ torch.cat([v, torch.ones(1)])
        sliders = [tab.get_by_role("slider", name=name) for name in front.SLIDERS]
        shown = [float(slider.input_value()) for slider in sliders]
        assert shown == pytest.approx(measured.tolist(), abs=0.6)  # a slider moves in steps
        low, high = read["quartiles"][digit]
        far = "further left than" if measured[0] < low[0] else "like"
        far = "further right than" if measured[0] > high[0] else far
        assert f"leaning {far} most {digit}s" in said
        for k, words in ((1, ("narrow", "wide")), (2, ("thin", "thick"))):
            expected = [bool(measured[k] < low[k]), bool(measured[k] > high[k])]
            assert [f", {word}" in said for word in words] == expected
        before = handwriting(reconstruction(tab))[0]
        for k, slider in enumerate(sliders):
            slider.press("End")
            tab.get_by_text("alone, moved").wait_for()
            settled(tab)
            assert handwriting(reconstruction(tab))[0, k] > before[k] + 0.2, k
            slider.fill(str(shown[k]))


def test_a_stroke_is_put_where_mnist_has_its_digits(page_of: Any) -> None:
    tab = page_of("front")
    images = [
        seen_by(tab, [(a * x + b, a * y + b) for x, y in SEVEN])[0, 0]
        for a, b in ((0.55, 0.4), (1.2, -0.1))
    ]
    for image in images:
        mass = image.sum()
        rows, columns = (image.sum(dim=k) @ torch.arange(28.0) / mass for k in (1, 0))
        assert [float(rows), float(columns)] == pytest.approx([14, 14], abs=0.1)
        ink = (image > 0.1).nonzero()
        assert 18 <= int((ink.max(0).values - ink.min(0).values).max()) <= 20
    torch.testing.assert_close(*images, rtol=0, atol=0.01)  # where and how large is no matter


def test_only_the_newest_question_is_asked_and_a_failure_is_no_end(
    page_of: Any, folder: Path
) -> None:
    tab = page_of("front")
    answers = tab.evaluate(
        """async () => {
            const { onCall } = await import("./asking.js");
            window.ask = onCall("lost", 1, () => {});
            const ask = onCall("page", 1, () => {});
            const image = (k) => new Float32Array(784).fill(k / 10);
            const answers = await Promise.all([0, 1, 2, 3, 4].map((k) => ask({ look: image(k) })));
            return answers.map((answer) => answer && answer.lengths.length);
        }"""
    )
    assert answers == [10, None, None, None, 10]
    ask = "ask({ look: new Float32Array(784) }).then((seen) => seen.lengths.length, String)"
    assert "got 404" in tab.evaluate(ask)
    shutil.copy(folder / "data/page.safetensors", folder / "data/lost.safetensors")
    assert tab.evaluate(ask) == 10
    (folder / "data/lost.safetensors").write_bytes(b"not there")
    broken = """async () => {
        const { onCall } = await import("./asking.js");
        return onCall("lost", 1, () => {})({ look: new Float32Array(784) }).catch(String);
    }"""
    assert tab.evaluate(broken).endswith("expected a safetensors file, got 9 other bytes")


def bent(image: Tensor, degrees: float, shear: float, size: float) -> Tensor:
    """As the chapter bends an image, [1, 1, 28, 28]."""
    return bend(image, matrix(degrees, shear, size, size))


@torch.no_grad()
def test_a_digit_is_bent_as_the_chapter_bends_it(page_of: Any, data_of: Any) -> None:
    tab, data = page_of("bend"), data_of("bend")
    image = to_float(data["digits"][7][None, None])
    for change in [(0, 0, 1), (20, 0.2, 1), (-45, -0.7, 0.6), (3, 1, 1.4)]:
        found = tab.evaluate(
            """async ([image, change]) => {
                const { bend, matrix } = await import("./warp.js");
                return [...bend(image, matrix(...change))];
            }""",
            [image.flatten().tolist(), change],
        )
        expected = bent(image, *change).flatten()
        torch.testing.assert_close(torch.tensor(found), expected, atol=1e-4, rtol=0)
    tab.get_by_label("turn", exact=True).fill("30")
    said = answer(tab, "The network classifies it")
    out = network("page")(bent(image, 30, 0, 1)).lengths[0]
    assert numbers(tab, LENGTHS) == pytest.approx(out.tolist(), abs=0.0061)
    rate = np.interp(30, data["amounts"]["degrees"], data["accuracy"]["degrees"])
    assert f"classifies it as a {int(out.argmax())}" in said
    assert f"{100 * rate:.0f} % correctly" in said


@torch.no_grad()
def test_two_dragged_digits_are_named_as_pytorch_names_them(page_of: Any, data_of: Any) -> None:
    tab, digits = page_of("pairs"), data_of("pairs")["digits"][:, 0] / 255
    canvas = tab.locator("canvas").first
    (x, y), pixel = middle(canvas), canvas.bounding_box()["width"] / 36
    drag(tab, (x, y), (x + 2 * pixel, y - 3 * pixel))  # from 2 to the right to 4
    image = torch.zeros(36, 36)
    image[4:32, 4:32] += digits[4]
    image[1:29, 8:36] += digits[6]
    model = network("multimnist")
    v = model.encode(image.clamp(max=1)[None, None])
    norms = v.norm(dim=2)[0]
    # The lengths may still be those of the place before: the last answer comes last.
    tab.wait_for_function(
        "want => Math.abs(Number(document.querySelectorAll('.bars .value')[4].textContent) - want)"
        " < 0.0061",
        arg=norms[4].item(),
    )
    assert "names 4 (green) and 6 (magenta)" in answer(tab, "names")
    assert numbers(tab, LENGTHS) == pytest.approx(norms.tolist(), abs=0.0061)
    expected = model.decoder(v, torch.tensor([4]))[0, 0].flatten()
    torch.testing.assert_close(greys(tab)[1], expected, atol=0.006, rtol=0)


@torch.no_grad()
def test_the_numbers_of_a_capsule_are_moved_among_any_axes(page_of: Any, data_of: Any) -> None:
    tab, data, decoder = page_of("knobs"), data_of("knobs"), network("mnist").decoder
    digit = data["digit"]
    knobs = tab.locator(".knob:not(.directions *) input")

    def check(v: Tensor) -> None:
        tab.wait_for_function("!document.querySelector('.said').textContent.includes('Loading')")
        expected = reconstruct(decoder, v[None], digit)[0].flatten()
        torch.testing.assert_close(greys(tab)[0], expected, atol=2 / 255, rtol=0)

    def positions() -> Tensor:
        return torch.tensor(knobs.evaluate_all("all => all.map((one) => one.valueAsNumber)"))

    v = data["capsules"][digit, 0].clone()
    torch.testing.assert_close(positions(), v, atol=0.0051, rtol=0)
    check(v)
    assert not any(url.endswith(".safetensors") for url in tab.asked)  # before something moves
    tab.asked.clear()
    knobs.nth(4).fill("0.2")
    v[4] = 0.2
    check(v)
    assert [url.rpartition("/")[2] for url in tab.asked] == ["decoder.safetensors"]
    tab.get_by_role("button", name="Reset").click()
    tab.get_by_text("6 directions").click()
    tab.locator(".directions input").nth(1).fill("0.2")
    v = data["capsules"][digit, 0] + 0.2 * data["directions"][digit][1].float()
    check(v)
    tab.get_by_role("button", name="Turn the axes").click()
    tab.wait_for_function("document.querySelector('.said').textContent.includes('differs')")
    check(v)  # the same image, from other numbers
    assert (positions() - v).abs().max() > 0.2
    assert float(tab.locator(".said").inner_text().split()[-1].rstrip(".")) < 1e-5
    torch.testing.assert_close(positions().norm(), v.norm(), atol=0.03, rtol=0)


@torch.no_grad()
def test_a_walk_from_a_capsule_to_another(page_of: Any, data_of: Any) -> None:
    data, decoder = data_of("knobs"), network("mnist").decoder
    for other, example in ((data["digit"], 2), (3, 2)):
        tab = page_of("knobs", state=f"tab=walk&to={other}.{example}.30")
        tab.wait_for_function("document.querySelector('.said').textContent === ''")
        ends = torch.zeros(2, 10, 16)
        ends[0, data["digit"]] = data["capsules"][data["digit"], 0]
        ends[1, other] = data["capsules"][other, example]
        angle = torch.acos(F.cosine_similarity(*ends.flatten(1), dim=0))
        weight = torch.tensor([0.7, 0.3])
        norms = ends.flatten(1).norm(dim=1)  # which change evenly, as the direction does
        on_circle = weight @ norms * torch.sin(weight * angle) / torch.sin(angle) / norms
        ways = torch.stack([torch.einsum("w,wkd->kd", each, ends) for each in (weight, on_circle)])
        drawn = decoder(torch.cat([ways, ends]), torch.ones(4, 10)).flatten(1)
        expected = torch.stack([drawn[0], drawn[1], weight @ drawn[2:]])
        torch.testing.assert_close(greys(tab)[2:], expected, atol=2 / 255, rtol=0)
