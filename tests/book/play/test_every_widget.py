"""What holds for every widget: its size, contrast, names, targets, keys and address."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from capsnet_book.play import FOLDER
from capsnet_lab.wild import IMPLEMENTATIONS
from helpers.pages import check_with_axe, settled

Opens = Callable[..., Any]
WIDGETS = sorted(path.stem for path in FOLDER.glob("*.css") if path.stem != "play")
EACH = pytest.mark.parametrize("widget", WIDGETS)
LONGEST = max((made.deviations for made in IMPLEMENTATIONS.values()), key=len)
PULLED = "-44,34,-28+-68,-17,-14+-77,-40,-22+-66,-19,-8+40,50,-10+75,-55,60"  # six parts
# The states in which a widget looks different, as the address has them.
STATES = {
    "attacks": ["", "digit=4&against=cnn&epsilon=0.2"],
    "breaks": ["", "change=1", "change=4"],
    "decoder": ["", "digit=5&of=7&length=0.9"],
    "forward": ["", "digit=4&t=12&over=children&vectors=reshape&lambda=0"],
    "front": ["digit=3&width=1&turn=-45", "drawing=", "with=picture"],
    "knobs": ["tab=numbers&turn=1", "tab=directions", "tab=walk"],
    "learn": ["", "over=children&iterations=1"],
    "mistakes": ["pick=3&pair="],
    "parts": ["", "whole=boat"],
    "routing": ["", "t=0", f"parts={PULLED}"],
    "squash": ["", "show=nudge"],
    "switchboard": ["on=" + ",".join(deviation.name for deviation in LONGEST)],
    "through": ["", "child=40&read=reshape"],
    "yours": ["", "photograph=spiral"],
}
# What changes the state of a widget that has no slider; Enter presses it.
BUTTONS = {
    "breaks": ".changes button >> nth=1",
    "mistakes": ".matrix button",
    "switchboard": ".switches button >> nth=5",
    "yours": ".bar button >> nth=3",
}
SLIDER = ".play :is(input[type=range], [role=slider]):visible"
# States that nobody can have sent: a widget takes them for none.
NONSENSE = {
    "attacks": "digit=12&against=toString&epsilon=2",
    "breaks": "change=99",
    "decoder": "digit=12&of=10&length=2",
    "forward": "digit=12&t=99&over=nobody&vectors=toString&lambda=2",
    "knobs": "digit=99.7&turn=x&v=1.2&tab=nowhere&to=a",
    "learn": "rate=7&lambda=2&iterations=4&over=nobody",
    "routing": "votes=1+2&t=99&over=nobody&parts=9,9,9",
    "through": "child=1152&read=toString",
    "yours": "photograph=toString",
}
CONTROLS = """() => [...document.querySelectorAll(".play :is(input, button, [role=slider])")]
    .map((it) => [it.value, it.checked, it.ariaValueText, it.ariaPressed].join())"""
# On a phone whatever is tapped is as high as a finger: 44 px, a button or its label. Ten columns of
# a confusion matrix would not fit with cells as wide.
LOW = """() => [...document.querySelectorAll(".play :is(button, .choice label):not(.matrix *)")]
    .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 43.5)
    .map((each) => each.outerHTML.slice(0, 80))"""
# By how many pixels it is wider and higher than its box, and how many are left below it.
STICKS_OUT = """() => {
    const stage = document.querySelector(".play");
    const end = Math.max(...[...stage.children].map((it) => it.getBoundingClientRect().bottom));
    const left = stage.getBoundingClientRect().bottom - end;
    return [stage.scrollWidth - stage.clientWidth, stage.scrollHeight - stage.clientHeight, left];
}"""
# Words that are too small to read, and those of drawings that run into each other. Numbers on what
# is dragged lie where it lies.
TEXTS = """() => {
    const texts = [...document.querySelectorAll(".play svg text")]
        .filter((it) => it.textContent && it.checkVisibility())
        .map((it) => {
            const size = parseFloat(getComputedStyle(it).fontSize) * it.getScreenCTM().a;
            return { it, says: it.textContent, size, box: it.getBoundingClientRect() };
        });
    const shared = (one, other, from, to) =>
        Math.min(one.box[to], other.box[to]) - Math.max(one.box[from], other.box[from]);
    const meet = (one, other) => one.it.ownerSVGElement === other.it.ownerSVGElement
        && shared(one, other, "left", "right") > 0 && shared(one, other, "top", "bottom") > 4;
    const small = [...document.querySelectorAll(".play *")]
        .filter((it) => it.checkVisibility()
            && [...it.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
        .map((it) => {
            const size = parseFloat(getComputedStyle(it).fontSize);
            return { says: it.textContent, size: size * (it.getScreenCTM?.().a ?? 1) };
        })
        .filter(({ size }) => size < 11);
    const still = texts.filter(({ it }) => !it.closest(".number"));
    return [
        ...small.map(({ says, size }) => `${says}: ${size.toFixed(1)} px`),
        ...still.flatMap((one, k) => still.slice(k + 1).filter((other) => meet(one, other))
            .map((other) => `${one.says} meets ${other.says}`)),
    ];
}"""
# The controls that the Tab key did not reach; of radio buttons it reaches one.
MISSED = """() => {
    const reached = [...document.querySelectorAll("[data-reached]")];
    const groups = new Set(reached.map((it) => it.name).filter(Boolean));
    return [...document.querySelectorAll(".play :is(a[href], button, input, [role=slider])")]
        .filter((it) => it.checkVisibility() && !it.disabled && !reached.includes(it))
        .filter((it) => it.type !== "radio" || !groups.has(it.name))
        .map((it) => it.outerHTML.slice(0, 120));
}"""
# Where its parts stand, but for one that follows the page.
PLACES = """() => [...document.querySelectorAll(".play > *, .play li:not(.thumbs *)")]
    .filter((it) => getComputedStyle(it).position !== "sticky")
    .map((it) => Math.round(it.getBoundingClientRect().top + scrollY))"""
FOCUSED = """() => {
    const here = document.activeElement;
    if (!here.closest(".play") || "reached" in here.dataset) return false;
    here.dataset.reached = "";
    return true;
}"""


@EACH
def test_what_its_style_names_is_made_by_a_script(widget: str) -> None:
    rules = re.sub(
        r"/\*.*?\*/|\{[^{}]*\}", " ", (FOLDER / f"{widget}.css").read_text("utf-8"), flags=re.S
    )
    scripts = "".join(file.read_text("utf-8") for file in FOLDER.glob("*.js"))
    known = {*re.findall(r"[\w-]+", scripts)}
    made = {
        name
        for name in re.findall(r"\.([a-z][\w-]*)", rules)
        if not re.match("tag_|play|of-|by-", name)
    }
    assert made <= known


@EACH
def test_it_fits_its_box_and_is_accessible_by_day_and_night(page_of: Opens, widget: str) -> None:
    for state in STATES.get(widget, [""]):
        for phone in (False, True):
            tab = settled(page_of(widget, phone=phone, state=state))
            if widget == "mistakes":
                tab.locator(".play .ask button").last.click()
            for width in [390] if phone else [1280, 1440]:  # from 1440 on some take more room
                tab.set_viewport_size({"width": width, "height": 900})
                wide, high, left = tab.evaluate(STICKS_OUT)
                assert wide <= 0 and high <= 0, f"{wide} px too wide, {high} px too high: {width}"
                assert left < 60, f"{left} px of its box are empty: {width}"
                assert tab.evaluate(TEXTS) == []
            if phone:
                assert tab.evaluate(LOW) == []
                continue
            check_with_axe(tab, "main")
            tab.evaluate("document.documentElement.dataset.theme = 'dark'")
            check_with_axe(tab, "main", runOnly=["color-contrast"])


# A picture of the reader's own takes the room that it needs.
@pytest.mark.parametrize("widget", [name for name in WIDGETS if name not in ("front", "yours")])
def test_nothing_moves_when_a_button_is_pressed(page_of: Opens, widget: str) -> None:
    for phone in (False, True):
        tab = settled(page_of(widget, phone=phone))
        places = tab.evaluate(PLACES)
        for button in tab.locator(".play button:visible:not(.matrix *)").all():
            if button.is_enabled():
                button.click()
                assert settled(tab).evaluate(PLACES) == places, button.inner_text()


@EACH
def test_the_keyboard_reaches_and_the_address_keeps_its_state(page_of: Opens, widget: str) -> None:
    tab = settled(page_of(widget))
    tab.keyboard.press("Tab")
    while tab.evaluate(FOCUSED):
        tab.keyboard.press("Tab")
    assert tab.evaluate(MISSED) == []
    first = tab.evaluate(CONTROLS)
    key = "Enter" if widget in BUTTONS else "ArrowRight"
    tab.locator(BUTTONS.get(widget, SLIDER)).first.press(key)
    tab.wait_for_function("location.hash.includes('?')")
    settled(tab)
    changed = tab.evaluate(CONTROLS)
    assert changed != first
    settled(page_of(widget, state=tab.evaluate("location.hash.split('?')[1]")))
    assert tab.evaluate(CONTROLS) == changed
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("location.hash === ''")
    assert settled(tab).evaluate(CONTROLS) == first
    if widget in NONSENSE:
        assert settled(page_of(widget, state=NONSENSE[widget])).evaluate(CONTROLS) == first
