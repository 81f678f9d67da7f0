"""The docstrings of the axioms state them, and the reference page is made from them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from whyrank.studies.axioms import axioms

DOCS = Path(__file__).parents[3] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "axioms_reference.py"))
sections, arguments, reference_page = SCRIPT["sections"], SCRIPT["arguments"], SCRIPT["reference_page"]
NAMES = [name for names in SCRIPT["FAMILIES"].values() for name in names]


def test_the_committed_page_is_what_the_script_prints():
    committed = (DOCS / "axioms-reference.md").read_text(encoding="utf-8")
    assert committed == reference_page(), "run `make docs` and commit what it wrote"


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
    text = re.sub(r"^```.*?^```$", "", reference_page(), flags=re.MULTILINE | re.DOTALL)
    starts = {line[:1] for line in text.splitlines() if line}
    assert starts <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ*|#-`<") | set("abcdefghijklmnopqrstuvwxyz")
    text = re.sub(r"`[^`\n]+`|\*\*|<!--.*-->|\]\(#|\\.", "", text)
    assert not re.search(r"[*<>]|(?<!\w)_|_(?!\w)", text)
