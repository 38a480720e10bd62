"""The children of a real digit: their shares are those that ``capsnet`` computes."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.functional import RoutingStep, dynamic_routing
from capsnet_book import ledger
from helpers.play import check_address, check_looks


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    images = load("mnist", train=False).images[:1]  # a seven
    with torch.no_grad():
        children = model.primary(F.relu(model.conv(to_float(images))))
        votes = model.digits.predict(children)[0]
    return {"votes": votes.half(), "image": images[0, 0], "label": 7}


@pytest.fixture(scope="module")
def steps(data: dict[str, Any]) -> list[RoutingStep]:
    found: list[RoutingStep] = []
    dynamic_routing(data["votes"][None].float(), 8, trace=found)
    return found


def texts(tab: Any, place: str) -> list[float]:
    return [float(text) for text in tab.locator(place).all_inner_texts()]


@pytest.mark.parametrize("iteration", [1, 3, 8])
def test_lengths_and_shares_are_those_of_capsnet(
    page_of: Any, data: dict[str, Any], steps: list[RoutingStep], iteration: int
) -> None:
    tab = page_of("children", data)
    tab.get_by_label("iteration").fill(str(iteration))
    step = steps[iteration - 1]
    lengths = texts(tab, ".bars .value")
    assert lengths == pytest.approx(step.v[0].norm(dim=1).tolist(), abs=0.0051)
    firm = int((step.coupling[0, :, 7] > 0.2).sum())
    assert f"{firm} of 1152 give it more than 0.2" in tab.locator(".says").inner_text()
    tab.get_by_role("button", name="The most decided").click()
    child = int(step.coupling[0, :, 7].argmax())
    assert tab.get_by_label("child", exact=True).input_value() == str(child)
    gives = texts(tab, ".gives li > span:nth-child(2)")
    assert gives == pytest.approx(step.coupling[0, child].tolist(), abs=0.0051)


def test_a_tap_chooses_the_child_at_its_place(page_of: Any, data: dict[str, Any]) -> None:
    tab = page_of("children", data)
    box = tab.locator(".map").bounding_box()
    side = box["width"] / 6  # of a place: 6 x 6 squares of children and a gap
    square = side * 8 / 56
    row, column, kind = 2, 3, 15
    x = side * column + square * (kind % 6 + 0.5)
    y = side * row + square * (kind // 6 + 0.5)
    tab.mouse.click(box["x"] + x, box["y"] + y)
    child = kind * 36 + row * 6 + column  # as capsnet.layers.PrimaryCapsules numbers them
    assert tab.get_by_label("child", exact=True).input_value() == str(child)
    frame, image = (tab.locator(place).bounding_box() for place in (".window", ".seen .digit"))
    pixel = image["width"] / 28
    assert (frame["x"] - image["x"]) / pixel == pytest.approx(2 * column, abs=0.2)
    assert (frame["y"] - image["y"]) / pixel == pytest.approx(2 * row, abs=0.2)
    assert frame["width"] / pixel == pytest.approx(17, abs=0.5)
    check_address(tab, "child")
    there = page_of("children", data, state=tab.evaluate("location.hash").split("?")[1])
    assert there.get_by_label("child", exact=True).input_value() == str(child)
    there.get_by_role("button", name="Reset").click()
    there.wait_for_function("!location.hash")


@pytest.mark.parametrize("phone", [False, True])
def test_it_is_accessible_and_fits(page_of: Any, data: dict[str, Any], phone: bool) -> None:
    tab = page_of("children", data, phone=phone)
    check_looks(tab)
