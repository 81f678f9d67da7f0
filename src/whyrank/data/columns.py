"""Collections in tables with named columns: files, folders of shards and data frames, and which columns are taken.

The text of a document is its text columns with a blank between them, as title and text of a corpus file are joined:
a file gives the same texts whichever way it is opened. The columns that are neither id nor text are its fields.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, Record, WhyrankError, suggestion
from whyrank.data.collection import Collection, References, plain_texts
from whyrank.data.documents import Corpus, Document, Fields, encode_fields, full_text, read_corpus
from whyrank.data.grades import Grades, grades_for
from whyrank.data.records import SUFFIXES, batch_records, read_records, shards, suffix_of, tsv_cells, tsv_records
from whyrank.data.tallies import TextTallies, is_encodable, without_surrogates
from whyrank.data.trec import Judgement, Qrels, collect_qrels, read_qrels

_OF_DOCS = (
    "doc_id", "docid", "docno", "document_id", "corpus_id", "passage_id", "pid", "sku", "asin", "product_id",
    "item_id", "article_id",
)  # fmt: skip
_OF_QUERIES = ("query_id", "queryid", "qid", "topic_id", "question_id")
_TITLES = ("title", "name", "headline", "product_title", "product_name")
_TEXTS = ("text", "body", "content", "contents", "description", "passage", "document", "abstract")
_QUERIES = ("query", "text", "query_text", "question", "keyword", "search_term", "title")
_GRADES = ("grade", "score", "label", "rating", "relevance", "rel", "judgement", "judgment")
_KNOWN = {"id", *_OF_DOCS, *_OF_QUERIES, *_TITLES, *_TEXTS, *_QUERIES, *_GRADES}
_HEAD = 100  # rows whose keys are the columns, where rows may leave some out
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?")


class Table(NamedTuple):
    """Rows with named columns: the file or the argument they come from, the names, and the rows, to be read anew.

    Columns of a table without a header are called 1, 2, ...
    """

    path: Path
    columns: list[str]
    rows: Callable[[], Iterator[Record]]
    header: bool = True

    def named(self, what: str, column: str) -> str:
        """A column that somebody named; an error where there is none of this name."""
        if column not in self.columns:
            raise BadInput(self.path, f"{what}: there is no column {column!r}", suggestion(column, self.columns))
        return column

    def recognised(self, known: Sequence[str]) -> list[str]:
        """The columns whose name is among the known ones, however it is written."""
        return [column for column in self.columns if _folded(column) in known]

    def one(self, what: str, given: str | None, *known: Sequence[str], part: str = "") -> str:
        """The column that is named, else the only one with a known name; of several lists, the first that has one.

        `part` says which of the columns of `what` it is, where there are several.
        """
        if given is not None:
            return self.named(what, given)
        found = next((found for names in known if (found := self.recognised(names))), [])
        if len(found) != 1:
            raise self.unclear(what, found, part)
        return found[0]

    def unclear(self, what: str, found: Sequence[str], part: str = "") -> BadInput:
        """The error where no column or several may be meant."""
        meant = part or what
        problem = (
            f"several columns may be {meant} ({', '.join(found)})" if found else f"no column is known as {meant}"
        )
        remedy = f"name it with {what} (--{what.replace('_', '-')})"
        return BadInput(self.path, f"{problem}; the columns are {', '.join(self.columns)}", remedy)


def _folded(column: str) -> str:
    return re.sub(r"[\W_]+", "_", column.strip().lower()).strip("_")


def open_table(given: Any, what: str, *named: str | None) -> Table:
    """A file, a folder of shards (or `FOLDER/NAME-*`) or a data frame as a table; `what` names it in errors.

    The first line of a TSV file is a header where it has a `named` column, or its first cell or two are known names.
    """
    if isinstance(given, str | PathLike):
        path = Path(given).expanduser()
        if not path.is_file() and not shards(path):
            problem = "there is no such file or folder" if not path.exists() else "a pipe cannot be read twice"
            raise BadInput(path, problem, f"name the file or the folder of the {what}")
        rows, header = partial(read_records, path), True
        if suffix_of(path) == ".tsv" and path.is_file() and not _is_header(next(tsv_cells(path))[0], named):
            rows, header = partial(tsv_records, path, header=False), False
        return Table(path, _columns(path, rows), rows, header)
    path = Path(what)
    rows = partial(batch_records, path, _arrow(given, what))
    return Table(path, _columns(path, rows), rows)


def _is_header(cells: Sequence[str], named: Sequence[str | None]) -> bool:
    known = [_folded(cell) in _KNOWN for cell in cells]
    return known[0] or sum(known) > 1 or not set(named).isdisjoint(cells)


def _names(given: str | Sequence[str] | None) -> list[str]:
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given or ())


def _columns(path: Path, rows: Callable[[], Iterator[Record]]) -> list[str]:
    found = list(dict.fromkeys(name for record in islice(rows(), _HEAD) for name in record.fields))
    if not found:
        raise BadInput(path, "there are no rows", "put at least one row below the names of the columns")
    return found


def _arrow(given: Any, what: str) -> Any:
    """Arrow batches of a data frame of pandas or polars, an Arrow table, columns by name, or a list of rows."""
    import pyarrow as pa

    if hasattr(given, "with_format"):  # a data set of the library `datasets`
        given = given.with_format("arrow")[:]
    try:
        made = pa.Table.from_pylist(given) if isinstance(given, list) else pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        problem = str(error).strip().splitlines()[0][:200]
        kinds = "give a data frame of pandas or polars, an Arrow table, columns by name, or a list of dictionaries"
        raise WhyrankError(f"{what} cannot be read as a table ({problem}); {kinds}") from None
    return made.to_batches(1000)


class DocColumns(NamedTuple):
    """Which columns of a table are the id and the text of a document."""

    table: Table
    id: str
    texts: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, texts: str | Sequence[str] | None, doc_id: str | None) -> DocColumns:
        """The columns that are named, else those with known names: a title, if there is one, and one text."""
        if not table.header and texts is doc_id is None and len(table.columns) > 1:
            return cls(table, "1", ("2",))
        own_id = table.one("doc_id", doc_id, ("id", *_OF_DOCS))
        if texts is None:
            bodies, titles = table.recognised(_TEXTS), table.recognised(_TITLES)
            if len(bodies) > 1 or len(titles) > 1 or not bodies + titles:
                raise table.unclear("doc_text", titles + bodies)
            return cls(table, own_id, (*titles, *bodies))
        return cls(table, own_id, tuple(table.named("doc_text", name) for name in _names(texts)))

    def note(self) -> str:
        """Which columns are what, in words."""
        fields = [name for name in self.table.columns if name not in (self.id, *self.texts)]
        more = f"; fields: {', '.join(fields)}" if fields else ""
        return f"{self.table.path.name}: id: {self.id}; text: {' + '.join(self.texts)}{more}"

    def read(self, path: Path, tallies: TextTallies) -> Iterator[Document]:
        """Stream the documents, checked."""
        titled = len(self.texts) > 1 and _folded(self.texts[0]) in _TITLES
        for record in self.table.rows():
            doc_id = _id(record, self.id)
            texts = [_text(record, name) for name in self.texts]
            text = tallies.mend(doc_id, reduce(full_text, texts), path, record.line)
            title = texts[0] if titled and texts[0].strip() and text.startswith(texts[0]) else ""
            others = {k: _typed(record, v) for k, v in record.fields.items() if k != self.id and k not in self.texts}
            fields = encode_fields(others) if others else ""
            yield Document(doc_id, text, title, record.line, record.size, fields)


def _id(record: Record, column: str) -> str:
    value = record.fields.get(column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not found or not is_encodable(found):
        raise record.wrong(f"{column!r} is {str(value)[:40]!r}, which cannot be an id", "give every row an id")
    return found


def _text(record: Record, column: str) -> str:
    match record.fields.get(column):
        case None:
            return ""
        case str(text):
            return text
        case int() | float() as number:
            return "" if math.isnan(number) else str(number)  # not a number stands for nothing, as in pandas
        case list(parts) if all(isinstance(part, str) for part in parts):
            return " ".join(parts)
        case other:
            raise record.wrong(f"{column!r} is {str(other)[:40]}, which is no text", "name another column")


def _typed(record: Record, value: Any) -> Any:
    """A field; what looks like a number is one in files in which everything is text."""
    if isinstance(value, str) and suffix_of(record.path) in (".csv", ".tsv") and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value


def read_tables(
    docs: Any, queries: Any, qrels: Any = None, *, doc_text: str | Sequence[str] | None = None,
    doc_id: str | None = None, query_text: str | None = None, query_id: str | None = None,
    qrels_columns: str | Sequence[str] | None = None, name: str = "", grades: Grades | None = None,
    relevant: int | None = None, strict: bool = False,
) -> Collection:  # fmt: skip
    """Read a collection from tables, each a file, a folder of shards or a data frame.

    A column that is not named is recognised by its name, and a note says which one was taken.

    Args:
        docs: the documents; columns that are neither id nor text are the documents' `fields`.
        queries: the queries; without a column of ids they are q1, q2, ..., and judgements name them by their text.
        qrels: the judgements; also a TREC file. A file may hold queries and judgements, a row per judgement.
        doc_text: text columns, as a list or with commas between them; joined by a blank.
        doc_id: the column of the documents' ids.
        query_text: the column of the queries' texts.
        query_id: the column of the queries' ids.
        qrels_columns: the columns of query, document and grade in the judgements.
        name: stands in tables; by default the name of the documents' file.
        grades: what grades mean.
        relevant: the lowest relevant grade, where nothing else is to be said of the grades.
        strict: whether an empty text or an unknown id is an error.
    """
    chosen, notes = DocColumns.of(open_table(docs, "docs", doc_id, *_names(doc_text)), doc_text, doc_id), list[str]()
    if doc_text is None or doc_id is None:
        notes.append(chosen.note())
    corpus = _corpus(chosen, docs, strict)
    asked = _queries(open_table(queries, "queries", query_text, query_id), query_text, query_id, notes, strict)
    judged = Qrels() if qrels is None else _qrels(qrels, qrels_columns, asked, notes, strict)
    if qrels is None:
        notes.append("no qrels: nothing is judged")
    found = References(asked, corpus.docs, strict).check("qrels", judged)
    name = name or (chosen.table.path.name.split(".")[0] if isinstance(docs, str | PathLike) else "collection")
    if relevant is not None:
        lowest = min((grade for each in judged.values() for grade in each.values()), default=0)
        grades = Grades({}, relevant, min(lowest, relevant - 1))
    notes = corpus.notes + notes + found
    scale = grades_for(name, judged, notes, grades)
    return Collection(name, corpus.docs, asked, judged, {}, corpus.titles, scale, notes, corpus.fields)


def _corpus(chosen: DocColumns, given: Any, strict: bool) -> Corpus:
    path = chosen.table.path
    if isinstance(given, str | PathLike):
        return read_corpus(path, None, strict, chosen.read, repr((chosen.id, chosen.texts)))
    notes, titles, fields = list[str](), dict[str, str](), dict[str, str]()

    def texts() -> Iterator[tuple[str, str]]:
        for document in chosen.read(path, TextTallies("documents")):
            titles.update({document.id: document.title} if document.title else {})
            fields.update({document.id: document.fields} if document.fields else {})
            yield document.id, document.text

    return Corpus(plain_texts("docs", texts(), notes, strict), titles, Fields(fields), notes)


def _queries(table: Table, text: str | None, query_id: str | None, notes: list[str], strict: bool) -> dict[str, str]:
    """The queries of a table, in which rows may repeat a query."""
    if not table.header and text is query_id is None:
        text, query_id = ("2", "1") if len(table.columns) > 1 else ("1", None)
    else:
        given, ids = (text, query_id), ("id", *_OF_QUERIES)
        text = table.one("query_text", text, _QUERIES)
        query_id = table.one("query_id", query_id, _OF_QUERIES, ids) if query_id or table.recognised(ids) else None
        if given != (text, query_id):
            notes.append(f"{table.path.name}: id: {query_id or 'by number, q1, q2, ...'}; text: {text}")
    tallies, texts, numbers, repeated = TextTallies("queries", strict), dict[str, str](), dict[str, int](), 0
    for record in table.rows():
        found = without_surrogates(_text(record, text))
        own = _id(record, query_id) if query_id else f"q{numbers.setdefault(found, len(numbers) + 1)}"
        repeated += own in texts
        if own not in texts:
            texts[own] = tallies.mend(own, found, table.path, record.line)
        elif texts[own] != found:
            what = f"query {own!r} has two texts, {texts[own][:40]!r} before and {found[:40]!r} here"
            raise record.wrong(what, "give every query an id of its own")
    notes += [f"{table.path.name}: rows that repeat a query: {repeated:,}"] * bool(repeated)
    notes += tallies.notes(table.path.name)
    return texts


def _qrels(
    given: Any, columns: str | Sequence[str] | None, queries: dict[str, str], notes: list[str], strict: bool
) -> Qrels:
    """The judgements of a table or a TREC file; a query may be named by its text."""
    if isinstance(given, str | PathLike) and Path(given).is_file() and suffix_of(Path(given)) not in SUFFIXES:
        return read_qrels(given, notes, strict)
    table = open_table(given, "qrels", *_names(columns))
    if not table.header and columns is None:
        return read_qrels(table.path, notes, strict)
    if columns is None:
        query = table.one("qrels_columns", None, _OF_QUERIES, _QUERIES, part="the query")
        doc = table.one("qrels_columns", None, _OF_DOCS, part="the document")
        grade = table.one("qrels_columns", None, _GRADES, part="the grade")
        notes.append(f"{table.path.name}: query: {query}; document: {doc}; grade: {grade}")
    else:
        if len(names := _names(columns)) != 3:
            raise WhyrankError(f"qrels_columns: expected three columns (query, document, grade), found {names}")
        query, doc, grade = (table.named("qrels_columns", name) for name in names)

    ids = {text.strip(): query_id for query_id, text in reversed(queries.items())}

    def rows() -> Iterator[Judgement]:
        for record in table.rows():
            value = record.fields.get(grade)
            text = re.sub(r"\.0+$", "", str(int(value) if isinstance(value, bool) else value).strip())
            asked = _id(record, query)
            asked = asked if asked in queries else ids.get(asked, asked)
            yield Judgement(asked, _id(record, doc), text, record.line)

    return collect_qrels(table.path, rows(), notes, strict)
