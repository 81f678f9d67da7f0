"""What kind of entry an entry of a term table is: so that a page can show the years alone, or the car makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes
from whyrank.learners.surprises import PATTERNS
from whyrank.studies.bias import LISTS, doc_term
from whyrank.tables import TermTable, self_entries

SAME, LONGER, SHORTER, MIXED, WORDS = "the term itself", "a character more", "a character less", "mixed", "words"
_LETTERS = re.compile(r"[^\W\d_]+")


class Classes(NamedTuple):
    """The names of classes, and the number of each entry's class."""

    names: list[str]
    codes: Codes


def classes_of_entries(table: TermTable) -> Classes:
    """One class for each entry: how its two terms are related, or else what its document term is."""
    names = [SAME, LONGER, SHORTER, *PATTERNS, *_lists(), MIXED, WORDS]
    kinds = np.array([names.index(kind) for kind in _kinds(table)], dtype=np.int32)
    codes = kinds[table.indices] if len(table) else np.zeros(0, np.int32)
    for name, which in ((SHORTER, _shorter(table)), (LONGER, _longer(table)), (SAME, self_entries(table))):
        codes[which] = names.index(name)
    used = np.unique(codes)
    return Classes([names[i] for i in used], np.searchsorted(used, codes).astype(np.int32))


def _lists() -> Mapping[str, tuple[str, ...]]:
    return {name: values for name, values in LISTS.items() if name != "letters"}


def _kinds(table: TermTable) -> list[str]:
    """The class of each document term."""
    listed: dict[str, str] = {}
    for name, values in _lists().items():
        listed |= {doc_term(table, value): name for value in values if value}
    patterns = {name: re.compile(pattern).fullmatch for name, pattern in PATTERNS.items()}
    return [_kind(term, listed, patterns) for term in table.doc_terms]


def _kind(term: str, listed: Mapping[str, str], patterns: Mapping[str, object]) -> str:
    for name, fits in patterns.items():
        if callable(fits) and fits(term):
            return name
    return listed.get(term) or (WORDS if _LETTERS.fullmatch(term) else MIXED)


def _longer(table: TermTable) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Entries whose document term is the query term and one character more."""
    stem = np.array([table.query_numbers.get(term[:-1], -1) for term in table.doc_terms], dtype=np.int64)
    return np.asarray(stem[table.indices] == table.row_numbers()) if len(table) else np.zeros(0, np.bool_)


def _shorter(table: TermTable) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Entries whose document term is the query term without its last character."""
    stem = np.array([table.doc_numbers.get(term[:-1], -1) for term in table.query_terms], dtype=np.int64)
    return np.asarray(stem[table.row_numbers()] == table.indices) if len(table) else np.zeros(0, np.bool_)
