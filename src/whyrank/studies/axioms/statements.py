"""What the axioms say: the sections of their docstrings, and the reference page that is made from them.

`python -m whyrank.studies.axioms.statements` prints the page; `make docs` writes it to `docs/axioms-reference.md`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from whyrank.core import WhyrankError, format_value
from whyrank.studies.axioms import axioms
from whyrank.studies.axioms.axiom import COMPAT, Axiom

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
NEEDED = ("Original", "Adapted", "Formula", "Conclusion", "Paper")

_HEADING = re.compile(r"^(Original|Adapted|Formula|Conclusion|Compat|Paper|Attributes):[ \n]", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^ *(\w+): (.+(?:\n {8,}\S.*)*)", re.MULTILINE)
_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*<>\[\]]|(?<!\w)_|_(?!\w))")
_FORMULA_END = re.compile(r"[.;](?: |$)")
_MEANINGS = {
    "length": "how far the lengths may differ: tokens, or a share of the longer text such as `10%`",
    "idf": "how far the rarity of two terms may differ: a number, or a share of the larger such as `10%`",
    "variant": "`strict`, one more of some other word; `length`, the longer text",
    "copies": "how many copies; `None` takes as many as fit into `max_tokens`",
    "scores": "a run (its name or file) whose scores say which texts are alike; `None`: their counts and lengths do",
    "margin": "how far scores of that run may differ: a number, or a share of the larger such as `10%`",
    "coverage": "`distinct` or `occurrences`: what is counted where the texts must have as many query terms",
    "distance": "largest cosine distance of texts that count as alike",
}


class Argument(NamedTuple):
    """An argument of an axiom: its name, default and meaning; `own` where not all axioms have it."""

    name: str
    default: Any
    meaning: str
    own: bool


@dataclass(frozen=True)
class Statement:
    """An axiom in words and formulas; `compat` is empty where there is no such mode."""

    name: str
    summary: str
    original: str
    adapted: str
    formula: str
    conclusion: str
    compat: str
    paper: str
    arguments: tuple[Argument, ...]
    concludes: str
    compat_concludes: str

    @classmethod
    def of(cls, axiom: type[Axiom]) -> Statement:
        """Read the docstring of an axiom; an error names the section that it lacks."""
        parts = sections(axiom.__doc__ or "")
        if missing := [key for key in NEEDED if not parts.get(key)]:
            raise WhyrankError(f"axiom {axiom.name}: its docstring has no section '{missing[0]}:'")
        prose = {key.lower(): _joined(parts.get(key, "")) for key in (*NEEDED, "Compat")}
        words = {**prose, "formula": parts["Formula"], "summary": _joined(parts[""])}
        modes = [axiom(compat=mode).concludes for mode in (None, *COMPAT) if mode is None or words["compat"]]
        return cls(
            axiom.name, **words, arguments=tuple(_arguments(axiom)), concludes=modes[0], compat_concludes=modes[-1]
        )


def sections(docstring: str) -> dict[str, str]:
    """The sections of a docstring by heading; what stands before the first heading is under the empty one."""
    text = inspect.cleandoc(docstring)
    found = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in found), len(text)]
    parts = {match[1]: text[match.end() : end].strip() for match, end in zip(found, ends[1:], strict=True)}
    return {"": text[: ends[0]].strip(), **parts}


def statements() -> dict[str, list[Statement]]:
    """The statements of the axioms that whyrank brings, by family."""
    return {
        family: [Statement.of(axioms.factory(f"axiom/{name}")) for name in names]
        for family, names in FAMILIES.items()
    }


def reference_page() -> str:
    """The reference of all axioms, in Markdown."""
    found = statements()
    contents = [f"- {family}: {', '.join(_link(s.name) for s in members)}" for family, members in found.items()]
    blocks = [_INTRODUCTION, "\n".join(contents), _SHARED, _table(_shared())]
    for family, members in found.items():
        blocks += [f"## {family}", *_notes(family), *(block for s in members for block in _section(s))]
    return "\n\n".join(blocks) + "\n"


def _notes(family: str) -> Iterator[str]:
    """What the modules of a family say beyond their first line."""
    modules = dict.fromkeys(inspect.getmodule(axioms.factory(f"axiom/{name}")) for name in FAMILIES[family])
    for module in modules:
        _, *rest = inspect.cleandoc(module.__doc__ or "").split("\n\n")
        yield from (_prose(_joined(paragraph)) for paragraph in rest)


def _section(statement: Statement) -> Iterator[str]:
    yield f"### {statement.name}"
    yield _prose(statement.summary)
    yield f"**Original:** {_prose(statement.original)}"
    yield f"**Adapted:** {_prose(statement.adapted)}"
    yield f"**Formula:**\n\n```text\n{statement.formula}\n```"
    yield f"**Conclusion** ({statement.concludes}): {_concluded(statement.conclusion)}"
    if statement.compat:
        yield f"**`compat={COMPAT[0]}`** ({statement.compat_concludes}): {_prose(statement.compat)}"
    if own := [argument for argument in statement.arguments if argument.own]:
        yield _table(own)
    yield f"**Paper:** {_prose(statement.paper)}"


def _table(arguments: Iterable[Argument]) -> str:
    rows = [f"| `{a.name}` | `{format_value(a.default)}` | {_cell(a.meaning)} |" for a in arguments]
    return "\n".join(["| argument | default | meaning |", "| --- | --- | --- |", *rows])


def _arguments(axiom: type[Axiom]) -> Iterator[Argument]:
    """The arguments of an axiom; its own are those that not all axioms have with this default and meaning."""
    shared, common = {field.name: field.default for field in dataclasses.fields(Axiom)}, _attributes(Axiom)
    meanings = _MEANINGS | {
        name: words for base in reversed(axiom.__mro__) for name, words in _attributes(base).items()
    }
    for field in dataclasses.fields(axiom):
        any_length = field.name == "length" and "None" in str(field.type)
        meaning = meanings.get(field.name, "") + ("; `None`: any" if any_length else "")
        usual = field.name in shared and (field.default, meaning) == (shared[field.name], common[field.name])
        yield Argument(field.name, field.default, meaning, own=not usual)


def _shared() -> list[Argument]:
    return list(_arguments(Axiom))


def _attributes(axiom: type) -> dict[str, str]:
    listed = sections(axiom.__doc__ or "").get("Attributes", "")
    return {name: _joined(meaning) for name, meaning in _ATTRIBUTE.findall(listed)}


def _concluded(text: str) -> str:
    """The formula of a conclusion as code, and what is said about it as prose."""
    end = _FORMULA_END.search(text)
    formula, rest = (text[: end.start()], text[end.start() :]) if end else (text, "")
    return f"`{formula}`{_prose(rest)}"


def _prose(text: str) -> str:
    """Text whose special characters Markdown leaves alone; code stays as it is."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def _cell(text: str) -> str:
    return _prose(text.removesuffix(".")).replace("|", "\\|")


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _joined(text: str) -> str:
    return " ".join(text.split())


_INTRODUCTION = """# Axioms: reference

<!-- Written by `make docs` from the docstrings of the axioms; edit those. -->

What every axiom asks, in words and as a formula, and where it comes from. `Q` is the set of distinct query terms,
`c(t, D)` how often the text `D` has the term `t`, `|D|` the number of its tokens, `S(Q, D)` the score of a ranker.
Tokens are those of the analyzer. Unless a section says otherwise, `D1` is the text that must win. A strict conclusion
asks for a higher score, a weak one for a score that is not lower; `conclusion=strict` and `conclusion=weak` override
it."""

_SHARED = """## Arguments of all axioms"""


if __name__ == "__main__":
    sys.stdout.buffer.write(reference_page().encode("utf-8"))
