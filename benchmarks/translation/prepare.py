"""The parts of MedQuAD that the networks learn from and are validated on, with BM25's candidates for both.

    WHYRANK_DATA=FOLDER python benchmarks/translation/prepare.py WORK

The recipes beside this file name these parts; train in WORK: `whyrank train RECIPE --out FOLDER`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from indexed import Texts
from targets import SEED, targets

from whyrank.data import corpus_of, split_collection, write_run, write_split

NEGATIVES = 20  # of BM25's best, among which the negatives of a question are drawn


def main() -> None:
    place, data = Path(sys.argv[1]) / "parts", Path(os.environ["WHYRANK_DATA"])
    target = targets(data)["medquad"]
    place.mkdir(parents=True, exist_ok=True)
    texts, corpus = Texts(target.test), corpus_of(str(data / "medquad:train"))
    few = split_collection(target.dev, {"dev": 0.1}, SEED)["dev"]
    for name, parts in (("medquad", {"modelling": target.modelling}), ("dev", {"dev": few})):
        if not (place / name).exists():
            write_split(str(place / name), target.test, parts, corpus, "{}\n")
        for part, collection in parts.items():
            depth = 50 if part == "dev" else NEGATIVES
            write_run(place / f"{part}.txt", texts.search("lucene", collection.queries, depth))


if __name__ == "__main__":
    main()
