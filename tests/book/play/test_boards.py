"""The mistakes and the switchboard: what is shown is what was chosen."""

from typing import Any

import pytest

from capsnet_book import wild
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS
from helpers.pages import greys

HAS = {name: {d.name for d in made.deviations} for name, made in IMPLEMENTATIONS.items()}
HAS = {name: own for name, own in HAS.items() if own}


def test_a_cell_shows_its_mistakes_and_no_others(page_of: Any, data_of: Any) -> None:
    data = data_of("mistakes")
    answers = data["lengths"].argmax(dim=1).tolist()
    pairs = list(zip(data["labels"], answers, strict=True))
    tab = page_of("mistakes")
    thumbs = tab.locator(".play .thumb:visible")
    assert thumbs.count() == len(pairs)
    assert tab.locator(".play .matrix button").count() == len(set(pairs))
    pair = max(pairs, key=pairs.count)
    cell = tab.get_by_role("button", name=f"{pair[0]} classified as {pair[1]}")
    shown = [n for n, other in enumerate(pairs) if other == pair]
    assert int(cell.inner_text()) == len(shown)
    cell.press("Enter")
    pictures = data["pictures"][0, shown].flatten(1)
    assert greys(tab, ".thumb canvas").mul(255).round().tolist() == pictures.tolist()
    assert greys(tab, ".one > canvas").mul(255).round().tolist() == pictures[:1].tolist()


def test_the_answer_is_shown_after_yours(page_of: Any, data_of: Any) -> None:
    data = data_of("mistakes")
    label, answer = data["labels"][3], int(data["lengths"][3].argmax())
    tab = page_of("mistakes", state="pick=3&pair=")
    shown, said = tab.locator(".play .answer"), tab.locator(".play .one p")
    assert not shown.locator("canvas").first.is_visible() and said.inner_text() == ""
    tab.get_by_role("button", name=f"I would have said {answer}").press("Enter")
    assert said.inner_text() == f"Labelled {label}. The network says {answer}, like you."
    pictures = data["pictures"][1:, 3].flatten(1)
    assert greys(tab, ".answer canvas").mul(255).round().tolist() == pictures.tolist()
    assert shown.locator("figcaption").all_inner_texts() == [f"its {label}", f"its {answer}"]
    heights = [float(bar.get_attribute("height")) for bar in shown.locator("rect").all()]
    assert heights == pytest.approx((78 * data["lengths"][3]).clamp(min=1).tolist(), abs=1e-3)


def test_a_rate_is_said_only_where_it_was_measured(page_of: Any) -> None:
    tab = page_of("bend", state="degrees=30&shear=0.5&size=1&moved=shear")
    said = tab.locator(".play .says", has_text="the graph does not apply")
    said.wait_for()
    assert "% correctly" not in said.inner_text()
    assert tab.locator(".play .plot.aside:visible").count() == 1


def check_on(tab: Any, *names: str) -> None:
    """Check that exactly these deviations are on, and their networks lit, by capsnet_lab.wild."""
    pressed = tab.locator(".play .switches button[aria-pressed=true]").all_inner_texts()
    assert {text.split()[0].rstrip(",") for text in pressed} == set(names)
    assert tab.locator(".play .told > div").count() == len(names)
    having = [name for name, own in HAS.items() if set(names) <= own]
    lit = tab.locator(".play [aria-label=Networks] button:not(.out)").all_inner_texts()
    assert lit == having
    followed = set().union(*(HAS[name] for name in having))
    out = tab.locator(".play .switches button.out").count()
    assert out == len(set(DEVIATIONS) - followed - set(names))


def test_who_has_all_that_is_on(page_of: Any) -> None:
    tab = page_of("switchboard", state="on=softmax-over-children,nonsense,bare-norm")
    check_on(tab, "softmax-over-children", "bare-norm")
    text = tab.locator(".play .told").text_content()
    assert all(line in text for line in wild.diff(DEVIATIONS["bare-norm"]))
    tab.locator(".play .switches button").nth(list(DEVIATIONS).index("leak")).press("Enter")
    check_on(tab, "softmax-over-children", "bare-norm", "leak")
    assert tab.locator(".play .said").inner_text() == "No network has all of these."
    tab.get_by_role("button", name="All off").click()
    check_on(tab)
    network = tab.get_by_role("button", name="cezannec", exact=True)
    network.click()
    check_on(tab, *HAS["cezannec"])
    assert network.get_attribute("aria-pressed") == "true"
    said = tab.locator(".play .said")
    assert said.inner_text().startswith("All of cezannec. Cost together: ")
    assert said.locator("a").get_attribute("href") == IMPLEMENTATIONS["cezannec"].link
