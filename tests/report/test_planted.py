"""Audits of BM25 and of BM25 with one behaviour planted: the first sentence names that behaviour."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import whyrank
from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.studies import every_kind

STUDIES = [
    "edited/prepend-query", "edited/shuffle-words", "edited/typos", "edited/remove-punct", "edited/repeat-document",
    "matched/length|sum-tf", "matched/sum-tf|length", "matched/relevance|length", "axiom/LB2", "axiom/TFC1",
    "transferred/formality", "transferred/factuality", "transferred/paraphrase", "bias/car-brand",
]  # fmt: skip


def terms(text):
    return re.findall(r"\w+", text.lower())


@pytest.fixture(scope="module")
def sample():
    return open_collection("sample")


@pytest.fixture(scope="module")
def texts(sample):
    """The texts of all studies that misspell nothing, and the wrong answers among them."""
    whole = [name for name in STUDIES if name.partition("/")[0] in ("transferred", "bias", "edited") and "typos" not in name]
    made = {name: study.contrasts(sample) for name, study in every_kind().make(whole, {"seed": 0}, {}).items()}
    facts = made["transferred/factuality"]
    return [doc for contrasts in made.values() for doc in contrasts.docs], {facts.docs[i] for i in facts.doc[:, 1]}


def planted_in(theme, sample, texts):
    """What is added to the score of BM25."""
    docs, wrong = texts
    known = {word for doc in docs for word in terms(doc)}
    pairs = {pair for doc in sample.docs for words in [terms(sample.docs[doc])] for pair in zip(words, words[1:], strict=False)}

    def repeats(query, doc):
        counts = Counter(terms(doc))
        return sum(counts[word] * (counts[word] - 1) for word in set(terms(query)))

    def ordered(query, doc):
        words = terms(doc)
        return sum(pair in pairs for pair in zip(words, words[1:], strict=False)) / max(1, len(words))

    return {
        "Word order": lambda query, doc: 5 * ordered(query, doc),
        "Length": lambda query, doc: 0.03 * len(terms(doc)),
        "Brands and names": lambda query, doc: 3.0 * ("Volvo" in doc),
        "Noise and typos": lambda query, doc: -9.0 * any(word not in known for word in terms(doc)),
        "Query words": lambda query, doc: 3.0 * repeats(query, doc),
        "Facts": lambda query, doc: 3.0 * (doc in wrong),
    }[theme]


@pytest.mark.parametrize(
    ("theme", "says"),
    [
        ("Word order", r"With shuffled words, planted prefers the original in \d+% .*; BM25 never notices\."),
        ("Length", r"planted prefers the longer one in \d+%"),
        ("Brands and names", r"planted favours Volvo over all others, by [\d.]+ rank steps; BM25 makes no difference\."),
        ("Noise and typos", r"With spelling mistakes, planted prefers the original in \d+%"),
        ("Query words", r"planted prefers the one that repeats a query word in \d+%"),
        ("Facts", r"planted prefers the one with a wrong answer in 100% of 76 pairs"),
    ],
)  # fmt: skip
def test_the_first_sentence_names_what_was_planted(sample, texts, theme, says):
    bm25, plant = open_ranker("bm25", Setting(sample)), planted_in(theme, sample, texts)

    def planted(queries, docs):
        return bm25.score(queries, docs) + np.array([plant(*pair) for pair in zip(queries, docs, strict=True)])

    audit = whyrank.audit(["bm25", planted], sample, STUDIES, tolerance="10%", limit=150)
    first = audit.headlines[0]
    assert first.theme == theme, [str(headline) for headline in audit.headlines]
    assert re.search(says, first.text), first.text
