"""Rankers under names that people choose: `prod=CALL`."""

from __future__ import annotations

import pickle

import pytest

from whyrank.core import split_name
from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.lexical.ranker import LexicalRanker
from whyrank.scoring.engine import identity_of


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("prod=http:http://h/s?a=b", ("prod", "http:http://h/s?a=b")),
        ("new.v2=bm25(k1=1.2)", ("new.v2", "bm25(k1=1.2)")),
        ("bm25(k1=1.2)", ("", "bm25(k1=1.2)")),
        ("http:http://h/s?a=b", ("", "http:http://h/s?a=b")),
        ("python:a=b.py:f", ("", "python:a=b.py:f")),
        ("prod=", ("", "prod=")),
    ],
)
def test_names_stand_before_call_strings(given, found):
    assert split_name(given) == found


def test_a_named_ranker_is_the_ranker_in_all_but_its_name():
    setting = Setting(open_collection("sample"))
    plain, named = open_ranker("bm25(b=0.9)", setting), open_ranker("prod=bm25(b=0.9)", setting)
    assert (named.name, repr(named), identity_of(named)) == ("prod", repr(plain), identity_of(plain))
    assert isinstance(named, LexicalRanker)
    assert named.scale == plain.scale
    pair = ["berlin wall"], ["The wall in Berlin fell."]
    for one in (named, pickle.loads(pickle.dumps(named))):
        assert one.name == "prod"
        assert one.score(*pair) == plain.score(*pair)
