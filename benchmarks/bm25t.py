"""BM25T: re-rank 1,000 passages of 60 tokens for queries of 6 terms, and retrieve from 200,000 of them.

Re-ranking stands beside the way of published code, a dictionary of dictionaries in Python, and beside a binary search
for each distinct term of a passage and each query term, compiled alike. Both get the counts of the passages made
beforehand, and analysed queries with their weights; ours analyses each query itself. Retrieval stands beside scoring
every passage by the same kernels. All by the processor time of one thread; terms follow Zipf's law.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from model1 import LENGTH, PASSAGES, QUERIES, TERMS, distinct_terms, generated, processor_time, zipf
from numba import njit

from whyrank.rankers import Background, Setting, open_ranker
from whyrank.rankers.lexical import LexicalIndex, Weights
from whyrank.rankers.lexical.background import count
from whyrank.rankers.lexical.index import Search
from whyrank.rankers.lexical.thesaurus import ThesaurusRanker
from whyrank.tables import TermTable
from whyrank.text import Tokens, analyzers

COLLECTION, DEPTH = 200_000, 1_000
Work = Callable[[int], np.ndarray]


@njit(nogil=True)
def searched(ids, tf, offsets, lengths, indptr, indices, weights, query, given, a, b, out):
    """Scores by a binary search among the document terms of each query term, which are ascending."""
    for i in range(len(out)):
        out[i] = 0.0
        for j in range(len(query)):
            own, best = 0, np.float32(0.0)
            for position in range(offsets[i], offsets[i + 1]):
                d = ids[position]
                if d == query[j]:
                    own = tf[position]
                    break
                low, high = indptr[query[j]], indptr[query[j] + 1]
                while low < high:
                    middle = (low + high) // 2
                    if indices[middle] < d:
                        low = middle + 1
                    else:
                        high = middle
                if low < indptr[query[j] + 1] and indices[low] == d:
                    best = max(best, weights[low])
            f = np.float64(own) if own > 0 else np.float64(best)
            out[i] += given[j] * f / (f + a + b * lengths[i])


def in_python(entries, texts, query, given, a, b) -> np.ndarray:
    """The same with a dictionary for each query term."""
    scores = []
    for counts, length in texts:
        score = 0.0
        for term, weight in zip(query, given, strict=True):
            f = counts[term]
            if not f:
                row = entries.get(term, {})
                f = max((row[word] for word in counts if word in row), default=0.0)
            score += weight * f / (f + a + b * length)
        scores.append(score)
    return np.array(scores)


def over(rng: np.random.Generator, table: TermTable, passages: int, path: Path) -> tuple[Tokens, list[str]]:
    """Texts in ids of the analyzer, which are those of the table, and statistics of them in a file."""
    analyzer, names = analyzers.create("whitespace"), list(table.doc_terms)
    ids = analyzer.docs([" ".join(names)]).ids
    assert ids.tolist() == list(range(len(names))), "ids in order of appearance"
    offsets = np.arange(passages + 1, dtype=np.int64) * LENGTH
    tokens = Tokens(zipf(rng, len(names), passages * LENGTH).astype(np.int32), offsets)
    df, cf = count(tokens, len(names))
    Background(analyzer.identity, names, df, cf, passages, int(cf.sum())).save(path)
    return tokens, names


def ways(ranker: ThesaurusRanker, tokens: Tokens, queries: list[str]) -> Iterator[tuple[str, Work]]:
    scorer, rows = ranker.scorer(tokens), np.arange(PASSAGES, dtype=np.int32)
    yield "ours", lambda i: scorer.score(queries[i], rows)
    parsed = [ranker.query(query) for query in queries]
    yield "binary search", by_search(ranker, tokens, parsed)
    yield "Python", by_dictionaries(ranker, tokens, parsed)


def by_search(ranker: ThesaurusRanker, tokens: Tokens, parsed: list[tuple[np.ndarray, Weights]]) -> Work:
    found, tf = distinct_terms(tokens)
    lengths, out = np.diff(tokens.offsets), np.empty(PASSAGES)

    def score(number: int) -> np.ndarray:
        terms, how = parsed[number]
        searched(found.ids, tf, found.offsets, lengths, *ranker.table.by_query, terms, how.weights, how.a, how.b, out)
        return out

    return score


def by_dictionaries(ranker: ThesaurusRanker, tokens: Tokens, parsed: list[tuple[np.ndarray, Weights]]) -> Work:
    rows, wanted = ranker.table.by_query, {t for terms, _ in parsed for t in terms.tolist()}
    slices = {t: slice(rows.indptr[t], rows.indptr[t + 1]) for t in wanted}
    entries = {
        t: dict(zip(rows.indices[s].tolist(), rows.weights[s].tolist(), strict=True)) for t, s in slices.items()
    }
    for term, row in entries.items():
        row.pop(term, None)
    texts = [(Counter(ids.tolist()), LENGTH) for ids in np.split(tokens.ids, tokens.offsets[1:-1])]
    return lambda i: in_python(
        entries, texts, parsed[i][0].tolist(), parsed[i][1].weights.tolist(), *parsed[i][1][3:]
    )


def reranked(vocabulary: int, entries: int, folder: Path) -> None:
    rng, statistics = np.random.default_rng(0), folder / "s.parquet"
    table = generated(rng, vocabulary, entries)
    table.save(folder / "t.arrow")
    tokens, names = over(rng, table, PASSAGES, statistics)
    queries = [
        " ".join(names[i] for i in rng.permutation(np.unique(zipf(rng, vocabulary, 200)))[:TERMS])
        for _ in range(QUERIES)
    ]
    ranker = open_ranker(f"bm25t:{folder / 't.arrow'}", Setting(stats=str(statistics)))
    made = dict(ways(ranker, tokens, queries))
    apart = max(float(np.abs(made["ours"](i) - way(i)).max()) for way in made.values() for i in range(5))
    times = {name: processor_time(way, 5 if name != "Python" else 1) for name, way in made.items()}
    said = ", ".join(f"{name} {ms:.3f} ms (ratio {ms / times['ours']:.1f})" for name, ms in times.items())
    print(
        f"{vocabulary:>8,} terms, {len(table):>9,} entries, first: {said}, largest difference {apart:.0e}", flush=True
    )
    for spec in ("bm25t:TABLE(match=max-tf)", "bm25t:TABLE(match=sum)", "qlt:TABLE"):
        other = open_ranker(spec.replace("TABLE", str(folder / "t.arrow")), Setting(stats=str(statistics)))
        name, way = next(ways(other, tokens, queries))
        print(f"{spec:>47}: {name} {processor_time(way):.3f} ms", flush=True)


def evenly(rng: np.random.Generator, vocabulary: int, entries: int) -> TermTable:
    """A table whose query terms are the 10,000 most frequent terms, with partners from all over the vocabulary."""
    rows, columns = np.divmod(np.unique(rng.integers(0, 10_000 * vocabulary, entries)), vocabulary)
    names, weights = [f"t{i}" for i in range(vocabulary)], 0.1 + 0.9 * rng.random(len(rows)) ** 2
    return TermTable.from_codes(names, names, rows, columns, weights, {"analyzer": "whitespace"})


def retrieved(table: TermTable, partners: str, folder: Path) -> None:
    rng, statistics = np.random.default_rng(1), folder / "s.parquet"
    table.save(folder / "t.arrow")
    tokens, names = over(rng, table, COLLECTION, statistics)
    print(f"retrieval of {DEPTH:,} from {COLLECTION:,} passages; {len(table):,} entries, {partners}")
    for kind, frequent in (("four content terms", 0), ("and two frequent terms", 2)):
        parts = [np.concatenate([rng.integers(0, 30, frequent), rng.integers(100, 5_000, 4)]) for _ in range(QUERIES)]
        queries = [" ".join(names[i] for i in part) for part in parts]
        for spec in ("bm25t:TABLE", "bm25t:TABLE(match=sum)", "qlt:TABLE"):
            ranker = open_ranker(spec.replace("TABLE", str(folder / "t.arrow")), Setting(stats=str(statistics)))
            compared(spec, kind, LexicalIndex(ranker, range(COLLECTION), tokens), queries)


def compared(spec: str, kind: str, index: LexicalIndex, queries: list[str]) -> None:
    every = np.arange(COLLECTION, dtype=np.int32)
    analysed = [index.ranker.query(query) for query in queries]

    def ours(i: int) -> np.ndarray:
        return index.rescore_terms(*analysed[i], Search(index, *analysed[i]).find(DEPTH))

    def all_scored(i: int) -> np.ndarray:
        return index.rescore_terms(*analysed[i], every)

    for i in range(5):
        found, whole = ours(i), all_scored(i)
        same = np.sort(found)[::-1][:DEPTH].tolist() == np.sort(whole)[::-1][:DEPTH].tolist()
        assert same or "qlt" in spec, "the same scores"  # a short passage without a match may beat one with a match

    mine, other = processor_time(ours, 3), processor_time(all_scored, 1)
    print(
        f"{spec:>26}, {kind}: {mine:.2f} ms a query, all scored {other:.1f} ms, ratio {other / mine:.1f}", flush=True
    )


def main() -> None:
    logging.disable(logging.WARNING)  # generated texts have few of the words
    print(
        f"{PASSAGES:,} passages of {LENGTH} tokens, {QUERIES} queries of {TERMS} terms, processor time of one thread"
    )
    with tempfile.TemporaryDirectory() as folder:
        for vocabulary, entries in ((30_000, 1_000_000), (100_000, 553_864)):
            reranked(vocabulary, entries, Path(folder))
        rng = np.random.default_rng(2)
        retrieved(evenly(rng, 100_000, 553_864), "partners from all over the vocabulary", Path(folder))
        retrieved(generated(rng, 100_000, 553_864), "partners as frequent as chance has them", Path(folder))


if __name__ == "__main__":
    main()
