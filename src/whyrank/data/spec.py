"""From what a user writes (`sample`, `PATH:SPLIT`, `irds:ID`, ...) to a collection."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput, Registry, WhyrankError, near_folder, suggestion
from whyrank.data.collection import Collection

_BUILTIN = {name: f"whyrank.data.spec:{name}" for name in ("sample", "folder", "beir", "irds", "files")}
collections: Registry[Collection] = Registry("collections", "collection", _BUILTIN)


class FolderSpec(NamedTuple):
    """A folder and the split of it that is wanted."""

    path: Path
    split: str | None


def open_collection(spec: str | os.PathLike[str] | Collection, strict: bool = False) -> Collection:
    """Open a collection: `sample`, `irds:ID`, `folder:PATH`, `beir:PATH`, or a path (`PATH`, `PATH:SPLIT`).

    A registered name wins over a folder of the same name; write `./sample` for the folder. With `strict`,
    empty texts are an error, and so are judgements or runs that mention unknown documents or queries (runs: when
    they are read). A collection that is open already is returned as it is.

    Example:
        >>> open_collection("sample")
        Collection('sample', 500 docs, 40 queries, 500 judgements, 1 runs)
    """
    if isinstance(spec, Collection):
        return spec
    if isinstance(spec, os.PathLike):
        spec = str(spec)
    if not isinstance(spec, str):
        made = "Collection.of and Collection.from_frames make one"
        raise WhyrankError(f"a collection is a name, a folder or a Collection, not {type(spec).__name__}; {made}")
    name = re.split(r"[:(]", spec.strip(), maxsplit=1)[0]
    try:
        found = collections.create(spec, strict=strict) if name in collections else folder(spec, strict)
    except OSError as error:
        raise WhyrankError(f"collection {spec!r} cannot be read ({error.strerror or error})") from error
    if not isinstance(found, Collection):
        raise WhyrankError(f"collection {name!r} is registered but gave {type(found).__name__}; tell its author")
    return found


def sample(strict: bool = False) -> Collection:
    """The bundled sample: short passages with graded judgements and a BM25 run."""
    from whyrank.data.folder import read_folder

    with resources.as_file(resources.files("whyrank.data") / "sample") as path:
        found = read_folder(path, strict=strict)
        found.runs = dict(found.runs)  # the folder may be a temporary one
        return found


def folder(resource: str = "", strict: bool = False) -> Collection:
    """A folder on this machine, in our own shape, BEIR's or the hub's: `folder:PATH` or `folder:PATH:SPLIT`."""
    from whyrank.data.folder import is_beir, is_hub, read_beir, read_folder, read_hub

    path, split = locate(resource)
    reader = read_beir if is_beir(path) else read_hub if is_hub(path) else read_folder
    return reader(path, split, strict)


def beir(resource: str = "", strict: bool = False) -> Collection:
    """A BEIR folder on this machine: `beir:PATH` or `beir:PATH:SPLIT`."""
    from whyrank.data.folder import read_beir

    return read_beir(*locate(resource), strict)


def irds(resource: str = "", strict: bool = False) -> Collection:
    """A collection of ir_datasets by its id: `irds:ID`."""
    from whyrank.data.irds import read_irds

    if not resource:
        raise WhyrankError("the collection irds needs an id; write irds:ID, such as irds:beir/scifact/test")
    return read_irds(resource, strict)


def files(
    docs: str = "", queries: str = "", qrels: str | None = None, doc_text: str | None = None,
    doc_id: str | None = None, query_text: str | None = None, query_id: str | None = None,
    qrels_columns: str | None = None, relevant: int | None = None, strict: bool = False,
) -> Collection:  # fmt: skip
    """Tables with named columns (CSV, TSV, JSON lines, Parquet): `files(docs=FILE,queries=FILE,qrels=FILE,...)`."""
    from whyrank.data.columns import read_tables

    if not docs or not queries:
        missing = "queries" if docs else "docs"
        also = "; the file with judgements serves where it has the texts of the queries" if docs else ""
        raise WhyrankError(f"the collection files needs {missing}=FILE (--{missing} FILE){also}")
    return read_tables(
        docs, queries, qrels, doc_text=doc_text, doc_id=doc_id, query_text=query_text, query_id=query_id,
        qrels_columns=qrels_columns, relevant=relevant, strict=strict,
    )  # fmt: skip


def locate(text: str) -> FolderSpec:
    """Find the folder, and the split after the last colon unless the colon belongs to the path."""
    if not text.strip():
        raise WhyrankError(
            "a collection needs a folder; write PATH or PATH:SPLIT (./NAME for a folder with a reader's name)"
        )
    head, colon, split = text.rpartition(":")
    readings = [FolderSpec(Path(text).expanduser(), None)]
    if head and split:
        readings.append(FolderSpec(Path(head).expanduser(), split))
    for found in readings:
        if found.path.is_dir():
            return found
        if found.path.exists():
            what = "a collection is a folder, and this is a file"
            raise BadInput(found.path, what, "name its folder, or give it as --docs, with --queries")

    given = [(path, rest) for path, rest in ((head, colon + split), (text, "")) if path]
    near = [f"{path}{rest}" for each, rest in given if (path := near_folder(Path(each).expanduser())) is not None]
    hint = f"; did you mean the folder {near[0]!r}?" if near else ""
    name = re.split(r"[:(]", text)[0]
    known = suggestion(name, collections.names())
    raise WhyrankError(f"no collection {name!r} is registered ({known}) and no folder {text!r} exists{hint}")
