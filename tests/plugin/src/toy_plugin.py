"""One of each thing that a package can add to whyrank: ranker, probe, axiom, analyzer, table learner and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyrank.core import Codes, Flags, Floats, call_of
from whyrank.data import Collection
from whyrank.studies import Contrasts, Pair, Pool
from whyrank.studies.axioms import Axiom, View
from whyrank.studies.axioms.axiom import Precondition, similar_length
from whyrank.tables import TermTable
from whyrank.text import Analyzer
from whyrank.text.steps import lower


@dataclass(frozen=True)
class Overlap:
    """Number, or share, of the query's words that occur in the text."""

    share: bool = False

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "toy-overlap")

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Count the common words of each pair."""
        asked = [set(query.lower().split()) for query in queries]
        found = [len(words & set(doc.lower().split())) for words, doc in zip(asked, docs, strict=True)]
        sizes = [max(1, len(words)) if self.share else 1 for words in asked]
        return np.array(found, dtype=float) / np.array(sizes, dtype=float)


def digits(pool: Pool) -> Floats:
    """more digits"""
    return np.array([sum(c.isdigit() for c in text) for text in pool.texts], dtype=float)


@dataclass(frozen=True)
class Exclamation:
    """Each judged text against itself with a mark at its end."""

    mark: str = "!"
    symmetric = False

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, "toy/exclamation")

    @property
    def positive(self) -> str:
        """What +1 means."""
        return f"prefers the text without {self.mark!r} at its end"

    def contrasts(self, collection: Collection) -> Contrasts:
        """One contrast for each judged document."""
        return Contrasts.from_pairs(self._pairs(collection))

    def _pairs(self, collection: Collection) -> Iterator[Pair]:
        for query_id, grades in collection.qrels.items():
            for doc_id, grade in grades.items():
                text = collection.docs[doc_id]
                labels = {"query_id": query_id, "doc_ids": (doc_id, doc_id + self.mark), "relevance": grade}
                yield Pair(collection.queries[query_id], (text, text + self.mark), labels)


@dataclass(frozen=True, kw_only=True)
class Short(Axiom):
    """Of two texts, the shorter one wins.

    Original: none; this axiom is a toy.
    Adapted: lengths may differ by at most `length` tokens.
    Formula: |D1| < |D2|.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: none.
    """

    length: float | str | None = None

    name: ClassVar[str] = "toy-short"
    favours: ClassVar[str] = "the shorter text"

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length, where it is asked for."""
        return similar_length(self.length)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`a` has fewer tokens."""
        return np.asarray(view.lengths[a] < view.lengths[b])


def letters(longest: int = 30) -> Analyzer:
    """Runs of letters in lower case, up to a length."""
    words = re.compile("[a-z]+", re.IGNORECASE).findall
    return Analyzer.of(f"toy-letters(longest={longest})", words, [lower, lambda word: word[:longest]])


@dataclass(frozen=True)
class Pairs:
    """Every word of a query with every word of its relevant texts.

    Attributes:
        weight: the weight of each entry.
        without: words that are left out.
        upper: whether terms are in capitals.
    """

    weight: float = 1.0
    without: Sequence[str] = ()
    upper: bool = False

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "toy-pairs")

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of a collection with judgements."""
        assert collection is not None
        found: set[tuple[str, str]] = set()
        for query_id, grades in collection.qrels.items():
            words = [text for doc_id, grade in grades.items() if grade for text in collection.docs[doc_id].split()]
            found |= {(term, word) for term in collection.queries[query_id].split() for word in words}
        kept = sorted(pair for pair in found if not {*pair} & {*self.without})
        sides = [[word.upper() if self.upper else word for word in side] for side in zip(*kept, strict=True)]
        return TermTable.from_triples(*sides, [self.weight] * len(kept), learner=self.name)


def toy() -> Collection:
    """Two queries and six documents about rooms."""
    docs = {
        "d1": "room 101 is upstairs",
        "d2": "the room is upstairs",
        "d3": "room 7 and room 8",
        "d4": "kitchen number 12345",
        "d5": "the kitchen is here",
        "d6": "kitchen at 9 am",
    }
    queries = {"q1": "which room is upstairs", "q2": "where is the kitchen"}
    qrels = {"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d4": 0, "d5": 1, "d6": 0}}
    return Collection.of(docs, queries, qrels, name="toy")
