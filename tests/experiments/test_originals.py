"""Our networks compared with what the published code computed, where that still runs."""

import pytest
import torch

from capsnet_book import ledger
from capsnet_lab.wild import WildLoss
from experiments.studies.originals import answer_of, batch, example

RECORDS = ledger.read("originals.json")["networks"]
RUN = [name for name, record in RECORDS.items() if record["runs"]]


@pytest.mark.parametrize("name", RUN)
def test_equals_what_the_published_code_computed(name: str) -> None:
    """Lengths, loss, and the norms of all gradients."""
    images, labels = batch()
    model = example(name, images)
    ours = answer_of(model(images).lengths, WildLoss(model)(images, labels), model)
    for part, numbers in RECORDS[name]["answer"].items():
        seen, expected = (torch.tensor(of, dtype=torch.float64) for of in (ours[part], numbers))
        assert (seen - expected).norm() < 1e-9 * expected.norm(), part
