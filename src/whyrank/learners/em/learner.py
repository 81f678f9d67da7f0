"""IBM Model 1 by expectation maximisation: from judged queries to a table of translation probabilities.

from whyrank.data import open_collection
from whyrank.learners.em import learn_em, make_bitext
table, perplexities = learn_em(make_bitext(open_collection("sample"), "lucene"))
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from whyrank.core import Codes, Ints, Positive, Range, Share, Whole, WhyrankError, call_of, exclusive
from whyrank.data import Collection
from whyrank.learners.em.bitext import Bitext, Growing, Making, judged_bitext
from whyrank.learners.em.estimator import Estimator
from whyrank.rankers import Described
from whyrank.tables import TermTable

AGREEMENT = 1e-5  # how far single and double precision may lie apart
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class LearnedTable(NamedTuple):
    """A table and the training perplexities: of the uniform start, then after each iteration."""

    table: TermTable
    perplexities: list[float]


@dataclass(frozen=True)
class EM(Described):
    """IBM Model 1 by EM, T(query term | document term), from queries beside their relevant texts.

    Attributes:
        analyzer: makes the tokens; what it drops is out of vocabulary and skipped.
        ratio: a chunk of text ends as soon as it has this many times the tokens of the query.
        fertility: a pair is left out when one side has more than this many times the tokens of the other.
        symmetrise: whether each pair is followed by the same pair the other way round.
        sample: the share of the pairs to learn from, each drawn on its own.
        relevant: the lowest grade that counts; the collection's own by default.
        most: only so many terms, the most frequent of the judged texts, are in the vocabulary; all by default.
        iterations: at most so many iterations.
        null: whether query words may be aligned with NULL, whose row is left out of the table.
        threads: number of threads; the result is the same, bit for bit.
        memory: how much the links may take, in bytes or as `8G`; the rest lies in a temporary file. Half of the
            machine's memory by default. The result is the same, bit for bit.
        held_out: a share of the queries, whose pairs are not trained on. They give held-out perplexities, over the
            tokens that the table can explain at all; the facts of the table have them.
        stop: end with the first iteration that lowers the perplexity (held-out where there is one) by less than this
            share; 0 ends when it rises. The table is that of the iteration with the lowest held-out perplexity.
        threshold: smaller probabilities are left out of the table, which is not renormalised.
        table_terms: only so many terms of each side are in the table, the most frequent ones.
        seed: seed of everything random.
        checkpoint: a file with the state after each iteration; where it exists, learning goes on from it.
        check: learn in double precision as well, and note the largest difference; an error where it is above 1e-5.
    """

    analyzer: str = "lucene"
    ratio: Positive = 1.5
    fertility: Annotated[float, Range(1)] = 9
    symmetrise: bool = True
    sample: Share = 1.0
    relevant: int | None = None
    most: Whole | None = None
    iterations: Whole = 5
    null: bool = True
    threads: Whole = 1
    memory: int | str | None = None
    held_out: Share = 0.0
    stop: Share | None = None
    threshold: Share = 1e-3
    table_terms: Whole | None = 1_000_000
    seed: int = 0
    checkpoint: str | None = None
    check: bool = False

    registered: ClassVar[str] = "em"

    def __post_init__(self) -> None:
        super().__post_init__()
        memory_limit(self.memory)

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of a collection with judgements."""
        if collection is None:
            raise WhyrankError("em learns from the judged queries of a collection; give one")
        with exclusive(f"{self.checkpoint}.lock") if self.checkpoint else nullcontext():
            table = self.fit(self.bitext(collection)).table
        learner = call_of(self, "em", without=("checkpoint", "check"))  # they change nothing in the table
        return replace(table, facts={**table.facts, "learner": learner}, trusted=True)

    def bitext(self, collection: Collection) -> Bitext:
        """Each query of a collection beside the chunks of the texts that are relevant to it."""
        how = Making(self.ratio, self.fertility, self.symmetrise, self.sample, self.seed)
        return judged_bitext(collection, self.analyzer, how, self.relevant, self.most)

    def fit(self, bitext: Bitext) -> LearnedTable:
        """Learn from a bitext; what it was made with is in its facts."""
        limit = memory_limit(self.memory)
        estimator = Estimator(bitext, self.null, self.threads, limit, self.held_out, self.seed)
        estimator.run(self.iterations, self.stop, Path(self.checkpoint) if self.checkpoint else None)
        facts = {
            **bitext.facts, **estimator.facts(), "learner": "em", "null": self.null, "held_out": self.held_out,
            "threshold": self.threshold, "table_terms": self.table_terms,
        }  # fmt: skip
        if self.check:
            double = Estimator(bitext, self.null, 1, limit, self.held_out, self.seed, np.float64)
            double.run(estimator.state.iteration)
            facts["float64_difference"] = _difference(estimator, double)
        return LearnedTable(export(estimator, self.threshold, self.table_terms, facts), estimator.state.perplexities)


def make_bitext(collection: Collection, analyzer: str = "lucene", **settings: Any) -> Bitext:
    """The bitext of a collection; the settings are those of `EM`."""
    return EM(analyzer, **settings).bitext(collection)


def learn_em(bitext: Bitext, **settings: Any) -> LearnedTable:
    """Learn T(query term | document term) from a bitext; the settings are those of `EM`, from `iterations` on."""
    return EM(**settings).fit(bitext)


def memory_limit(given: int | str | None) -> int:
    """A limit such as `8G`, or a number of bytes, in bytes; without one half of the machine's memory."""
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    found = _SIZE.fullmatch(str(given).strip())
    if not found or isinstance(given, bool):
        raise WhyrankError(f"memory {given!r} is no size; write a number of bytes or one such as 500M or 8G")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _difference(single: Estimator, double: Estimator) -> float:
    """The largest difference of a probability between single and double precision."""
    largest = 0.0
    for one, other in zip(single.shards, double.shards, strict=True):
        gap = one.values * single.scale[one.indices] - other.values * double.scale[other.indices]
        largest = max(largest, float(np.abs(gap).max(initial=0.0)))
    if largest > AGREEMENT:
        raise WhyrankError(f"single and double precision differ by {largest:.1e}; please report this bitext")
    return largest


def export(estimator: Estimator, threshold: float, top: int | None, facts: Mapping[str, Any]) -> TermTable:
    """The probabilities from `threshold` up between the `top` most frequent terms of each side, NULL left out.

    Rows are not renormalised.
    """
    bitext = estimator.bitext
    rows = _kept_numbers(bitext.target_counts, top)
    columns = np.append(_kept_numbers(bitext.source_counts, top), np.int32(-1))  # the last is NULL
    sizes, indices, weights = np.zeros(int(rows.max()) + 1, np.int64), Growing(np.int32), Growing(np.float32)
    for shard in estimator.shards:
        row = np.repeat(rows[shard.first : shard.first + len(shard.indptr) - 1], np.diff(shard.indptr))
        column, weight = columns[shard.indices], shard.values * estimator.scale[shard.indices]
        keep = np.flatnonzero((row >= 0) & (column >= 0) & (weight > 0) & (weight >= threshold))
        row, column = row[keep], column[keep]
        order = np.argsort((row.astype(np.int64) << 32) | column, kind="stable")  # columns ascend within each row
        sizes += np.bincount(row, minlength=len(sizes))
        indices.add(column[order])
        weights.add(weight[keep][order])
        shard.release()
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    query_terms = [term for term, number in zip(bitext.target_terms, rows, strict=True) if number >= 0]
    doc_terms = [term for term, number in zip(bitext.source_terms, columns[:-1], strict=True) if number >= 0]
    occurrences = bitext.source_counts[columns[:-1] >= 0]
    return TermTable(query_terms, doc_terms, indptr, indices.finish(), weights.finish(), dict(facts), occurrences)


def _kept_numbers(counts: Ints, top: int | None) -> Codes:
    """The number of each term among those that are kept, -1 for the others; ties at the edge go by the old number."""
    found = np.full(len(counts), -1, np.int32)
    kept = np.sort(np.argsort(-counts, kind="stable")[:top])
    found[kept] = np.arange(len(kept), dtype=np.int32)
    return found
