"""The mistakes in the page: those of a cell of the confusion matrix, and what the network saw."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from helpers.play import check_address, check_looks

Opens = Callable[..., Any]
# True digit and answer of each mistake, the number of which is small, as a network's.
PAIRS = [(4, 9), (5, 3), (4, 9), (7, 2), (0, 6), (5, 3), (4, 9), (4, 6)]
PIXELS = """canvas => [...canvas.getContext("2d").getImageData(0, 0, 28, 28).data]
    .filter((_, k) => k % 4 == 0)"""


def mistakes() -> dict[str, Any]:
    lengths = 0.4 * torch.rand(len(PAIRS), 10)
    for row, (true, said) in zip(lengths, PAIRS, strict=True):
        row[true], row[said] = 0.5, 0.75
    pictures = torch.randint(256, (3, len(PAIRS), 784), dtype=torch.uint8)
    labels = [true for true, _ in PAIRS]
    return {"pictures": pictures, "labels": labels, "lengths": lengths.half()}


def check_canvas(canvas: Any, pixels: Tensor) -> None:
    assert canvas.evaluate(PIXELS) == pixels.tolist()


def test_a_cell_shows_its_mistakes_and_no_others(page_of: Opens) -> None:
    data = mistakes()
    tab = page_of("mistakes", data)
    thumbs = tab.locator(".play .thumb:visible")
    assert thumbs.count() == len(PAIRS)
    cells = tab.locator(".play .matrix button")
    assert cells.count() == len(set(PAIRS))
    for true, said in set(PAIRS):
        cell = tab.get_by_role("button", name=f"{true} taken for {said}")
        assert int(cell.inner_text()) == PAIRS.count((true, said))
        cell.press("Enter")
        shown = [n for n, pair in enumerate(PAIRS) if pair == (true, said)]
        assert thumbs.count() == len(shown)
        for n, thumb in zip(shown, thumbs.all(), strict=True):
            check_canvas(thumb.locator("canvas"), data["pictures"][0, n])
        check_canvas(tab.locator(".play .one > canvas"), data["pictures"][0, shown[0]])
    tab.get_by_role("button", name="Show all").click()
    assert thumbs.count() == len(PAIRS)
    tab.wait_for_function("location.hash == ''")


def test_the_answer_is_shown_after_yours(page_of: Opens) -> None:
    data = mistakes()
    tab = page_of("mistakes", data, state="pick=3&pair=")
    answer, told = tab.locator(".play .answer"), tab.locator(".play .one p")
    assert not answer.locator("canvas").first.is_visible() and told.inner_text() == ""
    assert tab.locator(".play .ask button").all_inner_texts() == ["2", "7"]
    mine = tab.get_by_role("button", name="I would have said 2")
    mine.press("Enter")
    assert mine.evaluate("button => button === document.activeElement")
    assert told.inner_text() == "Labelled 7. The network says 2, like you."
    for k, canvas in enumerate(answer.locator("canvas").all()):
        check_canvas(canvas, data["pictures"][1 + k, 3])
    assert answer.locator("figcaption").all_inner_texts() == ["its 7", "its 2"]
    bars = answer.locator("svg").get_attribute("aria-label")
    assert bars.startswith(f"Lengths: 0: {data['lengths'][3, 0]:.2f}, 1: ")
    heights = [float(bar.get_attribute("height")) for bar in answer.locator("rect").all()]
    expected = (78 * data["lengths"][3].float()).clamp(min=1)
    assert heights == pytest.approx(expected.tolist(), abs=1e-3)
    tab.get_by_role("button", name="Mistake 1", exact=True).click()
    assert not answer.locator("canvas").first.is_visible()
    tab.get_by_role("button", name="I would have said 4").click()
    score = tab.locator(".play .all p").last
    assert score.inner_text().endswith("agree on 1 of 2.")
    tab.get_by_role("button", name="Reset").click()
    tab.wait_for_function("location.hash == ''")
    assert score.inner_text() == told.inner_text() == ""


def test_a_finding_can_be_sent(page_of: Opens) -> None:
    tab = page_of("mistakes", mistakes())
    tab.get_by_role("button", name="5 taken for 3").click()
    check_address(tab, "pair=53", "pick=1")
    again = page_of("mistakes", mistakes(), state="pick=5&pair=53")
    assert again.locator(".play .thumb:visible").count() == PAIRS.count((5, 3))
    assert again.get_by_role("button", name="Mistake 6").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, phone: bool) -> None:
    data = mistakes()
    many = [data["pictures"]] * 6  # more than there are in the book
    data["pictures"] = torch.cat(many, dim=1)
    data["labels"], data["lengths"] = 6 * data["labels"], data["lengths"].repeat(6, 1)
    tab = page_of("mistakes", data, phone=phone)
    tab.locator(".play .ask button").last.click()
    check_looks(tab)
