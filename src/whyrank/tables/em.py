"""IBM Model 1 by expectation maximisation: from bitext to a table of translation probabilities.

    from whyrank.data import open_collection
    from whyrank.tables.bitext import make_bitext
    from whyrank.tables.em import learn_em
    table, perplexities = learn_em(make_bitext(open_collection("sample"), "lucene"))

T(q|d) is the probability that the document word d is translated into the query word q (Brown et al., "The Mathematics
of Statistical Machine Translation", Computational Linguistics 19(2), 1993; Berger and Lafferty, "Information
Retrieval as Statistical Translation", SIGIR 1999). One iteration is

    c(q, d) = sum over the occurrences of q beside d of T(q|d) / sum of T(q|d') over NULL and all d' of the pair
    T(q|d)  = c(q, d) / sum of c(q', d) over q'

from a T that is the same for all words that meet. The result is exact: it does not depend on threads or memory.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank.core.checks import check_flag, check_number, check_whole
from whyrank.core.errors import WhyrankError
from whyrank.data.term_table import TermTable
from whyrank.tables.bitext import Bitext
from whyrank.tables.exporting import Kept, export
from whyrank.tables.learner import Learner
from whyrank.tables.memory import memory_limit

AGREEMENT = 1e-5  # how far single and double precision may lie apart


class Learned(NamedTuple):
    """A table and the training perplexities: of the uniform start, then after each iteration."""

    table: TermTable
    perplexities: list[float]


def learn_em(
    bitext: Bitext,
    iterations: int = 5,
    null: bool = True,
    threads: int = 1,
    memory: int | str | None = None,
    held_out: float = 0.0,
    stop: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    threshold: float = 1e-3,
    top: int | None = 1_000_000,
    seed: int = 0,
    check: bool = False,
) -> Learned:
    """Learn T(query term | document term).

    Args:
        bitext: what `make_bitext` gives.
        iterations: how many at most.
        null: whether query words may come from nowhere; the row of NULL is learned and left out of the table.
        threads: how many; the result is the same, bit for bit.
        memory: how much the links may take, in bytes or as `8G`; those beyond it lie in a temporary file. Half of the
            machine's memory by default. The result is the same, bit for bit.
        held_out: a share of the queries, whose pairs are not trained on but give held-out perplexities (in
            `table.facts`, over the tokens that the table can explain at all).
        stop: end with the first iteration that lowers the perplexity (held-out where there is one) by less than this
            share; 0 ends when it rises. The table is that of the iteration with the lowest held-out perplexity.
        checkpoint: a file with the state after each iteration; where it exists, learning goes on from it.
        threshold: smaller probabilities are left out of the table; what stays is not scaled up.
        top: only the most frequent terms of each side are in the table; None for all.
        seed: of the choice of queries that are held out.
        check: learn in double precision as well, and note the largest difference; an error where it is above 1e-5.
    """
    _checked(iterations, null, threads, held_out, stop, threshold, top)
    learner = Learner(bitext, null, threads, memory_limit(memory), held_out, seed)
    learner.learn(iterations, stop, Path(checkpoint) if checkpoint is not None else None)
    kept = Kept(threshold, top)
    facts = {**bitext.facts, **learner.facts(), "learner": "em", "null": null, "held_out": held_out, **kept._asdict()}
    if check:
        facts["float64_difference"] = _difference(learner, memory, held_out, seed)
    return Learned(export(bitext, learner.shelf, learner.scale, kept, facts), learner.state.perplexities)


def _difference(learner: Learner, memory: int | str | None, held_out: float, seed: int) -> float:
    """The largest difference of a probability to the one that double precision gives."""
    double = Learner(learner.bitext, learner.null, 1, memory_limit(memory), held_out, seed, np.float64)
    double.learn(learner.state.iteration, None, None)
    largest = 0.0
    for number in range(len(double.shelf)):
        one, other = learner.shelf.get(number), double.shelf.get(number)
        gap = one.values * learner.scale[one.indices] - other.values * double.scale[other.indices]
        largest = max(largest, float(np.abs(gap).max(initial=0.0)))
    if largest > AGREEMENT:
        raise WhyrankError(f"single and double precision differ by {largest:.1e}; please report this bitext")
    return largest


def _checked(
    iterations: int, null: bool, threads: int, held_out: float, stop: float | None, threshold: float, top: int | None
) -> None:
    check_whole("iterations", iterations, 1)
    check_flag("null", null)
    check_whole("threads", threads, 1)
    check_number("held_out", held_out, 0, 1)
    check_number("threshold", threshold, 0, 1)
    if stop is not None:
        check_number("stop", stop, 0, 1)
    if top is not None:
        check_whole("top", top, 1)
