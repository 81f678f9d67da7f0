"""The tables of the package from those beside this file: Porter stems, each with its most frequent word.

    python bundle.py DATA --out FOLDER [--least 5] [--top 30] [--threshold 0.3] [--scale 0.4]

DATA holds the fifteen collections that the vocabulary came from. Both analyzers cut, lower and drop words alike; only
their stems differ. So each Krovetz stem becomes the Porter stem of its most frequent word. Of entries that become
one, the largest weight stays; entries of a stem with itself go. Words that occur fewer than `--least` times go, and
with them most that web pages glued together; so do those with anything but letters and digits. Weights are multiplied
by `--scale`, so that a related word counts well below the word itself, and rounded to 1/1024.
"""

import argparse
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

from whyrank.data import open_collection
from whyrank.tables import TermTable, count_words, open_table, surface_words
from whyrank.text import analyzers

NAMES = {"cross-bundled": "bundled", "minilm": "bundled-minilm"}
HERE = Path(__file__).parent
ANALYZERS = {name: analyzers.create(name) for name in ("krovetz", "lucene")}


@cache
def term_of(analyzer: str, word: str) -> str:
    """The one term that an analyzer makes of a word, else nothing."""
    terms = ANALYZERS[analyzer].terms(word)
    return terms[0] if len(terms) == 1 else ""


def bundle(table: TermTable, counts: Counter[str], top: int, threshold: float, scale: float) -> TermTable:
    """A table of Krovetz stems as one of Porter stems with words."""
    word = surface_words(counts, lambda text: term_of("krovetz", text))
    forms = surface_words(counts, lambda text: term_of("lucene", text))
    stem = {term: term_of("lucene", word[term]) for term in {*table.query_terms, *table.doc_terms} & word.keys()}
    best: dict[tuple[str, str], float] = {}
    for query_term, doc_term, weight in table.rows():
        pair = stem.get(query_term, ""), stem.get(doc_term, "")
        if all(pair) and pair[0] != pair[1] and weight >= threshold:
            best[pair] = max(round(weight * scale * 1024) / 1024, best.get(pair, 0.0))
    queries, docs = zip(*best, strict=True)
    facts = {name: table.facts[name] for name in ("learner", "target", "ranker", "network", "collections")}
    made = TermTable.from_triples(
        queries, docs, [*best.values()], analyzer="lucene", **facts, made_from=table.digest, scale=scale
    )
    made = made.prune(threshold * scale, top).compact()
    words = {term: forms[term] for term in dict.fromkeys((*made.query_terms, *made.doc_terms)) if forms[term] != term}
    return replace(made, words=words)


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--least", type=int, default=5)
    parser.add_argument("--top", type=int, default=30)
    parser.add_argument("--threshold", type=float, default=0.3)
    parser.add_argument("--scale", type=float, default=0.4)
    given = parser.parse_args()
    tables = {name: open_table(HERE / f"{source}.parquet") for source, name in NAMES.items()}
    counts = Counter[str]()
    for name in tables["bundled"].facts["collections"]:
        collection = open_collection(f"{given.data}/{name}")
        counts += count_words(dict.fromkeys([*collection.docs.values(), *collection.queries.values()]))
    totals = Counter[str]()
    for word, n in counts.items():
        totals[word.lower()] += n
    frequent = Counter({w: n for w, n in counts.items() if w.isalnum() and totals[w.lower()] >= given.least})
    for name, table in tables.items():
        made = bundle(table, frequent, given.top, given.threshold, given.scale)
        made.save(given.out / f"{name}.parquet")
        print(f"{name}: {made}, {(given.out / f'{name}.parquet').stat().st_size:,} bytes, digest {made.digest}")


if __name__ == "__main__":
    main()
