"""What a term table says of the values of a grid."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from whyrank.core import Floats, WhyrankError
from whyrank.studies.bias.grid import Grid
from whyrank.tables import TermTable
from whyrank.text import Analyzer, analyzers


def table_weights(table: TermTable, grid: Grid) -> Floats:
    """The weight of each value for the grid's query term; NaN where the table has no entry.

    Where values are appended to words: the weight of the longer word for the word itself, on average over templates.
    """
    if not grid.appended:
        return np.array([_weight(table, grid.term, value) for value in grid.values])
    found = np.array(
        [[_weight(table, t.term, t.term + value) for value in grid.values] for t in grid.templates]
    ).reshape(len(grid), len(grid.values))
    return appended_weights(found)


def appended_weights(found: Floats) -> Floats:
    """The mean weight of each value (columns) over templates; NaN where none has an entry.

    What templates weigh is out of it where some entries are missing: it is the mean of all, and how much more a value
    weighs than all values of the same template that have an entry. Templates with one entry tell nothing.
    """
    found = found[np.isfinite(found).sum(axis=1) > 1]
    known = np.isfinite(found)
    if not known.any():
        return np.full(known.shape[1], np.nan)
    gaps = found - np.nanmean(found, axis=1, keepdims=True)
    count = known.sum(axis=0)
    means: Floats = np.divide(np.nansum(gaps, axis=0), count, out=np.full(len(count), np.nan), where=count > 0)
    return means + float(found[known].mean())


@lru_cache(maxsize=100_000)
def spelled(analyzer: str, word: str, query: bool) -> str:
    """A word as an analyzer writes it; in small letters where it is unknown or makes not one term of the word."""
    made = _made(analyzer)
    if made is None:
        return word.lower()
    terms = made.query_terms(word) if query else made.terms(word)
    return terms[0] if len(terms) == 1 else word.lower()


def doc_term(table: TermTable, value: str) -> str:
    """A value as a document term of a table: as its analyzer writes it, in small letters where it has only those."""
    analyzer = str(table.facts.get("analyzer", ""))
    term = spelled(analyzer, value, False)
    return term if term in table.doc_numbers else spelled(analyzer, value.lower(), False)


@lru_cache(maxsize=8)
def _made(analyzer: str) -> Analyzer | None:
    """An analyzer, made once: some read a lexicon. None for that of a table from elsewhere."""
    try:
        return analyzers.create(analyzer) if analyzer else None
    except WhyrankError:
        return None


def _weight(table: TermTable, term: str | None, value: str) -> float:
    """NaN without an entry: a pair below the threshold of a table is not known to weigh nothing."""
    if not term:
        return np.nan
    asked, found = spelled(str(table.facts.get("analyzer", "")), term, True), doc_term(table, value)
    return table.weight(asked, found) if table.has(asked, found) else np.nan
