"""Queries from `queries.tsv` (`query_id<TAB>text`) or from BEIR's `queries.jsonl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from whyrank.core.errors import BadInput
from whyrank.data.documents import read_documents
from whyrank.data.lines import read_lines
from whyrank.data.tallies import TextTallies


def read_queries(path: Path, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Read queries from tab-separated lines without a header; columns after the second are ignored."""
    tallies = TextTallies("queries", strict)
    rows = ((query_id, tallies.mend(query_id, text, path, line), line) for query_id, text, line in _columns(path))
    queries = _unique(path, rows)
    notes += tallies.notes(path.name)
    return queries


def read_json_queries(path: Path, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Read queries from JSON lines with `_id` and `text`."""
    tallies = TextTallies("queries", strict)
    queries = _unique(path, ((query.id, query.text, query.line) for query in read_documents(path, tallies)))
    notes += tallies.notes(path.name)
    return queries


def _columns(path: Path) -> Iterator[tuple[str, str, int]]:
    for line in read_lines(path):
        query_id, *columns = line.text.split("\t")
        if not columns or not query_id:
            what = f"expected an id, a tab and a text, found {line.text[:60]!r}"
            raise BadInput(path, what, "separate the columns by a tab", line.number)
        yield query_id, columns[0], line.number


def _unique(path: Path, rows: Iterable[tuple[str, str, int]]) -> dict[str, str]:
    queries: dict[str, str] = {}
    lines: dict[str, int] = {}
    for query_id, text, line in rows:
        if query_id in queries:
            what = f"query id {query_id!r} was already used in line {lines[query_id]}"
            raise BadInput(path, what, "give every query an id of its own", line)
        queries[query_id], lines[query_id] = text, line
    return queries
