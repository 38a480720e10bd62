"""What holds of every widget: it fits its box, and is legible and accessible, by day and night."""

from typing import Any

from helpers.pages import check_with_axe


def check_looks(tab: Any) -> None:
    """Nothing sticks out of the widget's box or has a fault that axe finds."""
    wide, high = tab.evaluate(
        """() => {
            const stage = document.querySelector(".play");
            return [stage.scrollWidth - stage.clientWidth, stage.scrollHeight - stage.clientHeight];
        }"""
    )
    assert wide <= 0 and high <= 0, f"{wide} px too wide, {high} px too high for its box"
    for theme in ("light", "dark"):
        tab.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
        check_with_axe(tab, "main")


def check_targets(tab: Any) -> None:
    """On a phone whatever is tapped is as high as a finger: 44 px, a button or its label."""
    low = tab.evaluate(
        """() => [...document.querySelectorAll(".play :is(button, .choice label)")]
            .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 43.5)
            .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert low == []


def check_address(tab: Any, *parts: str) -> None:
    """The state is in the address, a moment later."""
    tab.wait_for_function("parts => parts.every((p) => location.hash.includes(p))", arg=[*parts])
