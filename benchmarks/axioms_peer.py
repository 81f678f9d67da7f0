"""The other side of `axioms.py`: ir_axioms in an environment of its own. Reads a task as JSON, prints seconds as JSON.

Its batch method `preferences()`, a regular expression as tokeniser, in-memory document frequencies and a dictionary of
word vectors, all bound through its own injector. Imports are done before the clock starts.
"""

from __future__ import annotations

import json
import re
import sys
import time

import numpy as np
from ir_axioms.axiom import retrieval
from ir_axioms.dependency_injection import injector
from ir_axioms.model import Document, Query
from ir_axioms.tools import IndexStatistics, TermSimilarity, TermTokenizer

_WORD = re.compile(r"[a-z0-9]+")


class Words(TermTokenizer):
    def terms(self, text):
        return _WORD.findall(text.lower())


class Frequencies(IndexStatistics):
    def __init__(self, counts, documents):
        self.counts, self.documents = counts, documents

    @property
    def document_count(self):
        return self.documents

    def document_frequency(self, term):
        return self.counts.get(term, 0)


class Similarity(TermSimilarity):
    def __init__(self, vectors):
        self.vectors = {word: np.array(vector) for word, vector in vectors.items()}

    def similarity(self, term1, term2):
        one, two = self.vectors.get(term1), self.vectors.get(term2)
        return 0.0 if one is None or two is None else float(one @ two)


def main() -> None:
    task = json.load(sys.stdin)
    injector.binder.bind(TermTokenizer, to=Words())
    injector.binder.bind(IndexStatistics, to=Frequencies(task["frequencies"], task["documents"]))
    injector.binder.bind(TermSimilarity, to=Similarity(task["vectors"]))
    work = [
        (
            Query(id=q["id"], text=q["text"]),
            [Document(id=d, text=t, score=s, rank=r) for r, (d, t, s) in enumerate(q["docs"])],
        )
        for q in task["queries"]
    ]
    seconds, decided = {}, {}
    for name in task["axioms"]:
        axiom = getattr(retrieval, name)()
        start = time.perf_counter()
        found = [axiom.preferences(query, docs) for query, docs in work]
        seconds[name] = time.perf_counter() - start
        decided[name] = int(sum((matrix > 0).sum() for matrix in found))
    json.dump({"seconds": seconds, "decided": decided}, sys.stdout)


if __name__ == "__main__":
    main()
