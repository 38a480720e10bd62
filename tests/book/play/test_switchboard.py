"""The switchboard in the page: who has all that is on, and what each of it changes and costs."""

from collections.abc import Callable
from typing import Any

import pytest

from capsnet_book import wild
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
COST = "+0.12 ± 0.05 points, 5 seeds"
BOARD = wild.board({"unit-w": COST, "all of cezannec": COST})
HAS = {name: {d.name for d in made.deviations} for name, made in IMPLEMENTATIONS.items()}
HAS = {name: own for name, own in HAS.items() if own}


def switch(tab: Any, name: str) -> Any:
    return tab.locator(".play .switches button").nth(list(DEVIATIONS).index(name))


def check_on(tab: Any, *names: str) -> None:
    """What is on, told of and lit is what these deviations make of it, by capsnet_lab.wild."""
    pressed = tab.locator(".play .switches button[aria-pressed=true]").all_inner_texts()
    assert {text.split()[0].rstrip(",") for text in pressed} == set(names)
    told = tab.locator(".play .told > div")
    assert told.count() == len(names)
    for name in names:
        text = told.filter(has_text=f"{name} {DEVIATIONS[name].code}").text_content()
        assert all(line in text for line in wild.diff(DEVIATIONS[name]))
    having = [name for name, own in HAS.items() if set(names) <= own]
    lit = tab.locator(".play [aria-label=Networks] button:not(.out)").all_inner_texts()
    assert lit == having
    followed = set().union(*(HAS[name] for name in having))
    out = tab.locator(".play .switches button.out").count()
    assert out == len(set(DEVIATIONS) - followed - set(names))


def test_who_has_all_that_is_on(page_of: Opens) -> None:
    tab = page_of("switchboard", BOARD)
    check_on(tab, "softmax-over-children")
    switch(tab, "bare-norm").click()
    check_on(tab, "softmax-over-children", "bare-norm")
    said = tab.locator(".play .said")
    names = ", ".join(n for n, own in HAS.items() if {"softmax-over-children", "bare-norm"} <= own)
    assert said.inner_text().endswith(f"of {len(HAS)}: {names}.")
    switch(tab, "leak").press("Enter")
    check_on(tab, "softmax-over-children", "bare-norm", "leak")
    assert said.inner_text() == "No network has all of these."
    check_address(tab, "softmax-over-children", "bare-norm", "leak")
    tab.get_by_role("button", name="All off").click()
    check_on(tab)
    tab.get_by_role("button", name="Reset").click()
    check_on(tab, "softmax-over-children")
    tab.wait_for_function("location.hash == ''")


def test_all_of_a_network(page_of: Opens) -> None:
    tab = page_of("switchboard", BOARD)
    network = tab.get_by_role("button", name="cezannec", exact=True)
    network.click()
    check_on(tab, *HAS["cezannec"])
    assert network.get_attribute("aria-pressed") == "true"
    said = tab.locator(".play .said")
    assert said.inner_text() == f"All of cezannec. Cost together: {COST}."
    assert said.locator("a").get_attribute("href") == IMPLEMENTATIONS["cezannec"].link
    told = tab.locator(".play .told")
    assert told.get_by_text(f"Cost: {COST}.").count() == 1
    assert told.get_by_text(f"Cost: {wild.NOT_ALONE}.").count() == len(HAS["cezannec"]) - 1
    network.click()
    check_on(tab)


def test_a_finding_can_be_sent(page_of: Opens) -> None:
    tab = page_of("switchboard", BOARD, state="on=leak,nonsense,digit-bias")
    check_on(tab, "leak", "digit-bias")


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, phone: bool) -> None:
    tab = page_of("switchboard", BOARD, phone=phone)
    longest = max(HAS, key=lambda name: len(HAS[name]))
    tab.get_by_role("button", name=longest, exact=True).click()
    check_looks(tab)
    if phone:
        check_targets(tab)
