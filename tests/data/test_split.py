"""Disjoint parts of a collection, whatever the order of its queries."""

from __future__ import annotations

import random

import pytest

from whyrank.core import WhyrankError
from whyrank.data import Collection, parse_parts, split_collection

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


def test_what_shares_leave_over_is_in_no_part():
    parts = split_collection(many(), parse_parts("dev=0.25"), 0)
    assert 47 <= len(parts["dev"].queries) <= 53
    assert parts["dev"].name == "many:dev"


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
