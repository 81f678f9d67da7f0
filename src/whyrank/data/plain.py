"""Collections from plain Python: mappings or iterables, checked like files."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from whyrank.core.errors import BadInput
from whyrank.data.tallies import TextTallies, encodable
from whyrank.data.trec import Qrels

Texts = Mapping[str, str] | Iterable[tuple[str, str]]
Judgements = Mapping[str, Mapping[str, int]] | Iterable[tuple[str, str, int]]


def plain_texts(kind: str, given: Texts, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Id -> text from a mapping or from pairs; `kind` names the argument in messages."""
    tallies = TextTallies({"docs": "documents"}.get(kind, kind), strict)
    texts: dict[str, str] = {}
    for number, item in enumerate(given.items() if isinstance(given, Mapping) else given, 1):
        text_id, text = _pair(kind, number, item)
        if text_id in texts:
            raise BadInput(kind, f"item {number}: id {text_id!r} occurs twice", "give every text an id of its own")
        texts[text_id] = tallies.mend(text_id, text, f"{kind}: item {number}")
    notes += tallies.notes(kind)
    return texts


def plain_qrels(given: Judgements, notes: list[str]) -> Qrels:
    """Query id -> document id -> grade from nested mappings or from (query_id, doc_id, grade)."""
    qrels: Qrels = {}
    repeated = 0
    for number, item in enumerate(_triples(given), 1):
        query_id, doc_id, grade = _triple(number, item)
        grades = qrels.setdefault(query_id, {})
        repeated += doc_id in grades
        if grades.setdefault(doc_id, grade) != grade:
            what = f"item {number}: document {doc_id!r} has two grades for query {query_id!r}"
            raise BadInput("qrels", what, "keep one of them")
    if repeated:
        notes.append(f"qrels: judgements that repeat an earlier one: {repeated:,}")
    return qrels


def _pair(kind: str, number: int, item: Any) -> tuple[str, str]:
    match item:
        case (str(text_id), str(text)) if text_id and encodable(text_id):
            return text_id, text
    raise BadInput(kind, f"item {number}: expected an id and a text, found {item!r:.80}", "both are strings")


def _triples(given: Judgements) -> Iterable[Any]:
    if not isinstance(given, Mapping):
        return given
    return ((query_id, doc_id, grade) for query_id, grades in given.items() for doc_id, grade in grades.items())


def _triple(number: int, item: Any) -> tuple[str, str, int]:
    match item:
        case (str(query_id), str(doc_id), grade, *_) if hasattr(grade, "__index__"):
            return query_id, doc_id, operator.index(grade)
    what = f"item {number}: expected a query id, a document id and an integer grade, found {item!r:.80}"
    raise BadInput("qrels", what, "ids are strings")
