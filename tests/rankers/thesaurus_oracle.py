"""BM25T and QLT written out in loops over dictionaries, and small tables to try them on."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from whyrank.tables import TermTable

TERMS = [f"t{i}" for i in range(10)]
WORDS = [*TERMS, "onlyquery", "unknown"]  # the table has no text with the first, and no entry for the second


def random_table(seed, density=0.35, largest=1.0, itself=True):
    """Weights of pairs of terms, some above 1 with `largest`, some of a term for itself, some zero."""
    rng = np.random.default_rng(seed)
    queries, docs = [*TERMS[1:], "onlyquery"], TERMS[:9]
    pairs = [(q, d) for q in queries for d in docs if rng.random() < density and (itself or q != d)]
    weights = np.where(rng.random(len(pairs)) < 0.1, 0, rng.random(len(pairs)) * largest).round(2)
    names = zip(*pairs, strict=True) if pairs else ([], [])
    return TermTable.from_triples(*names, weights, analyzer="whitespace")


def related(table):
    """(query term, document term) -> weight, without those of a term for itself."""
    return {(q, d): w for q, d, w in table.rows() if q != d and w > 0}


def frequency(entries, match, term, doc_terms):
    """How often a text has a query term."""
    others = [(d, entries[term, d]) for d in doc_terms if (term, d) in entries]
    if match == "first":
        return doc_terms[term] if doc_terms[term] else max((s for _, s in others), default=0)
    counts = [doc_terms[term], *(doc_terms[d] * s for d, s in others)]
    return max(counts) if match == "max-tf" else sum(counts)


def bm25t(entries, docs, query, text, match="first", k1=0.9, b=0.4, k2=100.0):
    """The specification of BM25T over the statistics of `docs`, all as lists of words."""
    n, average = len(docs), sum(map(len, docs)) / len(docs) if sum(map(len, docs)) else 1.0
    doc_terms, score = Counter(text), 0.0
    for term, qf in Counter(query).items():
        df = sum(term in doc for doc in docs)
        f = frequency(entries, match, term, doc_terms)
        if f > 0:
            idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
            k = k1 * ((1 - b) + b * len(text) / average)
            score += idf * (k2 + 1) * qf / (k2 + qf) * (k1 + 1) * f / (f + k)
    return score


def qlt(entries, docs, query, text, mu=1000.0, lam=None):
    """The specification of QLT; with `lam` by Jelinek-Mercer smoothing."""
    counts, doc_terms, score = Counter(word for doc in docs for word in doc), Counter(text), 0.0
    for term in set(query):
        prior = counts[term] / sum(counts.values()) if counts[term] else 1e-8
        f = frequency(entries, "sum", term, doc_terms)
        if lam is None:
            score += math.log((f + mu * prior) / (len(text) + mu))
        else:
            score += math.log((1 - lam) * (f / len(text) if text else 0) + lam * prior)
    return score


def matches(entries, query, text):
    """Whether a text has a query term or a partner of one."""
    return any(term in text or any((term, word) in entries for word in text) for term in query)
