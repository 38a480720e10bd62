"""Results as aligned text."""

import torch

from capsnet.text import columns, confusion_text, per_class_table


def test_columns_line_up() -> None:
    assert columns([["a", "1"], ["bcd", "23"]]) == "a     1\nbcd  23"
    assert per_class_table([(977, 980), (0, 0), (1, 3)], ["0", "1", "two"]) == (
        "class  correct  accuracy\n"
        "0      977/980   99.69 %\n"
        "1          0/0         –\n"
        "two        1/3   33.33 %\n"
        "all    978/983   99.49 %"
    )


def test_confusion_text() -> None:
    assert confusion_text(torch.tensor([[5, 2], [0, 17]]), ["a", "b"]) == (
        "true \\ predicted  a   b\n"
        "a                 5   2\n"
        "b                 ·  17"
    )  # fmt: skip
