"""One seven in the network, in the page: which numbers make a child, what it sees, its votes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet.functional import squash
from capsnet.layers import channels_to_capsules
from helpers.play import check_address, check_looks, check_targets

Opens = Callable[..., Any]
CHILDREN = (0, 40, 195, 700, 1151)
# Which places of the 256 maps each child's numbers stand at, by both ways to read them.
MEMBERS = """async () => {
    const { members, owner } = await import("./members.js");
    const children = [...Array(1152).keys()];
    const [permute, reshape] = ["permute", "reshape"].map((read) =>
        children.map((child) => members(child, read)));
    const owned = (all, read) =>
        all.every((own, child) => own.every((at) => owner(at, read) === child));
    return [permute, reshape, owned(permute, "permute"), owned(reshape, "reshape")];
}"""

TURNS = """all => all.map((arrow) =>
    Number(/rotate\\((.*?)\\)/.exec(arrow.getAttribute("transform"))[1]))"""


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Of the network's shapes; each place has a window of its own."""
    generator = torch.Generator().manual_seed(0)
    return {
        "image": torch.randint(0, 256, (28, 28), generator=generator).byte(),
        "maps": 5 * torch.randn(256, 6, 6, generator=generator),
        "fields": [[[r, r + 16, 2 * c, 2 * c + 16] for c in range(6)] for r in range(6)],
        "votes": torch.randint(1, 256, (1152, 10), generator=generator).byte(),
        "longest": 2.55,
        "turns": torch.randint(-127, 128, (1152, 10), generator=generator).to(torch.int8),
        "lengths": [0.1 * j for j in range(10)],
        "drawing": torch.zeros(28, 28).byte(),
    }


def numbers(tab: Any) -> Tensor:
    texts = tab.locator(".numbers text").all_text_contents()
    return Tensor([float(text.replace("−", "-")) for text in texts])


def test_members_are_those_of_the_layer(page_of: Opens, data: dict[str, Any]) -> None:
    permute, reshape, *owned = page_of("through", data).evaluate(MEMBERS)
    flat = torch.arange(256 * 36).view(1, 256, 6, 6)
    assert torch.equal(torch.tensor(permute), channels_to_capsules(flat, 8)[0])
    assert torch.equal(torch.tensor(reshape), flat.reshape(1152, 8))
    assert owned == [True, True]


def test_a_child(page_of: Opens, data: dict[str, Any]) -> None:
    tab = page_of("through", data)
    u = squash(channels_to_capsules(data["maps"][None], 8))[0]
    wrong = squash(data["maps"].reshape(1152, 8))
    for child in CHILDREN:
        for name, value in (("type", child // 36), ("row", child // 6 % 6), ("column", child % 6)):
            tab.get_by_role("slider", name=name).fill(str(value))
        torch.testing.assert_close(numbers(tab), u[child], atol=0.0051, rtol=0)
        votes = [float(text) for text in tab.locator(".votes .long").all_text_contents()]
        assert votes == [round(length / 100, 2) for length in data["votes"][child].tolist()]
        turns = tab.locator(".vote").evaluate_all(TURNS)
        cosines = Tensor(turns).deg2rad().cos()
        torch.testing.assert_close(cosines, data["turns"][child] / 127, atol=2e-3, rtol=0)
        row, column = child // 6 % 6, child % 6
        window = f"M{2 * column} {row}H{2 * column + 17}V{row + 17}H{2 * column}z"
        assert tab.locator(".window").get_attribute("d") == window
        tab.get_by_text("reshape alone").click()
        torch.testing.assert_close(numbers(tab), wrong[child], atol=0.0051, rtol=0)
        assert tab.locator(".votes .long").first.text_content() == ""
        places = {at % 36 for at in range(8 * child, 8 * child + 8)}
        assert len(places) == 8 and "at 8 places" in tab.locator(".said").inner_text()
        assert tab.locator(".window").get_attribute("d").count("M") == 8
        tab.get_by_text("permute", exact=True).click()


def test_taps_keys_and_the_address(page_of: Opens, data: dict[str, Any]) -> None:
    tab = page_of("through", data, state="child=40&read=reshape")
    assert tab.get_by_label("reshape alone").is_checked()
    tab.get_by_role("button", name="Reset").click()
    said = tab.locator(".said")
    assert said.inner_text().startswith("Child 195 = 36 · 5 + 6 · 2 + 3: one place, in channels 40")
    tab.get_by_role("slider", name="row").focus()
    tab.keyboard.press("ArrowDown")
    assert said.inner_text().startswith("Child 189 ")
    check_address(tab, "child=189")
    # Type 9, row 1, column 4: the second row of types, from the left the second.
    grid = tab.locator(".children svg").first
    box = grid.bounding_box()
    unit = box["width"] / 55
    grid.click(position={"x": (7 + 4.5) * unit, "y": (7 + 1.5) * unit})
    assert said.inner_text().startswith(f"Child {36 * 9 + 6 + 4} ")
    # Channel 17 is number 1 of type 2.
    stack = tab.locator(".stack svg")
    unit = stack.bounding_box()["width"] / 111
    stack.click(position={"x": (7 + 5.5) * unit, "y": (7 + 3.5) * unit})
    assert said.inner_text().startswith(f"Child {36 * 2 + 6 * 3 + 5} ")
    tab.get_by_text("reshape alone").click()
    stack.click(position={"x": (7 + 5.5) * unit, "y": (7 + 3.5) * unit})
    check_address(tab, f"child={(17 * 36 + 6 * 3 + 5) // 8}", "read=reshape")
    nonsense = page_of("through", data, state="child=1152&read=toString")
    assert nonsense.locator(".said").inner_text().startswith("Child 195 ")


@pytest.mark.parametrize("phone", [False, True])
def test_looks(page_of: Opens, data: dict[str, Any], phone: bool) -> None:
    tab = page_of("through", data, phone=phone)
    for way in ("reshape alone", "permute"):
        tab.get_by_text(way, exact=True).click()
        check_looks(tab)
    if phone:
        check_targets(tab)
