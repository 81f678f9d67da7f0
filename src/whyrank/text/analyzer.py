"""Analyzers: from text to term ids. An analyzer is a tokeniser and steps that change or drop one token each.

    from whyrank.text import analyzers
    english = analyzers.create("lucene")
    english.terms("The cats sat.")  # ['cat', 'sat']

Your own takes five lines; `register` makes it a name for the command line, and an entry point of the group
`whyrank.analyzers` does the same for an installed package:

    @analyzers.register("letters")
    def letters(longest: int = 30) -> Analyzer:
        words = re.compile("[a-z]+", re.IGNORECASE).findall
        steps = [lower, limits(max_length=longest), porter]
        return Analyzer.of(f"letters(longest={longest})", words, steps)

The steps are in `whyrank.text.steps`; any function `str -> str | None` is a step, and None drops the token.
The first argument is the call string that makes an equal analyzer: `id` says it, other processes get it.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from whyrank.core import Call, Codes, Ints, Progress, Registry, WhyrankError, parse_call

Tokenise = Callable[[str], Sequence[str]]
TokeniseAll = Callable[[Sequence[str]], Sequence[Sequence[str]]]
Step = Callable[[str], str | None]

CACHED_TOKENS = 20_000_000
_CHUNK = 1024
_ENTRY_COST = 32  # what an entry costs beside its tokens, so that texts without tokens are bounded too

V = TypeVar("V", bound=Sized)
_states: dict[str, State] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Analyzer:
    """Turns texts into term ids; equal analyzers of a process share one vocabulary and one cache.

    `id` is the call string; `identity` adds a digest of every file behind it and is what cache keys contain.
    """

    id: str
    identity: str

    @classmethod
    def of(
        cls, id: str | Call, tokenise: Tokenise, steps: Iterable[Step] = (), *,
        query_steps: Iterable[Step] | None = None, digests: Iterable[str] = (),
    ) -> Analyzer:  # fmt: skip
        """Build from parts: `query_steps` where queries differ, `digests` of the files that were read."""

        def each(texts: Sequence[str]) -> Sequence[Sequence[str]]:
            return [tokenise(text) for text in texts]

        return cls.of_batches(id, each, steps, query_steps=query_steps, digests=digests)

    @classmethod
    def of_batches(
        cls, id: str | Call, tokenise: TokeniseAll, steps: Iterable[Step] = (), *,
        query_steps: Iterable[Step] | None = None, digests: Iterable[str] = (),
    ) -> Analyzer:  # fmt: skip
        """Build from a tokeniser that takes a list of texts and gives a list of token lists."""
        made = cls(str(id), "#".join([str(id), *digests, *_source_digest(str(id))]))
        state = State(tokenise, tuple(steps), None if query_steps is None else tuple(query_steps))
        with _lock:
            _states.setdefault(made.identity, state)
        return made

    @property
    def files(self) -> str:
        """The digests that `identity` adds to the call string; empty where no file lies behind the analyzer."""
        return self.identity.removeprefix(self.id).removeprefix("#")

    @property
    def facts(self) -> dict[str, str]:
        """What is written beside whatever was made with it: the call string, and `files` where there are any."""
        return {"analyzer": self.id} | ({"analyzer_files": self.files} if self.files else {})

    @property
    def vocabulary(self) -> Vocabulary:
        """All terms that this analyzer met in this process; it grows with every text."""
        return self._state.vocabulary

    @property
    def stopwords(self) -> frozenset[str]:
        """The words that are dropped from documents."""
        return self._state.stopwords

    def docs(self, texts: Sequence[str]) -> Tokens:
        """Analyse documents."""
        return self._state.docs.tokens(texts)

    def queries(self, texts: Sequence[str]) -> Tokens:
        """Analyse queries; some presets keep stop words here that they drop from documents."""
        return self._state.queries.tokens(texts)

    def terms(self, text: str) -> list[str]:
        """The terms of one document."""
        return [self.vocabulary.terms[i] for i in self.docs([text]).ids]

    def query_terms(self, text: str) -> list[str]:
        """The terms of one query."""
        return [self.vocabulary.terms[i] for i in self.queries([text]).ids]

    @property
    def _state(self) -> State:
        if self.identity not in _states:
            raise WhyrankError(f"analyzer {self.id!r} has no parts; make it with analyzers.create")
        return _states[self.identity]

    def __reduce__(self) -> tuple[Callable[[str, str], Analyzer], tuple[str, str]]:
        return _rebuild, (self.id, self.identity)  # other processes get the call string


_PRESETS = ("lucene", "krovetz", "terrier", "indri", "whitespace", "chain", "wordpiece", "words", "lemmas")
analyzers: Registry[Analyzer] = Registry(
    "analyzers", "analyzer", {name: f"whyrank.text.presets:{name}" for name in _PRESETS}
)


def _rebuild(id: str, identity: str) -> Analyzer:
    made = analyzers.create(id)
    if made.identity != identity:
        raise WhyrankError(f"analyzer {id!r}: a file it was built from has changed meanwhile; start again")
    return made


def call_of_factory(factory: Callable[..., Any], arguments: dict[str, Any]) -> Call:
    """The call of a factory function with the arguments that differ from its defaults."""
    defaults = {name: p.default for name, p in inspect.signature(factory).parameters.items()}
    changed = {key: value for key, value in arguments.items() if value != defaults[key]}
    return Call(factory.__name__, changed.pop("resource", None), changed)


def _source_digest(id: str) -> list[str]:
    """Digest of the source behind an analyzer from elsewhere: when it is edited, it is another analyzer."""
    name = parse_call(id).name
    factory = analyzers.factory(name) if name in analyzers else None
    home = getattr(factory, "__module__", None) or "whyrank."
    for source in () if home.startswith("whyrank.") else (sys.modules.get(home), factory):
        try:  # a notebook's module has no source, its functions have
            return [hashlib.sha256(inspect.getsource(source).encode()).hexdigest()[:16]]  # type: ignore[arg-type]
        except (OSError, TypeError):
            continue
    return []


class Tokens(NamedTuple):
    """Analysed texts: text `i` has the term ids `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Codes
    offsets: Ints


class Vocabulary:
    """Numbers terms in the order of first sight; the ids hold for one process only."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self._ids: dict[str, int] = {}

    def id(self, term: str) -> int:
        """The id of a term, which is added when it is new."""
        found = self._ids.setdefault(term, len(self.terms))
        if found == len(self.terms):
            self.terms.append(term)
        return found

    def find(self, term: str) -> int:
        """The id of a term, or -1 when no text had it so far."""
        return self._ids.get(term, -1)

    def __len__(self) -> int:
        return len(self.terms)


# What equal analyzers of one process share: the vocabulary, the token maps and the analysed texts.
#
# The steps of an analyzer look at one raw token at a time, so each distinct raw token goes through them once;
# from then on analysing is tokenising plus one dictionary look-up per token.


class State:
    """Vocabulary and both sides of an analyzer; one side serves both where queries have no steps of their own."""

    def __init__(
        self, tokenise: TokeniseAll, steps: Sequence[Step] = (), query_steps: Sequence[Step] | None = None
    ) -> None:
        self.vocabulary, lock = Vocabulary(), threading.Lock()
        self.stopwords: frozenset[str] = frozenset().union(*(getattr(step, "words", ()) for step in steps))
        self.docs = self.queries = Side(tokenise, _TermIds(steps, self.vocabulary), lock)
        if query_steps is not None:
            self.queries = Side(tokenise, _TermIds(query_steps, self.vocabulary), lock)


class Side:
    """The document side or the query side of an analyzer; both share the lock that guards the vocabulary."""

    def __init__(self, tokenise: TokeniseAll, ids: _TermIds, lock: threading.Lock) -> None:
        self.cache: TextCache[Codes] = TextCache()
        self._tokenise, self._ids, self._lock = tokenise, ids, lock

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """Analyse texts, in order; each distinct text once."""
        if isinstance(texts, str):
            raise TypeError("give a list of texts, not one text")
        with self._lock:
            cached = {text: self.cache.get(text) for text in texts}
            found = {text: ids for text, ids in cached.items() if ids is not None}
            fresh = [text for text, ids in cached.items() if ids is None]
            with Progress("analysing texts", len(fresh)) as progress:
                for start in range(0, len(fresh), _CHUNK):
                    found |= self._analyse(fresh[start : start + _CHUNK])
                    progress.step(min(_CHUNK, len(fresh) - start))
        arrays = [found[text] for text in texts]
        offsets = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(ids) for ids in arrays], out=offsets[1:])
        return Tokens(np.concatenate(arrays) if arrays else np.empty(0, np.int32), offsets)

    def _analyse(self, texts: Sequence[str]) -> dict[str, Codes]:
        raw = self._tokenise(texts)
        lengths = [len(tokens) for tokens in raw]
        ids = np.fromiter(map(self._ids.__getitem__, chain.from_iterable(raw)), np.int32, sum(lengths))
        parts = np.split(ids, np.cumsum(lengths)[:-1])
        kept = {text: part[part >= 0] for text, part in zip(texts, parts, strict=True)}
        for text, part in kept.items():
            self.cache.put(text, part)
        return kept


class TextCache(Generic[V]):
    """Values of texts, such as term ids; forgets the texts unused for longest once `capacity` tokens are held."""

    def __init__(self, capacity: int = CACHED_TOKENS) -> None:
        self.capacity, self.held = capacity, 0
        self._entries: OrderedDict[str, V] = OrderedDict()

    def get(self, text: str) -> V | None:
        """The value of a text, or None when it is not held."""
        found = self._entries.get(text)
        if found is not None:
            self._entries.move_to_end(text)
        return found

    def put(self, text: str, value: V) -> None:
        """Hold the value of a text that is not held yet."""
        self._entries[text] = value
        self.held += _cost(text, value)
        while self.held > self.capacity:
            self.held -= _cost(*self._entries.popitem(last=False))

    def __len__(self) -> int:
        return len(self._entries)


def _cost(text: str, value: Sized) -> int:
    return max(len(value), len(text) // 4) + _ENTRY_COST


class _TermIds(dict[str, int]):
    """Raw token -> term id, or -1 for a token that a step drops; filled on first sight."""

    def __init__(self, steps: Sequence[Step], vocabulary: Vocabulary) -> None:
        super().__init__()
        self._steps, self._vocabulary = steps, vocabulary

    def __missing__(self, raw: str) -> int:
        term: str | None = raw
        for step in self._steps:
            term = step(term) if term else None
        self[raw] = found = self._vocabulary.id(term) if term else -1
        return found


# Cutting texts to a number of tokens, so that whoever counts and whoever scores see the same text.

LONG_WORD = 1000  # a run without blanks that is longer than this is cut inside
_WORD = re.compile(r"\s*\S+")  # with the blanks before it, on which the tokens of some tokenizers depend


def cut_texts(analyzer: Analyzer, texts: Sequence[str], most: int | None) -> list[str]:
    """The texts, each cut between words to the longest beginning of at most `most` tokens."""
    found = list(texts)
    if most is None:
        return found
    for i in np.flatnonzero(_lengths(analyzer, texts) > most).tolist():
        text, words = texts[i], _WORD.findall(texts[i])
        kept = int(np.searchsorted(np.cumsum(_lengths(analyzer, words)), most, "right"))
        end = sum(map(len, words[:kept]))
        found[i] = text[:end]
        if len("".join(words[kept : kept + 1]).lstrip()) > LONG_WORD:  # cut between two of its characters
            inside = range(end + 1, end + len(words[kept]) + 1)
            fitting = bisect_right(inside, most, key=lambda last: _lengths(analyzer, [text[:last]])[0])
            found[i] = text[: end + fitting].rstrip() if fitting else found[i]
    return found


def _lengths(analyzer: Analyzer, texts: Sequence[str]) -> Ints:
    return np.asarray(np.diff(analyzer.docs(texts).offsets), dtype=np.int64)
