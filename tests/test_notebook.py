"""Values for the prose of a chapter, as they are stored in its notebook."""

import ast

import IPython.display
import pytest

from capsnet_book import figures


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("99.64 %", "99.64\N{NO-BREAK SPACE}%"),
        ("99.64%", "99.64\N{NO-BREAK SPACE}%"),
        ("3 of 4, 75 %, and 1 pair", "3 of 4, 75\N{NO-BREAK SPACE}%, and 1 pair"),
        ("Shirt and T-shirt/top", "Shirt and T-shirt/top"),
    ],
)
def test_a_percent_sign_stays_with_its_number(value, said, monkeypatch):
    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda data, **_: shown.append(data))
    figures.glue("share", value)
    (stored,) = shown[0].values()
    assert ast.literal_eval(stored) == said
    assert stored == f"'{said}'"  # the book shows what stands between the quotes
