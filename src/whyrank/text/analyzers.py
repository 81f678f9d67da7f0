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
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from whyrank.core.callstrings import Call, parse_call
from whyrank.core.errors import WhyrankError
from whyrank.core.registry import Registry
from whyrank.text.state import Parts, State, Step, TokeniseAll
from whyrank.text.vocabulary import Tokens, Vocabulary

Tokenise = Callable[[str], Sequence[str]]

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
        cls,
        id: str | Call,
        tokenise: Tokenise,
        steps: Iterable[Step] = (),
        *,
        query_steps: Iterable[Step] | None = None,
        digests: Iterable[str] = (),
    ) -> Analyzer:
        """Build from parts: `query_steps` where queries differ, `digests` of the files that were read."""

        def each(texts: Sequence[str]) -> Sequence[Sequence[str]]:
            return [tokenise(text) for text in texts]

        return cls.of_batches(id, each, steps, query_steps=query_steps, digests=digests)

    @classmethod
    def of_batches(
        cls,
        id: str | Call,
        tokenise: TokeniseAll,
        steps: Iterable[Step] = (),
        *,
        query_steps: Iterable[Step] | None = None,
        digests: Iterable[str] = (),
    ) -> Analyzer:
        """Build from a tokeniser that takes a list of texts and gives a list of token lists."""
        made = cls(str(id), "#".join([str(id), *digests, *_source_digest(str(id))]))
        parts = Parts(tokenise, tuple(steps), None if query_steps is None else tuple(query_steps))
        with _lock:
            if made.identity not in _states:
                _states[made.identity] = State(parts)
        return made

    @property
    def files(self) -> str:
        """What `identity` adds to the call string: digests of what lies behind it, empty where there is nothing."""
        return self.identity.removeprefix(self.id).removeprefix("#")

    @property
    def facts(self) -> dict[str, str]:
        """How it is told beside what was made with it: the call string, and `files` where there are any."""
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
        return self._spell(self.docs([text]))

    def query_terms(self, text: str) -> list[str]:
        """The terms of one query."""
        return self._spell(self.queries([text]))

    def _spell(self, tokens: Tokens) -> list[str]:
        return [self.vocabulary.terms[i] for i in tokens.ids]

    @property
    def _state(self) -> State:
        if self.identity not in _states:
            raise WhyrankError(f"analyzer {self.id!r} has no parts; make it with analyzers.create")
        return _states[self.identity]

    def __reduce__(self) -> tuple[Callable[[str, str], Analyzer], tuple[str, str]]:
        """Travel to other processes as the call string."""
        return rebuild, (self.id, self.identity)


analyzers: Registry[Analyzer] = Registry(
    "analyzers",
    "analyzer",
    {
        "lucene": "whyrank.text.presets:lucene",
        "krovetz": "whyrank.text.presets:krovetz",
        "terrier": "whyrank.text.presets:terrier",
        "indri": "whyrank.text.presets:indri",
        "whitespace": "whyrank.text.presets:whitespace",
        "chain": "whyrank.text.chain:chain",
        "wordpiece": "whyrank.text.wordpiece:wordpiece",
        "words": "whyrank.text.linguistic:words",
        "lemmas": "whyrank.text.linguistic:lemmas",
    },
)


def rebuild(id: str, identity: str) -> Analyzer:
    """Make the analyzer of a call string again; an error when a file behind it has changed."""
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
    if home.startswith("whyrank."):
        return []
    sources = _sources(sys.modules.get(home), factory)
    return [hashlib.sha256(source.encode()).hexdigest()[:16] for source in sources]


def _sources(*places: Any) -> list[str]:
    """The source of the first place that has one: a notebook's module has none, its functions have."""
    for place in places:
        try:
            return [inspect.getsource(place)]
        except (OSError, TypeError):
            continue
    return []
