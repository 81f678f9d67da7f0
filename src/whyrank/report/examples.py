"""A handful of contrasts to look at: those in which a ranker differs the most, from different queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape

from whyrank.core import Floats, Ints
from whyrank.studies import Categories, Contrasts, Reading
from whyrank.text import LUCENE

SHOWN_EXAMPLES = 2  # at either end, for each study and ranker
SHOWN = 360  # characters of a text that are shown
COMPARED = 400  # words of a text that are compared with another
KEPT = 20_000  # characters of a text that a report holds at most
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Text:
    """One text of an example: its id if it has one, its beginning, its full length and the score it got."""

    id: str
    text: str
    length: int
    score: float


@dataclass(frozen=True)
class Example:
    """One contrast with its texts and scores; of a symmetric study, the text that the ranker favours first."""

    query: str
    query_id: str
    texts: tuple[Text, ...]
    diff: float
    effect: int


@dataclass(frozen=True)
class Examples:
    """Contrasts of one study with the largest (`high`) and the smallest (`low`) differences of one ranker."""

    high: Sequence[Example] = ()
    low: Sequence[Example] = ()


def choose(contrasts: Contrasts, reading: Reading, most: int = 3) -> Examples:
    """At most `most` contrasts at either end, from different queries where possible."""
    ends = [_extreme(sign * reading.diffs, reading, most) for sign in (1.0, -1.0)]
    high, low = ([_example(contrasts, reading, int(row)) for row in rows] for rows in ends)
    return Examples(high, low)


def shorten(text: str, limit: int = SHOWN) -> str:
    """The beginning of a text, cut between words, with an ellipsis where something is left out."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    cut = head.rfind(" ")
    return (head[:cut] if cut > limit // 2 else head).rstrip() + " …"


def marker(query: str) -> Callable[[str], Markup]:
    """A function that escapes a text for HTML and marks the words of the query in it.

    Function words are marked only in a query that has no others.
    """
    words = {word.casefold() for word in _WORD.findall(query)}
    wanted = words - LUCENE or words

    def marked(text: str) -> Markup:
        parts, end = [], 0
        for found in _WORD.finditer(text):
            if found[0].casefold() in wanted:
                parts += [escape(text[end : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
                end = found.end()
        return Markup("").join([*parts, escape(text[end:])])

    return marked


class Compared(NamedTuple):
    """Two texts around their first difference, escaped, with the words that differ marked in both."""

    first: Markup
    second: Markup


def compared(first: str, second: str, before: int = 12, most: int = 60) -> Compared:
    """Compare two texts word by word; `most` words are shown, `before` of them ahead of the first difference."""
    words = first.split()[:COMPARED], second.split()[:COMPARED]
    steps = SequenceMatcher(None, *words, autojunk=False).get_opcodes()
    start = next((max(0, step[1] - before) for step in steps if step[0] != "equal"), 0)
    shown = []
    for text, tag, side in zip(words, ("ins", "del"), (0, 2), strict=True):
        parts = []
        for kind, *bounds in steps:
            low, high = max(bounds[side], start), min(bounds[side + 1], start + most)
            run = escape(" ".join(text[low:high]))
            parts += [run if kind == "equal" else Markup(f"<{tag}>{{}}</{tag}>").format(run)] * (low < high)
        ends = ["…"] * (start > 0), ["…"] * (start + most < len(text))
        shown.append(Markup(" ").join([*ends[0], *parts, *ends[1]]))
    return Compared(*shown)


def _extreme(values: Floats, reading: Reading, most: int) -> Ints:
    """Rows with the largest positive values: the best of each query first, then what is needed to fill up."""
    rows = np.flatnonzero(reading.finite & (values > 0))
    best = np.zeros(int(reading.clusters.max(initial=-1)) + 1)
    np.maximum.at(best, reading.clusters[rows], values[rows])
    if np.count_nonzero(best) >= most > 0:  # no row below the best ones of so many queries is among them
        rows = rows[values[rows] >= np.partition(best, -most)[-most]]
    ranked = rows[np.argsort(-values[rows], kind="stable")]
    _, first = np.unique(reading.clusters[ranked], return_index=True)
    distinct = np.sort(first)[:most]
    others = np.setdiff1d(np.arange(min(len(ranked), 2 * most)), distinct)[: most - len(distinct)]
    return np.asarray(ranked[np.sort(np.concatenate([distinct, others]))], dtype=np.int64)


def _example(contrasts: Contrasts, reading: Reading, row: int) -> Example:
    ids = _label(contrasts, "doc_ids", row) or [""] * contrasts.size
    texts = [
        Text(doc_id, contrasts.docs[doc][:KEPT], len(contrasts.docs[doc]), float(score))
        for doc_id, doc, score in zip(ids, contrasts.doc[row], reading.scores[row], strict=True)
    ]
    diff = float(reading.diffs[row])
    if contrasts.size == 2 and diff > 0 > texts[0].score - texts[1].score:  # an absolute difference
        texts.reverse()
    query_id = "".join(_label(contrasts, "query_id", row))
    query = contrasts.queries[contrasts.query[row]]
    return Example(query, query_id, tuple(texts), diff, int(reading.effects[row]))


def _label(contrasts: Contrasts, name: str, row: int) -> list[str]:
    column = contrasts.labels.get(name)
    if column is None:
        return []
    if isinstance(column, Categories):
        return [column.names[code] for code in np.atleast_1d(column.codes[row])]
    return [str(value) for value in np.atleast_1d(column[row])]
