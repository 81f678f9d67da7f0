"""Draws of pairs of terms, and the certificate that follows from them: how much of a table was found at least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from whyrank.core.protocols import Codes, Flags, Ints
from whyrank.networks.term_pairs_recall import Certificate, Tally, certificate
from whyrank.networks.term_pairs_results import Entries
from whyrank.networks.term_pairs_student import Exact
from whyrank.networks.term_pairs_task import Task
from whyrank.networks.term_pairs_terms import Sequences


class Terms(NamedTuple):
    """How many terms of each stratum have each query sequence, how many terms have each document sequence.

    `own` is the document sequence of each query term itself, or -1: a table does not tie a term to itself.
    """

    query_of: Codes
    doc_of: Codes
    stratum: Codes
    strata: int
    own: Codes

    @classmethod
    def of(cls, task: Task, mask: int) -> Terms:
        """Strata of query terms, which are in the order of their frequency: equally many terms in each."""
        size = len(task.queries.of_term)
        strata = min(task.settings.strata, size)
        stratum = (np.arange(size, dtype=np.int64) * strata // size).astype(np.int32)
        own = _own(task.queries.sequences, task.docs.sequences, mask)[task.queries.of_term]
        return cls(task.queries.of_term, task.docs.of_term, stratum, strata, own)

    def found(self, queries: Codes, docs: Codes) -> Ints:
        """How many pairs of two terms stand behind pairs of sequences, by stratum."""
        each, size = np.bincount(self.doc_of)[docs], int(self.query_of.max()) + 1
        some = (self.query_of[self.stratum == s] for s in range(self.strata))
        whole = np.array([int(np.bincount(part, minlength=size)[queries] @ each) for part in some], np.int64)
        itself = (self.own >= 0) & _among(_keys(self.query_of, self.own), np.sort(_keys(queries, docs)))
        return whole - np.bincount(self.stratum[itself], minlength=self.strata)

    def pairs(self) -> Ints:
        """How many pairs of terms there are, by stratum."""
        return np.bincount(self.stratum, minlength=self.strata) * len(self.doc_of)


def certify(
    terms: Terms, found: Entries, exact: Exact, threshold: float, sample: int, error: float,
    rng: np.random.Generator, proposed: Callable[[Any, Any], Flags] | None = None,
) -> Certificate:  # fmt: skip
    """Draw pairs of terms, each with the same chance, and bound the recall of what was found.

    A drawn pair is missed when it belongs (`exact` gives the threshold or more), is not among those found, and was
    not surely `proposed`: what was proposed and left out has been decided on.
    """
    asked, told_ = (rng.integers(len(side), size=sample) for side in (terms.query_of, terms.doc_of))
    query, doc = terms.query_of[asked].astype(np.int64), terms.doc_of[told_].astype(np.int64)
    known = np.sort(_keys(found.queries, found.docs))
    missed = (exact(query, doc) >= threshold) & ~_among(_keys(query, doc), known)
    if proposed is not None:
        missed[missed] = ~proposed(query[missed], doc[missed])
    stratum = terms.stratum[asked]
    drawn, hits = (np.bincount(stratum[some], minlength=terms.strata) for some in (slice(None), missed))
    columns = (terms.pairs(), terms.found(found.queries, found.docs), drawn, hits)
    return certificate([Tally(*map(int, row)) for row in zip(*columns, strict=True)], error)


def _own(queries: Sequences, docs: Sequences, mask: int) -> Codes:
    """For each query sequence the document sequence of the same pieces, whatever [MASK]s stand around; else -1."""
    asked, told = ([row[row != mask] for row in side.rows()] for side in (queries, docs))
    longest = max(map(len, asked), default=0)  # a term may have lost its end on the query side
    numbers = {row[:longest].tobytes(): i for i, row in reversed(list(enumerate(told)))}
    return np.array([numbers.get(row.tobytes(), -1) for row in asked], np.int32)


def _keys(queries: Codes | Ints, docs: Codes | Ints) -> Ints:
    found: Ints = queries.astype(np.int64) << 32 | docs
    return found


def _among(keys: Ints, known: Ints) -> Flags:
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    found: Flags = known[np.searchsorted(known, keys).clip(max=len(known) - 1)] == keys
    return found


def told(proof: Certificate, level: float) -> str:
    """A certificate in one line; `level` holds for all rounds together."""
    if not proof.strata:
        return "all pairs are scored, so none is missed"
    worst = min(bound.recall for bound in proof.strata)
    draws = f"{proof.whole.tally.missed:,} of {proof.whole.tally.drawn:,} draws missed"
    return f"recall >= {proof.recall:.4f} at {level:.0%} (worst stratum {worst:.4f}; {draws})"
