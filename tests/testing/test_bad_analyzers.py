"""Each test of the analyzer contract fails on an analyzer that breaks it, and a good one passes them all."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from contract_failures import failures, names_in

from whyrank.testing import AnalyzerContract
from whyrank.text import Analyzer, analyzers


@pytest.fixture
def own_analyzer(request):
    """A registered analyzer; the parameter is its factory."""
    analyzers.register("own")(request.param)
    yield
    analyzers.forget("own")


numbers = count()


def analyzer_of(tokenise, **parts):
    """A factory of an analyzer whose tokeniser sees whole batches, under an id of its own."""
    mark = next(numbers)

    def own(mark=mark):
        return Analyzer.of_batches(f"own(mark={mark})", tokenise, **parts)

    return own


def split(texts):
    return [text.split() for text in texts]


def last_of_batch(texts):
    return [[*text.split(), str(len(texts))] if text else [] for text in texts]


def first_in_batch(texts):
    return [[*text.split(), "first"] if i == 0 and text else text.split() for i, text in enumerate(texts)]


def with_ends(texts):
    return [["<s>", *text.split()] for text in texts]


def unregistered():
    return Analyzer.of("not-registered", str.split)


def elsewhere():
    return Analyzer.of("lucene", str.split, digests=["other"])


BAD_ANALYZERS = {
    "test_a_text_has_the_same_terms_alone_and_among_others": [
        analyzer_of(last_of_batch),
        analyzer_of(first_in_batch),
    ],
    "test_the_order_of_texts_does_not_matter": [analyzer_of(first_in_batch)],
    "test_the_empty_text_has_no_terms": [analyzer_of(with_ends)],
    "test_terms_are_texts_that_are_not_empty": [analyzer_of(split, steps=[lambda token: (token,)])],
    "test_its_id_makes_it_again": [unregistered, elsewhere],
    "test_it_can_be_pickled": [unregistered, elsewhere],
}


@pytest.mark.parametrize("own_analyzer", [analyzer_of(split)], indirect=True)
def test_a_good_analyzer_passes(own_analyzer):
    assert failures(AnalyzerContract, analyzers.factory("own")) == set()
    assert set(BAD_ANALYZERS) | {"test_tokens_are_arrays_of_term_ids"} == names_in(AnalyzerContract)


@pytest.mark.parametrize(
    ("name", "own_analyzer"),
    [(name, bad) for name, all_bad in BAD_ANALYZERS.items() for bad in all_bad],
    indirect=["own_analyzer"],
)
def test_a_bad_analyzer_fails(name, own_analyzer):
    assert name in failures(AnalyzerContract, analyzers.factory("own"))


@pytest.mark.parametrize("own_analyzer", [analyzer_of(split)], indirect=True)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda ids, offsets: (ids.astype(np.int64), offsets),
        lambda ids, offsets: (ids, offsets.astype(np.int32)),
        lambda ids, offsets: (ids, offsets[1:]),
        lambda ids, offsets: (ids, offsets + 1),
        lambda ids, offsets: (ids + 1_000_000, offsets),
        lambda ids, offsets: (ids - 1_000_000, offsets),
    ],
)
def test_bad_tokens_fail(own_analyzer, spoil, monkeypatch):
    docs = Analyzer.docs
    monkeypatch.setattr(Analyzer, "docs", lambda self, texts: spoil(*docs(self, texts)))
    assert "test_tokens_are_arrays_of_term_ids" in failures(AnalyzerContract, analyzers.factory("own"))
