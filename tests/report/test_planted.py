"""Audits of BM25 and of BM25 with one behaviour planted: the first sentence names that behaviour."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

import whyrank
from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.studies import all_studies

STUDIES = [
    "edited/prepend-query", "edited/shuffle-words", "edited/typos", "edited/remove-punct", "edited/repeat-document",
    "matched/length|sum-tf", "matched/sum-tf|length", "matched/relevance|length", "axiom/LB2", "axiom/TFC1",
    "transferred/formality", "transferred/factuality", "transferred/paraphrase", "bias/car-brand",
]  # fmt: skip


def terms(text):
    return re.findall(r"\w+", text.lower())


def plants(sample):
    """What is added to the score of BM25, by the theme that it belongs to."""
    whole = [name for name in STUDIES if name.partition("/")[0] in ("transferred", "bias")]
    made = {name: study.contrasts(sample) for name, study in all_studies().make(whole, {"seed": 0}, {}).items()}
    facts = made["transferred/factuality"]
    wrong = {facts.docs[i] for i in facts.doc[:, 1]}
    texts = [*sample.docs.values(), *(doc for contrasts in made.values() for doc in contrasts.docs)]
    known = {word for text in [*texts, *sample.queries.values()] for word in terms(text)}
    neighbours = {pair for text in texts for pair in pairwise(terms(text))}

    def repeats(query, doc):
        counts = Counter(terms(doc))
        return sum(counts[word] * (counts[word] - 1) for word in set(terms(query)))

    return {
        "Word order": lambda query, doc: 5 * np.mean([pair in neighbours for pair in pairwise(terms(doc))] or [0]),
        "Length": lambda query, doc: 0.03 * len(terms(doc)),
        "Brands and names": lambda query, doc: 3.0 * ("Volvo" in doc),
        "Noise and typos": lambda query, doc: -9.0 * any(word not in known for word in terms(doc)),
        "Query words": lambda query, doc: 3.0 * repeats(query, doc),
        "Facts": lambda query, doc: 3.0 * (doc in wrong),
    }


@dataclass(frozen=True)
class Planted:
    name: str
    bm25: object
    plant: object
    cacheable: bool = False

    def score(self, queries, docs):
        return self.bm25.score(queries, docs) + np.array(
            [self.plant(*pair) for pair in zip(queries, docs, strict=True)]
        )


@pytest.fixture(scope="module")
def audits():
    """One audit for each theme: BM25, and the ranker with its plant."""
    whole = open_collection("sample")
    some = list(whole.queries)[:14]
    sample = replace(whole, **{part: {q: getattr(whole, part)[q] for q in some} for part in ("queries", "qrels")})
    bm25 = open_ranker("bm25", Setting(sample))
    rankers = [Planted(theme, bm25, plant) for theme, plant in plants(sample).items()]
    asked = whyrank.audit(["bm25", *rankers], sample, STUDIES, tolerance="10%", limit=150, correction="bh")
    return {r.name: replace(asked, findings=[f for f in asked if f.ranker in ("bm25", r.name)]) for r in rankers}


@pytest.mark.parametrize(
    ("theme", "says"),
    [
        ("Word order", r"With shuffled words, {} prefers the original in \d+% .*; BM25 never notices\."),
        ("Length", r"{} prefers the longer one in \d+%"),
        ("Brands and names", r"{} favours Volvo over all others, by [\d.]+ rank steps; BM25 makes no difference\."),
        ("Noise and typos", r"With spelling mistakes, {} prefers the original in \d+%"),
        ("Query words", r"{} prefers the one that repeats a query word in \d+%"),
        ("Facts", r"{} prefers the one with a wrong answer in 100% of 76 pairs"),
    ],
)
def test_the_first_sentence_names_what_was_planted(audits, theme, says):
    said = audits[theme].headlines
    assert said[0].theme == theme, [str(headline) for headline in said]
    assert re.search(says.replace("{}", theme), said[0].text), said[0].text
