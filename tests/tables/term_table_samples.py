"""Term tables for tests: Hypothesis strategies over odd terms, and plain dictionaries to compare with."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from whyrank.tables import TermTable

ODD = ("a", "b", "car", "#", "#x", "\\#", "\\", "\t", "a\tb", "\n", "\r", "a\r\n", "\\t", "\x00", "\x0b", "\x85", "\u2028",
       "\ufeff", '"', "'", '"a"', " ", "a b", "=>", "a=>b", "=", ">", ",", "a,b", "é", "e\u0301", "日本", "😀", "nan", "1", "null",
       "query_term", "document_term", "weight")  # fmt: skip
TERMS = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5))
WEIGHTS = st.floats(0, 3.4028234663852886e38, width=32)
FACTS = st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)), max_size=3)  # fmt: skip


@st.composite
def tables(draw, weights=WEIGHTS, terms=TERMS, most=8):
    """A table, and the dictionary {(query term, document term): weight} that it was made from."""
    queries = draw(st.lists(terms, max_size=most, unique=True))
    docs = draw(st.lists(terms, max_size=most, unique=True))
    positions = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(docs) - 1))
    entries = draw(st.dictionaries(positions, weights, max_size=2 * most)) if queries and docs else {}
    counts = draw(st.none() | st.lists(st.integers(0, 2**62), min_size=len(docs), max_size=len(docs)))
    rows, columns = [q for q, _ in entries], [d for _, d in entries]
    numbers = [np.array(each, dtype=np.int64) for each in (rows, columns)]
    held = np.array(list(entries.values()), dtype=np.float32)
    table = TermTable.from_codes(queries, docs, *numbers, held, draw(FACTS), counts)
    return table, {(queries[q], docs[d]): w for (q, d), w in entries.items()}


def as_dict(table):
    """The entries of a table, read from its arrays by loops."""
    found = {}
    for q, term in enumerate(table.query_terms):
        for entry in range(int(table.indptr[q]), int(table.indptr[q + 1])):
            found[term, table.doc_terms[int(table.indices[entry])]] = float(table.weights[entry])
    assert len(found) == len(table)
    return found


def assert_same(found, table):
    """Nothing was lost on the way: vocabularies in order, entries, counts and facts."""
    assert list(found.query_terms) == list(table.query_terms)
    assert list(found.doc_terms) == list(table.doc_terms)
    assert as_dict(found) == as_dict(table)
    assert (found.counts is None) == (table.counts is None)
    assert found.counts is None or found.counts.tolist() == table.counts.tolist()
    assert dict(found.facts) == dict(table.facts)
    assert found.digest == table.digest


def generated(entries, queries=50_000, docs=100_000):
    """A large table with rows of equal size."""
    rng = np.random.default_rng(0)
    size = entries // queries
    columns = np.sort(rng.integers(0, docs - size, (queries, size)), axis=1) + np.arange(size)  # no column twice
    weights = rng.random(queries * size, dtype=np.float32)
    names = [f"q{i}" for i in range(queries)], [f"d{i}" for i in range(docs)]
    return TermTable(*names, np.arange(queries + 1) * size, columns.ravel(), weights, {"learner": "generated"})
