"""Rankers that read more of a document than its text: `score(queries, docs, fields)` is given a mapping per pair.

Scoring knows texts alone. So the fields travel behind the text of a document, after a mark: what is stored, and what
counts as the same pair, then depends on them, and a ranker without the argument `fields` never sees them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

_MARK = "\x1efields\x1e"  # the last one counts, and JSON has no such character as it is


class DocFields(NamedTuple):
    """The ids of some documents, "" where a text belongs to none, and the fields that are known by id."""

    ids: Sequence[str]
    known: Mapping[str, Mapping[str, Any]]


def reads_fields(scorer: Callable[..., Any]) -> bool:
    """Whether a function or method has the argument `fields`."""
    try:
        return "fields" in signature(scorer).parameters
    except (TypeError, ValueError):  # what is built in may have no signature
        return False


def wants_fields(ranker: object) -> bool:
    """Whether a ranker is to be given fields."""
    return bool(getattr(ranker, "wants_fields", False))


def attach(docs: Sequence[str], fields: DocFields | None) -> list[str]:
    """Texts with the fields of their documents behind them, and the id among these; without any, an empty mapping."""
    if fields is None:
        return [f"{doc}{_MARK}{{}}" for doc in docs]
    found = [{**fields.known.get(each, {}), "id": each} if each else {} for each in fields.ids]
    return [f"{doc}{_MARK}{json.dumps(own, sort_keys=True)}" for doc, own in zip(docs, found, strict=True)]


def plain_text(doc: str) -> str:
    """A text without what `attach` put behind it."""
    text, mark, rest = doc.rpartition(_MARK)
    return text if mark else rest


def score_with_fields(scorer: Callable[..., Any], queries: Sequence[str], docs: Sequence[str]) -> Any:
    """Call a scorer with queries, texts and fields; texts that nothing is attached to have none."""
    fields = [json.loads(rest) if mark else {} for _, mark, rest in (doc.rpartition(_MARK) for doc in docs)]
    return scorer(queries, list(map(plain_text, docs)), fields)
