"""Term tables for search engines: synonym files, and weighted query expansions as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple

import numpy as np

from whyrank.core import replacing
from whyrank.tables.algebra import kept, self_entries
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
    tokenizer, such as [CLS], which no text has.

    Args:
        table: the associations; a term may have several words.
        path: where to write.
        threshold: the smallest weight that counts.
        top: how many document terms a query term has at most.
        equivalent: write pairs `a, b` that count in both directions, instead of `a => a, b, c`.
        replace: write `a => b, c`, so that the engine no longer looks for `a` itself.
    """
    table = _of_texts(table)
    chosen = kept(table, ~self_entries(table)).pruned(threshold, top)
    whole = chosen.pruned(vocabulary={t for terms in (table.query_terms, table.doc_terms) for t in terms if _fits(t)})
    lines = list(_pairs(whole) if equivalent else _mappings(whole, replace))
    with replacing(path) as beside:
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return Written(len(lines), len(whole), len(chosen) - len(whole))


def write_expansions(
    table: TermTable, path: str | PathLike[str], threshold: float | None = None, top: int | None = None
) -> Written:
    """Write `{query term: [[document term, weight], ...]}` as JSON, a line per query term, largest weights first."""
    chosen = _of_texts(table).pruned(threshold, top)
    terms = [term for term, size in _sizes(chosen) if size]
    with replacing(path) as beside, open(beside, "w", encoding="utf-8", newline="\n") as file:
        file.write("{")
        for i, term in enumerate(terms):
            answers = [[each.term, short(each.weight)] for each in chosen.doc_terms_for(term, None)]
            row = f"{json.dumps(term, ensure_ascii=False)}: {json.dumps(answers, ensure_ascii=False)}"
            file.write(f"{',' if i else ''}\n{row}")
        file.write("\n}\n")
    return Written(len(terms), len(chosen), 0)


def _of_texts(table: TermTable) -> TermTable:
    """A table of WordPiece tokens without the special ones, such as [CLS]; other tables as they are."""
    terms = {term for side in (table.query_terms, table.doc_terms) for term in side}
    special = set(filter(_SPECIAL.fullmatch, terms))
    if not special or not str(table.facts.get("analyzer")).startswith("wordpiece"):
        return table
    return table.pruned(vocabulary=terms - special)


def _escaped(term: str) -> str:
    """A term as it stands in a synonym file: a backslash before commas, backslashes, arrows and a `#` in front."""
    text = term.replace("\\", "\\\\").replace(",", "\\,").replace("=>", "\\=>")
    return f"\\{text}" if text.startswith("#") else text


def _fits(term: str) -> bool:
    """Whether a synonym file can hold a term: it is one line, and readers trim white space and controls around it."""
    return term == term.strip().strip(_TRIMMED) and not ("\n" in term or "\r" in term)


def _mappings(table: TermTable, replace: bool) -> Iterator[str]:
    """A line per query term; the term itself comes first on the right, else the engine would give it up."""
    for term, size in _sizes(table):
        if size:
            answers = [_escaped(each.term) for each in table.doc_terms_for(term, None)]
            yield f"{_escaped(term)} => {', '.join(answers if replace else [_escaped(term), *answers])}"


def _pairs(table: TermTable) -> Iterator[str]:
    """A line per pair of terms, once, whichever of them asks for the other."""
    seen: set[tuple[str, str]] = set()
    for term, size in _sizes(table):
        for other, _ in table.doc_terms_for(term, None) if size else []:
            if (other, term) not in seen:
                seen.add((term, other))
                yield f"{_escaped(term)}, {_escaped(other)}"


def _sizes(table: TermTable) -> Iterator[tuple[str, int]]:
    """Each query term with the number of its entries."""
    yield from zip(table.query_terms, (table.indptr[1:] - table.indptr[:-1]).tolist(), strict=True)


def short(weight: float) -> float:
    """The number of the shortest decimal that is the same weight in single precision."""
    return float(str(np.float32(weight)))
