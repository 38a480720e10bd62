"""Routing in the page, of six votes and of a real digit: the numbers are those of ``capsnet``."""

import re
from typing import Any
from urllib.parse import parse_qs

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.functional import RoutingStep, dynamic_routing, squash
from capsnet.layers import channels_to_capsules
from capsnet_book import parts
from helpers.pages import drag, middle, numbers, settled

MOST = 300  # iterations
LONG = ".discs .name:last-child"  # how long s and v are, in a disc
# Which places of the 256 maps each child's numbers stand at, by both ways to read them.
MEMBERS = """async () => {
    const { members } = await import("./members.js");
    const children = [...Array(1152).keys()];
    return ["permute", "reshape"].map((read) => children.map((child) => members(child, read)));
}"""


def trace(votes: Tensor, iterations: int) -> list[RoutingStep]:
    steps: list[RoutingStep] = []
    dynamic_routing(votes, iterations, trace=steps)
    return steps


def to(tab: Any, iteration: int) -> None:
    """The end of an iteration of four phases: after its squash."""
    tab.locator(".clock input").fill(str(4 * (iteration - 1) + 2))


def moved(tab: Any) -> Tensor:
    """The votes that the address says, [1, 6, 2, 2]."""
    tab.wait_for_timeout(400)  # the address follows when the reader rests
    sent = parse_qs(tab.evaluate("location.hash").split("?")[1])["votes"][0]
    return torch.tensor([float(x) / 1000 for x in sent.split()]).double().view(1, 6, 2, 2)


def check_shares(tab: Any, expected: Tensor) -> None:
    """The coupling coefficients [6, 2] are those that the table says."""
    shown = torch.tensor(numbers(tab, "tbody td:nth-of-type(odd)")).view(6, -1)[:, :2]
    torch.testing.assert_close(shown, expected.float(), atol=0.0051, rtol=0)


def check_routed(tab: Any, step: RoutingStep) -> None:
    check_shares(tab, step.c[0])
    a, b = step.v[0].norm(dim=1).tolist()
    assert f"A is {a:.2f} long, B {b:.2f}" in tab.locator(".says").first.inner_text()


def test_six_votes_are_routed_as_capsnet_routes_them(page_of: Any, data_of: Any) -> None:
    tab = page_of("routing")
    assert tab.locator(".phase code").all_inner_texts() == data_of("routing")["lines"]
    for number, step in enumerate(trace(parts.votes().double(), 8), start=1):
        to(tab, number)
        check_routed(tab, step)
    for preset in ("Nobody agrees", "Two camps", "All the same", "Opposites"):
        tab.get_by_role("button", name=preset).click()
        check_routed(tab, trace(moved(tab), 8)[7])
    tab.get_by_role("button", name="Reset").click()
    tab.get_by_label("children", exact=True).check()  # the common slip: over the wrong dimension
    to(tab, 1)
    check_shares(tab, torch.full((6, 2), 1 / 6))
    to(tab, 2)
    s = parts.votes().mean(dim=1, keepdim=True)
    check_shares(tab, F.softmax((parts.votes() * squash(s)).sum(dim=3), dim=1)[0])


def test_routing_can_decide_against_the_plain_sum(page_of: Any) -> None:
    tab = page_of("routing")
    tab.get_by_role("button", name="An upset").click()
    steps = trace(moved(tab), 3)
    first, _, third = (step.v[0].norm(dim=1) for step in steps)
    assert first[0] < first[1] - 0.04 and third[0] > third[1] + 0.2
    to(tab, 1)
    check_routed(tab, steps[0])
    assert "where B is longer" in tab.locator(".try .solved").inner_text()


def test_a_dragged_vote_is_routed_too(page_of: Any) -> None:
    tab = page_of("routing")
    disc = tab.locator(".discs svg:not(.scene)").first
    rim = disc.locator(".rim").bounding_box()
    radius = rim["width"] / 2
    there = rim["x"] + radius * 1.3, rim["y"] + radius * 0.2
    drag(tab, middle(disc.locator(".knob >> nth=4")), there)
    to(tab, 3)
    votes = moved(tab)
    there = torch.tensor([0.3, 0.8], dtype=torch.float64)  # child 5 goes over to those of A
    torch.testing.assert_close(votes[0, 4, 0], there, atol=0.02, rtol=0)
    step = trace(votes, 3)[2]
    check_routed(tab, step)
    assert step.c[0, 4, 0] > 0.5


def shown_parts(tab: Any) -> Tensor:
    """û [1, 6, 2, 2] of the parts as they stand in the picture, by their matrices."""
    shapes = tab.locator(".scene polygon").all()
    texts = [shape.get_attribute("points").replace(",", " ").split() for shape in shapes]
    rows = []
    for part, text in zip(parts.SCENE, texts, strict=True):
        corners = torch.tensor([float(x) for x in text]).view(-1, 2) * torch.tensor([1.0, -1.0])
        up = corners[2:].mean(0) - corners[:2].mean(0)
        where = torch.cat([corners.mean(0), up / up.norm()])
        matrices = [parts.matrix(*parts.SEEN[part.kind, whole]) for whole in parts.WHOLES]
        rows.append(torch.stack([part.sure * (W @ where)[2:] for W in matrices]))
    return torch.stack(rows).double().unsqueeze(0)


def check_pulled(tab: Any, part: int, start: Tensor) -> None:
    """A pulled part has turned, and the routing is that of the parts as they are seen."""
    votes = shown_parts(tab)
    change = (votes - start).abs().amax(dim=(0, 2, 3))
    assert change[part - 1] > 0.2 and change.sum() - change[part - 1] < 0.01
    step = trace(votes, 3)[2]
    check_shares(tab, step.c[0])
    found = re.findall(r"\d\.\d+", " ".join(tab.locator(LONG).all_text_contents()))
    expected = torch.stack([step.s, step.v]).norm(dim=3)[:, 0].T.flatten()  # s and v of A, of B
    assert [*map(float, found)] == pytest.approx(expected.tolist(), abs=0.011)
    assert tab.locator(".phase[aria-pressed=true]").inner_text().startswith("agree")


def test_a_part_is_pulled_and_its_votes_turn_with_it(page_of: Any) -> None:
    tab = page_of("routing")
    start = shown_parts(tab)
    torch.testing.assert_close(start, parts.votes().double(), atol=0.01, rtol=0)
    knob = tab.locator(".scene .tip >> nth=4")
    x, y = middle(knob)
    drag(tab, (x, y), (x - 19, y - 45))
    assert middle(knob) == pytest.approx((x - 19, y - 45), abs=2)
    check_pulled(tab, 5, start)
    assert "solved" in tab.inner_text(".says")
    tab.wait_for_function("location.hash.includes('parts=')")
    tab.wait_for_timeout(400)
    shown = shown_parts(tab), tab.locator(LONG).all_text_contents()
    page_of("routing", state=tab.evaluate("location.hash.split('?')[1]"))
    assert torch.equal(shown_parts(tab), shown[0])
    assert tab.locator(LONG).all_text_contents() == shown[1]
    tab.get_by_role("button", name="A house").click()
    assert torch.equal(shown_parts(tab), start)
    part = tab.get_by_role("slider", name="part 6")
    for _ in range(4):
        part.press("ArrowUp")
    check_pulled(tab, 6, start)


@pytest.mark.parametrize("widget", ["routing", "forward"])
def test_the_curves_of_the_lengths_are_dragged_through_the_iterations(
    page_of: Any, widget: str
) -> None:
    tab = page_of(widget)
    settled(tab)
    lines = tab.locator(".course .curve").all()
    curves = [[*re.findall(r"[\d.]+", line.get_attribute("points"))] for line in lines]
    axes = tab.locator(".course .axes").bounding_box()
    clock = tab.get_by_role("slider", name="step")
    for iteration in (8, 1, 5):
        x = axes["x"] + axes["width"] * (iteration - 1) / 7
        drag(tab, middle(tab.locator(".course .now")), (x, axes["y"] + 20))
        assert clock.get_attribute("aria-valuetext") == f"{iteration} · agree"
        lengths = torch.tensor([[float(y) for y in curve[1::2]] for curve in curves])
        zero, one = (float(tab.locator(".course .now").get_attribute(y)) for y in ("y1", "y2"))
        drawn = (lengths[:, iteration - 1] - zero) / (one - zero)
        said = (
            numbers(tab, ".bars .value")
            if widget == "forward"
            else [float(text.split()[-1]) for text in tab.locator(LONG).all_text_contents()]
        )
        assert drawn.tolist() == pytest.approx(said, abs=0.0051)


@pytest.mark.parametrize("phone", [False, True])
def test_routing_shows_its_arrows_beside_its_buttons(page_of: Any, phone: bool) -> None:
    tab = page_of("routing", phone=phone)
    discs = tab.locator(".discs svg:not(.scene)")
    one, other, buttons = (
        it.bounding_box() for it in (discs.first, discs.last, tab.locator(".transport"))
    )
    assert one["y"] == pytest.approx(other["y"]) and one["x"] < other["x"]
    assert buttons["y"] + buttons["height"] - one["y"] < 0.75 * tab.viewport_size["height"]
    for name in ("sum", "output"):
        assert tab.locator(f".discs .{name}[d]").count() == 2


@pytest.mark.parametrize(
    ("name", "grip"), [("vote of child 6 for B", ".grip"), ("part 6", ".hold")]
)
def test_what_is_dragged_moves_by_a_thumb_and_the_page_does_not(
    page_of: Any, name: str, grip: str
) -> None:
    tab = page_of("routing", phone=True)
    handle = tab.get_by_role("slider", name=name)
    handle.scroll_into_view_if_needed()
    grip = handle.locator(grip)
    box = grip.bounding_box()
    assert min(box["width"], box["height"]) >= 40
    x, y = middle(grip)
    touch = tab.context.new_cdp_session(tab)
    there = tab.evaluate("scrollY")
    for kind, dy in [("touchStart", 0), *(("touchMove", -k) for k in range(5, 65, 5))]:
        points = [{"x": x, "y": y + dy}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert y - middle(grip)[1] > 40
    assert tab.evaluate("scrollY") == there


def test_the_children_of_a_digit(page_of: Any, data_of: Any) -> None:
    data = data_of("children")
    steps = trace(data["votes"][None].float(), 8)
    tab, label = page_of("children"), data["label"]
    for iteration in (1, 3, 8):
        tab.get_by_label("iteration").fill(str(iteration))
        _, coupling, _, v = steps[iteration - 1]
        assert numbers(tab, ".bars .value") == pytest.approx(v[0].norm(dim=1).tolist(), abs=0.0051)
        firm = int((coupling[0, :, label] > 0.2).sum())
        assert f"{firm} of 1152 give it more than 0.2" in tab.locator(".says").inner_text()
        tab.get_by_role("button", name="The most decided").click()
        child = int(coupling[0, :, label].argmax())
        assert tab.get_by_label("child", exact=True).input_value() == str(child)
        gives = numbers(tab, ".gives li > span:nth-child(2)")
        assert gives == pytest.approx(coupling[0, child].tolist(), abs=0.0051)
    box = tab.locator(".map").bounding_box()
    side = box["width"] / 6  # of a place: 6 x 6 squares of children and a gap
    square = side * 8 / 56
    row, column, kind = 2, 3, 15
    x = side * column + square * (kind % 6 + 0.5)
    y = side * row + square * (kind // 6 + 0.5)
    tab.mouse.click(box["x"] + x, box["y"] + y)
    child = kind * 36 + row * 6 + column  # as capsnet.layers.PrimaryCapsules numbers them
    assert tab.get_by_label("child", exact=True).input_value() == str(child)


def check_iteration(tab: Any, step: RoutingStep) -> None:
    """The ten lengths and the sentence are of this iteration."""
    lengths, most = step.v[0].norm(dim=1), step.c[0].amax(dim=1)
    assert numbers(tab, ".bars .value") == pytest.approx(lengths.tolist(), abs=0.0051)
    said = tab.locator(".play .said").inner_text()
    assert said.startswith(f"Longer than a half: {(lengths > 0.5).sum()} of 10 capsules. ")
    assert said.endswith(f" them: {(most > 0.5).sum()} of {len(most)} children.")


def test_routing_that_does_not_stop(page_of: Any, data_of: Any) -> None:
    steps = trace(data_of("iterate")["votes"][None].double(), MOST)
    tab = page_of("iterate")
    assert any(address.endswith("routed.js") for address in tab.asked)  # a worker's
    tab.wait_for_selector(".play[data-routed]", state="attached")
    check_iteration(tab, steps[2])
    time = tab.get_by_role("slider", name="iterations")
    for key, shown in (("ArrowRight", 3), ("Home", 0)):
        time.press(key)
        check_iteration(tab, steps[shown])
    tab.get_by_role("button", name="Route", exact=True).click()  # at once, as motion is unwelcome
    assert time.get_attribute("aria-valuetext") == str(MOST)
    check_iteration(tab, steps[-1])


def test_a_child_is_made_of_the_numbers_that_the_layer_takes(page_of: Any, data_of: Any) -> None:
    tab, data = page_of("through"), data_of("through")
    permute, reshape = tab.evaluate(MEMBERS)
    flat = torch.arange(256 * 36).view(1, 256, 6, 6)
    assert torch.equal(torch.tensor(permute), channels_to_capsules(flat, 8)[0])
    assert torch.equal(torch.tensor(reshape), flat.reshape(1152, 8))
    maps = data["maps"].float()
    u, wrong = squash(channels_to_capsules(maps[None], 8))[0], squash(maps.reshape(1152, 8))
    for child in (40, 700, 1151):
        row, column = child // 6 % 6, child % 6
        for name, value in (("type", child // 36), ("row", row), ("column", column)):
            tab.get_by_role("slider", name=name).fill(str(value))
        assert numbers(tab, ".numbers text") == pytest.approx(u[child].tolist(), abs=0.0051)
        votes = data["votes"][child].float() / 255 * data["longest"]
        assert numbers(tab, ".votes .long") == pytest.approx(votes.tolist(), abs=0.0051)
        assert tab.locator(".window").get_attribute("d").count("M") == 1
        tab.get_by_text("reshape alone").click()
        assert numbers(tab, ".numbers text") == pytest.approx(wrong[child].tolist(), abs=0.0051)
        assert tab.locator(".window").get_attribute("d").count("M") > 1
        tab.get_by_text("permute", exact=True).click()
    # Type 9, row 1, column 4: the second row of types, from the left the second.
    grid = tab.locator(".children svg").first
    unit = grid.bounding_box()["width"] / 55
    grid.click(position={"x": (7 + 4.5) * unit, "y": (7 + 1.5) * unit})
    assert tab.locator(".said").inner_text().startswith(f"Child {36 * 9 + 6 + 4} ")
