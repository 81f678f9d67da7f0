"""The reference of axioms, made from the sections of their docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from generate.markdown import code, prose, table
from whyrank.core import format_value, hints_of, in_words
from whyrank.studies.axioms import axioms
from whyrank.studies.axioms.axiom import Axiom

FAMILIES = {
    "Term frequency": ("TFC1", "TFC2", "TFC3"),
    "Term discrimination": ("TDC", "M-TDC"),
    "Length": ("LNC1", "LNC2", "TF-LNC"),
    "Lower bounds": ("LB1", "LB2"),
    "Proximity": ("TP", "PROX1", "PROX2", "PROX3", "PROX4", "PROX5", "QPHRA"),
    "Coverage": ("AND", "M-AND", "DIV"),
    "Query aspects": ("REG", "ANTI-REG"),
    "Semantic matching": ("STMC1", "STMC2", "STMC3"),
}

COMPAT = "camara-hauff"
_HEADING = re.compile(r"^(Original|Adapted|Formula|Conclusion|Compat|Paper|Attributes):[ \n]", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^ *(\w+): (.+(?:\n {8,}\S.*)*)", re.MULTILINE)
_FORMULA_END = re.compile(r"[.;](?: |$)")
_INTRODUCTION = """# Axioms: reference

What every axiom asks, in words and as a formula, and where it comes from. `Q` is the set of distinct query terms,
and `c(t, D)` is how often the text `D` has the term `t`. `|D|` is the number of its tokens, `S(Q, D)` the score of a
ranker. Tokens are those of the analyzer. Unless a section says otherwise, `D1` is the text that must win. A strict
conclusion asks for a higher score, a weak one for a score that is not lower; `conclusion=strict` and
`conclusion=weak` override it."""


class Argument(NamedTuple):
    """An argument of an axiom: its name, default, values and meaning."""

    name: str
    default: Any
    values: str
    meaning: str


def sections(docstring: str) -> dict[str, str]:
    """The sections of a docstring by heading; what stands before the first heading is under the empty one."""
    text = inspect.cleandoc(docstring)
    found = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in found), len(text)]
    parts = {match[1]: text[match.end() : end].strip() for match, end in zip(found, ends[1:], strict=True)}
    return {"": text[: ends[0]].strip(), **parts}


def arguments(axiom: type[Axiom]) -> list[Argument]:
    """The arguments of an axiom, with the meanings that it or a class above it gives in its docstring."""
    meanings: dict[str, str] = {}
    for base in reversed(axiom.__mro__):
        meanings |= dict(_ATTRIBUTE.findall(sections(base.__doc__ or "").get("Attributes", "")))
    hints = hints_of(axiom)
    return [
        Argument(f.name, f.default, in_words(hints[f.name]), _one_line(meanings[f.name]))
        for f in dataclasses.fields(axiom)
    ]


def axioms_page() -> str:
    """The reference of all axioms, in Markdown."""
    links = {family: ", ".join(f"[{name}](#{name.lower()})" for name in names) for family, names in FAMILIES.items()}
    contents = "\n".join(f"- {family}: {linked}" for family, linked in links.items())
    blocks = [_INTRODUCTION, contents, "## Arguments of all axioms", _table(arguments(Axiom))]
    for family, names in FAMILIES.items():
        members = [axioms.factory(f"axiom/{name}") for name in names]
        blocks.append(f"## {family}")
        for module in dict.fromkeys(map(inspect.getmodule, members)):  # what it says beyond its first line
            _, *notes = inspect.cleandoc(module.__doc__ or "").split("\n\n")
            blocks += [prose(note) for note in notes]
        blocks += [block for axiom in members for block in _section(axiom)]
    return "\n\n".join(blocks) + "\n"


def _section(axiom: type[Axiom]) -> Iterator[str]:
    """The blocks of one axiom."""
    said = sections(axiom.__doc__ or "")
    yield f"### {axiom.name}"
    yield prose(said[""])
    yield f"**Original:** {prose(said['Original'])}"
    yield f"**Adapted:** {prose(said['Adapted'])}"
    yield f"**Formula:**\n\n```text\n{said['Formula']}\n```"
    conclusion = _one_line(said["Conclusion"])
    end = _FORMULA_END.search(conclusion)
    formula, rest = (conclusion[: end.start()], conclusion[end.start() :]) if end else (conclusion, "")
    yield f"**Conclusion** ({axiom().concludes}): `{formula}`{prose(rest)}"
    if "Compat" in said:
        yield f"**`compat={COMPAT}`** ({axiom(compat=COMPAT).concludes}): {prose(said['Compat'])}"
    if own := [argument for argument in arguments(axiom) if argument not in arguments(Axiom)]:
        yield _table(own)
    yield f"**Paper:** {prose(said['Paper'])}"


def _table(listed: Iterable[Argument]) -> str:
    rows = [
        [code(name), code(format_value(default)), values, prose(meaning.removesuffix("."))]
        for name, default, values, meaning in listed
    ]
    return table(["argument", "default", "values", "meaning"], rows)


def _one_line(text: str) -> str:
    return " ".join(text.split())
