"""What the contracts try objects on: the bundled sample, and texts that trip the careless."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from whyrank.core import Codes, Ints
from whyrank.data import Collection, open_collection
from whyrank.studies import Pool

QUERIES = ("berlin wall", "who is robert gray", "naïve Bayes 文", "wall wall", "?", "")
TEXTS = (
    "The Berlin Wall fell in 1989; the wall had stood since 1961.",
    "Robert Gray was an explorer. He wasn't the only one!",
    "naïve   Bayes\nclassifiers\tare simple",
    "文字 and emoji 😀 and e\u0301",
    "wall " * 200,
    "?!… --- ...",
    "x",
    "",
)
PAIRS = tuple((query, text) for query in QUERIES for text in TEXTS)


@cache
def sample() -> Collection:
    """The bundled sample, opened once."""
    return open_collection("sample")


def take(pool: Pool, order: Ints | Codes) -> Pool:
    """A pool with some of its documents, in another order."""
    doc_ids = [pool.doc_ids[i] for i in order]
    return replace(pool, doc_ids=doc_ids, rows=pool.rows[order], relevance=pool.relevance[order])
