"""Results as aligned text, and bars."""

import dataclasses
import sys

import pytest
import torch

from capsnet.text import bar_interval, columns, reason, stderr_is_terminal
from capsnet_lab.cli.outputs import confusion_text, per_class_table
from helpers.tiny import FP32, fit, some_digits, tiny_model


def test_columns_line_up() -> None:
    assert columns([["a", "1"], ["bcd", "23"]]) == "a     1\nbcd  23"
    assert per_class_table([(977, 980), (0, 0), (1, 3)], ["0", "1", "two"]) == (
        "class  correct  accuracy\n"
        "0      977/980   99.69 %\n"
        "1          0/0         –\n"
        "two        1/3   33.33 %\n"
        "all    978/983   99.49 %"
    )
    assert confusion_text(torch.tensor([[5, 2], [0, 17]]), ["a", "b"]) == (
        "true \\ predicted  a   b\n"
        "a                 5   2\n"
        "b                 ·  17"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "expected"),
    [(OSError(28, "No space left"), "No space left"), (ValueError("\n one\ntwo"), "one"),
     (KeyboardInterrupt(), "KeyboardInterrupt")],
)  # fmt: skip
def test_the_reason_of_an_error(error: BaseException, expected: str) -> None:
    assert reason(error) == expected


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_moves_on_a_terminal(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert (stderr_is_terminal(), bar_interval()) == (terminal, 0.2 if terminal else 15)


def test_without_stderr_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # as where it was closed
    assert (stderr_is_terminal(), bar_interval()) == (False, 15)
    one = dataclasses.replace(FP32, epochs=1)
    assert len(fit(tiny_model(), some_digits(128), None, one, progress=True)) == 1
    assert capsys.readouterr().out == ""
