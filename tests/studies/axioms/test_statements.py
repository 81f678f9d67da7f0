"""The docstrings of the axioms state them, and the reference page is made from them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from whyrank.studies.axioms import NEEDED, axioms, sections
from whyrank.studies.axioms.axiom import Axiom
from whyrank.studies.axioms.statements import FAMILIES, arguments, reference_page

PAGE = Path(__file__).parents[3] / "docs" / "axioms-reference.md"
NAMES = [name for names in FAMILIES.values() for name in names]


def test_the_committed_page_is_what_the_module_prints():
    assert PAGE.read_text(encoding="utf-8") == reference_page(), "run `make docs` and commit what it wrote"
    command = [sys.executable, "-m", "whyrank.studies.axioms.statements"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8") == reference_page()


def test_every_axiom_is_in_one_family():
    assert sorted(f"axiom/{name}" for name in NAMES) == axioms.names()


def test_sections_by_hand():
    text = """One line.

    More of it.
    Original: a: b
      and c.
    Paper:
    nobody.

    Attributes:
        x: first
            and on
    """
    assert sections(text) == {
        "": "One line.\n\nMore of it.",
        "Original": "a: b\n  and c.",
        "Paper": "nobody.",
        "Attributes": "x: first\n        and on",
    }
    assert sections("Only words.") == {"": "Only words."}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_a_section_for_each_and_keeps_formulas(name):
    axiom, page = axioms.factory(f"axiom/{name}"), reference_page()
    said, shared = sections(axiom.__doc__), arguments(Axiom)
    assert all(said.get(key) for key in NEEDED)
    assert ("Compat" in said) == ("compat" not in axiom.not_filled)
    relation = re.search(r"(>=|>)", said["Conclusion"])
    assert relation[1] == {"strict": ">", "weak": ">="}[axiom().concludes]
    assert re.search(r"\b(19|20)\d\d\.$", said["Paper"]), "the paper ends with its year"
    assert page.count(f"\n### {name}\n") == 1
    assert f"[{name}](#{name.lower()})" in page
    body = page.split(f"\n### {name}\n")[1].split("\n#")[0]
    assert f"\n```text\n{said['Formula']}\n```\n" in body
    assert f"**Conclusion** ({axiom().concludes}): `" in body
    assert ("**`compat=camara-hauff`**" in body) == ("Compat" in said)
    for argument in arguments(axiom):
        assert argument.meaning
        assert (f"| `{argument.name}` | " in body) == (argument not in shared)


def test_nothing_is_left_for_markdown_to_eat():
    text = re.sub(r"^```.*?^```$", "", reference_page(), flags=re.MULTILINE | re.DOTALL)
    starts = {line[:1] for line in text.splitlines() if line}
    assert starts <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ*|#-`<") | set("abcdefghijklmnopqrstuvwxyz")
    text = re.sub(r"`[^`\n]+`|\*\*|<!--.*-->|\]\(#|\\.", "", text)
    assert not re.search(r"[*<>]|(?<!\w)_|_(?!\w)", text)
