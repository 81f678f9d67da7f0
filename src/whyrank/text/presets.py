"""The analyzers that have a name: those of common search engines, `chain` and `wordpiece`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from whyrank.core import BadInput, Call, MissingExtra, UnknownName, WhyrankError
from whyrank.text import steps
from whyrank.text.analyzer import Analyzer, Step, Tokenise, call_of_factory
from whyrank.text.steps import INDRI, LUCENE, StopWords, read_stopwords, stop_file
from whyrank.text.unicode_words import unicode_words

T = TypeVar("T")


def lucene() -> Analyzer:
    """Lucene's EnglishAnalyzer: Unicode words, possessives, lower case, 33 stop words, Porter."""
    return Analyzer.of("lucene", unicode_words, _english(steps.porter))


def krovetz() -> Analyzer:
    """As `lucene`, with the Krovetz stemmer."""
    return Analyzer.of("krovetz", unicode_words, _english(steps.krovetz()))


def _english(stem: Step) -> list[Step]:
    return [steps.possessive, steps.lower, steps.stop(LUCENE), stem]


def terrier(stopwords: str = "") -> Analyzer:
    """Terrier's default: ASCII words within limits, Porter; stop words go from documents, stay in queries."""
    path = stop_file("terrier", stopwords, "WHYRANK_TERRIER_STOPWORDS")
    words, digest = read_stopwords(path)
    within: list[Step] = [steps.lower, steps.limits(max_length=20, max_digits=4, max_repeat=3)]
    on_docs: list[Step] = [*within, steps.stop(map(steps.lower, words)), steps.porter]
    on_queries: list[Step] = [*within, steps.porter]
    call = Call("terrier", arguments={"stopwords": path})
    return Analyzer.of(call, steps.ascii_words, on_docs, query_steps=on_queries, digests=[digest])


def indri(stopwords: str = "") -> Analyzer:
    """Indri's usual: runs of letters and digits, lower case, its stop words removed everywhere, Krovetz."""
    path = stop_file("indri", stopwords, INDRI)
    words, digest = read_stopwords(path)
    on_both: list[Step] = [steps.lower, steps.stop(map(steps.lower, words)), steps.krovetz()]
    return Analyzer.of(Call("indri", arguments={"stopwords": path}), steps.plain_words, on_both, digests=[digest])


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
    tokens: str = "unicode",
    lower: bool = True,
    possessive: bool = False,
    stop: str = "",
    stem: str = "",
    keep_query_stops: bool = False,
    max_length: int = 0,
    max_digits: int | None = None,
    max_repeat: int = 0,
) -> Analyzer:
    """An analyzer of one's own, in this order: tokens, possessives, lower case, limits, stop words, stems.

    `tokens` is unicode, plain, ascii or whitespace; `stop` is `lucene` or a file; `stem` is porter,
    porter-original or krovetz. The limits are those of `steps.limits`; `keep_query_stops` keeps stop words
    in queries.
    """
    given = dict(locals())
    if isinstance(stop, os.PathLike):
        given["stop"] = stop = os.fspath(stop)
    for key, value in given.items():
        if problem := _problem(key, value):
            raise WhyrankError(f"analyzer 'chain': {key}={value!r} must be {problem}")
    stops = StopWords(LUCENE if stop else frozenset(), "") if stop in ("", "lucene") else read_stopwords(stop)
    words = map(steps.lower, stops.words) if lower else stops.words
    first: list[Step] = [*[steps.possessive] * possessive, *[steps.lower] * lower]
    first.append(steps.limits(max_length, max_digits, max_repeat))
    last = _pick("stemmer", stem, _STEMS)()
    return Analyzer.of(
        call_of_factory(chain, given),
        _pick("tokeniser", tokens, _TOKENS),
        [*first, steps.stop(words), *last],
        query_steps=[*first, *last] if keep_query_stops else None,
        digests=[stops.digest] if stops.digest else [],
    )


def _pick(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UnknownName(kind, name, filter(None, known))
    return known[name]


def _problem(key: str, value: object) -> str:
    """What a value of `chain` should have been, or nothing when it is fine."""
    if key in ("lower", "possessive", "keep_query_stops"):
        return "" if isinstance(value, bool) else "True or False"
    if key.startswith("max_"):
        fits = type(value) is int and value >= 0
        return "" if fits or (key == "max_digits" and value is None) else "a whole number from 0 up"
    return "" if isinstance(value, str) else "text; write it in quotes"


# `wordpiece:PATH`: the tokens of a model's own tokenizer as terms.

_TOKENIZER = "give a tokenizer.json or a folder that holds one"


def wordpiece(resource: str = "", max_tokens: int | None = None) -> Analyzer:
    """Tokens of a fast tokenizer, without special tokens; of each text the first `max_tokens`."""
    if not resource:
        raise WhyrankError(f"analyzer 'wordpiece' needs a tokenizer; write wordpiece:PATH ({_TOKENIZER})")
    if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
        raise WhyrankError(f"analyzer 'wordpiece': max_tokens={max_tokens!r} must be a number from 1 up")
    path = Path(resource).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(file, f"cannot read this tokenizer ({error.strerror})", _TOKENIZER) from None
    tokenizer = _tokenizer(resource, content)

    def tokens(texts: Sequence[str]) -> list[list[str]]:
        valid = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # no lone surrogates
        return [found.tokens[:max_tokens] for found in tokenizer.encode_batch(valid, add_special_tokens=False)]

    call = call_of_factory(wordpiece, {"resource": resource, "max_tokens": max_tokens})
    return Analyzer.of_batches(call, tokens, digests=[hashlib.sha256(content).hexdigest()[:16]])


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
