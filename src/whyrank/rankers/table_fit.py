"""Whether a term table fits the words that a ranker looks up in it."""

from __future__ import annotations

import logging
from itertools import islice

from whyrank.core.errors import WhyrankError
from whyrank.data import Collection
from whyrank.data.term_table import TermTable
from whyrank.rankers.opening import Setting
from whyrank.text import Analyzer, analyzers

TOO_FEW, FEW = 0.1, 0.4  # tables of another subject, with the right analyzer, know 41% of the words and more
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
    learned = table.facts.get("analyzer", analyzer.id)
    share, where = _least_known(table, analyzer, collection)
    line = f"{ranker}: {path} was learned with {learned} and is looked up with {analyzer.id}"
    line += f"; it knows {share:.0%} of the words of the {where}" if share < FEW else ""
    if share < TOO_FEW or (share < FEW and learned != analyzer.id):
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
