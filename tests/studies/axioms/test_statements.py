"""The docstrings of the axioms state them, and the reference page is made from them."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from whyrank.studies.axioms import axioms

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))
page = importlib.import_module("generate.axioms")
sections, arguments, axioms_page = page.sections, page.arguments, page.axioms_page
NAMES = [name for names in page.FAMILIES.values() for name in names]


def test_every_axiom_is_in_one_family():
    assert sorted(f"axiom/{name}" for name in NAMES) == axioms.names()


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_says_what_the_axiom_does(name):
    """That its sections, arguments and formulas are on the page follows from the page being what they make."""
    axiom = axioms.factory(f"axiom/{name}")
    said = sections(axiom.__doc__)
    assert all(said.get(key) for key in ("Original", "Adapted", "Formula", "Conclusion", "Paper"))
    assert ("Compat" in said) == ("compat" not in axiom.not_filled)
    assert re.search(r"(>=|>)", said["Conclusion"])[1] == {"strict": ">", "weak": ">="}[axiom().concludes]
    assert re.search(r"\b(19|20)\d\d\.$", said["Paper"]), "the paper ends with its year"
    assert all(argument.meaning for argument in arguments(axiom))


def test_nothing_is_left_for_markdown_to_eat():
    text = re.sub(r"^```.*?^```$", "", axioms_page(), flags=re.MULTILINE | re.DOTALL)
    starts = {line[:1] for line in text.splitlines() if line}
    assert starts <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ*|#-`<") | set("abcdefghijklmnopqrstuvwxyz")
    text = re.sub(r"`[^`\n]+`|\*\*|<!--.*-->|\]\(#|\\.", "", text)
    assert not re.search(r"[*<>]|(?<!\w)_|_(?!\w)", text)
