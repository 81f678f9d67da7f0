"""Re-rank 1,000 passages of 60 tokens for queries of 6 terms with a term table: our layout against a binary search.

Ours spreads the rows of the query terms out over all document terms and reads the tokens of each passage. The other
layout is that of published code: for each distinct term of a passage (the counts are made beforehand) and each query
term, a binary search among the query terms of that document term. Both are compiled, both end with scores, and both
are timed by the processor time of one thread. Terms follow Zipf's law.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numba import njit

from whyrank.rankers import open_ranker
from whyrank.rankers.lexical import model1 as kernels
from whyrank.rankers.lexical.model1 import LEAST_PROBABILITY, Model1Ranker
from whyrank.tables import TermTable
from whyrank.text import Tokens

PASSAGES, LENGTH, TERMS, QUERIES, ROUNDS = 1_000, 60, 6, 50, 5


def zipf(rng: np.random.Generator, vocabulary: int, size: int) -> np.ndarray:
    weights = 1 / np.arange(1, vocabulary + 1)
    return rng.choice(vocabulary, size, p=weights / weights.sum())


def generated(rng: np.random.Generator, vocabulary: int, entries: int) -> TermTable:
    """A table of words that meet as often as chance has it, with about so many entries."""
    pairs = np.unique(zipf(rng, vocabulary, entries * 2) * vocabulary + zipf(rng, vocabulary, entries * 2))
    pairs = rng.permutation(pairs)[:entries]
    rows, columns = np.divmod(np.sort(pairs), vocabulary)
    names = [f"t{i}" for i in range(vocabulary)]
    weights = rng.random(len(rows)) ** 4
    counts = np.maximum(1, 1e6 / np.arange(1, vocabulary + 1)).astype(np.int64)
    return TermTable.from_codes(names, names, rows, columns, weights, {"analyzer": "whitespace"}, counts)


@njit(nogil=True)
def searched(ids, tf, offsets, lengths, indptr, indices, weights, query, counts, priors, lam, p_self, out):
    """Scores by the table by document term, whose query terms are ascending."""
    for i in range(len(out)):
        out[i] = 0.0
        for j in range(len(query)):
            total = np.float32(0.0)
            for position in range(offsets[i], offsets[i + 1]):
                d = ids[position]
                low, high = indptr[d], indptr[d + 1]
                while low < high:
                    middle = (low + high) // 2
                    if indices[middle] < query[j]:
                        low = middle + 1
                    else:
                        high = middle
                probability = np.float32(0.0)
                if low < indptr[d + 1] and indices[low] == query[j]:
                    probability = np.float32(1.0 - p_self) * weights[low]
                if d == query[j]:
                    probability += np.float32(p_self)
                total += probability * tf[position]
            share = total / max(lengths[i], 1)
            out[i] += counts[j] * np.log1p((1.0 - lam) * share / (lam * priors[j]))


def distinct_terms(tokens: Tokens) -> tuple[Tokens, np.ndarray]:
    """The distinct terms of each passage and how often it has them."""
    texts = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets))
    size = int(tokens.ids.max()) + 1
    keys, tf = np.unique(texts * size + tokens.ids, return_counts=True)
    offsets = np.searchsorted(keys, np.arange(len(tokens.offsets)) * size)
    return Tokens((keys % size).astype(np.int32), offsets), tf


def processor_time(work: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """Milliseconds a query, the best of several rounds."""
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        for number in range(QUERIES):
            work(number)
        times.append((time.thread_time() - start) / QUERIES * 1e3)
    return min(times)


def compared(vocabulary: int, entries: int, folder: Path) -> None:
    rng = np.random.default_rng(0)
    table = generated(rng, vocabulary, entries)
    table.save(folder / "table.arrow")
    ranker = open_ranker(f"model1:{folder / 'table.arrow'}(lam=0.1,p_self=0.1)")
    assert isinstance(ranker, Model1Ranker)
    offsets = np.arange(PASSAGES + 1, dtype=np.int64) * LENGTH
    texts = Tokens(zipf(rng, vocabulary, PASSAGES * LENGTH).astype(np.int32), offsets)
    queries = [rng.permutation(np.unique(zipf(rng, vocabulary, 200)))[:TERMS] for _ in range(QUERIES)]
    names = [[f"t{i}" for i in query] for query in queries]
    ours, theirs = our_way(ranker, texts, names), other_way(ranker, texts, queries, names)
    apart = max(float(np.abs(ours(i) - theirs(i)).max()) for i in range(QUERIES))
    mine, other = processor_time(ours), processor_time(theirs)
    print(
        f"{vocabulary:>9,} terms, {len(table):>10,} entries: spread out {mine:.3f} ms, binary search {other:.3f} ms "
        f"per {PASSAGES:,} passages, ratio {other / mine:.1f}, largest difference {apart:.0e}",
        flush=True,
    )


def our_way(ranker: Model1Ranker, texts: Tokens, names: Sequence[list[str]]) -> Callable[[int], np.ndarray]:
    """What `Model1Ranker.score` does for one analysed query."""
    dense, rows, lengths = ranker.translation.dense(), np.arange(PASSAGES, dtype=np.int32), np.diff(texts.offsets)

    def score(number: int) -> np.ndarray:
        terms, out = names[number], np.zeros(PASSAGES)
        sums, weights = ranker.translation.sums(terms, texts, rows, dense), np.full(len(terms), 1 / len(terms))
        priors = ranker.priors(terms)
        kernels.likelihoods(sums, lengths, rows, weights, priors, ranker.lam, LEAST_PROBABILITY, out)
        return out

    return score


def other_way(
    ranker: Model1Ranker, texts: Tokens, queries: Sequence[np.ndarray], names: Sequence[list[str]]
) -> Callable[[int], np.ndarray]:
    found, tf = distinct_terms(texts)
    lengths, entries, p_self = np.diff(texts.offsets), ranker.table.by_doc, ranker.settings.p_self
    counts = tf.astype(np.float32)

    def score(number: int) -> np.ndarray:
        out, weights = np.empty(PASSAGES), np.full(len(queries[number]), 1 / len(queries[number]))
        priors = ranker.priors(names[number])
        searched(
            found.ids,
            counts,
            found.offsets,
            lengths,
            *entries,
            queries[number],
            weights,
            priors,
            ranker.lam,
            p_self,
            out,
        )
        return out

    return score


def main() -> None:
    print(
        f"{PASSAGES:,} passages of {LENGTH} tokens, {QUERIES} queries of {TERMS} terms, processor time of one thread"
    )
    with tempfile.TemporaryDirectory() as folder:
        for vocabulary, entries in ((30_000, 1_000_000), (200_000, 2_000_000)):
            compared(vocabulary, entries, Path(folder))


if __name__ == "__main__":
    main()
