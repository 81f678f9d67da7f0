"""Term tables on the terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from whyrank.cli.show import table
from whyrank.core import BadInput, printable

if TYPE_CHECKING:
    from whyrank.tables import Change, TableDifference, TermTable, Weighted

CHANGES = (".tsv", ".parquet", ".json")


def whole(opened: TermTable, top: int, json_: bool) -> None:
    """Print sizes, facts, quantiles of the weights and the strongest entries."""
    from whyrank.tables import summary

    found = summary(opened, top)
    if json_:
        shown = found._asdict() | {"strongest": [[q, d, _number(w)] for q, d, w in found.strongest]}
        print(_json(shown))
        return
    rows = [
        ["entries", f"{found.entries:,} ({found.self_entries:,} of a term with itself)"],
        ["query terms", f"{found.query_terms:,} ({found.query_terms_used:,} with entries)"],
        ["document terms", f"{found.document_terms:,} ({found.document_terms_used:,} with entries)"],
        *([] if found.counted is None else [["counted occurrences", f"{found.counted:,}"]]),
        *([str(name), _fact(value)] for name, value in found.facts.items()),
        ["digest", found.digest],
    ]
    table("", ["what", "value"], rows, 2)
    if found.quantiles:
        table("weights", list(found.quantiles), [[f"{value:.4g}" for value in found.quantiles.values()]], 0)
    entries = [[_word(q), _word(d), _text(w)] for q, d, w in found.strongest]
    table("strongest entries", ["query term", "document term", "weight"], entries, 2, "of two different terms")


def _fact(value: Any) -> str:
    """A fact in one line: what it consists of by name, and of what lies deeper how much there is."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_part(part)}" for name, part in value.items())
    if isinstance(value, list) and not any(isinstance(part, Mapping | list) for part in value):
        return ", ".join(map(_part, value))
    return value if isinstance(value, str) else json.dumps(value)


def _part(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return f"[{len(value)}: see --json]"
    return value if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else json.dumps(value)


def terms(opened: TermTable, asked: Sequence[str], top: int, json_: bool) -> None:
    """Print the strongest entries of terms, as query terms and as document terms."""
    found = {term: opened.neighbours(term, top) for term in asked}
    if json_:
        print(
            _json({term: {"answers": _pairs(n.answers), "asked_by": _pairs(n.asked_by)} for term, n in found.items()})
        )
        return
    for term, near in found.items():
        table(f"query term {term!r}", ["document term", "weight"], _rows(near.answers), 1)
        table(f"document term {term!r}", ["query term", "weight"], _rows(near.asked_by), 1)


def changes(found: TableDifference, top: int, json_: bool) -> None:
    """Print how many pairs the tables share, and the largest differences."""
    if json_:
        print(_json(_changes(found, top)))
        return
    names = ("in both, same weight", "in both, other weight", "only in A", "only in B")
    counts = [[name, f"{count:,}"] for name, count in zip(names, _counts(found).values(), strict=True)]
    table("", ["associations", "n"], counts, 1)
    parts = {"largest changes": found.changed, "only in A": found.only_first, "only in B": found.only_second}
    for title, among in parts.items():
        rows = [_change_row(change) for change in found.largest(top, among)]
        if rows:
            table(title, ["query term", "document term", "A", "B", "B - A"], rows, 2)


def check_changes_file(out: str) -> None:
    """Refuse a file of another kind before anything is read."""
    if not out.endswith(CHANGES):
        raise BadInput(out, "differences cannot be written so", f"end the name in {', '.join(CHANGES)}")


def write_changes(found: TableDifference, out: str) -> None:
    """Write every pair of either table with both weights; an empty or null weight is an entry that is missing."""
    import pyarrow.parquet as pq

    from whyrank.core import replacing, write_text
    from whyrank.tables import change_columns, change_lines

    if out.endswith(".json"):
        write_text(out, _json(_changes(found, len(found))) + "\n")
        return
    with replacing(out) as beside:
        if out.endswith(".parquet"):
            pq.write_table(change_columns(found), beside, compression="zstd")
            return
        with open(beside, "wb") as file:
            file.writelines(change_lines(found))


def _changes(found: TableDifference, top: int) -> dict[str, Any]:
    parts = {"changed": found.changed, "only_a": found.only_first, "only_b": found.only_second}
    listed = {name: [_change_json(change) for change in found.largest(top, among)] for name, among in parts.items()}
    return {"counts": _counts(found), **listed}


def _counts(found: TableDifference) -> dict[str, int]:
    same = found.in_first & found.in_second & ~found.changed
    parts = {"same": same, "changed": found.changed, "only_a": found.only_first, "only_b": found.only_second}
    return {name: int(part.sum()) for name, part in parts.items()}


def _change_row(change: Change) -> list[str]:
    weights = ["–" if weight is None else _text(weight) for weight in (change.first, change.second)]
    return [_word(change.query_term), _word(change.document_term), *weights, f"{change.difference:+.4g}"]


def _change_json(change: Change) -> dict[str, Any]:
    a, b = (None if weight is None else _number(weight) for weight in (change.first, change.second))
    return {"query_term": change.query_term, "document_term": change.document_term, "a": a, "b": b}


def _rows(found: Sequence[Weighted]) -> list[list[str]]:
    return [[_word(each.term), _text(each.weight)] for each in found] or [["–", "–"]]


def _pairs(found: Sequence[Weighted]) -> list[list[Any]]:
    return [[each.term, _number(each.weight)] for each in found]


def _word(term: str) -> str:
    """A term for the terminal: one with line breaks or other controls as Python would write it."""
    return term if term.isprintable() else repr(term)


def _text(weight: float) -> str:
    return f"{weight:.4g}"


def _number(weight: float) -> float:
    from whyrank.tables import short

    return short(weight)


def _json(value: object) -> str:
    return printable(json.dumps(value, indent=1, ensure_ascii=False))
