"""Analyzers put together on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.text import analyzers
from whyrank.text.presets import chain

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.sampled_from(["unicode", "plain", "ascii", "whitespace"]),
        "lower": st.booleans(),
        "possessive": st.booleans(),
        "stop": st.sampled_from(["", "lucene"]),
        "stem": st.sampled_from(["", "porter", "krovetz"]),
        "keep_query_stops": st.booleans(),
        "max_length": st.integers(0, 5),
        "max_digits": st.none() | st.integers(0, 3),
        "max_repeat": st.integers(0, 3),
    },
)


@settings(deadline=None)
@given(OPTIONS, st.text("The it's 12 aAa.é_", max_size=30))
def test_ids_hold_what_differs_from_the_defaults_and_parse_back(options, text):
    made = chain(**options)
    again = analyzers.create(made.id)
    assert again == made
    assert again.terms(text) == made.terms(text)
    assert ("max_digits" in made.id) == (options.get("max_digits") is not None)
    assert ("lower" in made.id) == (options.get("lower") is False)


def test_the_plainest_chain_has_the_plainest_id():
    assert chain().id == analyzers.create("chain(lower=True,stop='')").id == "chain"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("chain", ["the", "dog's", "foo_bar", "2001", "aaaa"]),
        ("chain(tokens=plain)", ["the", "dog", "s", "foo", "bar", "2001", "aaaa"]),
        ("chain(tokens=whitespace,lower=False)", ["The", "DOG's", "foo_bar,", "2001", "aaaa"]),
        ("chain(possessive=True,stop=lucene)", ["dog", "foo_bar", "2001", "aaaa"]),
        ("chain(max_digits=0,max_repeat=3,max_length=5)", ["the", "dog's"]),
    ],
)
def test_what_the_options_do(spec, expected):
    assert analyzers.create(spec).terms("The DOG's foo_bar, 2001 aaaa") == expected


def test_stop_words_may_stay_in_queries():
    made = analyzers.create("chain(stop=lucene,keep_query_stops=True)")
    assert (made.terms("to be or not"), made.query_terms("to be or not")) == ([], ["to", "be", "or", "not"])


def test_a_path_object_is_a_path(tmp_path):
    path = tmp_path / "stop.txt"
    path.write_text("one\n")
    assert chain(stop=path) == analyzers.create(f"chain(stop={str(path)!r})")


@pytest.mark.parametrize(
    ("spec", "error", "problem"),
    [
        ("chain(tokens=unicod)", UnknownName, "unknown tokeniser 'unicod'; did you mean 'unicode'"),
        ("chain(stem=portr)", UnknownName, "unknown stemmer 'portr'; did you mean 'porter'"),
        ("chain(stop=absent.txt)", BadInput, r"absent\.txt: cannot read this stop word list"),
        ("chain(lower=1)", WhyrankError, "lower=1 must be True or False"),
        ("chain(stop=5)", WhyrankError, "stop=5 must be text; write it in quotes"),
        ("chain(max_length=-1)", WhyrankError, "max_length=-1 must be a whole number"),
        ("chain(max_length=None)", WhyrankError, "max_length=None must be a whole number"),
        ("chain(max_digits=True)", WhyrankError, "max_digits=True must be a whole number"),
        ("chain(max_repeat=2.5)", WhyrankError, "max_repeat=2.5 must be a whole number"),
    ],
)
def test_wrong_arguments_are_clear_errors(spec, error, problem):
    with pytest.raises(error, match=problem):
        analyzers.create(spec)
