"""Term tables for search engines: synonym files, and weighted query expansions as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace as changed
from os import PathLike
from typing import NamedTuple

import numpy as np

from whyrank.core import WhyrankError, replacing
from whyrank.tables.figures import self_entries
from whyrank.tables.table import TermTable
from whyrank.tables.words import flag
from whyrank.text.steps import lower

_OF_WORDS = ("whitespace", "words")  # analyzers whose terms are words of texts
_TRIMMED = "".join(map(chr, range(33)))


class Written(NamedTuple):
    """What a file holds: lines that count, the associations in them, and those that are comments.

    `left_out` associations have terms that the format cannot hold; `unknown` terms have no word.
    """

    lines: int
    entries: int
    flagged: int
    left_out: int
    unknown: int


def write_synonyms(
    table: TermTable, path: str | PathLike[str], threshold: float | None = None, top: int | None = None,
    equivalent: bool = False, replace: bool = False, words: Mapping[str, str] | None = None,
) -> Written:  # fmt: skip
    """Write a synonym file in the format of Solr, which Lucene, Elasticsearch and OpenSearch read too.

    The format has no weights: only associations with a weight of at least `threshold` count, and of those the best
    `top` of each query term. That a term is associated with itself is not written. Terms may have several words.

    Lines are `a => a, b, c`, with the term itself first on the right, else the engine would give it up. With
    `replace` they are `a => b, c`, so that the engine no longer looks for `a` itself; with `equivalent` they are
    pairs `a, b` that count in both directions, each once. A pair that a person should look at is a comment of its
    own, such as `# opposite: a => a, d` or `# name: a => a, e`; without what stands before it, it counts.

    Args:
        words: the word that texts write for each term; terms without one are left out. By default the table's own.
    """
    worded = in_words(table, words)
    chosen = worded.select(~self_entries(worded)).prune(threshold, top)
    fitting = {t for t in _terms(worded) if t == t.strip().strip(_TRIMMED) and not ("\n" in t or "\r" in t)}
    whole = chosen.prune(vocabulary=fitting)  # readers trim terms
    lines, seen, flagged = list[str](), set[tuple[str, str]](), 0
    for term in whole.compact().query_terms:
        others = [each.term for each in whole.doc_terms_for(term, None) if (each.term, term) not in seen]
        if equivalent:
            seen.update((term, other) for other in others)
        flags = {other: _flag(worded.word(term), worded.word(other), equivalent) for other in others}
        plain = [other for other in others if not flags[other]]
        together = [[other] for other in plain] if equivalent else [plain] * bool(plain)
        for group in [*together, *([other] for other in others if flags[other])]:
            right = ", ".join(map(_escape, group if replace or equivalent else [term, *group]))
            rule = f"{_escape(term)}{', ' if equivalent else ' => '}{right}"
            lines.append(f"# {flags[group[0]]}: {rule}" if flags[group[0]] else rule)
        flagged += len(others) - len(plain)
    with replacing(path) as beside:
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    associations = len(seen) if equivalent else len(whole)
    unknown = len(_terms(table)) - len(_terms(worded))
    return Written(len(lines) - flagged, associations - flagged, flagged, len(chosen) - len(whole), unknown)


def write_expansions(
    table: TermTable, path: str | PathLike[str], threshold: float | None = None, top: int | None = None,
    words: Mapping[str, str] | None = None,
) -> Written:  # fmt: skip
    """Write `{query term: [[document term, weight], ...]}` as JSON, a line per query term, largest weights first.

    Terms are written as words, as in a synonym file.
    """
    worded = in_words(table, words)
    chosen = worded.prune(threshold, top).compact()
    with replacing(path) as beside, open(beside, "w", encoding="utf-8", newline="\n") as file:
        file.write("{")
        for i, term in enumerate(chosen.query_terms):
            answers = [[each.term, short(each.weight)] for each in chosen.doc_terms_for(term, None)]
            row = f"{json.dumps(term, ensure_ascii=False)}: {json.dumps(answers, ensure_ascii=False)}"
            file.write(f"{',' if i else ''}\n{row}")
        file.write("\n}\n")
    return Written(len(chosen.query_terms), len(chosen), 0, 0, len(_terms(table)) - len(_terms(worded)))


def in_words(table: TermTable, words: Mapping[str, str] | None = None) -> TermTable:
    """The table with words of texts as terms, and in its `words` how texts spell them; terms without one go.

    Words are in lower case where terms are. An error is a table of stems that does not know their words.
    """
    made_by = table.facts.get("analyzer")
    if words is None:
        if not table.words and len(table) and isinstance(made_by, str) and made_by.split("(")[0] not in _OF_WORDS:
            remedy = "name texts that have them with --collection"
            raise WhyrankError(f"the table has stems or pieces of words ({made_by}), an engine needs words; {remedy}")
        words = {term: table.word(term) for term in _terms(table)}
    known = table.prune(vocabulary=words.keys()).compact()
    written = {term: lower(words[term]) if term == lower(term) else words[term] for term in _terms(known)}
    queries, docs = ([written[term] for term in side] for side in (known.query_terms, known.doc_terms))
    return changed(known, query_terms=queries, doc_terms=docs, words={written[t]: words[t] for t in written})


def _terms(table: TermTable) -> set[str]:
    return {*table.query_terms, *table.doc_terms}


def _flag(query_word: str, doc_word: str, both_ways: bool) -> str:
    return flag(query_word, doc_word) or (flag(doc_word, query_word) if both_ways else "")


def _escape(term: str) -> str:
    """A term as it stands in a synonym file: a backslash before commas, backslashes, arrows and a `#` in front."""
    text = term.replace("\\", "\\\\").replace(",", "\\,").replace("=>", "\\=>")
    return f"\\{text}" if text.startswith("#") else text


def short(weight: float) -> float:
    """The number of the shortest decimal that is the same weight in single precision."""
    return float(str(np.float32(weight)))
