"""The two tables of the package: what a ranker says of single words.

    python bundle.py DATA MINILM --out FOLDER

DATA holds the collections of COLLECTIONS, MINILM is the folder of all-MiniLM-L6-v2. Words with a letter that occur
LEAST times or more are taken together by their stem under the analyzer `lucene`; their most frequent form stands for
them. The QUERIES most frequent stems are query terms t. Each ranker scores the NEAR nearest stems d as texts for the
query t. Nearness is (cosine - 0.2) * occurrences ** 0.2, by MiniLM. An entry weighs

    FACTOR * (s(t, d) - m(t) - p(d)) / (s(t, t) - m(t) - p(t)), between 0 and FACTOR,

where s is the score, m(t) the median score of RANDOM stems for the query t, and p(d) the mean of s(q, d) - m(q) over
RANDOM query terms q: how far d lies above other texts whatever the query is. So t itself would have FACTOR, and most
stems 0. The TOP heaviest entries of a query term stay; weights are rounded to 1/128.
"""

import argparse
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from whyrank.core import Ranker
from whyrank.data import open_collection
from whyrank.rankers import open_ranker
from whyrank.tables import TermTable, count_words, surface_words
from whyrank.text import analyzers

COLLECTIONS = ["msmarco_dl19", "msmarco_dl21", "scifact:test", "boolq_dev", "xquad_en", "pubmedqa", "medquad:train",
               "wikiqa:train", "trecqa:train", "liveqa_med2017"]  # fmt: skip
LEAST, QUERIES, NEAR, RANDOM, FACTOR, TOP = 5, 10_000, 120, 30, 0.5, 50
ENGLISH = analyzers.create("lucene")


@cache
def stem(word: str) -> str:
    """What the analyzer makes of a word; "" where that is not one term."""
    terms = ENGLISH.terms(word)
    return terms[0] if len(terms) == 1 else ""


def frequent_stems(data: Path) -> tuple[list[str], list[str], np.ndarray]:
    """All stems, the most frequent first, with the word that stands for each and how often they occur."""
    counts, lowered, totals = Counter[str](), Counter[str](), Counter[str]()
    for name in COLLECTIONS:
        collection = open_collection(f"{data}/{name}")
        counts += count_words(dict.fromkeys([*collection.docs.values(), *collection.queries.values()]))
    for word, n in counts.items():
        lowered[word.lower()] += n
    kept = {w: n for w, n in counts.items() if w.isalnum() and not w.isdigit() and lowered[w.lower()] >= LEAST}
    for word, n in kept.items():
        totals[stem(word)] += n
    words = surface_words(Counter(kept), stem)
    stems = [term for term, _ in totals.most_common() if term]
    return stems, [words[term] for term in stems], np.array([totals[term] for term in stems])


def nearest(model: str, words: list[str], occurrences: np.ndarray) -> np.ndarray:
    """For each query term the numbers of its nearest stems, itself left out."""
    from sentence_transformers import SentenceTransformer

    vectors = SentenceTransformer(model).encode(words, normalize_embeddings=True, batch_size=256)
    nearness = (vectors[:QUERIES] @ vectors.T - 0.2) * occurrences**0.2
    np.fill_diagonal(nearness, -np.inf)
    return np.argpartition(-nearness, NEAR, axis=1)[:, :NEAR]


def weigh(ranker: Ranker, words: list[str], near: np.ndarray) -> np.ndarray:
    """The weight of each query term and each of its nearest stems."""

    def score(queries: np.ndarray, texts: np.ndarray) -> np.ndarray:
        asked, told = np.broadcast_arrays(queries, texts)
        given = [[words[i] for i in side.ravel()] for side in (asked, told)]
        return np.asarray(ranker.score(*given)).reshape(asked.shape)

    rng, terms = np.random.default_rng(0), np.arange(QUERIES)[:, None]
    middle = np.median(score(terms, rng.integers(len(words), size=(QUERIES, RANDOM))), axis=1)
    drawn = rng.integers(QUERIES, size=(len(words), RANDOM))
    above = (score(drawn, np.arange(len(words))[:, None]) - middle[drawn]).mean(axis=1)
    gain = score(terms, np.hstack([terms, near])) - middle[:, None] - above[np.hstack([terms, near])]
    return FACTOR * np.clip(gain[:, 1:] / gain[:, :1], 0, 1)


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("minilm")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    stems, words, occurrences = frequent_stems(given.data)
    near = nearest(given.minilm, words, occurrences)
    surface = {term: word for term, word in zip(stems, words, strict=True) if term != word}
    hub = "sentence-transformers/all-MiniLM-L6-v2"
    rankers = {"bundled": ("cross:bundled", "cross:bundled"), "bundled-minilm": (f"bi:{hub}", f"bi:{given.minilm}")}
    rows = np.repeat(np.arange(QUERIES), NEAR)
    for name, (target, spec) in rankers.items():
        ranker = open_ranker(f"{spec}(precision=fast)")
        weights = np.round(weigh(ranker, words, near) * 128) / 128
        facts = {"learner": "single words", "target": target, "ranker": repr(ranker).replace(given.minilm, hub)}
        facts |= {"analyzer": "lucene", "collections": COLLECTIONS}
        table = TermTable.from_codes(stems[:QUERIES], stems, rows, near.ravel(), weights.ravel(), facts)
        table = table.prune(1 / 128, TOP).compact()
        known = {*table.query_terms, *table.doc_terms}
        table = replace(table, words={term: word for term, word in surface.items() if term in known})
        table.save(given.out / f"{name}.parquet")
        print(f"{name}: {table}, {(given.out / f'{name}.parquet').stat().st_size:,} bytes, digest {table.digest}")


if __name__ == "__main__":
    main()
