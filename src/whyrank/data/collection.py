"""The collection: documents, queries, graded judgements and runs, from files or from plain Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from whyrank.core import BadInput
from whyrank.data.grades import Grades, grades_for
from whyrank.data.tallies import Tally, TextTallies, is_encodable
from whyrank.data.trec import Qrels, Run, read_run

Texts = Mapping[str, str] | Iterable[tuple[str, str]]
Judgements = Mapping[str, Mapping[str, int]] | Iterable[tuple[str, str, int]]


@dataclass(repr=False, eq=False)
class Collection:
    """A test collection.

    Judgements and runs may mention documents and queries that are not here (a note counts them): evaluation
    needs them, and whoever needs a text looks whether `docs` has it. `notes` tells of problems that were not
    fatal.

    Example:
        >>> made = Collection.of({"d1": "cats purr", "d2": "dogs"}, {"q1": "cats"}, {"q1": {"d1": 1, "d3": 0}})
        >>> made
        Collection('collection', 2 docs, 1 queries, 2 judgements, 0 runs)
        >>> made.notes
        ['qrels: documents that the collection does not have: 1 (d3)']
    """

    name: str
    docs: Mapping[str, str]
    queries: dict[str, str]
    qrels: Qrels = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    grades: Grades = field(default_factory=Grades)
    notes: list[str] = field(default_factory=list)
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, docs: Texts, queries: Texts, qrels: Judgements = (), *, runs: Mapping[str, Run] | None = None,
        name: str = "collection", titles: Mapping[str, str] | None = None, grades: Grades | None = None,
        fields: Mapping[str, Mapping[str, Any]] | None = None, strict: bool = False,
    ) -> Collection:  # fmt: skip
        """Make a collection from plain Python.

        Args:
            docs: id -> text, or pairs of id and text; a mapping that is not a dict is kept as it is, unread.
            queries: id -> text, or pairs of id and text.
            qrels: query id -> document id -> grade, or triples of these.
            runs: name -> query id -> document id -> score.
            name: stands in tables; a known name (such as `dl19`) brings the meaning of its grades.
            titles: id -> title, where titles are needed on their own.
            grades: the meaning of the grades; else known by name or inferred.
            fields: id -> name -> value, for rankers that read more of a document than its text.
            strict: whether an empty text, or an unknown id in judgements or runs, is an error.
        """
        notes: list[str] = []
        if isinstance(docs, Mapping) and not isinstance(docs, dict):
            kept = cast("Mapping[str, str]", docs)
        else:
            kept = plain_texts("docs", docs, notes, strict)
        given, judged = plain_texts("queries", queries, notes, strict), plain_qrels(qrels, notes)
        references = References(given, kept, strict)
        notes += references.check("qrels", judged)
        for run_name, run in (runs or {}).items():
            if not isinstance(run, Mapping) or not all(isinstance(scores, Mapping) for scores in run.values()):
                raise BadInput(f"run {run_name!r}", "is no mapping", "give {run: {query id: {document id: score}}}")
            notes += references.check(f"run {run_name!r}", run)
        scale = grades_for(name, judged, notes, grades)
        return cls(name, kept, given, judged, runs or {}, titles or {}, scale, notes, fields or {})

    @classmethod
    def from_frames(cls, docs: Any, queries: Any, qrels: Any = None, **columns: Any) -> Collection:
        """Make a collection from data frames: of pandas or polars, Arrow tables, columns by name, or lists of rows.

        The columns are those of the collection `files`: `doc_text`, `doc_id`, `query_text`, `query_id` and
        `qrels_columns`, recognised by their names where they are not given; also `name`, `grades`, `relevant` and
        `strict`. Whole numbers as ids become strings.

        Example:
            >>> docs = {"sku": [7, 8], "title": ["red shoe", "blue shoe"], "price": [20.0, 35.5]}
            >>> made = Collection.from_frames(docs, {"query": ["shoe"]})
            >>> made.docs["7"], made.fields["7"], made.queries
            ('red shoe', {'price': 20.0}, {'q1': 'shoe'})
        """
        from whyrank.data.columns import read_tables

        return read_tables(docs, queries, qrels, **columns)

    def __repr__(self) -> str:
        judgements = sum(map(len, self.qrels.values()))
        return (
            f"Collection({self.name!r}, {len(self.docs):,} docs, {len(self.queries):,} queries, "
            f"{judgements:,} judgements, {len(self.runs):,} runs)"
        )


def plain_texts(kind: str, given: Texts, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Id -> text from a mapping or from pairs; `kind` names the argument in messages."""
    tallies = TextTallies({"docs": "documents"}.get(kind, kind), strict)
    texts: dict[str, str] = {}
    for number, item in enumerate(given.items() if isinstance(given, Mapping) else given, 1):
        match item:
            case (str(text_id), str(text)) if text_id and is_encodable(text_id):
                if text_id in texts:
                    what = f"item {number}: id {text_id!r} occurs twice"
                    raise BadInput(kind, what, "give every text an id of its own")
                texts[text_id] = tallies.mend(text_id, text, f"{kind}: item {number}")
            case _:
                what = f"item {number}: expected an id and a text, found {item!r:.80}"
                raise BadInput(kind, what, "both are strings")
    notes += tallies.notes(kind)
    return texts


def plain_qrels(given: Judgements, notes: list[str]) -> Qrels:
    """Query id -> document id -> grade from nested mappings or from (query_id, doc_id, grade)."""
    if isinstance(given, Mapping):
        given = ((query_id, doc_id, grade) for query_id, grades in given.items() for doc_id, grade in grades.items())
    qrels: Qrels = {}
    repeated = 0
    for number, item in enumerate(given, 1):
        match item:
            case (str(query_id), str(doc_id), index, *_) if hasattr(index, "__index__"):
                grades, grade = qrels.setdefault(query_id, {}), operator.index(index)
            case _:
                what = f"item {number}: expected a query id, a document id and an integer grade, found {item!r:.80}"
                raise BadInput("qrels", what, "ids are strings")
        repeated += doc_id in grades
        if grades.setdefault(doc_id, grade) != grade:
            what = f"item {number}: document {doc_id!r} has two grades for query {query_id!r}"
            raise BadInput("qrels", what, "keep one of them")
    if repeated:
        notes.append(f"qrels: judgements that repeat an earlier one: {repeated:,}")
    return qrels


class References:
    """The ids that a collection has; finds those that judgements or a run mention and the collection has not.

    With `strict` such an id is an error. `docs` is None where looking documents up takes too long.
    """

    def __init__(self, queries: Container[str], docs: Container[str] | None, strict: bool) -> None:
        self.queries, self.docs, self.strict = queries, docs, strict

    def check(self, source: str | Path, mentioned: Mapping[str, Mapping[str, object]]) -> list[str]:
        """Notes on unknown ids, counted and with the first few; with `strict` they are an error."""
        doc_ids = dict.fromkeys(doc_id for by_doc in mentioned.values() for doc_id in by_doc)
        notes: list[str] = []
        for one, many, ids, known in (
            ("query", "queries", mentioned, self.queries),
            ("document", "documents", doc_ids, self.docs),
        ):
            tally = Tally(f"{many} that the collection does not have")
            for each in ids:
                if known is not None and each not in known:
                    tally.add(each)
            if tally.count and self.strict:
                what = f"{one} {tally.first[0]!r} is not in the collection ({tally.count:,} such {many} in all)"
                raise BadInput(source, what, "add what is missing, or open the collection without strict")
            notes += tally.notes(source.name if isinstance(source, Path) else source)
        return notes


# Runs: those of a collection, which are read on first use; and the run that a user names.


class LazyRuns(Mapping[str, Run]):
    """Runs by name, in the order of their readers; each is read on first use, and once."""

    def __init__(self, readers: Mapping[str, Callable[[], Run]]) -> None:
        self._readers = readers
        self._read: dict[str, Run] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __contains__(self, name: object) -> bool:
        return name in self._readers  # without reading the run

    def __getitem__(self, name: str) -> Run:
        if name not in self._read:
            self._read[name] = self._readers[name]()
        return self._read[name]


def run_files(folder: Path, references: References, notes: list[str]) -> LazyRuns:
    """The runs of a folder by file name without `.txt` and `.gz`; what is odd about them goes to `notes`."""
    # plain files come last, so that they win over a compressed one of the same name
    paths = [*sorted(folder.glob("*.txt.gz")), *sorted(folder.glob("*.txt"))]
    found = {path.name.removesuffix(".gz").removesuffix(".txt"): path for path in paths}
    return LazyRuns({name: partial(_checked_run, found[name], references, notes) for name in sorted(found)})


def _checked_run(path: Path, references: References, notes: list[str]) -> Run:
    run = read_run(path)
    notes += references.check(path, run)
    return run


class OpenedRun(NamedTuple):
    """A run and notes on what it mentions that the collection does not have."""

    run: Run
    notes: list[str]


def open_run(collection: Collection, name: str, strict: bool = False) -> OpenedRun:
    """The run of this name, else the run file at this path; an error when it has no query of the collection."""
    known = len(collection.notes)
    if name in collection.runs:
        run = collection.runs[name]
        notes = collection.notes[known:]  # what is odd about a run joins the notes of its collection
    elif not Path(name).exists():
        runs = ", ".join(collection.runs) or "none"
        remedy = f"runs of {collection.name}: {runs}; `whyrank rank -r bm25 --out FILE` writes one"
        raise BadInput(name, "there is no such run file", remedy)
    else:
        run = read_run(name)
        notes = References(collection.queries, collection.docs, strict).check(Path(name), run)
    if run and not run.keys() & collection.queries.keys():
        raise BadInput(name, f"has no query of collection {collection.name}", "take a run of its queries")
    return OpenedRun(run, notes)


def first_stage(collection: Collection) -> str | None:
    """The name of the run that candidates come from: the collection's BM25 run, else its only one."""
    names = list(collection.runs)
    plain = [name for name in names if name.lower().split(".")[0] == "bm25"]
    return (plain or names)[0] if plain or len(names) == 1 else None
