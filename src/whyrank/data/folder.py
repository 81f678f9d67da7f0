"""A collection in a folder: `corpus.jsonl`, `queries.tsv`, `qrels.txt`, `runs/*.txt`, each plain or `.gz`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from whyrank.core.errors import BadInput, suggestion
from whyrank.data.collection import Collection
from whyrank.data.corpus import Corpus, read_corpus
from whyrank.data.grades import Grades, grades_for
from whyrank.data.lines import find_file
from whyrank.data.queries import read_queries
from whyrank.data.references import References, RunFiles
from whyrank.data.trec import Qrels, read_qrels

_QUERIES = re.compile(r"queries\.(.+)\.tsv(?:\.gz)?")


class Judged(NamedTuple):
    """Judgements and the file they came from; no file means no judgements."""

    file: Path | None
    qrels: Qrels

    @classmethod
    def read(cls, file: Path | None, notes: list[str], strict: bool) -> Judged:
        """Read the file, if there is one."""
        return cls(file, read_qrels(file, notes, strict) if file else {})


def read_folder(path: Path, split: str | None = None, strict: bool = False) -> Collection:
    """Read a folder; with a split its `queries.SPLIT.tsv` and `qrels.SPLIT.txt`.

    The documents are in `corpus.jsonl`, else in `passages.jsonl`, else in `candidates.SPLIT.jsonl`, else in the file
    that `collection.yaml` names. A missing judgement file is noted, a missing corpus or query file is an error. Runs
    are read when asked for.
    """
    notes: list[str] = []
    split = _split(path, split, notes)
    dot = f".{split}" if split else ""
    asked = read_queries(_found(path, f"queries{dot}.tsv"), notes, strict)
    corpus = read_corpus(corpus_file(path, split), strict=strict)
    judged = Judged.read(find_file(path, f"qrels{dot}.txt", f"qrels{dot}.tsv"), notes, strict)
    if judged.file is None:
        notes.append(f"no qrels{dot}.txt in {path.name}: nothing is judged")
    return assemble(path, split, corpus, asked, judged, notes=notes, strict=strict)


def assemble(
    path: Path,
    split: str | None,
    corpus: Corpus,
    queries: dict[str, str],
    judged: Judged,
    *,
    notes: list[str],
    strict: bool,
) -> Collection:
    """Put the parts of a folder together: what it declares, its runs, and all notes."""
    notes = corpus.notes + notes
    references = References(queries, corpus.docs, strict)
    if judged.file is not None:
        notes += references.check(judged.file, judged.qrels)
    name, declared = _declared(path, split)
    grades = grades_for(name, judged.qrels, notes, declared)
    runs = RunFiles(path / "runs", references, notes)
    return Collection(name, corpus.docs, queries, judged.qrels, runs, corpus.titles, grades, notes)


def choose_split(path: Path, wanted: str, splits: list[str]) -> str:
    """The wanted split, or an error that lists those there are."""
    if wanted in splits:
        return wanted
    remedy = suggestion(wanted, splits) if splits else "it has no splits; leave the split out"
    raise BadInput(path, f"there is no split {wanted!r}", remedy)


def _split(path: Path, wanted: str | None, notes: list[str]) -> str | None:
    splits = sorted({name[1] for file in path.iterdir() if (name := _QUERIES.fullmatch(file.name))})
    if wanted is not None:
        return choose_split(path, wanted, splits)
    if find_file(path, "queries.tsv") or not splits:
        return None
    if len(splits) > 1:
        raise BadInput(
            path, f"there are several splits ({', '.join(splits)})", f"write PATH:{splits[0]}, for example"
        )
    notes.append(f"split {splits[0]!r} was read, the only one in {path.name}")
    return splits[0]


def corpus_file(path: Path, split: str | None) -> Path:
    """The file with the documents of a folder, its own or the one that it declares."""
    names = ("corpus.jsonl", "passages.jsonl", *([f"candidates.{split}.jsonl"] if split else []))
    if find_file(path, *names) is None and (path / "collection.yaml").is_file():
        from whyrank.data.declared import declared_corpus

        return declared_corpus(path / "collection.yaml") or _found(path, *names)
    return _found(path, *names)


def _found(path: Path, *names: str) -> Path:
    file = find_file(path, *names)
    if file is None:
        raise BadInput(path, f"the folder has no {' or '.join(names)} (nor with .gz)", "add one of them")
    return file


def _declared(path: Path, split: str | None) -> tuple[str, Grades | None]:
    name, grades = path.resolve().name, None
    if (path / "collection.yaml").is_file():
        from whyrank.data.declared import read_declaration

        given, grades = read_declaration(path / "collection.yaml")
        name = given or name
    return f"{name}:{split}" if split else name, grades
