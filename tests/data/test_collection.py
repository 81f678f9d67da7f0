"""Collections from plain Python, their runs by name and by path, and disjoint parts of them."""

from __future__ import annotations

import json
import random
from collections import UserDict

import numpy as np
import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.data import Collection, open_collection, open_run, parse_parts, split_collection

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


def test_a_lazy_mapping_is_kept_unread():
    class Lazy(UserDict):
        def __iter__(self):
            pytest.fail("the mapping was read")

    docs = Lazy({"a": "one"})
    assert Collection.of(docs, QUERIES, [("1", "a", 1)]).docs is docs


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"docs": [("a", "x"), ("a", "y")]}, r"docs: item 2: id 'a' occurs twice"),
        ({"docs": {1: "x"}}, r"docs: item 1: expected an id and a text, found \(1, 'x'\)"),
        ({"queries": {"\ud800": "x"}}, r"queries: item 1: expected an id and a text"),
        ({"runs": {"r": [("1", "a", 0.5)]}}, r"run 'r': is no mapping; give \{run: \{query id: \{"),
        ({"runs": {"1": {"a": 0.5}}}, "run '1': is no mapping"),
        ({"qrels": [("1", "a")]}, r"qrels: item 1: expected a query id, a document id and an integer grade"),
        ({"qrels": [("1", "a", 0.5)]}, r"qrels: item 1: expected .* found \('1', 'a', 0\.5\); ids are strings"),
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
        ({"runs": {"r": {"1": {"z": 1.0}}}}, r"run 'r': document 'z' is not in the collection"),
        ({"docs": {"a": "x", "b": " "}}, r"docs: item 2: documents: the text of 'b' is empty"),
    ],
)
def test_strict_makes_oddities_fatal(arguments, what):
    given = {"docs": DOCS, "queries": QUERIES} | arguments
    Collection.of(**given)
    with pytest.raises(BadInput, match=what):
        Collection.of(**given, strict=True)


# Runs by name and by path.


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"id": i, "text": "a cat"}) + "\n" for i in "12"))
    (tmp_path / "queries.tsv").write_text("q1\tcat\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "some.txt").write_text("q1 Q0 1 1 2.0 x\nq1 Q0 9 2 1.0 x\nq7 Q0 1 1 1.0 x\n")
    (tmp_path / "runs" / "other.txt").write_text("q7 Q0 1 1 2.0 x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("other", "has no query of collection"),
        ("runs/other.txt", "has no query of collection"),
        ("nope", "runs of .*: other, some"),
    ],
)
def test_runs_that_cannot_be_used(folder, name, problem, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match=f"{name}: .*{problem}"):
        open_run(open_collection(str(folder)), name)


# Disjoint parts, whatever the order of the queries.

PARTS = "modelling=0.6,fusion=0.2,dev=0.1,test=0.1"


def many(n=200, order=None):
    """Queries of which each third has the text of the one before it, in other letters."""
    texts = {f"q{i}": f"what is thing {i}" if i % 3 else f"What  IS thing {i - 1}" for i in range(1, n)}
    ids = list(texts)
    if order is not None:
        random.Random(order).shuffle(ids)
    qrels = {q: {"d1": 1, "d2": 0} for q in ids}
    return Collection.of({"d1": "one", "d2": "two"}, {q: texts[q] for q in ids}, qrels, name="many")


def ids_of(parts):
    return {name: set(part.queries) for name, part in parts.items()}


def test_parts_are_disjoint_and_of_their_size():
    collection = many()
    parts = ids_of(split_collection(collection, parse_parts(PARTS), 0))
    assert set.union(*parts.values()) == set(collection.queries)
    assert sum(map(len, parts.values())) == len(collection.queries)
    for name, share in parse_parts(PARTS).items():
        assert abs(len(parts[name]) - share * 199) <= 3, "a group of equal texts is not torn"


def test_the_order_of_queries_does_not_matter_and_the_seed_does():
    one, two, other = (
        ids_of(split_collection(many(order=order), parse_parts(PARTS), seed))
        for order, seed in ((1, 0), (2, 0), (1, 5))
    )
    assert one == two
    assert one != other


def test_one_text_is_in_one_part():
    collection = many()
    for seed in range(5):
        parts = split_collection(collection, parse_parts("a=0.5,b=0.5"), seed)
        texts = [{" ".join(t.casefold().split()) for t in part.queries.values()} for part in parts.values()]
        assert not texts[0] & texts[1]


def test_unjudged_queries_are_in_no_part():
    collection = Collection.of({"d": "x"}, {"a": "1", "b": "2", "c": "3"}, {"a": {"d": 1}, "b": {"d": 1}}, name="few")
    parts = split_collection(collection, parse_parts("x=0.5,y=0.5"), 0)
    assert sorted(q for part in parts.values() for q in part.queries) == ["a", "b"]
    with pytest.raises(WhyrankError, match="2 judged queries, too few for a part"):
        split_collection(collection, parse_parts("x=0.4,y=0.3,z=0.3"), 0)


@pytest.mark.parametrize(
    "text", ["", "dev", "dev=", "dev=x", "dev=0", "dev=-1", "dev=1.1", "a=0.6,b=0.5", "a=0.5,a=0.5", "a/b=1", "a b=1"]
)
def test_wrong_parts(text):
    with pytest.raises(WhyrankError, match="--parts"):
        parse_parts(text)
