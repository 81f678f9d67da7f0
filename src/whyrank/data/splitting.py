"""Disjoint parts of a collection's judged queries, drawn by a hash, as a folder that `PATH:PART` opens."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, WhyrankError, find_file, seed_for, write_lines, write_text
from whyrank.data.collection import Collection
from whyrank.data.disk import folder_beside
from whyrank.data.folder import corpus_file, is_beir
from whyrank.data.spec import collections, locate
from whyrank.data.trec import write_qrels

_PART = re.compile(r"[A-Za-z0-9][\w-]*")
_WRITE = "write NAME=SHARE,NAME=SHARE,..., such as modelling=0.6,fusion=0.2,dev=0.1,test=0.1"


def parse_parts(text: str) -> dict[str, float]:
    """Parse `modelling=0.6,dev=0.2,test=0.2`: shares above 0 that add up to 1 at most."""
    parts: dict[str, float] = {}
    for each in text.split(","):
        name, _, share = map(str.strip, each.partition("="))
        if not _PART.fullmatch(name) or name in parts:
            raise WhyrankError(f"--parts {text!r}: {name!r} is no name for a part, or used twice; {_WRITE}")
        try:
            parts[name] = float(share)
        except ValueError:
            raise WhyrankError(f"--parts {text!r}: {share!r} is not a number; {_WRITE}") from None
    if not all(0 < share <= 1 for share in parts.values()) or sum(parts.values()) > 1 + 1e-9:
        raise WhyrankError(f"--parts {text!r}: shares lie above 0 and add up to 1 at most; {_WRITE}")
    return parts


def split_collection(collection: Collection, parts: Mapping[str, float], seed: int) -> dict[str, Collection]:
    """The judged queries in disjoint parts of about these shares; what shares leave over is in none.

    Queries are put in the order of a hash of seed and text, and the list is cut. So the parts do not depend on the
    order of the files. Queries with one text (case, blanks and the forms of characters aside) are in one part.
    """
    alike: dict[str, list[str]] = {}
    for query_id in sorted(collection.qrels.keys() & collection.queries.keys()):
        folded = " ".join(unicodedata.normalize("NFKC", collection.queries[query_id]).casefold().split())
        alike.setdefault(folded, []).append(query_id)
    ordered = [alike[text] for text in sorted(alike, key=lambda text: (seed_for(seed, "split", text), text))]

    total = sum(map(len, ordered))
    ends = [round(end * total) for end in accumulate(parts.values())]
    chosen: dict[str, list[str]] = {name: [] for name in parts}
    for position, query_ids in zip(accumulate([0, *map(len, ordered)]), ordered, strict=False):
        name = next((name for name, end in zip(parts, ends, strict=True) if position < end), None)
        if name is not None:
            chosen[name] += query_ids
    if empty := [name for name, ids in chosen.items() if not ids]:
        raise WhyrankError(f"{collection.name} has {total:,} judged queries, too few for a part {empty[0]!r}")
    return {name: part_of(collection, name, set(ids)) for name, ids in chosen.items()}


def part_of(collection: Collection, name: str, ids: set[str]) -> Collection:
    """The collection with some of its queries only, in their old order."""
    queries = {q: text for q, text in collection.queries.items() if q in ids}
    qrels = {q: grades for q, grades in collection.qrels.items() if q in ids}
    return replace(collection, name=f"{collection.name}:{name}", queries=queries, qrels=qrels, runs={})


def write_split(
    folder: str, collection: Collection, parts: Mapping[str, Collection], corpus: Path | None, report: str
) -> None:
    """Write a folder with the queries and judgements of each part, its statistics, and where the corpus is.

    `corpus` is a file that the folder refers to; without one the documents are copied.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(target, "is there already and not empty", "name another folder, or remove it")
    try:
        with folder_beside(target) as made:
            for name, part in parts.items():
                one_line = {q: re.sub(r"[\t\r\n]+", " ", text) for q, text in part.queries.items()}
                write_lines(made / f"queries.{name}.tsv", (f"{q}\t{text}" for q, text in one_line.items()))
                write_qrels(made / f"qrels.{name}.txt", part.qrels)
            if corpus is None:
                titles, known = collection.titles, collection.fields
                rows = (
                    {**known.get(d, {}), "id": d, "title": titles.get(d), "text": text}
                    for d, text in collection.docs.items()
                )
                write_lines(made / "corpus.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
            write_text(made / "collection.yaml", _declaration(collection, corpus, target))
            write_text(made / "splits.json", report)
            os.replace(made, target)
    except OSError as error:
        raise BadInput(target, f"cannot be written ({error.strerror or error})", "choose another folder") from None


def _declaration(collection: Collection, corpus: Path | None, folder: Path) -> str:
    import yaml

    grades = collection.grades
    scale = {"names": dict(grades.names), "relevant": grades.relevant, "nonrelevant": grades.nonrelevant}
    found: dict[str, Any] = {"name": collection.name, "grades": scale}
    if corpus is not None:
        # folder and corpus that lie beside each other may move together, so that a relative path serves them
        corpus, folder = corpus.resolve(), folder.resolve()
        beside = corpus.is_relative_to(folder.parent)
        found["corpus"] = os.path.relpath(corpus, folder) if beside else str(corpus)
    return str(yaml.safe_dump(found, sort_keys=False, allow_unicode=True))


def corpus_of(spec: str) -> Path | None:
    """The corpus file behind a collection's spec; None where it does not come from a folder."""
    kind, *rest = re.split(r"[:(]", spec.strip(), maxsplit=1)
    if kind in collections and kind not in ("folder", "beir"):
        return None
    path, split = locate(rest[0] if kind in ("folder", "beir") and rest else spec)
    if kind == "beir" or is_beir(path):
        return find_file(path, "corpus.jsonl")
    if split is None and not find_file(path, "queries.tsv"):  # such a folder is read with its only split
        split = next(iter(sorted(file.name.split(".")[1] for file in path.glob("queries.*.tsv*"))), None)
    return corpus_file(path, split)
