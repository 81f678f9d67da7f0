"""Collections from plain Python."""

from __future__ import annotations

from collections import UserDict

import numpy as np
import pytest

from whyrank.core import BadInput
from whyrank.data import Collection, Grades

DOCS = {"a": "one", "b": "two"}
QUERIES = {"1": "first"}


def test_mappings_and_iterables_give_the_same():
    qrels = {"1": {"a": 1, "b": 0}}
    mapped = Collection.of(docs=DOCS, queries=QUERIES, qrels=qrels, name="x")
    listed = Collection.of(
        docs=list(DOCS.items()),
        queries=iter(QUERIES.items()),
        qrels=[("1", "a", 1), ("1", "b", np.int64(0))],
        name="x",
    )
    assert vars(mapped) == vars(listed)
    assert (mapped.docs, mapped.queries, mapped.qrels, mapped.notes) == (DOCS, QUERIES, qrels, [])
    assert mapped.docs is not DOCS


def test_repr_tells_the_sizes():
    collection = Collection.of(DOCS, QUERIES, [("1", "a", 1)], runs={"r": {"1": {"a": 1.0}}}, name="x")
    assert repr(collection) == "Collection('x', 2 docs, 1 queries, 1 judgements, 1 runs)"


def test_a_lazy_mapping_is_kept_unread():
    class Lazy(UserDict):
        def __iter__(self):
            pytest.fail("the mapping was read")

    docs = Lazy({"a": "one"})
    assert Collection.of(docs, QUERIES, [("1", "a", 1)]).docs is docs


def test_grades_are_given_known_or_inferred():
    assert Collection.of(DOCS, QUERIES, name="dl19").grades.relevant == 2
    assert Collection.of(DOCS, QUERIES, grades=Grades({}, 5, 4)).grades.relevant == 5
    assert Collection.of(DOCS, QUERIES, [("1", "a", 1), ("1", "b", 2)]).grades.relevant == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"docs": [("a", "x"), ("a", "y")]}, r"docs: item 2: id 'a' occurs twice; give every text an id of its own"),
        ({"docs": {1: "x"}}, r"docs: item 1: expected an id and a text, found \(1, 'x'\); both are strings"),
        ({"docs": {"": "x"}}, r"docs: item 1: expected an id and a text"),
        ({"docs": "ab"}, r"docs: item 1: expected an id and a text, found 'a'"),
        ({"queries": {"q": None}}, r"queries: item 1: expected an id and a text"),
        ({"queries": {"\ud800": "x"}}, r"queries: item 1: expected an id and a text"),
        ({"qrels": [("1", "a")]}, r"qrels: item 1: expected a query id, a document id and an integer grade"),
        ({"qrels": [("1", "a", 0.5)]}, r"qrels: item 1: expected .* found \('1', 'a', 0\.5\); ids are strings"),
        ({"qrels": {"1": {"a": "2"}}}, r"qrels: item 1: expected"),
        ({"qrels": [("1", "a", 1), ("1", "a", 2)]}, r"qrels: item 2: document 'a' has two grades for query '1'"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, what):
    with pytest.raises(BadInput, match=what):
        Collection.of(**({"docs": DOCS, "queries": QUERIES} | arguments))


def test_oddities_are_noted():
    collection = Collection.of(
        docs={"a": "", "b": "x\ud800"},
        queries={"1": " "},
        qrels=[("1", "a", 1), ("1", "a", 1), ("2", "a", 0), ("1", "z", 1)],
        runs={"r": {"3": {"a": 1.0}}},
    )
    assert collection.docs["b"] == "x\ufffd"
    assert collection.notes == [
        "docs: documents with an empty text: 1 (a)",
        "docs: documents with lone surrogates (each replaced by U+FFFD): 1 (b)",
        "queries: queries with an empty text: 1 (1)",
        "qrels: judgements that repeat an earlier one: 1",
        "qrels: queries that the collection does not have: 1 (2)",
        "qrels: documents that the collection does not have: 1 (z)",
        "run 'r': queries that the collection does not have: 1 (3)",
    ]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"qrels": [("2", "a", 1)]}, r"qrels: query '2' is not in the collection \(1 such queries in all\)"),
        (
            {"qrels": [("1", "y", 1), ("1", "z", 1)]},
            r"qrels: document 'y' is not in the collection \(2 such documents",
        ),
        (
            {"runs": {"r": {"1": {"z": 1.0}}}},
            r"run 'r': document 'z' is not in the collection .*; add what is missing",
        ),
    ],
)
def test_strict_makes_unknown_ids_fatal(arguments, what):
    Collection.of(DOCS, QUERIES, **arguments)
    with pytest.raises(BadInput, match=what):
        Collection.of(DOCS, QUERIES, strict=True, **arguments)


def test_strict_makes_empty_texts_fatal():
    with pytest.raises(BadInput, match=r"docs: item 2: documents: the text of 'b' is empty"):
        Collection.of({"a": "x", "b": " "}, QUERIES, strict=True)
    with pytest.raises(BadInput, match=r"queries: item 1: queries: the text of 'q' is empty"):
        Collection.of(DOCS, {"q": ""}, strict=True)
