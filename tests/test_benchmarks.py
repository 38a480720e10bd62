"""The benchmarks measure what they say: the peers' arithmetic, memory, and the tables."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from benchmarks import accuracy, contestants, growth, memory, peers, speed, tables
from capsnet.device import describe_machine
from capsnet.functional import dynamic_routing
from capsnet_book import ledger

CPU = torch.device("cpu")
SIZES = peers.Sizes(in_capsules=5, out_capsules=3, in_dim=2, out_dim=4)


def test_labml_routes_with_a_softmax_over_the_children() -> None:
    router = peers.LabmlRouter(SIZES, iterations=2)
    u = torch.randn(2, 5, 2)
    u_hat = torch.einsum("nik,ijkd->nijd", u, router.weight)
    s = u_hat.mean(dim=1)  # the softmax of zeros over 5 children
    agreement = (u_hat * squash(s).unsqueeze(1)).sum(-1)
    s = (F.softmax(agreement, dim=1).unsqueeze(-1) * u_hat).sum(1)
    assert_close(router(u), squash(s), rtol=1e-4, atol=1e-6)


def test_xifengguo_routes_as_the_paper_but_stops_the_gradient() -> None:
    router = peers.XifengGuoRouter(SIZES)
    u = torch.randn(2, 5, 2)
    u_hat = torch.einsum("nik,jidk->nijd", u, router.weight)
    v = router(u)
    assert_close(v, dynamic_routing(u_hat), rtol=1e-3, atol=1e-5)
    stopped = torch.autograd.grad(v.sum(), router.weight)[0]
    trace: list = []
    dynamic_routing(u_hat, trace=trace)
    coupling = trace[-1].coupling.detach().unsqueeze(-1)
    expected = torch.autograd.grad(squash((coupling * u_hat).sum(1)).sum(), router.weight)[0]
    assert_close(stopped, expected, rtol=1e-3, atol=1e-5)


def test_adambielski_routes_once_more_with_a_learned_prior() -> None:
    router = peers.AdambielskiRouter(SIZES, iterations=3)
    torch.nn.init.normal_(router.prior)
    u = torch.randn(2, 5, 2)
    u_hat = torch.einsum("nik,ikm->nim", u, router.weight).unflatten(2, (3, 4))
    assert_close(router(u), dynamic_routing(u_hat, 4, router.prior), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_peer_is_the_papers_network_but_for_its_routing(name: str) -> None:
    network = peers.PEERS[name]()
    prior = 1152 * 10 if name == "adambielski" else 0
    assert sum(p.numel() for p in network.parameters()) == 8_215_568 + prior
    loss = network(torch.rand(2, 1, 28, 28), torch.tensor([3, 4]))
    loss.backward()
    assert all(p.grad is not None for p in network.parameters())


def test_half_way_routes_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    from capsnet import CapsNet, fast

    monkeypatch.setattr(fast, "routed_capsules", None)  # a call of it would fail
    model = CapsNet()
    images, labels = torch.rand(2, 1, 28, 28), torch.tensor([1, 2])
    with torch.autocast("cpu", torch.bfloat16):
        out = contestants.HalfWay(model)(images, labels)
    assert_close(out.lengths.float(), model(images).lengths, rtol=0.05, atol=0.02)


def test_the_peak_is_that_of_what_is_held_at_once() -> None:
    def call() -> None:
        torch.ones(1_000_000)  # 4 MB, freed
        both = [torch.ones(1_000_000), torch.ones(500_000)]
        del both

    assert memory.tensor_peak(call, CPU) == 6_000_000
    assert memory.process_peak() > 100e6


def test_the_peak_on_a_cpu_leaves_out_what_was_there_before() -> None:
    old = [torch.ones(1_000_000)]

    def call() -> None:
        old.clear()
        torch.ones(500_000)

    assert memory.tensor_peak(call, CPU) == 2_000_000


def test_the_peak_is_counted_on_the_device_of_the_call(device: torch.device) -> None:
    peak = memory.tensor_peak(lambda: torch.ones(1_000_000, device=device), device)
    assert peak == pytest.approx(4_000_000, rel=0.01)


# Of the compiled ones the next test has one.
AS_WRITTEN = [name for name in contestants.NAMES if "compiled" not in name]


@pytest.mark.parametrize("group", memory.GROUPS)
@pytest.mark.parametrize("name", AS_WRITTEN)
def test_every_contestant_takes_part(group: str, name: str, device: torch.device) -> None:
    memory.GROUPS[group](name, device, batch_size=2)()


@pytest.mark.slow
@pytest.mark.usefixtures("inductor")
def test_the_times_have_the_ledgers_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(group: str, _: torch.device) -> list[str]:
        layer = ", compiled" if group == "routed layer" else ""  # what compiles soonest
        return ["labml", f"capsnet fast, fp32{layer}"]

    monkeypatch.setattr(contestants, "names", some)
    monkeypatch.setattr(contestants, "compiles", lambda _: False)
    times = speed.time_all(CPU, batch_size=2, repeats=1)
    ledgers = ledger.read("bench/speed-cpu.json")["times"]
    assert times.keys() == ledgers.keys()
    for group, of_group in times.items():
        assert set(of_group) <= set(ledgers[group])
        for name, found in of_group.items():
            assert found.keys() == ledgers[group][name].keys()
            assert 0 < found["min"] <= found["median"] <= found["max"] < 60


def test_a_size_of_the_growth_has_the_ledgers_form() -> None:
    sizes = {"batch_size": 2, "children": 12, "parents": 3, "iterations": 2}
    row = growth.one("capsnet fast, fp32", sizes, CPU)
    expected = ledger.read("bench/growth-cpu.json")["rows"][0]
    assert row.keys() == expected.keys() - {"name", "axis", "value"}
    assert 0 < row["infer_bytes"] < row["train_bytes"]


def test_ours_is_what_train_runs_or_the_nearest_that_was_possible() -> None:
    assert contestants.headline(contestants.NAMES, CPU) == "capsnet fast, bf16, compiled"
    on_cuda = contestants.headline(contestants.NAMES, torch.device("cuda"))
    assert on_cuda == "capsnet plain, bf16, compiled"
    without_bfloat16 = [name for name in contestants.NAMES if "bf16" not in name]
    assert contestants.headline(without_bfloat16, CPU) == "capsnet fast, fp32, compiled"
    assert contestants.headline(["labml", "capsnet fast, fp32"], CPU) == "capsnet fast, fp32"


def test_minutes_of_another_machine_are_not_taken_for_this_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "RUNS", tmp_path)
    stored = ledger.read("time-to-accuracy/99.0/summary.json")
    options = stored["command"].split()[4:]
    (tmp_path / "99.0").mkdir()
    summary = tmp_path / "99.0" / "summary.json"

    def trains(*_: str) -> list[str]:
        raise InterruptedError

    monkeypatch.setattr(accuracy, "capsnet", trains)
    here = stored["weights"]["machine"] = describe_machine(CPU)
    summary.write_text(json.dumps(stored))
    assert accuracy.one("99.0", 99.0, options, CPU)["seconds"] == stored["seconds"]
    stored["weights"]["machine"] = here | {"threads": 1 + here["threads"]}
    summary.write_text(json.dumps(stored))
    with pytest.raises(InterruptedError):
        accuracy.one("99.0", 99.0, options, CPU)


def test_no_contestants_process_is_below_the_floor() -> None:
    floor = memory.run_alone("benchmarks.memory", "cpu", "floor")
    parameters, gradients_and_averages = 4 * 8_215_568, 12 * 8_215_568
    assert floor["optimizer"] - floor["import"] > parameters + gradients_and_averages
    document = ledger.read("bench/memory-cpu.json")
    floor = document["floor"]
    for name, peak in document["peaks"]["training step"].items():
        assert peak["process"] > floor["optimizer"] > floor["import"], name


def test_every_table_can_be_made_of_the_ledger() -> None:
    for part, table in tables.TABLES.items():
        document = ledger.read(f"bench/{part}-cpu.json")
        text = table(document, CPU)
        assert "nan" not in text
        if part == "speed":
            assert all(name in text for name in contestants.NAMES)
            assert tables.share_of_the_rate(document, "capsnet plain, bf16, compiled") < 1


def squash(s: Tensor) -> Tensor:
    norm = s.norm(dim=-1, keepdim=True)
    return norm / (1 + norm**2) * s
