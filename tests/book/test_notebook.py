"""What a chapter shows beside pictures: live source, and values for its prose."""

import ast

import IPython.display
import pytest

from capsnet_book import glue, source


def sample(x):
    """Twice x.

    Two lines.
    """
    # A comment
    y = 2 * x
    return y


def test_source_is_the_live_source_without_its_docstring() -> None:
    body = "# A comment\ny = 2 * x\nreturn y"
    indented = body.replace("\n", "\n    ")
    assert source(sample).data == f"```python\ndef sample(x):\n    {indented}\n```"
    assert source(sample, start="y = 2").data == "```python\ny = 2 * x\nreturn y\n```"
    with pytest.raises(ValueError, match="no line of sample holds 'z = '"):
        source(sample, start="z = ")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("99.64 %", "99.64\N{NO-BREAK SPACE}%"),
        ("99.64%", "99.64\N{NO-BREAK SPACE}%"),
        ("3 of 4, 75 %, and 1 pair", "3 of 4, 75\N{NO-BREAK SPACE}%, and 1 pair"),
        ("Shirt and T-shirt/top", "Shirt and T-shirt/top"),
    ],
)
def test_a_percent_sign_stays_with_its_number(value, said, monkeypatch) -> None:
    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda data, **_: shown.append(data))
    glue("share", value)
    (stored,) = shown[0].values()
    assert ast.literal_eval(stored) == said
    assert stored == f"'{said}'"  # the book shows what stands between the quotes
