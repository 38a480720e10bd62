"""The reader's own picture on the front page: what is found, both answers, and the failures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet_book import ledger
from capsnet_lab import pictures as reader
from capsnet_lab.pictures import read_picture
from helpers.drawn import KINDS, photographed
from helpers.pages import greys, numbers, settled
from helpers.photographs import LIGHTS, photograph

SHAPE = (1, 28, 28)
FOLDERS = ("page-cnn", "page")
# How a transparent window is told from a transparent ground is left to `capsnet predict`.
PAGES = [kind for kind in KINDS if kind != "card on transparent ground"]
# Finds the digits of pictures as the page does: the pixels, or why there is none.
FIND = """async (names) => {
    const finder = new Worker("./finder.js", { type: "module" });
    const found = [];
    for (const name of names) {
        finder.postMessage(await (await fetch(name)).blob());
        const { data } = await new Promise((resolve) => (finder.onmessage = resolve));
        found.push(data.digit ? [...data.digit.centred.levels] : data.refused);
    }
    finder.terminate();
    return found;
}"""
GIVE = """async ([kind, name]) => {
    const [file, data] = [await (await fetch(name)).blob(), new DataTransfer()];
    data.items.add(new File([file], name, { type: file.type }));
    const stage = document.querySelector(".play");
    if (kind === "drop") stage.dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
    else document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
}"""


def digit(number: int) -> Image.Image:
    return Image.fromarray(load("mnist", train=False).images[number, 0].numpy())


def drawn(kind: str, seed: int) -> Image.Image:
    """A picture of one of the kinds that the ledger counts."""
    random = np.random.default_rng([999, seed])
    sheet, _ = KINDS[kind](random)
    if kind.startswith("photograph"):
        sheet = photographed(random, sheet)
    return Image.fromarray(sheet.clip(0, 255).astype(np.uint8))


def two_digits() -> Image.Image:
    sheet = Image.new("L", (300, 160), "white")
    for k, left in ((0, 10), (1, 150)):
        sheet.paste(ImageOps.invert(digit(k)).resize((140, 140)), (left, 10))
    return sheet


def test_the_limits_are_those_of_the_command(page_of: Any) -> None:
    script = """async () => Object.entries(await import("./picture.js"))
        .filter(([, value]) => typeof value === "number")"""
    limits = dict(page_of("front").evaluate(script))
    assert {name: getattr(reader, name) for name in limits} == limits
    assert len(limits) > 15


def test_a_picture_is_prepared_as_the_command_prepares_it(page_of: Any, folder: Path) -> None:
    pictures = {kind: drawn(kind, 0) for kind in PAGES}
    pictures |= {light: photograph(digit(0), light) for light in LIGHTS}
    ink = digit(4)
    large = ink.resize((280, 280), Image.Resampling.BICUBIC)
    pictures |= {
        "as it is": ink,
        "its negative": ImageOps.invert(ink),
        "soft": large,
        "few pixels": ImageOps.invert(ink.resize((9, 9), Image.Resampling.BOX).resize((112, 112))),
        "yellow": ImageOps.colorize(large, "white", (250, 220, 0)),
        "blank": Image.new("L", (50, 40), "white"),
        "a line of one pixel": Image.new("L", (200, 1), "white"),
        "larger than is looked at": photograph(digit(2), "even light").resize((1200, 900)),
    }
    names = [f"{n}.png" for n in range(len(pictures))]
    for name, picture in zip(names, pictures.values(), strict=True):
        picture.save(folder / name)
    answers = page_of("front").evaluate(FIND, names)
    for name, kind, answer in zip(names, pictures, answers, strict=True):
        try:
            expected = read_picture(folder / name, SHAPE, "digit").flatten().float()
        except ValueError:
            expected = None
        if expected is None:
            assert isinstance(answer, str), f"{kind} is refused by the command"
            continue
        assert not isinstance(answer, str), f"{kind}: {answer}"
        off = (torch.tensor(answer) - expected).abs()
        assert off.mean() < 1, f"{kind}: {off.mean()} of 255"


def found(tab: Any, says: str) -> None:
    """Wait until a picture is read, with this result, and both networks have answered."""
    tab.locator(".told", has_text=says).wait_for()
    settled(tab)
    tab.wait_for_selector(".photo:not([aria-busy='true'])")


@torch.no_grad()
@pytest.mark.parametrize("phone", [False, True])
def test_both_networks_answer_and_what_they_get_wrong_is_kept(
    page_of: Any, folder: Path, phone: bool
) -> None:
    tab = page_of("front", phone=phone)
    assert not any("yours.js" in url for url in tab.asked)  # before somebody wants it
    own = tab.url.partition("/front")[0]
    photograph(digit(0), "the edge of a shadow").save(folder / "seven.png")
    two_digits().save(folder / "two.png")
    tab.get_by_role("button", name="Your picture").click()
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(folder / "seven.png")
    found(tab, "One digit was found")
    image = greys(tab, ".stages canvas >> nth=2").view(1, *SHAPE)
    expected = read_picture(folder / "seven.png", SHAPE, "digit")
    torch.testing.assert_close(image[0], to_float(expected), rtol=0, atol=0.02)
    check_answers(tab, image)
    assert tab.locator(".failures li").count() == 0
    tab.get_by_role("button", name="it is a 7").click()
    assert tab.inner_text(".verdict") == "Both networks are right."
    assert tab.evaluate("localStorage.failures") is None
    tab.get_by_role("button", name="it is a 1", exact=True).click()
    assert tab.locator(".failures li").all_inner_texts() == ["a 1\nCNN: 7, capsules: 7"]

    tab.locator("input[type=file]").set_input_files(folder / "two.png")
    found(tab, "2 figures found where one digit was expected")
    assert tab.inner_text(".says") == tab.inner_text(".cnn") == "nothing, as no digit was found"
    assert numbers(tab, ".bars .value") == [0] * 10
    assert tab.get_by_role("button", name="it is a 1", exact=True).is_disabled()
    assert tab.get_by_label("what was found in the picture").is_visible()

    tab.wait_for_function("location.hash === '#play-front?with=picture'")
    tab = page_of("front", phone=phone, state="with=picture")
    tab.get_by_role("button", name="Look again at a 1").click()
    found(tab, "One of your failures")
    check_answers(tab, image)
    tab.get_by_role("button", name="Empty").click()
    assert tab.locator(".failures li").count() == 0
    assert tab.evaluate("localStorage.failures") is None
    tab.get_by_role("button", name="Draw instead").click()
    torch.testing.assert_close(greys(tab, ".pad").view(image.shape), image, rtol=0, atol=0.01)
    assert all(url.startswith((own, "blob:")) for url in tab.asked)


def check_answers(tab: Any, image: Tensor) -> None:
    plain, capsules = (load_weights(ledger.path(f"{n}/weights.safetensors"))[0] for n in FOLDERS)
    assert tab.inner_text(".cnn").startswith(str(int(plain(image).lengths.argmax())))
    lengths = capsules(image).lengths[0]
    assert numbers(tab, ".bars .value") == pytest.approx(lengths.tolist(), abs=0.02)


@torch.no_grad()
def test_the_photographs_of_a_chapter_are_classified_in_place(
    page_of: Any, data_of: Any, folder: Path
) -> None:
    for name, photo in data_of("yours")["photographs"].items():
        (folder / "photo.jpg").write_bytes(bytes(photo.tolist()))
        image = to_float(read_picture(folder / "photo.jpg", SHAPE, "digit"))[None]
        tab = page_of("yours", state=f"photograph={name}")
        found(tab, "One digit was found")
        shown = greys(tab, ".stages canvas >> nth=2").view(1, *SHAPE)
        assert (shown - image).abs().mean() < 1 / 255, name
        check_answers(tab, shown)
    photograph(digit(3), "even light").save(folder / "zero.png")
    tab.evaluate(GIVE, ["drop", "zero.png"])
    tab.wait_for_function("document.querySelector('.cnn').textContent.startsWith('0')")
    tab.wait_for_function("location.hash === ''")
    assert tab.locator(".bar [aria-pressed=true]").count() == 0
    two_digits().save(folder / "two.png")
    tab.locator("input[type=file]").set_input_files(folder / "two.png")
    found(tab, "2 figures found where one digit was expected")
    assert tab.inner_text(".says") == tab.inner_text(".cnn") == "nothing"


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(page_of: Any, folder: Path, kind: str) -> None:
    photograph(digit(3), "even light").save(folder / "zero.png")
    (folder / "words.png").write_text("no picture")
    tab = page_of("front", state="with=picture" if kind == "paste" else "")
    tab.evaluate(GIVE, [kind, "zero.png"])
    found(tab, "One digit was found")
    assert tab.inner_text(".cnn").startswith("0")
    tab.evaluate(GIVE, [kind, "words.png"])
    found(tab, "This browser cannot read it as a picture")


def test_the_camera_is_looked_through_until_it_is_let_go(page_of: Any) -> None:
    tab = page_of("front", state="with=picture")
    tab.evaluate("localStorage.failures = 'of an older page'")
    first = tab.inner_text(".told")
    tab.get_by_role("button", name="Camera").click()
    tab.get_by_role("button", name="Hold").wait_for()
    tab.wait_for_function(
        "first => document.querySelector('.told').textContent !== first", arg=first
    )
    assert tab.get_by_label("the picture, in grey").is_visible()
    tab.get_by_role("button", name="Hold").click()
    tab.get_by_role("button", name="Camera").wait_for()
    tab = page_of("front", state="with=picture")
    assert tab.locator(".failures li").count() == 0
    tab.evaluate("localStorage.clear()")
