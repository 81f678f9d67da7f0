"""Re-score 1,000 BM25 candidates per query over 500,000 generated passages: ours against bm25s.

Both sides start from the analysed query and end with 1,000 scores. Terms follow Zipf's law; content queries have four
terms of middling frequency, full queries two of the most frequent terms besides.
"""

from __future__ import annotations

import resource
import time

import bm25s
import numpy as np

from whyrank.rankers import Background
from whyrank.rankers.lexical import BM25, LexicalIndex, LexicalRanker
from whyrank.text import Tokens, analyzers

DOCS, LENGTH, VOCABULARY, QUERIES, CANDIDATES, ROUNDS = 500_000, 40, 100_000, 200, 1_000, 5


def corpus(rng: np.random.Generator) -> Tokens:
    lengths = rng.poisson(LENGTH, DOCS)
    weights = 1 / np.arange(1, VOCABULARY + 1) ** 1.0
    ids = rng.choice(VOCABULARY, size=lengths.sum(), p=weights / weights.sum()).astype(np.int32)
    return Tokens(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def ranker_over(tokens: Tokens) -> LexicalRanker:
    analyzer = analyzers.create("whitespace")
    names = [f"t{i}" for i in range(VOCABULARY)]
    assert analyzer.docs([" ".join(names)]).ids.tolist() == list(range(VOCABULARY)), "ids in order of appearance"
    docs = np.repeat(np.arange(DOCS), np.diff(tokens.offsets))
    df = np.bincount(np.unique(docs * VOCABULARY + tokens.ids) % VOCABULARY, minlength=VOCABULARY)
    cf = np.bincount(tokens.ids, minlength=VOCABULARY)
    background = Background(analyzer.identity, names, df, cf, DOCS, len(tokens.ids))
    return LexicalRanker(BM25(), analyzer, background)


def peer(index: LexicalIndex, names: list[str]) -> bm25s.BM25:
    """A bm25s retriever over our own weights, so that it ranks by exactly our formula."""
    (starts, docs, counts), ranker = index.lists, index.ranker
    how = ranker.formula.weights(ranker.background, names[: len(starts) - 1], np.ones(len(starts) - 1, np.int64))
    norms = how.a + how.b * index.lengths
    data = np.repeat(how.weights, np.diff(starts)) * (counts / (counts + norms[docs]))
    engine = bm25s.BM25()
    engine.nonoccurrence_array = None
    engine.activate_numba_scorer()
    engine.scores = {"data": data.astype(np.float32), "indices": docs, "indptr": starts, "num_docs": DOCS}
    return engine


def best(function, queries) -> float:
    """Milliseconds per query, the best of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for query in queries:
            function(*query)
        times.append((time.perf_counter() - start) / len(queries) * 1e3)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    tokens = corpus(rng)
    ranker = ranker_over(tokens)
    index = LexicalIndex(ranker, range(DOCS), tokens)
    engine = peer(index, [f"t{i}" for i in range(VOCABULARY)])
    rows = [np.sort(rng.choice(DOCS, CANDIDATES, replace=False)).astype(np.int32) for _ in range(QUERIES)]
    for name, frequent in (("content terms", 0), ("with frequent terms", 2)):
        terms = [
            np.unique(np.concatenate([rng.integers(0, 30, frequent), rng.integers(100, 5_000, 4)]))
            for _ in range(QUERIES)
        ]
        prepared = [
            (
                t.astype(np.int32),
                ranker.formula.weights(ranker.background, [f"t{i}" for i in t], np.ones(len(t), np.int64)),
                r,
            )
            for t, r in zip(terms, rows, strict=True)
        ]
        ours = best(index.rescore_terms, prepared)
        theirs = best(lambda t, _, r: engine.get_scores_from_ids(t)[r], [(t.tolist(), w, r) for t, w, r in prepared])
        gap = max(
            np.abs(index.rescore_terms(t, w, r) - engine.get_scores_from_ids(t.tolist())[r]).max()
            for t, w, r in prepared[:20]
        )
        print(
            f"{name}: ours {ours:.3f} ms/query, bm25s {theirs:.3f} ms/query, ratio {theirs / ours:.2f}, largest difference {gap:.1e}"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = (tokens.ids.nbytes + tokens.offsets.nbytes + sum(part.nbytes for part in index.lists)) / 2**20
    print(
        f"{DOCS:,} passages, {len(tokens.ids):,} tokens: index {held:,.0f} MiB, peak of the process {peak:,.0f} MiB (bm25s {bm25s.__version__} index and generation included)"
    )


if __name__ == "__main__":
    main()
