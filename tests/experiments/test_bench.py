"""The benchmarks measure what they say: the peers' arithmetic, operations, and memory."""

import pytest
import torch
from torch.testing import assert_close

from capsnet import CapsNet
from capsnet.functional import RoutingStep, dynamic_routing, squash
from capsnet_book import ledger
from experiments.bench import __main__ as command
from experiments.bench import accuracy, contestants, counts, memory, peers, routings

CPU = torch.device("cpu")
SIZES = peers.Sizes(in_capsules=5, out_capsules=3, in_dim=2, out_dim=4)
U = torch.linspace(-2, 2, 20).view(2, 5, 2)


def test_labml_routes_with_a_softmax_over_the_children() -> None:
    router = peers.LabmlRouter(SIZES, iterations=2)
    u_hat = torch.einsum("nik,ijkd->nijd", U, router.weight)
    v = squash(u_hat.mean(dim=1))  # the softmax of zeros over 5 children
    coupling = (u_hat * v.unsqueeze(1)).sum(-1, keepdim=True).softmax(dim=1)
    assert_close(router(U), squash((coupling * u_hat).sum(1)), rtol=1e-6, atol=1e-6)


def test_xifengguo_routes_as_the_paper_but_stops_the_gradient() -> None:
    router = peers.XifengGuoRouter(SIZES)
    u_hat = torch.einsum("nik,jidk->nijd", U, router.weight)
    trace: list[RoutingStep] = []
    v = router(U)
    # Vectors of 0.01: an ε of 1e-8 is felt under the root, not beside the norm.
    assert_close(v, dynamic_routing(u_hat, trace=trace), rtol=1e-5, atol=0)
    stopped = torch.autograd.grad(v.sum(), router.weight)[0]
    coupling = trace[-1].c.detach().unsqueeze(-1)
    expected = torch.autograd.grad(squash((coupling * u_hat).sum(1)).sum(), router.weight)[0]
    assert_close(stopped, expected, rtol=1e-5, atol=0)


def test_adambielski_routes_once_more_with_a_learned_prior() -> None:
    router = peers.AdambielskiRouter(SIZES, iterations=3)
    torch.nn.init.normal_(router.prior)
    u_hat = torch.einsum("nik,ikm->nim", U, router.weight).unflatten(2, (3, 4))
    assert_close(router(U), dynamic_routing(u_hat, 4, router.prior), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_peer_is_the_papers_network_but_for_its_routing(name: str) -> None:
    network = peers.PEERS[name]()
    prior = 1152 * 10 if name == "adambielski" else 0
    assert sum(p.numel() for p in network.parameters()) == 8_215_568 + prior
    network(torch.rand(2, 1, 28, 28), torch.tensor([3, 4])).backward()
    assert all(p.grad is not None for p in network.parameters())


def test_half_way_routes_plainly() -> None:
    model, calls = CapsNet(), []
    model.digits.register_forward_hook(lambda *_: calls.append("plain"))
    images, labels = torch.rand(2, 1, 28, 28), torch.tensor([1, 2])
    with torch.autocast("cpu", torch.bfloat16):
        out = contestants.HalfWay(model)(images, labels)
    assert calls == ["plain"]
    assert_close(out.lengths.float(), model(images).lengths, rtol=0.05, atol=0.02)


def test_bytes_are_counted_once_for_each_time_that_they_are_read_or_written() -> None:
    left, right = torch.ones(2, 3), torch.ones(3, 4, dtype=torch.bfloat16)

    def call() -> None:
        product = left @ right.float().view(3, 4)  # two operations; a view is none
        product.add_(1)
        torch.empty(1000)

    # numbers × bytes each: what is read, and what is written
    of_float, of_product, of_sum = 12 * (2 + 4), 4 * (6 + 12 + 8), 4 * (8 + 8)
    found = counts.count_operations(call)
    assert found == {"operations": 3, "bytes": of_float + of_product + of_sum, "votes": 0}
    votes = torch.ones(2, 1152, 10, 16)
    found = counts.count_operations(lambda: votes + votes[:, :, :, :1], batch_size=2)
    large, small = 4 * votes.numel(), 4 * votes.numel() // 16
    assert found == {"operations": 1, "bytes": 2 * large + small, "votes": 2 * large}


def test_the_peak_is_that_of_what_is_held_at_once(device: torch.device) -> None:
    old = [torch.ones(1_000_000)]

    def call() -> None:
        old.clear()  # what was there before does not count
        torch.ones(1_000_000, device=device)  # 4 MB, freed
        both = [torch.ones(size, device=device) for size in (1_000_000, 500_000)]
        del both

    assert memory.tensor_peak(call, device) == pytest.approx(6_000_000, rel=0.01)


@pytest.mark.parametrize("group", contestants.GROUPS)
def test_every_contestant_takes_part(group: str, device: torch.device) -> None:
    for contestant in contestants.contestants(group, device):
        if not contestant.compile:
            contestants.GROUPS[group](contestant, device, batch_size=2)()


def test_a_step_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routings, "ROUNDS", 1)
    found = routings.row_step("shared", CPU, batch_size=2, compile=False)
    recorded = ledger.read("bench/routings-cpu.json")["rows"]["shared"]
    assert found["parameters"] == recorded["parameters"]
    assert found["step_ms"] > 0 and found["tensors_mib"] > 0 and found["ratio"] > 0


def test_every_kind_of_device_has_runs_of_its_own() -> None:
    folders = [accuracy.runs_folder(torch.device(name)) for name in ("cpu", "cuda", "mps")]
    assert len({*folders}) == 3 and (folders[0] / "99.0" / "summary.json").is_file()


@pytest.mark.parametrize(
    ("part", "complaint"),
    [("launches", "launches are .* got cpu"), ("speeds", "parts are speed, .*, got speeds")],
)
def test_a_part_that_cannot_be_measured(
    part: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "pick_device", lambda: CPU)
    with pytest.raises(SystemExit, match=f"^experiments.bench: {complaint}$"):
        command.main([part])
