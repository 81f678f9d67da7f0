"""`words` and `lemmas`: the tokens of a linguistic pipeline as terms, without function words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from whyrank.text import steps
from whyrank.text.analyzer import Analyzer, Step, call_of_factory
from whyrank.text.annotation.annotator import annotator
from whyrank.text.annotation.pipelines import ENGLISH, find_pipeline, loading
from whyrank.text.steps import INDRI, read_stopwords, stop_file

# English words that bind other words together, and the ends of contractions: what `words` and `lemmas` leave out.

_DETERMINERS = """
a all an another any both each either every few half less many more most much neither no one several some such that
the these this those
"""
_PRONOUNS = """
anybody anyone anything everybody everyone everything he her hers herself him himself his i it its itself me mine my
myself nobody nothing oneself our ours ourselves she somebody someone something their theirs them themselves they us
we you your yours yourself yourselves
"""
_QUESTIONS = "how what whatever when whenever where wherever whether which whichever who whoever whom whose why"
_AUXILIARIES = """
am are be been being ca can could did do does doing done had has have having is may might must ought shall should
sha was were will wo would
"""
_PREPOSITIONS = """
aboard about above across after against along alongside amid among amongst around as at atop before behind below
beneath beside besides between beyond by despite down during except for from in inside into like near of off on onto
out outside over past per regarding since than through throughout till to toward towards under underneath unlike
until unto up upon via with within without
"""
_CONJUNCTIONS = (
    "although and because but hence however if lest nor or otherwise so therefore though thus unless while yet"
)
_ADVERBS = """
again almost already also always anyway ever else even further here indeed just maybe moreover nearly never not now
often once only perhaps quite rather really same still then there too very
"""

FUNCTION_WORDS = frozenset(
    " ".join((_DETERMINERS, _PRONOUNS, _QUESTIONS, _AUXILIARIES, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)).split()
)
"""Determiners, pronouns, question words, auxiliaries, prepositions, conjunctions and adverbs that say little."""

_ENDS = ("n{}t", "{}ll", "{}s", "{}ve", "{}re", "{}d", "{}m")
CONTRACTIONS = frozenset(end.format(mark) for end in _ENDS for mark in ("'", "\u2019", "\uff07")) | {"nt"}
"""What a linguistic tokeniser cuts off: n't, 'll, 's, 've, 're, 'd, 'm, with any of three apostrophes."""


_TOKENS = "blank:en"  # the rules of the English pipeline, without its models


def words(stopwords: str = "") -> Analyzer:
    """English tokens of spaCy in lower case, without function words (or those of a file) and contractions."""
    stops, pipeline = _stops("words", stopwords), find_pipeline(_TOKENS)

    @cache
    def loaded() -> Any:
        with loading(_TOKENS):
            return pipeline.load()

    def found(texts: Sequence[str]) -> list[list[str]]:
        nlp, valid = loaded(), [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with nlp.memory_zone():  # the words of these texts are forgotten after it
            return [[token.text for token in nlp.tokenizer(text)] for text in valid]

    call = call_of_factory(words, {"stopwords": stops.path})
    return Analyzer.of_batches(call, found, _steps(stops), digests=[*stops.digests, pipeline.identity])


def lemmas(stopwords: str = "") -> Analyzer:
    """English lemmas of spaCy in lower case, without function words (or those of a file) and contractions.

    A token goes when it or its lemma is listed. Each text is parsed once; what was found is kept on disk.
    """
    stops, pipeline = _stops("lemmas", stopwords), annotator(ENGLISH)

    def found(texts: Sequence[str]) -> list[list[str]]:
        rows = [zip(known.tokens, known.lemmas, strict=True) for known in pipeline.annotate(texts)]
        return [[lemma for token, lemma in row if steps.lower(token) not in stops.words] for row in rows]

    call = call_of_factory(lemmas, {"stopwords": stops.path})
    return Analyzer.of_batches(call, found, _steps(stops), digests=[*stops.digests, pipeline.identity])


class _Stops(NamedTuple):
    """The words that are left out, the file that lists them (or nothing) and its digest."""

    words: frozenset[str]
    path: str
    digests: list[str]


def _stops(name: str, given: str) -> _Stops:
    """The list that is given, else Indri's where a variable names its file, else our own."""
    if not (given or os.environ.get(INDRI)):
        return _Stops(FUNCTION_WORDS | CONTRACTIONS, "", [])
    path = stop_file(name, given, INDRI)
    listed, digest = read_stopwords(path)
    return _Stops(frozenset(map(steps.lower, listed)) | CONTRACTIONS, path, [digest])


def _steps(stops: _Stops) -> list[Step]:
    def with_a_letter(token: str) -> str | None:
        return token if any(map(str.isalnum, token)) else None

    return [steps.lower, steps.stop(stops.words), with_a_letter]
