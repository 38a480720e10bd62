"""Routing that does not stop: iterations, lengths and shares in the page are PyTorch's."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet.functional import RoutingStep, dynamic_routing
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
CHILDREN, MOST = 48, 300


@pytest.fixture(scope="module")
def votes() -> Tensor:
    torch.manual_seed(1)
    common = torch.randn(1, 10, 16)
    return (0.1 * torch.randn(CHILDREN, 10, 16) + 0.06 * common).half()


@pytest.fixture(scope="module")
def trace(votes: Tensor) -> list[RoutingStep]:
    steps: list[RoutingStep] = []
    dynamic_routing(votes[None].double(), MOST, trace=steps)
    return steps


def opened(page_of: Opens, votes: Tensor, **options: Any) -> Any:
    tab = page_of("iterate", {"votes": votes, "label": 7, "trained": 3}, **options)
    tab.wait_for_selector(".play[data-routed]", state="attached")
    return tab


def check_shown(tab: Any, step: RoutingStep) -> None:
    """The ten lengths, the histogram and the sentence are of this iteration."""
    lengths = step.v[0].norm(dim=1)
    shown = [float(text) for text in tab.locator(".play .bars .value").all_inner_texts()]
    assert shown == pytest.approx(lengths.tolist(), abs=0.0051)
    most = step.coupling[0].amax(dim=1)
    bins = ((most - 0.1) / 0.9 * 18).floor().clamp(0, 17).long()
    heights = [float(bar.get_attribute("height")) for bar in tab.locator(".play rect.c").all()]
    whole = sum(heights)
    counts = torch.bincount(bins, minlength=18) / CHILDREN
    assert [height / whole for height in heights] == pytest.approx(counts.tolist(), abs=0.022)
    said = tab.locator(".play .said").inner_text()
    assert said.startswith(f"{(lengths > 0.5).sum()} of 10 capsules are longer than a half; ")
    assert f"; {(most > 0.5).sum()} of {CHILDREN} children give" in said


def test_every_iteration_is_that_of_pytorch(
    page_of: Opens, votes: Tensor, trace: list[RoutingStep]
) -> None:
    tab = opened(page_of, votes)
    found = tab.evaluate(
        """async ([votes, children, most]) => {
            const { routed } = await import("./iterate.js");
            const shape = { children, parents: 10, size: 16 };
            let all = [];
            for (const seen of routed(Float64Array.from(votes), shape, most)) all = seen;
            return all.map(({ norms }) => norms);
        }""",
        [votes.double().flatten().tolist(), CHILDREN, MOST],
    )
    expected = torch.stack([step.v[0].norm(dim=1) for step in trace])
    assert (expected[-1] - expected[2]).abs().max() > 0.3  # they go far
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected)


def test_the_slider_goes_through_the_iterations(
    page_of: Opens, votes: Tensor, trace: list[RoutingStep]
) -> None:
    tab = opened(page_of, votes)
    check_shown(tab, trace[2])
    time = tab.get_by_role("slider", name="iterations")
    time.press("ArrowRight")
    check_shown(tab, trace[3])
    time.press("End")
    assert time.get_attribute("aria-valuetext") == str(MOST)
    check_shown(tab, trace[-1])
    check_address(tab, "iterations=300")
    time.press("Home")
    check_shown(tab, trace[0])
    tab.get_by_role("button", name="Let it route").click()  # at once, as motion is unwelcome
    check_shown(tab, trace[-1])
    tab.get_by_role("button", name="Reset").click()
    check_shown(tab, trace[2])
    tab.wait_for_function("location.hash == ''")


def test_a_finding_can_be_sent(page_of: Opens, votes: Tensor, trace: list[RoutingStep]) -> None:
    check_shown(opened(page_of, votes, state="iterations=17"), trace[16])


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, votes: Tensor, phone: bool) -> None:
    tab = opened(page_of, votes, phone=phone)
    check_looks(tab)
    if phone:
        check_targets(tab)
