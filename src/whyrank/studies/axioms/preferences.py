"""Preferences as tables: what each axiom says of every pair of documents, and features for learning to rank."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whyrank.core import WhyrankError, call_of, replacing
from whyrank.data import Collection
from whyrank.studies.axioms.algebra import PREFIX, Combination, check_pairs
from whyrank.studies.axioms.axiom import Axiom, Signs
from whyrank.studies.axioms.expressions import axiom_of
from whyrank.studies.contrasts import Categories
from whyrank.studies.files import arrow

ROWS = 1 << 18  # in a row group of a file
_SHARED = ("pairs", "candidates", "most", "seed")  # the same for all columns, or without effect on a preference
_STRINGS = pa.dictionary(pa.int32(), pa.string())
Named = Mapping[str, Axiom]
Given = Iterable[Axiom | str] | Named


def save_preferences(path: str | PathLike[str], axioms: Given, collection: Collection, features: bool = False) -> int:
    """Write what axioms prefer to a `.parquet` file, query by query; gives the number of rows.

    A row is a pair of documents of a query, each pair once: query_id, doc_a, doc_b, one column per axiom (+1 where
    doc_a must beat doc_b, -1 the other way round, else 0), relevance_a and relevance_b (null where unjudged). The
    column of an expression has its name as it is written, that of an axiom its call string without `axiom/`; in a
    mapping, the keys are the names. Full call strings are in the metadata. With `features` a row is a document of a
    query: query_id, doc_id, the mean, largest and least preference over the query's other documents as `NAME mean`,
    `NAME max` and `NAME min` (null for a document that is alone), and relevance.
    """
    if Path(path).suffix != ".parquet":
        raise WhyrankError(f"{path}: preferences are written as .parquet; name the file so")
    named = columns_of(axioms)
    schema, written, held = _schema(named, features), 0, list[Any]()
    with replacing(path) as beside, pq.ParquetWriter(beside, schema, compression="zstd") as writer:
        for table in _tables(named, collection, features):
            held.append(table)
            if sum(each.num_rows for each in held) >= ROWS:
                writer.write_table(_concatenate(held, schema))
                held = []
            written += table.num_rows
        if any(table.num_rows for table in held):
            writer.write_table(_concatenate(held, schema))
    return written


def columns_of(axioms: Given) -> dict[str, Axiom]:
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


def _tables(named: Named, collection: Collection, features: bool) -> Iterator[Any]:
    """A table for each query."""
    schema = _schema(named, features)
    for views in zip(*(axiom.views(collection) for axiom in named.values()), strict=True):
        pool, n = views[0].pool, len(views[0])  # the same documents for all axioms, counted in the way of each
        matrices = [axiom.matrix(view) for axiom, view in zip(named.values(), views, strict=True)]
        if features:
            sides = [np.arange(n, dtype=np.int32)]
            values = [column for matrix in matrices for column in _features(matrix)]
        else:
            sides = [side.astype(np.int32) for side in np.triu_indices(n, 1)]
            values = [pa.array(matrix[tuple(sides)]) for matrix in matrices]
        query = arrow(Categories(np.zeros(len(sides[0]), np.int32), [pool.query_id]))
        docs = [arrow(Categories(side, pool.doc_ids)) for side in sides]
        grades = [pa.array(pool.relevance[side], pa.int32(), from_pandas=True) for side in sides]
        yield pa.Table.from_arrays([query, *docs, *values, *grades], schema=schema)


def _features(matrix: Signs) -> Iterator[Any]:
    """The mean, the largest and the least of each row, without the document itself."""
    n = len(matrix)
    if n < 2:
        yield from (pa.nulls(n, kind) for kind in (pa.float64(), pa.int8(), pa.int8()))
        return
    others = matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    yield pa.array(others.sum(axis=1, dtype=np.int64) / (n - 1))
    yield pa.array(others.max(axis=1))
    yield pa.array(others.min(axis=1))


def _schema(named: Named, features: bool) -> Any:
    """The columns, with the full call string of each axiom in the metadata."""
    docs, grades = (["doc_id"], ["relevance"]) if features else (["doc_a", "doc_b"], ["relevance_a", "relevance_b"])
    values: list[tuple[str, Any]] = [(name, pa.int8()) for name in named]
    if features:
        kinds = {"mean": pa.float64(), "max": pa.int8(), "min": pa.int8()}
        values = [(f"{name} {kind}", type_) for name in named for kind, type_ in kinds.items()]
    ids = [(name, _STRINGS) for name in ("query_id", *docs)]
    calls = json.dumps({name: axiom.id for name, axiom in named.items()})
    return pa.schema([*ids, *values, *((name, pa.int32()) for name in grades)], metadata={"whyrank.axioms": calls})


def _concatenate(tables: Iterable[Any], schema: Any) -> Any:
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()
