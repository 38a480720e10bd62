"""The read-out of how a digit was written, and what the ledger says of it."""

import torch

from capsnet_book import ledger
from experiments.handwriting import fit_read_out, read_out


def test_what_is_linear_in_the_capsules_is_read_out_exactly() -> None:
    torch.manual_seed(0)
    labels = torch.arange(60) % 2
    v = torch.randn(60, 2, 4)
    v[torch.arange(60), labels] *= 10  # the longest capsule is that of the label
    v = torch.cat([v, torch.ones(60, 2, 1)], dim=2)
    truth = torch.randn(2, 5, 3)
    measured = torch.einsum("nd,ndp->np", v[torch.arange(60), labels], truth[labels])
    torch.testing.assert_close(fit_read_out(v, measured, labels), truth, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(read_out(truth, v), measured)


def test_the_read_out_of_the_ledger_errs_far_less_than_the_mean_would() -> None:
    record = ledger.read("page/handwriting.json")
    errors, spread = record["mean absolute error"], record["standard deviation"]
    assert all(error < 0.3 * deviation for error, deviation in zip(errors, spread, strict=True))
    assert torch.tensor(record["fit"]).shape == (10, 17, 3)
    low, high = torch.tensor(record["quartiles"]).unbind(dim=1)
    assert bool((low < high).all())
