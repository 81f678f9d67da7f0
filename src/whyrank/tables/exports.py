"""Term tables for search engines: synonym files, and weighted query expansions as JSON."""

from __future__ import annotations

import json
import re
from os import PathLike
from typing import NamedTuple

import numpy as np

from whyrank.core import replacing
from whyrank.tables.figures import self_entries
from whyrank.tables.table import TermTable

_SPECIAL = re.compile(r"\[[A-Za-z]+\d*\]|</?[A-Za-z_]+\d*>")  # [CLS], [unused7], <s>, </s>, <mask>
_TRIMMED = "".join(map(chr, range(33)))


class Written(NamedTuple):
    """How many lines a file has, how many associations they hold, and how many were left out."""

    lines: int
    entries: int
    left_out: int


def write_synonyms(
    table: TermTable, path: str | PathLike[str], threshold: float | None = None, top: int | None = None,
    equivalent: bool = False, replace: bool = False,
) -> Written:  # fmt: skip
    """Write a synonym file in the format of Solr, which Lucene, Elasticsearch and OpenSearch read too.

    The format has no weights: only associations with a weight of at least `threshold` count, and of those the best
    `top` of each query term. That a term is associated with itself is not written, nor are special tokens of a
    tokenizer, such as [CLS], which no text has. Terms may have several words.

    Lines are `a => a, b, c`, with the term itself first on the right, else the engine would give it up. With
    `replace` they are `a => b, c`, so that the engine no longer looks for `a` itself; with `equivalent` they are
    pairs `a, b` that count in both directions, each once.
    """
    table = _without_special(table)
    chosen = table.select(~self_entries(table)).prune(threshold, top)
    terms = {term for side in (table.query_terms, table.doc_terms) for term in side}
    fitting = {t for t in terms if t == t.strip().strip(_TRIMMED) and not ("\n" in t or "\r" in t)}  # as readers trim
    whole = chosen.prune(vocabulary=fitting)
    lines, written = [], set[tuple[str, str]]()
    for term in whole.compact().query_terms:
        answers = [each.term for each in whole.doc_terms_for(term, None)]
        if equivalent:
            answers = [other for other in answers if (other, term) not in written]
            written.update((term, other) for other in answers)
            lines += [f"{_escape(term)}, {_escape(other)}" for other in answers]
        else:
            right = answers if replace else [term, *answers]
            lines.append(f"{_escape(term)} => {', '.join(map(_escape, right))}")
    with replacing(path) as beside:
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return Written(len(lines), len(whole), len(chosen) - len(whole))


def write_expansions(
    table: TermTable, path: str | PathLike[str], threshold: float | None = None, top: int | None = None
) -> Written:
    """Write `{query term: [[document term, weight], ...]}` as JSON, a line per query term, largest weights first."""
    chosen = _without_special(table).prune(threshold, top).compact()
    with replacing(path) as beside, open(beside, "w", encoding="utf-8", newline="\n") as file:
        file.write("{")
        for i, term in enumerate(chosen.query_terms):
            answers = [[each.term, short(each.weight)] for each in chosen.doc_terms_for(term, None)]
            row = f"{json.dumps(term, ensure_ascii=False)}: {json.dumps(answers, ensure_ascii=False)}"
            file.write(f"{',' if i else ''}\n{row}")
        file.write("\n}\n")
    return Written(len(chosen.query_terms), len(chosen), 0)


def _without_special(table: TermTable) -> TermTable:
    """A table of WordPiece tokens without the special ones, such as [CLS]; other tables as they are."""
    terms = {term for side in (table.query_terms, table.doc_terms) for term in side}
    special = set(filter(_SPECIAL.fullmatch, terms))
    if not special or not str(table.facts.get("analyzer")).startswith("wordpiece"):
        return table
    return table.prune(vocabulary=terms - special)


def _escape(term: str) -> str:
    """A term as it stands in a synonym file: a backslash before commas, backslashes, arrows and a `#` in front."""
    text = term.replace("\\", "\\\\").replace(",", "\\,").replace("=>", "\\=>")
    return f"\\{text}" if text.startswith("#") else text


def short(weight: float) -> float:
    """The number of the shortest decimal that is the same weight in single precision."""
    return float(str(np.float32(weight)))
