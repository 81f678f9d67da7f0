"""What equal analyzers of one process share: the vocabulary, the token maps and the analysed texts.

The steps of an analyzer look at one raw token at a time, so each distinct raw token goes through them once;
from then on analysing is tokenising plus one dictionary look-up per token.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from whyrank.core.progress import Progress
from whyrank.core.protocols import Codes
from whyrank.text.vocabulary import Tokens, Vocabulary

Step = Callable[[str], str | None]
TokeniseAll = Callable[[Sequence[str]], Sequence[Sequence[str]]]

CACHED_TOKENS = 20_000_000
_CHUNK = 1024
_ENTRY_COST = 32  # what an entry costs beside its ids, so that texts without tokens are bounded too


class Parts(NamedTuple):
    """What an analyzer is made of; `query_steps` is None where queries are treated as documents are."""

    tokenise: TokeniseAll
    steps: tuple[Step, ...]
    query_steps: tuple[Step, ...] | None


class State:
    """Vocabulary and both sides of an analyzer; one side serves both where the steps are the same."""

    def __init__(self, parts: Parts) -> None:
        """Start with an empty vocabulary, which both sides share."""
        self.vocabulary, lock = Vocabulary(), threading.Lock()
        self.docs = Side(parts.tokenise, _TermIds(parts.steps, self.vocabulary), lock)
        self.queries = self.docs
        self.stopwords: frozenset[str] = frozenset().union(*(getattr(step, "words", ()) for step in parts.steps))
        if parts.query_steps is not None:
            self.queries = Side(parts.tokenise, _TermIds(parts.query_steps, self.vocabulary), lock)


class Side:
    """The document side or the query side of an analyzer: its tokeniser, its token map and its cache."""

    def __init__(self, tokenise: TokeniseAll, ids: _TermIds, lock: threading.Lock) -> None:
        """Start with nothing analysed; the lock guards the vocabulary behind `ids`."""
        self.cache = TextCache()
        self._tokenise, self._ids, self._lock = tokenise, ids, lock

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """Analyse texts, in order; each distinct text once."""
        if isinstance(texts, str):
            raise TypeError("give a list of texts, not one text")
        with self._lock:
            found = self._analysed(texts)
        arrays = [found[text] for text in texts]
        offsets = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(ids) for ids in arrays], out=offsets[1:])
        return Tokens(np.concatenate(arrays) if arrays else np.empty(0, np.int32), offsets)

    def _analysed(self, texts: Sequence[str]) -> dict[str, Codes]:
        held = {text: self.cache.get(text) for text in texts}
        found = {text: ids for text, ids in held.items() if ids is not None}
        fresh = [text for text, ids in held.items() if ids is None]
        with Progress("analysing texts", len(fresh)) as progress:
            for start in range(0, len(fresh), _CHUNK):
                chunk = fresh[start : start + _CHUNK]
                found.update(self._analyse(chunk))
                progress.step(len(chunk))
        return found

    def _analyse(self, texts: Sequence[str]) -> dict[str, Codes]:
        raw = self._tokenise(texts)
        lengths = [len(tokens) for tokens in raw]
        ids = np.fromiter(map(self._ids.__getitem__, chain.from_iterable(raw)), np.int32, sum(lengths))
        parts = np.split(ids, np.cumsum(lengths)[:-1])
        kept = {text: part[part >= 0] for text, part in zip(texts, parts, strict=True)}
        for text, part in kept.items():
            self.cache.put(text, part)
        return kept


class TextCache:
    """Term ids by text; forgets the texts unused for longest once `capacity` tokens are held."""

    def __init__(self, capacity: int = CACHED_TOKENS) -> None:
        """Start empty."""
        self.capacity, self.held = capacity, 0
        self._entries: OrderedDict[str, Codes] = OrderedDict()

    def get(self, text: str) -> Codes | None:
        """The ids of a text, or None when they are not held."""
        found = self._entries.get(text)
        if found is not None:
            self._entries.move_to_end(text)
        return found

    def put(self, text: str, ids: Codes) -> None:
        """Hold the ids of a text that is not held yet."""
        self._entries[text] = ids
        self.held += _cost(text, ids)
        while self.held > self.capacity:
            self.held -= _cost(*self._entries.popitem(last=False))

    def __len__(self) -> int:
        """How many texts are held."""
        return len(self._entries)


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


def _cost(text: str, ids: Codes) -> int:
    return max(len(ids), len(text) // 4) + _ENTRY_COST
