"""The docstrings of the axioms are statements, and the reference page is made from them."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from whyrank.core import WhyrankError
from whyrank.studies.axioms import axioms, sections
from whyrank.studies.axioms.counts import TFC1
from whyrank.studies.axioms.statements import FAMILIES, Statement, reference_page, statements

PAGE = Path(__file__).parents[3] / "docs" / "axioms-reference.md"
ALL = [statement for members in statements().values() for statement in members]


def test_the_committed_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference_page(), "run `make docs` and commit what it wrote"


def test_the_module_prints_the_page():
    done = subprocess.run(
        [sys.executable, "-m", "whyrank.studies.axioms.statements"], capture_output=True, check=True
    )
    assert done.stdout.decode("utf-8") == reference_page()


def test_every_axiom_is_in_one_family():
    listed = [f"axiom/{name}" for names in FAMILIES.values() for name in names]
    assert sorted(listed) == axioms.names()


def test_the_sections_of_a_docstring():
    found = Statement.of(TFC1)
    assert found.name == "TFC1"
    assert found.summary == "Of two texts of about the same length, the one with more query terms wins."
    assert found.original.startswith(
        "for a query of one term q and |D1| = |D2|, c(q, D1) > c(q, D2) implies S(Q, D1)"
    )
    assert found.adapted.endswith("the absolute difference is meant and used.")
    assert found.formula.splitlines()[1] == "sum_q c(q, D1) > sum_q c(q, D2)."
    assert found.conclusion == "S(Q, D1) > S(Q, D2)."
    assert (found.compat, found.concludes) == ("the same.", "strict")
    assert found.paper.endswith('"Diagnosing BERT with retrieval heuristics", ECIR 2020.')
    [own] = [argument for argument in found.arguments if argument.own]
    assert (own.name, own.default) == ("length", 10)
    shared = {argument.name: argument for argument in found.arguments if not argument.own}
    assert shared["max_tokens"].default == 512
    assert shared["seed"].meaning == "of that sample."


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


def test_a_missing_section_is_named():
    class Other(TFC1):
        """Nothing.

        Original: no.
        """

    with pytest.raises(WhyrankError, match="axiom TFC1: its docstring has no section 'Adapted:'"):
        Statement.of(Other)


def test_attributes_of_a_docstring_say_what_arguments_mean():
    class Other(TFC1):
        __doc__ = (
            f"{TFC1.__doc__}\n    Attributes:\n        length: how much\n            longer.\n        seed: mine.\n"
        )

    meanings = {argument.name: argument.meaning for argument in Statement.of(Other).arguments}
    assert (meanings["length"], meanings["seed"]) == ("how much longer.", "mine.")
    assert Statement.of(Other).paper == Statement.of(TFC1).paper


@pytest.mark.parametrize("statement", ALL, ids=[statement.name for statement in ALL])
def test_a_statement_is_whole(statement):
    axiom = axioms.factory(f"axiom/{statement.name}")
    for field in dataclasses.fields(statement):
        value = getattr(statement, field.name)
        if field.name != "compat" and isinstance(value, str):
            assert value.strip(), field.name
    assert bool(statement.compat) == ("compat" not in axiom.not_filled)
    assert statement.concludes == axiom().concludes
    relation = re.search(r"(>=|>)", statement.conclusion)
    assert relation, "the conclusion says which score is higher"
    assert relation[1] == {"strict": ">", "weak": ">="}[statement.concludes]
    assert re.search(r"\b(19|20)\d\d\.$", statement.paper), "the paper ends with its year"
    assert [argument.name for argument in statement.arguments] == [field.name for field in dataclasses.fields(axiom)]
    assert all(argument.meaning for argument in statement.arguments), "an argument has no meaning in words"


def test_the_page_has_a_section_for_each_and_keeps_formulas():
    page = reference_page()
    for statement in ALL:
        name = statement.name
        assert page.count(f"\n### {name}\n") == 1
        assert f"[{name}](#{name.lower()})" in page
        body = page.split(f"\n### {name}\n")[1].split("\n#")[0]
        assert f"\n```text\n{statement.formula}\n```\n" in body
        assert f"**Conclusion** ({statement.concludes}): `" in body
        assert ("**`compat=camara-hauff`**" in body) == bool(statement.compat)
        for argument in statement.arguments:
            assert (f"| `{argument.name}` | " in body) == argument.own


def test_nothing_is_left_for_markdown_to_eat():
    text = re.sub(r"^```.*?^```$", "", reference_page(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]+`|\*\*|<!--.*-->|\]\(#|\\.", "", text)
    assert not re.search(r"[*<>]|(?<!\w)_|_(?!\w)", text)


def test_lines_begin_as_prose_tables_or_headings():
    text = re.sub(r"^```.*?^```$", "", reference_page(), flags=re.MULTILINE | re.DOTALL)
    starts = {line[:1] for line in text.splitlines() if line}
    assert starts <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ*|#-`<") | set("abcdefghijklmnopqrstuvwxyz")
