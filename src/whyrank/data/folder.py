"""A collection in a folder: `corpus.jsonl`, `queries.tsv`, `qrels.txt`, `runs/*.txt`, each plain or `.gz`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from whyrank.core import BadInput, WhyrankError, suggestion
from whyrank.data.collection import Collection, References, RunFiles
from whyrank.data.documents import Corpus, read_corpus, read_json_queries, read_queries
from whyrank.data.grades import Grades, grades_for
from whyrank.data.lines import find_file
from whyrank.data.trec import Qrels, read_qrels
from whyrank.data.yaml_text import YAML_ERRORS, problem_of, read_yaml

# `collection.yaml`: what a folder declares about itself (its name, its grades, where its corpus is).

_REMEDY = "known keys: name, grades (names, relevant, nonrelevant), corpus"


class DeclaredGrades(BaseModel):
    """The `grades` part of a declaration."""

    model_config = ConfigDict(extra="forbid")
    names: dict[int, str] = {}
    relevant: int = 1
    nonrelevant: int = 0

    def meaning(self) -> Grades:
        """The grades as the rest of the package knows them."""
        return Grades(self.names, self.relevant, self.nonrelevant)


class Declaration(BaseModel):
    """A whole `collection.yaml`; everything in it is optional."""

    model_config = ConfigDict(extra="forbid")
    name: str | None = None
    grades: DeclaredGrades | None = None
    corpus: str | None = None


def read_declaration(path: Path) -> tuple[str | None, Grades | None]:
    """Name and grades as the file declares them; None for what it leaves open."""
    found = _validated(path)
    try:
        return found.name, found.grades.meaning() if found.grades else None
    except WhyrankError as error:
        raise BadInput(path, str(error), "mend 'relevant' or 'nonrelevant'") from None


def declared_corpus(path: Path) -> Path | None:
    """The corpus file that a declaration names, if it does; a relative path starts where the declaration is."""
    named = _validated(path).corpus
    if named is None:
        return None
    file = path.parent / Path(named).expanduser()
    if not file.is_file():
        raise BadInput(path, f"corpus: there is no file {named}", "say where the corpus is now")
    return file


def _validated(path: Path) -> Declaration:
    try:
        return Declaration.model_validate(_content(path))
    except ValidationError as error:
        raise BadInput(path, _first_problem(error), _REMEDY) from None


def _content(path: Path) -> Any:
    try:
        content = read_yaml(path)
    except YAML_ERRORS as error:
        what, line = problem_of(error)
        raise BadInput(path, f"malformed YAML ({what})", _REMEDY, line) from None
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error})", _REMEDY) from None
    if content is None:
        raise BadInput(path, "the file is empty", _REMEDY)
    return content


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"] if part != "[key]")
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


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
        pass  # INNER

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
        pass  # INNER

        given, grades = read_declaration(path / "collection.yaml")
        name = given or name
    return f"{name}:{split}" if split else name, grades


# A BEIR folder: `corpus.jsonl`, `queries.jsonl`, `qrels/SPLIT.tsv`, each plain or `.gz`.

_DEFAULT = "test"


def is_beir(path: Path) -> bool:
    """Whether a folder has BEIR's shape."""
    return bool(find_file(path, "corpus.jsonl") and find_file(path, "queries.jsonl") and _splits(path))


def read_beir(path: Path, split: str | None = None, strict: bool = False) -> Collection:
    """Read a BEIR folder (Thakur et al., 2021); the split is `test` unless another is named.

    `queries.jsonl` holds the queries of all splits, so only those that the split's judgements mention are
    kept, as BEIR's own loader does.
    """
    notes: list[str] = []
    corpus_file, queries_file = find_file(path, "corpus.jsonl"), find_file(path, "queries.jsonl")
    if corpus_file is None or queries_file is None or not _splits(path):
        raise BadInput(path, "not a BEIR folder", "it needs corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv")
    judged = Judged.read(_judgement_file(path, split or _DEFAULT), notes, strict)
    queries = _of_split(read_json_queries(queries_file, notes, strict), judged.qrels, notes)
    corpus = read_corpus(corpus_file, strict=strict)
    return assemble(path, split or _DEFAULT, corpus, queries, judged, notes=notes, strict=strict)


def _judgement_file(path: Path, split: str) -> Path:
    file = find_file(path / "qrels", f"{choose_split(path, split, _splits(path))}.tsv")
    if file is None:
        raise BadInput(path / "qrels", f"{split}.tsv is not a file", "put the judgements of the split there")
    return file


def _splits(path: Path) -> list[str]:
    files = [*(path / "qrels").glob("*.tsv"), *(path / "qrels").glob("*.tsv.gz")]
    return sorted({file.name.removesuffix(".gz").removesuffix(".tsv") for file in files})


def _of_split(queries: dict[str, str], judged: Qrels, notes: list[str]) -> dict[str, str]:
    kept = {query_id: text for query_id, text in queries.items() if query_id in judged}
    if len(kept) < len(queries):
        notes.append(f"queries of other splits, left out: {len(queries) - len(kept):,}")
    return kept
