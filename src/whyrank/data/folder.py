"""A collection in a folder, in our own shape or in BEIR's, and what its `collection.yaml` declares."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from whyrank.core import BadInput, WhyrankError, find_file, needed_file, suggestion
from whyrank.data.collection import Collection, References, run_files
from whyrank.data.documents import Corpus, read_corpus, read_queries
from whyrank.data.formats import YAML_ERRORS, problem_of, read_yaml
from whyrank.data.grades import Grades, grades_for
from whyrank.data.trec import Qrels, read_qrels

_QUERIES = re.compile(r"queries\.(.+)\.tsv(?:\.gz)?")
_DECLARATION = "collection.yaml"


class DeclaredGrades(BaseModel):
    """The `grades` part of a declaration."""

    model_config = ConfigDict(extra="forbid")
    names: dict[int, str] = {}
    relevant: int = 1
    nonrelevant: int = 0


class Declaration(BaseModel):
    """A whole `collection.yaml`: name, grades, and where the corpus is; everything in it is optional."""

    model_config = ConfigDict(extra="forbid")
    name: str | None = None
    grades: DeclaredGrades | None = None
    corpus: str | None = None


def read_declaration(folder: Path) -> Declaration:
    """What the `collection.yaml` of a folder declares: nothing where there is no such file."""
    path, remedy = folder / _DECLARATION, "known keys: name, grades (names, relevant, nonrelevant), corpus"
    if not path.is_file():
        return Declaration()
    try:
        content = read_yaml(path)
    except YAML_ERRORS as error:
        what, line = problem_of(error)
        raise BadInput(path, f"malformed YAML ({what})", remedy, line) from None
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error})", remedy) from None
    if content is None:
        raise BadInput(path, "the file is empty", remedy)
    try:
        return Declaration.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"] if part != "[key]")
        raise BadInput(path, f"{where}: {problem['msg']}" if where else problem["msg"], remedy) from None


def corpus_file(folder: Path, split: str | None) -> Path:
    """The file with the documents of a folder, its own or else the one that it declares."""
    names = ("corpus.jsonl", "passages.jsonl", *([f"candidates.{split}.jsonl"] if split else []))
    named = None if find_file(folder, *names) else read_declaration(folder).corpus
    if named is None:
        return needed_file(folder, *names)
    file = folder / Path(named).expanduser()
    if not file.is_file():
        raise BadInput(folder / _DECLARATION, f"corpus: there is no file {named}", "say where the corpus is now")
    return file


def read_folder(path: Path, split: str | None = None, strict: bool = False) -> Collection:
    """Read a folder: `corpus.jsonl`, `queries.tsv`, `qrels.txt`, `runs/*.txt`, each plain or `.gz`.

    With a split `queries.SPLIT.tsv` and `qrels.SPLIT.txt` are read. The documents are in `corpus.jsonl`, else in
    `passages.jsonl`, else in `candidates.SPLIT.jsonl`, else in the file that `collection.yaml` names. A missing
    judgement file is noted, a missing corpus or query file is an error. Runs are read on first use.
    """
    notes: list[str] = []
    split = _split(path, split, notes)
    dot = f".{split}" if split else ""
    queries = read_queries(needed_file(path, f"queries{dot}.tsv"), notes, strict)
    corpus = read_corpus(corpus_file(path, split), strict=strict)
    judged = find_file(path, f"qrels{dot}.txt", f"qrels{dot}.tsv")
    qrels = read_qrels(judged, notes, strict) if judged else {}
    if judged is None:
        notes.append(f"no qrels{dot}.txt in {path.name}: nothing is judged")
    return _assemble(path, split, corpus, queries, qrels, judged, notes, strict)


def _split(path: Path, wanted: str | None, notes: list[str]) -> str | None:
    """The split that is wanted, else none, else the only one there is."""
    splits = sorted({name[1] for file in path.iterdir() if (name := _QUERIES.fullmatch(file.name))})
    if wanted is not None:
        return _known_split(path, wanted, splits)
    if find_file(path, "queries.tsv") or not splits:
        return None
    if len(splits) > 1:
        raise BadInput(
            path, f"there are several splits ({', '.join(splits)})", f"write PATH:{splits[0]}, for example"
        )
    notes.append(f"split {splits[0]!r} was read, the only one in {path.name}")
    return splits[0]


def _known_split(path: Path, wanted: str, splits: list[str]) -> str:
    if wanted not in splits:
        remedy = suggestion(wanted, splits) if splits else "it has no splits; leave the split out"
        raise BadInput(path, f"there is no split {wanted!r}", remedy)
    return wanted


def is_beir(path: Path) -> bool:
    """Whether a folder has BEIR's shape: `corpus.jsonl`, `queries.jsonl`, `qrels/SPLIT.tsv`, each plain or `.gz`."""
    return bool(find_file(path, "corpus.jsonl") and find_file(path, "queries.jsonl") and _beir_splits(path))


def read_beir(path: Path, split: str | None = None, strict: bool = False) -> Collection:
    """Read a BEIR folder (Thakur et al., 2021); the split is `test` unless another is named.

    `queries.jsonl` holds the queries of all splits, so only those that the split's judgements mention are
    kept, as BEIR's own loader does.
    """
    if not is_beir(path):
        raise BadInput(path, "not a BEIR folder", "it needs corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv")
    notes: list[str] = []
    split = _known_split(path, split or "test", _beir_splits(path))
    judged = needed_file(path / "qrels", f"{split}.tsv")
    qrels = read_qrels(judged, notes, strict)
    every = read_queries(needed_file(path, "queries.jsonl"), notes, strict)
    queries = {query_id: text for query_id, text in every.items() if query_id in qrels}
    if len(queries) < len(every):
        notes.append(f"queries of other splits, left out: {len(every) - len(queries):,}")
    corpus = read_corpus(needed_file(path, "corpus.jsonl"), strict=strict)
    return _assemble(path, split, corpus, queries, qrels, judged, notes, strict)


def _beir_splits(path: Path) -> list[str]:
    files = [*(path / "qrels").glob("*.tsv"), *(path / "qrels").glob("*.tsv.gz")]
    return sorted({file.name.removesuffix(".gz").removesuffix(".tsv") for file in files})


def _assemble(
    path: Path, split: str | None, corpus: Corpus, queries: dict[str, str], qrels: Qrels, judged: Path | None,
    notes: list[str], strict: bool,
) -> Collection:  # fmt: skip
    """Put the parts of a folder together: what it declares, its runs, and all notes."""
    notes = corpus.notes + notes
    references = References(queries, corpus.docs, strict)
    if judged is not None:
        notes += references.check(judged, qrels)
    declared = read_declaration(path)
    name = declared.name or path.resolve().name
    name = f"{name}:{split}" if split else name
    try:
        scale = Grades(**declared.grades.model_dump()) if declared.grades else None
    except WhyrankError as error:
        raise BadInput(path / _DECLARATION, str(error), "mend 'relevant' or 'nonrelevant'") from None
    grades = grades_for(name, qrels, notes, scale)
    runs = run_files(path / "runs", references, notes)
    return Collection(name, corpus.docs, queries, qrels, runs, corpus.titles, grades, notes, corpus.fields)
