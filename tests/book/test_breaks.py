"""What *Line by line* says of Procedure 1 with one line changed."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest
import torch

from address import ROOT
from capsnet.functional import RoutingStep, dynamic_routing
from capsnet_book import breaks
from capsnet_book.breaks import CHANGES, Break

SEED = torch.Generator().manual_seed(0)
VOTES = 3 * torch.randn(1, 60, 10, 16, generator=SEED, dtype=torch.float64)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_fails_the_test_that_it_names(change: Break) -> None:
    path = ROOT / "tests/capsnet/test_functional.py"
    spec = spec_from_file_location("changed", path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["dynamic_routing"] = breaks.broken(change)
    runs = {
        "test_eq3_couplings_of_a_child_sum_to_1": lambda test: test.hypothesis.inner_test(
            VOTES, 3, 0
        ),
        "test_procedure_1_in_every_variable_of_every_iteration": lambda test: test(
            torch.float64, 1e-10, with_prior=True, iterations=3, device=torch.device("cpu")
        ),
    }
    for name, run in runs.items():
        if name == change.test:
            with pytest.raises(AssertionError):
                run(getattr(module, name))
        elif not change.test:
            run(getattr(module, name))


def test_the_first_lengths_and_pictures_are_those_of_the_routing_as_it_is() -> None:
    data = breaks.data(VOTES)
    lengths = data["lengths"]
    torch.testing.assert_close(lengths[0], dynamic_routing(VOTES)[0].norm(dim=1))
    torch.testing.assert_close(lengths[-1], lengths[0])  # the last update, too
    assert data["c"].shape == (1 + len(CHANGES), 10, 5)
    for name in RoutingStep._fields:
        assert data[name].amax((1, 2)).tolist() == [255] * (1 + len(CHANGES))
    for change in CHANGES:
        assert sum(change.line in line for line in data["code"]) == 1


def test_a_line_that_is_gone_is_told() -> None:
    with pytest.raises(ValueError, match="expected 'c = 1' once in dynamic_routing"):
        breaks.broken(CHANGES[0]._replace(line="c = 1"))
