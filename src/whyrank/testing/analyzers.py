"""The contract of an analyzer."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whyrank.testing.examples import QUERIES, TEXTS
from whyrank.text import Analyzer, TextCache, Tokens, analyzers


class AnalyzerContract:
    """What lexical rankers and probes rely on when they count words.

    Override `make`.

        class TestLetters(AnalyzerContract):
            def make(self):
                return analyzers.create("letters(longest=20)")
    """

    def make(self) -> Analyzer:
        """Make the analyzer, anew each time."""
        raise NotImplementedError("override make() so that it returns your analyzer")

    def texts(self) -> Sequence[str]:
        """Texts to try it on."""
        return TEXTS + QUERIES

    def test_texts_do_not_depend_on_each_other(self) -> None:
        """A text has the same terms alone, among others and in another order."""
        for side in _sides(self.make()):
            forwards, backwards = side.all_terms(self.texts()), side.all_terms(self.texts()[::-1])[::-1]
            for text, first, second in zip(self.texts(), forwards, backwards, strict=True):
                assert first == second, f"{side.what}: {text!r} has the terms {first}, in another order {second}"
                alone = side.terms_of(text)
                assert alone == first, f"{side.what}: {text!r} has the terms {alone} alone, {first} among others"

    def test_terms_are_texts_that_are_not_empty(self) -> None:
        """An empty term would count as a word; the empty text has none, and no texts give no tokens."""
        for side in _sides(self.make()):
            terms = [term for terms in side.all_terms(self.texts()) for term in terms]
            odd = [term for term in terms if not isinstance(term, str) or not term]
            assert not odd, f"{side.what}: {odd[0]!r} is no term"
            assert side.terms_of("") == [], f"{side.what}: the empty text has the terms {side.terms_of('')}"
            assert len(side.tokens([]).offsets) == 1, f"{side.what}: no texts gave tokens"

    def test_tokens_are_arrays_of_term_ids(self) -> None:
        """The ids are int32, the offsets int64 and one more than there are texts."""
        analyzer = self.make()
        for side in _sides(analyzer):
            ids, offsets = side.tokens(self.texts())
            assert ids.dtype == np.dtype(np.int32), f"ids are {ids.dtype}"
            assert offsets.dtype == np.dtype(np.int64), f"offsets are {offsets.dtype}"
            assert len(offsets) == len(self.texts()) + 1, f"{len(self.texts())} texts gave {len(offsets)} offsets"
            assert (offsets[0], offsets[-1]) == (0, len(ids)), "the offsets do not span the ids"
            assert np.all((ids >= 0) & (ids < len(analyzer.vocabulary))), "an id is not in the vocabulary"

    def test_its_id_makes_it_again(self) -> None:
        """The id is the call string of an equal analyzer."""
        analyzer = self.make()
        self._equal(analyzer, analyzers.create(analyzer.id), f"what {analyzer.id} makes")

    def test_it_can_be_pickled(self) -> None:
        """Worker processes get a copy."""
        analyzer = self.make()
        self._equal(analyzer, pickle.loads(pickle.dumps(analyzer)), "the pickled copy")

    def _equal(self, analyzer: Analyzer, other: Analyzer, what: str) -> None:
        assert other == analyzer, f"{what} is {other!r}, not {analyzer!r}"
        assert hash(other) == hash(analyzer), f"{what} is equal but has another hash"
        for mine, its in zip(_sides(analyzer), _sides(other), strict=True):
            assert mine.all_terms(self.texts()) == its.all_terms(self.texts()), f"{what} finds other terms"


class _Side(NamedTuple):
    """The documents' or the queries' side of an analyzer."""

    what: str
    analyzer: Analyzer
    analyse: Callable[[Sequence[str]], Tokens]
    terms: Callable[[str], list[str]]

    def tokens(self, texts: Sequence[str]) -> Tokens:
        _forget(self.analyzer)
        return self.analyse(texts)

    def terms_of(self, text: str) -> list[str]:
        _forget(self.analyzer)
        return self.terms(text)

    def all_terms(self, texts: Sequence[str]) -> list[list[str]]:
        ids, offsets = self.tokens(texts)
        names = self.analyzer.vocabulary.terms
        return [[names[i] for i in ids[start:stop]] for start, stop in pairwise(offsets)]


def _sides(analyzer: Analyzer) -> Iterator[_Side]:
    yield _Side("documents", analyzer, analyzer.docs, analyzer.terms)
    yield _Side("queries", analyzer, analyzer.queries, analyzer.query_terms)


def _forget(analyzer: Analyzer) -> None:
    """Drop the analysed texts, or they would answer in the analyzer's place."""
    state = analyzer._state
    state.docs.cache, state.queries.cache = TextCache(), TextCache()
