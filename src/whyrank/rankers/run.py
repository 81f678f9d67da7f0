"""A finished run as a ranker: `run:FILE`, for systems of which only the run exists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b, sha256
from typing import Any, ClassVar

import numpy as np

from whyrank.core import BadInput, Floats, WhyrankError
from whyrank.data import Collection, Run, open_run, texts_of
from whyrank.rankers.base import Described
from whyrank.rankers.opening import Setting


@dataclass(frozen=True)
class RunFile(Described):
    """The scores of a TREC run (a file, `.gz` too, or a run of the collection), found by ids or by texts.

    Attributes:
        resource: a run file, or the name of a run of the collection.
    """

    resource: str

    registered: ClassVar[str] = "run"

    def bind(self, setting: Setting) -> RunRanker:
        """Read the run and match its ids with the collection."""
        collection = setting.collection
        if collection is None:
            raise WhyrankError(f"ranker {self.name!r} needs the collection that the run was made for")
        run = open_run(collection, self.resource).run
        if not any(d in collection.docs for q in run.keys() & collection.queries.keys() for d in run[q]):
            what = f"none of the {sum(map(len, run.values())):,} scored pairs is one of collection {collection.name}"
            raise BadInput(self.resource, what, "take a run of its queries and documents")
        return RunRanker(self.name, run, collection)


@dataclass(frozen=True, repr=False, eq=False)
class RunRanker:
    """The scores of a run; a pair that the run lacks has no score (NaN).

    Texts stand for the ids that they have in the collection; of several ids with one text, the highest score counts.
    """

    name: str
    run: Run
    collection: Collection | None
    batch_size = 250_000
    cacheable = False
    scale = "as in the run"

    def __repr__(self) -> str:
        return f"{self.name} content={self._digest}"

    def __getstate__(self) -> dict[str, Any]:
        """All that scoring needs; a worker needs no collection."""
        found = replace(self, collection=None)
        kept = {name: getattr(self, name) for name in ("_digest", "_query_ids", "_doc_ids")}
        return found.__dict__ | kept

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Scores of aligned pairs of texts."""
        query_ids = (self._query_ids.get(_key(query), ()) for query in queries)
        doc_ids = (self._doc_ids.get(_key(doc), ()) for doc in docs)
        return np.array([self._best(q, d) for q, d in zip(query_ids, doc_ids, strict=True)], dtype=np.float64)

    def score_ids(self, query_ids: Sequence[str], doc_ids: Sequence[str]) -> Floats:
        """Scores of aligned pairs of ids."""
        return np.array([self._best((q,), (d,)) for q, d in zip(query_ids, doc_ids, strict=True)], dtype=np.float64)

    def is_query(self, query_id: str, text: str) -> bool:
        """Whether the collection's query of this id has this text."""
        assert self.collection is not None
        return self.collection.queries.get(query_id) == text

    def is_doc(self, doc_id: str, text: str, whole: bool = False) -> bool:
        """Whether a text is the collection's document of this id; its beginning will do unless it must be `whole`."""
        assert self.collection is not None
        found = self.collection.docs.get(doc_id)
        return found is not None and (found == text if whole else found.startswith(text))

    def _best(self, query_ids: Iterable[str], doc_ids: Iterable[str]) -> float:
        scores = [self.run[q][d] for q in query_ids if q in self.run for d in doc_ids if d in self.run[q]]
        return max(scores, default=math.nan)

    @cached_property
    def _query_ids(self) -> dict[bytes, list[str]]:
        assert self.collection is not None
        known = [q for q in self.run if q in self.collection.queries]
        return _by_text(known, [self.collection.queries[q] for q in known])

    @cached_property
    def _doc_ids(self) -> dict[bytes, list[str]]:
        assert self.collection is not None
        mentioned = dict.fromkeys(d for docs in self.run.values() for d in docs)
        known = [d for d in mentioned if d in self.collection.docs]
        return _by_text(known, texts_of(self.collection.docs, known))

    @cached_property
    def _digest(self) -> str:
        """First 16 hex digits of the SHA-256 of all scores, whatever their order and the file's form."""
        found = sha256()
        for query_id in sorted(self.run):
            found.update(repr((query_id, sorted(self.run[query_id].items()))).encode())
        return found.hexdigest()[:16]


def _by_text(ids: Iterable[str], texts: Iterable[str]) -> dict[bytes, list[str]]:
    """The ids that each text has; a hash stands for the text, so that a large corpus stays on the disk."""
    found: dict[bytes, list[str]] = {}
    for each, text in zip(ids, texts, strict=True):
        found.setdefault(_key(text), []).append(each)
    return found


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
