"""Collections by their ir_datasets id (MacAvaney et al., SIGIR 2021), such as `beir/scifact/test`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from whyrank.core import MissingExtra, UnknownName, WhyrankError, track
from whyrank.data.collection import Collection, LazyRuns, References, plain_qrels, plain_texts
from whyrank.data.documents import memory_limit
from whyrank.data.grades import grades_for
from whyrank.data.tallies import without_surrogates
from whyrank.data.trec import Run

_MANY = 1_000_000


class StoredDocs(Mapping[str, str]):
    """Documents of an ir_datasets collection, looked up in its own document store; nothing is fetched before."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __len__(self) -> int:
        with _obtaining(self.name):
            return int(_count(self._dataset) or self._store.count())

    def __iter__(self) -> Iterator[str]:
        with _obtaining(self.name):
            yield from (str(doc.doc_id) for doc in self._dataset.docs_iter())

    def __getitem__(self, doc_id: str) -> str:
        with _obtaining(self.name):
            return _text(self._store.get(doc_id))

    def __contains__(self, doc_id: object) -> bool:
        with _obtaining(self.name):
            return isinstance(doc_id, str) and bool(self._store.get_many([doc_id]))

    def __reduce__(self) -> tuple[type[StoredDocs], tuple[str]]:
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"StoredDocs({self.name!r})"

    def get_many(self, doc_ids: Sequence[str]) -> list[str]:
        """Texts of these documents in the given order."""
        with _obtaining(self.name):
            found = self._store.get_many(set(doc_ids))
            return [_text(found[doc_id]) for doc_id in doc_ids]

    @cached_property
    def _dataset(self) -> Any:
        return _load(self.name)

    @cached_property
    def _store(self) -> Any:
        return self._dataset.docs_store()


def read_irds(name: str, strict: bool = False) -> Collection:
    """Read a collection by id; documents above the memory limit stay in ir_datasets' own store.

    Looking up documents there can mean to fetch a whole corpus, so judgements are checked against them only
    with `strict`.
    """
    dataset, notes = _load(name), list[str]()
    if not dataset.has_docs() or not dataset.has_queries():
        what = "documents" if dataset.has_queries() else "queries"
        raise WhyrankError(f"irds:{name} has no {what}; name a part of it that has, such as a test split")
    with _obtaining(name):
        queries = plain_texts("queries", ((q.query_id, _text(q)) for q in dataset.queries_iter()), notes, strict)
        judged = dataset.qrels_iter() if dataset.has_qrels() else ()
        qrels = plain_qrels(((row.query_id, row.doc_id, row.relevance) for row in judged), notes)
        if not dataset.has_qrels():
            notes.append(f"irds:{name} has no judgements")
        docs, titles = _documents(name, dataset, notes, strict)
        scale = grades_for(f"irds:{name}", qrels, notes, names=_grade_names(dataset))
    references = References(queries, docs if strict or isinstance(docs, dict) else None, strict)
    notes += references.check("qrels", qrels)
    runs = LazyRuns({"scoreddocs": partial(_scored_docs, name)} if dataset.has_scoreddocs() else {})
    return Collection(f"irds:{name}", docs, queries, qrels, runs, titles, scale, notes)


def _scored_docs(name: str) -> Run:
    """The documents that come scored with a collection."""
    run: Run = {}
    with _obtaining(name):
        for row in track(_load(name).scoreddocs_iter(), f"reading the scored documents of {name}"):
            run.setdefault(row.query_id, {})[row.doc_id] = float(row.score)
    return run


def _load(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise MissingExtra(f"the collection irds:{name}", "data") from None
    try:
        return ir_datasets.load(name)
    except KeyError:
        raise UnknownName("ir_datasets id", name, ir_datasets.registry) from None


@contextmanager
def _obtaining(name: str) -> Iterator[None]:
    """Turn whatever ir_datasets raises (no network, no licence, no space) into one clear line."""
    try:
        yield
    except (WhyrankError, KeyError):
        raise
    except Exception as error:
        what = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        remedy = "check the network, or place the files by hand as https://ir-datasets.com describes"
        raise WhyrankError(f"irds:{name} could not be obtained ({what}); {remedy}") from error


def _grade_names(dataset: Any) -> dict[int, str]:
    """What ir_datasets says about each grade, up to the first stop: `Related: The passage seems ...`."""
    described = (dataset.qrels_defs() or {}) if dataset.has_qrels() else {}
    short = {int(grade): re.split(r"[:.;](?:\s|$)", str(text).strip())[0] for grade, text in described.items()}
    return {grade: textwrap.shorten(text, 40, placeholder=" …") for grade, text in short.items() if text}


def _documents(name: str, dataset: Any, notes: list[str], strict: bool) -> tuple[Mapping[str, str], dict[str, str]]:
    """All documents in memory with their titles; where they are too many, their store and no titles."""
    if (_count(dataset) or 0) > _MANY:
        return StoredDocs(name), {}
    texts: list[tuple[str, str]] = []
    titles: dict[str, str] = {}
    size, limit = 0, memory_limit()
    for row in track(dataset.docs_iter(), f"reading irds:{name}", _count(dataset)):
        text = _text(row)
        size += len(text)
        if size > limit:
            return StoredDocs(name), {}
        texts.append((row.doc_id, text))
        if isinstance(title := getattr(row, "title", None), str) and title.strip():
            titles[row.doc_id] = without_surrogates(title)
    return plain_texts("docs", texts, notes, strict), titles


def _count(dataset: Any) -> int | None:
    """Number of documents where it is known without fetching them."""
    known = dataset.docs_metadata() if hasattr(dataset, "docs_metadata") else {}
    count: int | None = known.get("count") or dataset.docs_count()
    return count


def _text(record: Any) -> str:
    if hasattr(record, "default_text"):
        return str(record.default_text())
    return str(record.text) if hasattr(record, "text") else " ".join(str(value) for value in record[1:])
