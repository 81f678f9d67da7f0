"""Preferences as tables: what each axiom says of every pair of documents, and features for learning to rank."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whyrank.core import Codes, Flags, Floats, WhyrankError, call_of, replacing
from whyrank.data import Collection, Run, open_run, ranking
from whyrank.studies.axioms.algebra import PREFIX, Combination, check_pairs
from whyrank.studies.axioms.axiom import Axiom, Signs
from whyrank.studies.axioms.expressions import axiom_of
from whyrank.studies.axioms.view import View, Views
from whyrank.studies.contrasts import Categories
from whyrank.studies.files import arrow
from whyrank.studies.pools import Pool

# Orders to hold axioms against: that of a run, and that of the judgements. Parts of combinations, above all.


@dataclass(frozen=True, kw_only=True)
class ORIG(Axiom):
    """The text that the run `candidates` ranks higher wins; texts that are not in it say nothing."""

    name: ClassVar[str] = "ORIG"
    favours: ClassVar[str] = "the text that the given run ranks higher"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Both are in the run, `a` before `b`."""
        ranks = view.once(("ORIG", self.candidates), lambda: self._ranks(view))
        return np.asarray(ranks[a] < ranks[b])

    def _ranks(self, view: View) -> Floats:
        """The rank of each document; NaN, which is neither less nor more, where it has none."""
        run = view.views.once(("ORIG", self.candidates), lambda: self._run(view.views))
        rank = {doc_id: i for i, doc_id in enumerate(ranking(run.get(view.pool.query_id, {})))}
        return np.array([rank.get(doc_id, np.nan) for doc_id in view.pool.doc_ids], dtype=np.float64)

    def _run(self, views: Views) -> Run:
        collection = views.pools.collection
        if self.candidates is not None:
            return open_run(collection, self.candidates).run
        if len(collection.runs) == 1:
            return next(iter(collection.runs.values()))
        have = ", ".join(collection.runs) or "none"
        raise WhyrankError(f"axiom ORIG needs candidates=RUN (a run file, or a run of the collection: {have})")


@dataclass(frozen=True, kw_only=True)
class ORACLE(Axiom):
    """The text that is judged more relevant wins; a text that is not judged counts as non-relevant."""

    name: ClassVar[str] = "ORACLE"
    favours: ClassVar[str] = "the text that is judged more relevant"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The grade of `a` is higher; an unjudged document has the non-relevant one."""
        grades, nonrelevant = view.pool.relevance, view.pool.pools.collection.grades.nonrelevant
        known = np.where(np.isnan(grades), nonrelevant, grades)
        return np.asarray(known[a] > known[b])


ROWS = 1 << 18  # in a row group of a file
_SHARED = ("pairs", "candidates", "most", "seed")  # the same for all columns, or without effect on a preference
_STRINGS = pa.dictionary(pa.int32(), pa.string())
Named = Mapping[str, Axiom]
Asked = Iterable[Axiom | str] | Named


def preference_table(axioms: Asked, collection: Collection) -> Any:
    """All pairs of documents of each query, each once, with a column of +1, -1 and 0 for each axiom.

    The columns are query_id, doc_a, doc_b, one per axiom (+1 where doc_a must beat doc_b), relevance_a and
    relevance_b (null where unjudged). The column of an expression has its name as it is written, that of an axiom its
    call string without `axiom/`; in a mapping, the keys are the names. Full call strings are in the metadata.
    """
    named = columns_of(axioms)
    return _joined(_pair_tables(named, collection), _pair_schema(named))


def features_table(axioms: Asked, collection: Collection) -> Any:
    """One row per query and document, with the mean, largest and least preference over the query's other documents.

    The columns are query_id, doc_id, `NAME mean`, `NAME max`, `NAME min` for each axiom (null for a document that is
    alone) and relevance (null where unjudged).
    """
    named = columns_of(axioms)
    return _joined(_feature_tables(named, collection), _feature_schema(named))


def save_preferences(path: str | PathLike[str], axioms: Asked, collection: Collection, features: bool = False) -> int:
    """Write the table of pairs, or of features, to a `.parquet` file, query by query; gives the number of rows."""
    if Path(path).suffix != ".parquet":
        raise WhyrankError(f"{path}: preferences are written as .parquet; name the file so")
    named = columns_of(axioms)
    schema = _feature_schema(named) if features else _pair_schema(named)
    tables = _feature_tables(named, collection) if features else _pair_tables(named, collection)
    written = 0
    with replacing(path) as beside, pq.ParquetWriter(beside, schema, compression="zstd") as writer:
        for table in _grouped(tables, schema):
            writer.write_table(table)
            written += table.num_rows
    return written


def columns_of(axioms: Asked) -> dict[str, Axiom]:
    """The axioms by the names of their columns; an error unless all state preferences over the same documents."""
    found: dict[str, Axiom] = {}
    for name, axiom in axioms.items() if isinstance(axioms, Mapping) else map(_named, axioms):
        check_pairs(axiom)
        if name in found or axiom in found.values():
            raise WhyrankError(f"axiom {name!r} is given twice")
        found[name] = axiom
    if not found:
        raise WhyrankError("a table of preferences needs at least one axiom")
    if len({(axiom.pairs, axiom.candidates) for axiom in found.values()}) > 1:
        raise WhyrankError("the axioms of one table need the same pairs and candidates; make a table for each")
    return found


def column_name(text: str, axiom: Axiom) -> str:
    """The name for an axiom that is written so: the text, without `axiom/` where it is no combination."""
    return text.strip() if isinstance(axiom, Combination) else text.strip().removeprefix(PREFIX)


def _named(given: Axiom | str) -> tuple[str, Axiom]:
    axiom = axiom_of(given)
    check_pairs(axiom)
    return column_name(given, axiom) if isinstance(given, str) else call_of(axiom, axiom.name, _SHARED), axiom


def _pair_tables(named: Named, collection: Collection) -> Iterator[Any]:
    for views in _views(named, collection):
        pool = views[0].pool
        a, b = (side.astype(np.int32) for side in np.triu_indices(len(pool.rows), 1))
        signs = [axiom.matrix(view)[a, b] for axiom, view in zip(named.values(), views, strict=True)]
        grades = _grades(pool.relevance)
        rest = [grades.take(pa.array(a)), grades.take(pa.array(b))]
        columns = [_query(pool, len(a)), _docs(pool, a), _docs(pool, b), *map(pa.array, signs), *rest]
        yield pa.Table.from_arrays(columns, schema=_pair_schema(named))


def _feature_tables(named: Named, collection: Collection) -> Iterator[Any]:
    for views in _views(named, collection):
        pool, n = views[0].pool, len(views[0])
        found = [
            column
            for axiom, view in zip(named.values(), views, strict=True)
            for column in _features(axiom.matrix(view))
        ]
        columns = [_query(pool, n), _docs(pool, np.arange(n, dtype=np.int32)), *found, _grades(pool.relevance)]
        yield pa.Table.from_arrays(columns, schema=_feature_schema(named))


def _views(named: Named, collection: Collection) -> Iterator[tuple[View, ...]]:
    """For each query what each axiom sees: the same documents, counted in its own way."""
    return zip(*(axiom.views(collection) for axiom in named.values()), strict=True)


def _features(matrix: Signs) -> Iterator[Any]:
    """The mean, the largest and the least of each row, without the document itself."""
    n = len(matrix)
    others = matrix[~np.eye(n, dtype=bool)].reshape(n, max(n - 1, 0))
    if n < 2:
        yield from (pa.nulls(n, kind) for kind in (pa.float64(), pa.int8(), pa.int8()))
        return
    yield pa.array(others.sum(axis=1, dtype=np.int64) / (n - 1))
    yield pa.array(others.max(axis=1))
    yield pa.array(others.min(axis=1))


def _query(pool: Pool, n: int) -> Any:
    return arrow(Categories(np.zeros(n, np.int32), [pool.query_id]))


def _docs(pool: Pool, codes: Codes) -> Any:
    return arrow(Categories(codes, pool.doc_ids))


def _grades(relevance: Floats) -> Any:
    unjudged: npt.NDArray[np.bool_] = np.isnan(relevance)
    return pa.array(np.where(unjudged, 0, relevance).astype(np.int32), mask=unjudged)


def _pair_schema(named: Named) -> Any:
    ids = [(name, _STRINGS) for name in ("query_id", "doc_a", "doc_b")]
    signs = [(name, pa.int8()) for name in named]
    return _schema([*ids, *signs, ("relevance_a", pa.int32()), ("relevance_b", pa.int32())], named)


def _feature_schema(named: Named) -> Any:
    kinds = {"mean": pa.float64(), "max": pa.int8(), "min": pa.int8()}
    values = [(f"{name} {kind}", type_) for name in named for kind, type_ in kinds.items()]
    return _schema([("query_id", _STRINGS), ("doc_id", _STRINGS), *values, ("relevance", pa.int32())], named)


def _schema(columns: Sequence[tuple[str, Any]], named: Named) -> Any:
    """The columns, with the full call string of each axiom in the metadata."""
    ids = json.dumps({name: axiom.id for name, axiom in named.items()})
    return pa.schema(columns, metadata={"whyrank.studies.axioms": ids})


def _joined(tables: Iterable[Any], schema: Any) -> Any:
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()


def _grouped(tables: Iterable[Any], schema: Any) -> Iterator[Any]:
    """The tables of queries next to each other, joined until there are rows enough for a row group."""
    held: list[Any] = []
    for table in (each for each in tables if each.num_rows):
        held.append(table)
        if sum(each.num_rows for each in held) >= ROWS:
            yield _joined(held, schema)
            held = []
    if held:
        yield _joined(held, schema)
