"""The analyzers that have a name: those of common search engines, `chain`, `wordpiece`, `words` and `lemmas`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from whyrank.core import BadInput, MissingExtra, Natural, Whole, WhyrankError
from whyrank.text import steps
from whyrank.text.analyzer import Analyzer, Step, Tokenise, call_of_factory
from whyrank.text.steps import LUCENE, StopWords, find_stopwords, read_stopwords
from whyrank.text.unicode_words import unicode_words

T = TypeVar("T")
INDRI = "WHYRANK_INDRI_STOPWORDS"  # the variable that names a file with Indri's list


def lucene() -> Analyzer:
    """Lucene's EnglishAnalyzer: Unicode words, possessives, lower case, 33 stop words, Porter.

    Words are those of Unicode annex 29, and emoji. Porter is the algorithm with its author's later amendments, as
    Lucene and Terrier have it (Porter, "An algorithm for suffix stripping", Program 14, 1980).
    """
    return Analyzer.of("lucene", unicode_words, _english(steps.porter))


def krovetz() -> Analyzer:
    """As `lucene`, with the Krovetz stemmer, which needs the extra `krovetz`.

    Krovetz, "Viewing morphology as an inference process", SIGIR 1993.
    """
    return Analyzer.of("krovetz", unicode_words, _english(steps.krovetz()))


def _english(stem: Step) -> list[Step]:
    return [steps.possessive, steps.lower, steps.stop(LUCENE), stem]


def terrier(stopwords: str = "") -> Analyzer:
    """Terrier's default: ASCII words within limits, Porter; stop words go from documents, stay in queries.

    Tokens over 20 characters, with over 4 digits or with over 3 equal characters in a row are dropped.

    Args:
        stopwords: a UTF-8 file with one stop word a line; lines that start with `#` are ignored. Without it, the file
            that the variable WHYRANK_TERRIER_STOPWORDS names. The list itself does not come with whyrank.
    """
    stops = find_stopwords("terrier", stopwords, "WHYRANK_TERRIER_STOPWORDS")
    limits = steps.limits(max_length=20, max_digits=4, max_repeat=3)
    return Analyzer.of(
        call_of_factory(terrier, {"stopwords": stops.path}),
        steps.ascii_words,
        [steps.lower, limits, steps.stop(stops.words), steps.porter],
        query_steps=[steps.lower, limits, steps.porter],
        digests=stops.digests,
    )


def indri(stopwords: str = "") -> Analyzer:
    """Indri's usual: runs of letters and digits, lower case, its stop words removed everywhere, Krovetz.

    It needs the extra `krovetz`.

    Args:
        stopwords: a UTF-8 file with one stop word a line; lines that start with `#` are ignored. Without it, the file
            that the variable WHYRANK_INDRI_STOPWORDS names. The list itself does not come with whyrank.
    """
    stops = find_stopwords("indri", stopwords, INDRI)
    call = call_of_factory(indri, {"stopwords": stops.path})
    found: list[Step] = [steps.lower, steps.stop(stops.words), steps.krovetz()]
    return Analyzer.of(call, steps.plain_words, found, digests=stops.digests)


def whitespace() -> Analyzer:
    """Splits on white space and does nothing else."""
    return Analyzer.of("whitespace", steps.whitespace_words)


# `chain(...)`: an analyzer put together on the command line.

_TOKENS: Mapping[str, Tokenise] = {
    "unicode": unicode_words,
    "plain": steps.plain_words,
    "ascii": steps.ascii_words,
    "whitespace": steps.whitespace_words,
}
_STEMS: Mapping[str, Callable[[], list[Step]]] = {
    "": list,
    "porter": lambda: [steps.porter],
    "porter-original": lambda: [steps.porter_original],
    "krovetz": lambda: [steps.krovetz()],
}


def chain(
    *,
    tokens: Literal["unicode", "plain", "ascii", "whitespace"] = "unicode",
    lower: bool = True,
    possessive: bool = False,
    stop: str = "",
    stem: Literal["", "porter", "porter-original", "krovetz"] = "",
    keep_query_stops: bool = False,
    max_length: Natural = 0,
    max_digits: Natural | None = None,
    max_repeat: Natural = 0,
) -> Analyzer:
    """An analyzer of one's own, in this order: tokens, possessives, lower case, limits, stop words, stems.

    Args:
        tokens: unicode, plain, ascii or whitespace.
        lower: put tokens in lower case.
        possessive: cut off the possessive 's.
        stop: stop words: lucene, or a file.
        stem: porter, porter-original (as first printed) or krovetz.
        keep_query_stops: keep stop words in queries.
        max_length: drop longer tokens; 0 drops none.
        max_digits: drop tokens with more digits.
        max_repeat: drop tokens that repeat a character more often; 0 drops none.
    """
    given = dict(locals())
    if isinstance(stop, os.PathLike):
        given["stop"] = stop = os.fspath(stop)
    stops = StopWords("", LUCENE if stop else frozenset(), ()) if stop in ("", "lucene") else read_stopwords(stop)
    words = map(steps.lower, stops.words) if lower else stops.words
    first: list[Step] = [*[steps.possessive] * possessive, *[steps.lower] * lower]
    first.append(steps.limits(max_length, max_digits, max_repeat))
    last = _STEMS[stem]()
    return Analyzer.of(
        call_of_factory(chain, given),
        _TOKENS[tokens],
        [*first, steps.stop(words), *last],
        query_steps=[*first, *last] if keep_query_stops else None,
        digests=stops.digests,
    )


# `wordpiece:PATH`: the tokens of a model's own tokenizer as terms.

_TOKENIZER = "give a tokenizer.json or a folder that holds one"


def wordpiece(resource: str = "", max_tokens: Whole | None = None) -> Analyzer:
    """Tokens of a fast tokenizer, without special tokens.

    It needs the extra `models`.

    Args:
        resource: a tokenizer.json, or a folder that holds one.
        max_tokens: of each text only so many tokens, the first ones.
    """
    if not resource:
        raise WhyrankError(f"analyzer 'wordpiece' needs a tokenizer; write wordpiece:PATH ({_TOKENIZER})")
    path = Path(resource).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(file, f"cannot read this tokenizer ({error.strerror})", _TOKENIZER) from None
    tokenizer = _tokenizer(resource, content)

    def tokens(texts: Sequence[str]) -> list[list[str]]:
        encoded = tokenizer.encode_batch(list(map(_valid, texts)), add_special_tokens=False)
        return [found.tokens[:max_tokens] for found in encoded]

    call = call_of_factory(wordpiece, {"resource": resource, "max_tokens": max_tokens})
    return Analyzer.of_batches(call, tokens, digests=[hashlib.sha256(content).hexdigest()[:16]])


def _valid(text: str) -> str:
    """The text with a question mark for each lone surrogate, which other libraries refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=4)
def _tokenizer(resource: str, content: bytes) -> Any:
    """The tokenizer, without the truncation and padding that its file may carry."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("the wordpiece analyzer", "models") from None
    try:
        plain = {**json.loads(content), "truncation": None, "padding": None}
        return Tokenizer.from_str(json.dumps(plain))
    except Exception as error:  # the package raises bare exceptions for anything wrong with the file
        what = f"this is no tokenizer that can be loaded ({error})"
        raise BadInput(resource, what, _TOKENIZER) from None


# `words` and `lemmas`: the tokens of a linguistic pipeline as terms, without function words.

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
CONTRACTIONS = frozenset(end.format(mark) for end in _ENDS for mark in steps.APOSTROPHES) | {"nt"}
"""What a linguistic tokeniser cuts off: n't, 'll, 's, 've, 're, 'd, 'm, with any of three apostrophes."""

_TOKEN_RULES = "blank:en"  # the rules of the English pipeline, without its models


def words(stopwords: str = "") -> Analyzer:
    """English tokens of spaCy in lower case, without function words (or those of a file) and contractions.

    Tokens without a letter or digit are dropped. It needs the extra `nlp`. With `lemmas`, this is the usual analyzer
    of translation models.

    Args:
        stopwords: a file with one stop word a line, instead of the function words. Without it, the file that the
            variable WHYRANK_INDRI_STOPWORDS names, which is the published choice; else our own list.
    """
    from whyrank.text.annotation.pipelines import find_pipeline, loading

    stops, pipeline = _linguistic_stops("words", stopwords), find_pipeline(_TOKEN_RULES)

    @cache
    def load() -> Any:
        with loading(_TOKEN_RULES):
            return pipeline.load()

    def tokens(texts: Sequence[str]) -> list[list[str]]:
        nlp = load()
        with nlp.memory_zone():  # the words of these texts are forgotten after it
            return [[token.text for token in nlp.tokenizer(_valid(text))] for text in texts]

    return _linguistic(words, stops, tokens, pipeline.identity)


def lemmas(stopwords: str = "") -> Analyzer:
    """English lemmas of spaCy in lower case, without function words (or those of a file) and contractions.

    A token goes when it or its lemma is listed. Each text is parsed once, which is far slower than `words`; what was
    found is kept on disk. It needs the extra `nlp`.

    Args:
        stopwords: as for `words`.
    """
    from whyrank.text.annotation.annotator import annotator

    stops, english = _linguistic_stops("lemmas", stopwords), annotator()

    def tokens(texts: Sequence[str]) -> list[list[str]]:
        rows = [zip(known.tokens, known.lemmas, strict=True) for known in english.annotate(texts)]
        return [[lemma for token, lemma in row if steps.lower(token) not in stops.words] for row in rows]

    return _linguistic(lemmas, stops, tokens, english.identity)


def _linguistic_stops(name: str, given: str) -> StopWords:
    """The list that is given, else Indri's where a variable names its file, else our own; and contractions."""
    own = StopWords("", FUNCTION_WORDS, ())
    found = find_stopwords(name, given, INDRI) if given or os.environ.get(INDRI) else own
    return found._replace(words=found.words | CONTRACTIONS)


def _linguistic(
    factory: Callable[..., Analyzer],
    stops: StopWords,
    tokens: Callable[[Sequence[str]], list[list[str]]],
    identity: str,
) -> Analyzer:
    def with_a_letter(token: str) -> str | None:
        return token if any(map(str.isalnum, token)) else None

    call = call_of_factory(factory, {"stopwords": stops.path})
    found: list[Step] = [steps.lower, steps.stop(stops.words), with_a_letter]
    return Analyzer.of_batches(call, tokens, found, digests=[*stops.digests, identity])
