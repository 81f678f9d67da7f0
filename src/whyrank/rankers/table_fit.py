"""Whether a term table fits the words that a ranker looks up in it."""

from __future__ import annotations

import logging
from itertools import islice

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.data import Collection
from whyrank.data.term_table import TermTable
from whyrank.rankers.background import Background
from whyrank.rankers.opening import Setting
from whyrank.text import Analyzer, analyzers

TOO_FEW, FEW = 0.1, 0.4  # of words of another subject, a large table knows 77%, a small one 17% and more
_TEXTS, _QUERIES = 50, 100
log = logging.getLogger(__name__)


def analyzer_of(table: TermTable, path: str, own: str | None, setting: Setting) -> Analyzer:
    """The analyzer that a ranker names, else that of the table's facts, else that of the setting."""
    learned = table.facts.get("analyzer")
    if own or not isinstance(learned, str):
        return setting.analyzer_for(own)
    try:
        return analyzers.create(learned)
    except WhyrankError as error:
        raise WhyrankError(f"{path} was learned with {learned}: {error}; or name another with analyzer=...") from None


def check_fit(ranker: str, table: TermTable, path: str, analyzer: Analyzer, collection: Collection | None) -> None:
    """Raise an error where a table cannot know the words that are looked up in it; warn where that is likely.

    An error is a table that knows less than a tenth of the words of a collection, or less than four tenths when it
    was learned with another analyzer. The latter alone, and four tenths alone, are worth a warning.
    """
    share, where = _least_known(table, analyzer, collection)
    told = f"it knows {share:.0%} of the words of the {where}"
    _judge(f"{ranker}: {path}", table, analyzer, share, share < TOO_FEW, told)


def check_few(
    ranker: str, table: TermTable, path: str, analyzer: Analyzer, collection: Collection | None,
    background: Background,
) -> None:  # fmt: skip
    """The same for a ranker that matches the words themselves too, so that a table of few words is fine.

    What counts is the share of known words, or the share of the table's words that the statistics know, whichever is
    more. An error is a table that has no word in common with them, or less than four tenths of either when it was
    learned with another analyzer.
    """
    if not len(table):
        return
    known, where = _least_known(table, analyzer, collection)
    words = list({*table.query_terms, *table.doc_terms})
    used = float(np.mean(background.frequencies(words)[0] > 0)) if background.n_docs else 1.0
    share = max(used, known if collection else 0.0)
    told = f"it knows {known:.0%} of the words of the {where}; " if collection else ""
    _judge(
        f"{ranker}: {path}", table, analyzer, share, not share, f"{told}the statistics know {used:.0%} of its words"
    )


def _judge(what: str, table: TermTable, analyzer: Analyzer, share: float, wrong: bool, told: str) -> None:
    """An error or a warning where the share of known words is too small."""
    learned = table.facts.get("analyzer", analyzer.id)
    line = f"{what} was learned with {learned} and" if "analyzer" in table.facts else what
    line += f" is looked up with {analyzer.id}"
    line += f"; {told}" if share < FEW else ""
    if wrong or (share < FEW and learned != analyzer.id):
        raise WhyrankError(f"{line}; name the analyzer that it was learned with, or learn another table")
    if share < FEW or learned != analyzer.id:
        log.warning("note: %s", line)


def _least_known(table: TermTable, analyzer: Analyzer, collection: Collection | None) -> tuple[float, str]:
    """The share of known words in the first queries or texts of a collection, whichever is less, and which it is."""
    if collection is None:
        return 1.0, ""
    queries = [w for t in islice(collection.queries.values(), _QUERIES) for w in analyzer.query_terms(t)]
    texts = [w for t in islice(collection.docs.values(), _TEXTS) for w in analyzer.terms(t)]
    name = collection.name
    return min((_share(table, queries), f"queries of {name}"), (_share(table, texts), f"texts of {name}"))


def _share(table: TermTable, words: list[str]) -> float:
    """The share of words that either side of the table has; all, where there is no word."""
    known = sum(word in table.doc_numbers or word in table.query_numbers for word in words)
    return known / len(words) if words else 1.0
