"""Term tables for rankers: opened and checked, with their analyzer, and whether they fit what is looked up."""

from __future__ import annotations

import logging
import os
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np

from whyrank.core import BadInput, Call, WhyrankError, parse_call
from whyrank.data import Collection
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.opening import Setting
from whyrank.tables import TermTable, check_readable, open_table
from whyrank.text import Analyzer, analyzers

TOO_FEW, FEW = 0.1, 0.4  # of words of another subject, a large table knows 77%, a small one 17% and more
_TEXTS, _QUERIES = 50, 100
log = logging.getLogger(__name__)


def readable_table(path: str) -> TermTable:
    """Open a table and check what compiled loops rely on: of a mapped file, nothing is checked before."""
    table = open_table(path)
    try:
        check_readable(table)
    except WhyrankError as error:
        raise BadInput(path, str(error), "the file is damaged; get it again, or learn the table anew") from None
    return table


class TableRanker:
    """A ranker over a term table, which does not travel to other processes but is opened again there."""

    settings: Any
    table: TermTable

    def __getstate__(self) -> dict[str, Any]:
        known = {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}
        return known | {"table": self.table.digest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        path = state["settings"].resource
        table = open_table(path)
        if table.digest != state["table"]:
            raise WhyrankError(f"{path}: the table has changed meanwhile; start again")
        self.__dict__.update(state | {"table": table})


def analyzer_of(table: TermTable, path: str, own: str | None, setting: Setting) -> Analyzer:
    """The analyzer that a ranker names, else that of the table's facts, else that of the setting.

    An error is one of the facts that cannot be made, or behind which there are other files by now.
    """
    learned = table.facts.get("analyzer")
    if own or not isinstance(learned, str):
        return setting.analyzer_for(own)
    problem = ""
    for spec in _specs(learned, path):
        try:
            made = analyzers.create(spec)
        except WhyrankError as error:
            problem = str(error)
            continue
        before = table.facts.get("analyzer_files", made.files)
        if before == made.files:
            return made
        changed = f"what lies behind it has changed since ({before}, now {made.files or 'nothing'})"
        problem = f"{changed}; learn the table again"
    raise WhyrankError(f"{path} was learned with {learned}: {problem}; or name another with analyzer=...")


def _specs(learned: str, path: str) -> list[str]:
    """The call string of an analyzer as it was, and where it differs, with the files that lie beside the table."""

    def beside(value: Any) -> Any:
        file = Path(path).parent / value if isinstance(value, str) and value else None
        return str(file) if file is not None and os.path.exists(file) else value

    try:
        call = parse_call(learned)
    except WhyrankError:
        return [learned]
    other = Call(call.name, beside(call.resource), {name: beside(value) for name, value in call.arguments.items()})
    return [learned, str(other)] if str(other) != str(call) else [learned]


def check_fit(
    ranker: str,
    table: TermTable,
    path: str,
    analyzer: Analyzer,
    setting: Setting,
    background: Background | None = None,
) -> None:
    """Raise an error where a table cannot know the words that are looked up in it; warn where that is likely.

    An error is a table that was learned with another analyzer and knows less than four tenths of the words of a
    collection, or one that does not name its analyzer and knows less than a tenth. Another analyzer alone, and four
    tenths alone, are worth a warning.

    A ranker that matches the words themselves too gives its `background`, for a table of few words is fine then. What
    counts is the share of known words, or the share of the table's words that the statistics know, whichever is more;
    an error is a table that does not name its analyzer and has no word in common with them.
    """
    share, detail = _known_words(table, analyzer, setting.read)
    too_few = share < TOO_FEW
    if background is not None:
        used = 1.0
        if background.n_docs and not setting.typed:
            used = float(np.mean(background.frequencies(list({*table.query_terms, *table.doc_terms}))[0] > 0))
        share = max(used, share) if setting.read else used
        detail = f"{detail}{'; ' if detail else ''}the statistics know {used:.0%} of its words"
        too_few = not share
    learned = table.facts.get("analyzer")
    if isinstance(learned, str) and analyzer.id in _specs(learned, path):
        if share < FEW:
            log.warning("note: %s: %s: %s", ranker, path, detail)
        return
    line = f"{ranker}: {path} was learned with {learned} and" if learned else f"{ranker}: {path}"
    line += f" is looked up with {analyzer.id}" + (f"; {detail}" if share < FEW else "")
    if too_few or (share < FEW and learned):
        raise WhyrankError(f"{line}; name the analyzer that it was learned with, or learn another table")
    if share < FEW or learned:
        log.warning("note: %s", line)


def _known_words(table: TermTable, analyzer: Analyzer, collection: Collection | None) -> tuple[float, str]:
    """The share of words that the table has, among the first queries or texts, whichever is less; also in words."""
    if collection is None:
        return 1.0, ""
    queries = [word for text in islice(collection.queries.values(), _QUERIES) for word in analyzer.query_terms(text)]
    texts = [word for text in islice(collection.docs.values(), _TEXTS) for word in analyzer.terms(text)]
    shares = []
    for what, words in (("queries", queries), ("texts", texts)):
        known = sum(word in table.doc_numbers or word in table.query_numbers for word in words)
        shares.append((known / len(words) if words else 1.0, what))
    share, what = min(shares)
    return share, f"it knows {share:.0%} of the words of the {what} of {collection.name}"
