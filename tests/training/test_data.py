"""From collections, runs and files to the examples that are drawn."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.training import EpochExamples
from whyrank.training.data import Judged, corpus_texts, training_set, validation_set


def numbers(rows):
    return [np.array(row, np.int32) for row in rows]


@st.composite
def judged(draw):
    """Queries with some positive and some negative texts, possibly none of either."""
    n = draw(st.integers(1, 8))
    rows = []
    for _ in range(n):
        texts = draw(st.lists(st.integers(0, 40), unique=True, max_size=12))
        cut = draw(st.integers(0, len(texts)))
        rows.append((texts[:cut], texts[cut:]))
    good, bad = zip(*rows, strict=True)
    return Judged(numbers(good), numbers(bad), draw(st.integers(1, 5)))


def same(a: EpochExamples, b: EpochExamples) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@settings(max_examples=50)
@given(judged(), st.integers(0, 3), st.integers(0, 3))
def test_one_positive_and_n_negatives_of_each_query_and_epoch(sampler, seed, epoch):
    found = sampler.epoch(seed, epoch)
    usable = [q for q, p in enumerate(sampler.positives) if len(p) and len(sampler.negatives[q])]
    assert sorted(found.query.tolist()) == usable
    assert found.doc.shape == found.target.shape == (len(usable), 1 + sampler.n)
    for query, docs, targets in zip(*found, strict=True):
        assert docs[0] in sampler.positives[query]
        assert set(docs[1:].tolist()) <= set(sampler.negatives[query].tolist())
        assert not set(docs[1:].tolist()) & set(sampler.positives[query].tolist())
        if len(sampler.negatives[query]) >= sampler.n:
            assert len(set(docs[1:].tolist())) == sampler.n
        assert targets.tolist() == [1.0] + [0.0] * sampler.n


DOCS = {"a": "one text", "b": "another text", "c": "one text", "d": "third text", "e": "fourth text"}
QUERIES = {"1": "first query", "2": "second query", "3": "without relevant texts", "4": "unjudged"}
QRELS = [("1", "a", 2), ("1", "b", 0), ("1", "d", 1), ("2", "e", 1), ("2", "a", 0), ("3", "b", 0)]
RUN = [("1", "c", 9.0), ("1", "b", 8.0), ("1", "d", 9.5), ("2", "b", 1.0), ("2", "d", 3.0), ("2", "e", 2.0)]


@pytest.fixture
def small(tmp_path):
    """A collection in which the text of `a`, relevant to the first query, occurs again as `c`, unjudged."""
    folder = tmp_path / "small"
    (folder / "runs").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"id": k, "text": v}) + "\n" for k, v in DOCS.items()))
    (folder / "queries.tsv").write_text("".join(f"{k}\t{v}\n" for k, v in QUERIES.items()))
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in QRELS))
    (folder / "runs" / "first.txt").write_text("".join(f"{q} Q0 {d} 1 {s} x\n" for q, d, s in RUN))
    return str(folder)


def texts_of(data):
    """For each query its positive and negative texts."""
    spelled = [
        {data.docs[i] for i in row} for rows in (data.sampler.positives, data.sampler.negatives) for row in rows
    ]
    half = len(spelled) // 2
    return dict(zip(data.queries, zip(spelled[:half], spelled[half:], strict=True), strict=True))


def test_negatives_are_judged(small):
    found = training_set({"collection": small, "negatives": "judged"})
    assert texts_of(found) == {
        "first query": ({"one text", "third text"}, {"another text"}),
        "second query": ({"fourth text"}, {"one text"}),
    }


def test_negatives_of_a_run_are_never_relevant_texts(small):
    found = training_set({"collection": small, "negatives": "first", "n": 2})
    assert texts_of(found) == {
        "first query": ({"one text", "third text"}, {"another text"}),
        "second query": ({"fourth text"}, {"another text", "third text"}),
    }
    assert found.sampler.n == 2


def test_another_grade_counts_as_relevant(small):
    found = training_set({"collection": small, "negatives": "judged", "relevant": 2})
    assert texts_of(found) == {"first query": ({"one text"}, {"another text", "third text"})}


def test_several_collections_and_a_limit(small):
    found = training_set({"collection": [small, "sample"], "negatives": "judged"})
    assert len(found.queries) == 42
    assert len(training_set({"collection": [small, "sample"], "negatives": "judged", "limit": 3}).queries) == 3


def test_validation_has_the_candidates_of_the_run_in_its_order(small):
    found = validation_set({"collection": small, "run": "first", "depth": 2})
    assert list(found.queries) == ["first query", "second query"]
    rows = [(found.queries[q], found.docs[d], g) for q, d, g in zip(found.query, found.doc, found.grade, strict=True)]
    assert rows == [
        ("first query", "third text", 1), ("first query", "one text", 0),
        ("second query", "third text", 0), ("second query", "fourth text", 1),
    ]  # fmt: skip
    assert found.ideal == [[2, 0, 1], [1, 0]]
    assert len(validation_set({"collection": small, "limit": 1}).queries) == 1
    assert validation_set({}) is None


def test_corpus_texts(small):
    assert corpus_texts([small]) == list(DOCS.values())
    few = corpus_texts([small], 2)
    assert len(few) == 2
    assert few == corpus_texts([small], 2)


LINES = ["q one\tgood\tbad", "q two\tfine\tgood", "q one\tgood\tworse"]


@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_triples(tmp_path, name):
    path = tmp_path / name
    content = "\n".join(LINES).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith("gz") else content)
    data = training_set({"triples": str(path)})
    assert data.queries == ["q one", "q two"]
    assert data.docs == ["good", "bad", "fine", "worse"]
    found = data.sampler.examples
    assert found.query.tolist() == [0, 1, 0]
    assert found.doc.tolist() == [[0, 1], [2, 0], [0, 3]]
    assert found.target.tolist() == [[1, 0]] * 3
    assert len(training_set({"triples": str(path), "limit": 2}).sampler.examples.query) == 2


def test_triples_with_the_scores_of_a_teacher(tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text("q\tgood\tbad\t7.5\t-1e-1\r\n")
    np.testing.assert_allclose(training_set({"triples": str(path)}).sampler.examples.target, [[7.5, -0.1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "the file is empty"), (b"a\tb\tc\na\tb\n", ":2: has 2 columns"), (b"a\tb\tc\t1\tx\n", ":1: has the scores"),
     (b"a\tb\tc\t1\tnan\n", "scores"), (b"a\tb\t\xff\n", "not UTF-8")],
)  # fmt: skip
def test_wrong_triples_are_one_clear_line(tmp_path, content, what):
    path = tmp_path / "triples.tsv"
    path.write_bytes(content)
    with pytest.raises(WhyrankError, match=rf"^[^\n]*{what}[^\n]*$"):
        training_set({"triples": str(path)})


@pytest.mark.parametrize(
    ("data", "what"),
    [({"collection": "nowhere"}, "nowhere"), ({"collection": 3}, "collection must be a list"), ({"collection": []}, "name a collection"),
     ({"collection": "sample", "negatives": "no-run"}, "no-run"), ({"triples": "no.tsv"}, "no.tsv: cannot be read"),
     ({"collection": "sample", "relevant": 9}, "no query of sample has a relevant")],
)  # fmt: skip
def test_wrong_data_are_one_clear_line(data, what):
    with pytest.raises(WhyrankError, match=rf"^[^\n]*{what}[^\n]*$"):
        training_set(data)


def test_a_validation_without_a_run_names_those_there_are(small, tmp_path):
    (tmp_path / "small" / "runs" / "second.txt").write_text("1 Q0 a 1 1.0 x\n")
    with pytest.raises(WhyrankError, match=r"name a run of .*: first, second"):
        validation_set({"collection": small})
    (tmp_path / "other.txt").write_text("4 Q0 a 1 1.0 x\n")
    with pytest.raises(WhyrankError, match="no judged query"):
        validation_set({"collection": small, "run": str(tmp_path / "other.txt")})
