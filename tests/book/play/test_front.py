"""The front page's network: it loads when it is asked, and sees what PyTorch sees on the pad."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet import CapsNet
from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet_book import ledger
from capsnet_book.directions import measure
from capsnet_book.play import front
from helpers.play import check_address, check_looks, check_targets

PageOf = Callable[..., Any]
SEVEN = [(0.3, 0.25), (0.7, 0.25), (0.45, 0.8)]


@pytest.fixture(scope="module", autouse=True)
def files(folder: Path) -> None:
    """As in the built site, but that the paper's network, which takes long, is a broken file."""
    front.save(folder / "data", ["page"])
    path = folder / "data" / front.FILE
    data = json.loads(path.read_text())
    data["networks"]["mnist"] = data["networks"]["page"]
    path.write_text(json.dumps(data))
    (folder / "data" / "mnist.safetensors").write_bytes(b"not there")


@pytest.fixture(scope="module")
def model() -> CapsNet:
    return load_weights(ledger.path("page/weights.safetensors"))[0]


@pytest.fixture
def tab(page_of: PageOf) -> Any:
    return page_of("front")


def draw(tab: Any, points: list[tuple[float, float]]) -> None:
    """A stroke of the mouse, in parts of the pad's sides."""
    box = tab.locator(".pad").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    tab.mouse.move(*places[0])
    tab.mouse.down()
    for place in places[1:]:
        tab.mouse.move(*place, steps=8)
    tab.mouse.up()


def told(tab: Any, what: str) -> str:
    """What the widget says, once it says so."""
    script = "what => RegExp(what).test(document.querySelector('.says').textContent)"
    tab.wait_for_function(script, arg=what, timeout=30_000)
    settled(tab)
    return str(tab.inner_text(".says"))


def settled(tab: Any) -> None:
    """Wait until the newest question is answered."""
    tab.wait_for_selector(".play:not([aria-busy='true'])", timeout=30_000)


def lengths(tab: Any) -> list[float]:
    return [float(text) for text in tab.locator(".bars .value").all_inner_texts()]


def drawing(tab: Any) -> Tensor:
    """The pixels of what the decoder drew, [1, 28, 28]."""
    script = """canvas => [...canvas.getContext("2d").getImageData(0, 0, 28, 28).data]"""
    pixels = tab.locator(".drawn canvas").evaluate(script)
    return torch.tensor(pixels).view(28, 28, 4)[None, :, :, 0] / 255


def seen_by(tab: Any, stroke: list[tuple[float, float]]) -> Tensor:
    """What the network is given of a stroke, by the page's own arithmetic, [1, 1, 28, 28]."""
    script = """async stroke => {
        const { centred, SIDE } = await import("./pad.js");
        return Array.from(centred([stroke.map((at) => at.map((x) => x * SIDE - 0.5))]));
    }"""
    return torch.tensor(tab.evaluate(script, stroke)).view(1, 1, 28, 28)


def test_a_seven_stands_there_and_nothing_is_loaded(tab: Any, model: CapsNet) -> None:
    images = to_float(load("mnist", train=False).images[:1])  # the book's seven
    with torch.no_grad():
        out = model(images)
    assert lengths(tab) == [round(x, 2) for x in out.lengths[0].tolist()]
    torch.testing.assert_close(drawing(tab), out.reconstruction[0], rtol=0, atol=2 / 255)
    assert told(tab, "A 7").endswith(" long.")
    assert tab.workers == []  # which load the weights
    evaluation = ledger.read("page/evaluation.json")
    facts = tab.inner_text(".facts")
    assert f"{evaluation['correct'] / 100:.2f} % of 10,000 test digits" in facts
    assert "1,280,720 weights, 1.3 MB" in facts


def test_lengths_and_drawing_follow_the_mouse(tab: Any, model: CapsNet) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    tab.get_by_role("button", name="Clear").click()
    told(tab, "You drew nothing")
    with torch.no_grad():
        nothing = model(torch.zeros(1, 1, 28, 28)).lengths[0]
    assert lengths(tab) == pytest.approx(nothing.tolist(), abs=0.0051)
    draw(tab, SEVEN)
    assert told(tab, "A 7").endswith("long.")
    image = seen_by(tab, SEVEN)
    with torch.no_grad():
        out = model(image)
    assert lengths(tab) == pytest.approx(out.lengths[0].tolist(), abs=0.02)  # the mouse rounds
    torch.testing.assert_close(drawing(tab), out.reconstruction[0], rtol=0, atol=0.1)
    assert [name for name in asked if name.endswith("safetensors")] == ["page.safetensors"]


def test_a_drawing_is_put_where_mnist_has_its_digits(tab: Any) -> None:
    small, large = (
        [(a * x + b, a * y + b) for x, y in SEVEN] for a, b in ((0.55, 0.4), (1.2, -0.1))
    )
    for stroke in (small, large):
        image = seen_by(tab, stroke)[0, 0]
        mass = image.sum()
        rows, columns = (image.sum(dim=k) @ torch.arange(28.0) / mass for k in (1, 0))
        assert float(rows) == pytest.approx(14, abs=0.1)
        assert float(columns) == pytest.approx(14, abs=0.1)
        ink = (image > 0.1).nonzero()
        assert 18 <= int((ink.max(0).values - ink.min(0).values).max()) <= 20
        assert image.min() == 0 and image.max() == 1
    near, far = seen_by(tab, small), seen_by(tab, large)
    torch.testing.assert_close(near, far, rtol=0, atol=0.01)  # where and how large is no matter


def test_sliders_bend_what_is_drawn(tab: Any) -> None:
    before = measure(drawing(tab))[0]
    names = list(front.SLIDERS)
    for name, of in zip(names, (1, 0, 2), strict=True):  # in the order of PROPERTIES
        slider = tab.get_by_role("slider", name=name)
        slider.focus()
        for _ in range(15):
            slider.press("ArrowRight")
        tab.get_by_text("alone, moved").wait_for()
        settled(tab)
        after = measure(drawing(tab))[0]
        assert after[of] > before[of] + (1 if name == "stroke" else 0.1), name
        for _ in range(15):
            slider.press("ArrowLeft")
        settled(tab)
    torch.testing.assert_close(measure(drawing(tab))[0], before, rtol=0.02, atol=0.02)


def test_digits_by_keyboard_and_the_address(tab: Any, page_of: PageOf, model: CapsNet) -> None:
    tab.get_by_role("button", name="take a 4").focus()
    tab.keyboard.press("Enter")
    told(tab, "A 4")
    assert "a 4" in tab.locator(".pad").get_attribute("aria-label")
    tab.get_by_role("slider", name="slant").fill("-0.2")
    check_address(tab, "digit=4", "slant=-0.2")
    settled(tab)
    bent = drawing(tab)
    other = page_of("front", state=tab.evaluate("location.hash.split('?')[1]"))
    told(other, "A 4")
    other.get_by_text("alone, moved").wait_for()
    assert other.get_by_role("slider", name="slant").input_value() == "-0.2"
    torch.testing.assert_close(drawing(other), bent, rtol=0, atol=2 / 255)
    other.get_by_role("button", name="Reset").click()
    told(other, "A 7")
    other.wait_for_function("() => location.hash === ''")
    assert other.get_by_role("slider", name="slant").input_value() == "0"


def test_only_the_newest_of_waiting_questions_is_asked(tab: Any) -> None:
    answers = tab.evaluate(
        """async () => {
            const { onCall } = await import("./asking.js");
            const ask = onCall("page", 1, () => {});
            const image = (k) => new Float32Array(784).fill(k / 10);
            const late = new Promise((_, no) => setTimeout(() => no("no answer"), 20_000));
            const all = Promise.all([0, 1, 2, 3, 4].map((k) => ask({ look: image(k) })));
            const answers = await Promise.race([all, late]);
            return answers.map((answer) => answer && answer.lengths.length);
        }"""
    )
    assert answers == [10, None, None, None, 10]


def test_after_a_failure_the_next_question_asks_for_the_weights_again(
    tab: Any, folder: Path
) -> None:
    lost = folder / "data/lost.safetensors"
    ask = "ask({ look: new Float32Array(784) }).then((seen) => seen.lengths.length, String)"
    first = tab.evaluate(
        f"""async () => {{
            const {{ onCall }} = await import("./asking.js");
            window.ask = onCall("lost", 1, () => {{}});
            return {ask};
        }}"""
    )
    assert "expected weights at" in first and "got 404" in first
    shutil.copy(folder / "data/page.safetensors", lost)
    assert tab.evaluate(ask) == 10


def test_weights_that_do_not_come_are_told(tab: Any) -> None:
    tab.get_by_text("the paper’s").click()
    assert told(tab, "cannot answer").endswith("expected a safetensors file, got 9 other bytes")
    assert tab.locator(".pad").is_visible()


@pytest.mark.parametrize("phone", [False, True])
def test_it_fits_and_is_accessible(page_of: PageOf, phone: bool) -> None:
    tab = page_of("front", phone=phone)
    tab.get_by_role("button", name="take a 3").click()
    told(tab, "A 3")
    tab.get_by_role("slider", name="width").fill("0.2")
    check_looks(tab)
    if phone:
        check_targets(tab)
