"""`whyrank tables show`, `diff` and `export`: look into term tables, compare them, hand them to a search engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import argument, refuse
from whyrank.cli.console import Cell, plural, say, show_rows, table, word
from whyrank.cli.options import check_file, open_collection
from whyrank.core import NonNegative, UnknownName, Whole, WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.tables import Change, TableDifference, TermTable, Weighted

FORMATS = ("synonyms", "expansion", "html", "tsv", "parquet", "arrow")
CHANGES = (".tsv", ".parquet", ".json")


@dataclass(frozen=True, kw_only=True)
class ShowCommand:
    """Show what a table holds: all of it in figures, or the neighbours of some terms, in both directions.

    Attributes:
        table: a term table: .parquet, .arrow, .tsv or .tsv.gz.
        terms: terms or words to look up.
        show: how many rows to show.
        json: print JSON on standard output.
    """

    table: str = argument("TABLE")
    terms: tuple[str, ...] = argument("TERM", ())
    show: Whole = 10
    json: bool = False

    def run(self) -> None:
        """Print."""
        from whyrank.tables import open_table, short

        opened = open_table(self.table, check=True)
        if not self.terms:
            _show_whole(opened, self.show, self.json)
            say(f"{plural(len(opened), 'entry', 'entries')}: {self.table}")
            return
        found = {}
        for text in self.terms:
            term = opened.term(text)
            if term is None:
                raise UnknownName("term", text, _alike(text, {**opened.query_numbers, **opened.doc_numbers}))
            found[term] = opened.neighbours(term, self.show)
        if self.json:
            sides = {
                term: {
                    name: [[each.term, short(each.weight)] for each in side] for name, side in near._asdict().items()
                }
                for term, near in found.items()
            }
            print(_json(sides))
        else:
            for term, near in found.items():
                _show_neighbours(f"query term {term!r}", "document term", near.doc_terms, opened)
                _show_neighbours(f"document term {term!r}", "query term", near.query_terms, opened)
        say(f"{plural(len(self.terms), 'term')} of {self.table}")


def _show_neighbours(title: str, side: str, found: Sequence[Weighted], opened: TermTable) -> None:
    texts = ["word"] if opened.words else []
    rows = [[*_with_word(each.term, opened), f"{each.weight:.4g}"] for each in found]
    columns = [side, *texts, "weight"]
    table(title, columns, rows or [["–"] * len(columns)], len(columns) - 1)


def _with_word(term: str, opened: TermTable) -> list[str]:
    """A term, and beside it the word that texts write, where the table has words."""
    return [word(term), *([word(opened.word(term))] if opened.words else [])]


def _alike(term: str, known: Mapping[str, int]) -> list[str]:
    """Terms worth a close look: to compare with each of a million would take a minute."""
    if len(known) <= (most := 5_000):
        return list(known)
    folded = term.casefold()
    near = [t for t in known if abs(len(t) - len(term)) <= 2 and t[:1].casefold() == folded[:1]]
    return sorted(near, key=lambda t: (t.casefold()[:3] != folded[:3], abs(len(t) - len(term))))[:most]


def _show_whole(opened: TermTable, top: int, as_json: bool) -> None:
    """Print sizes, facts, quantiles of the weights and the strongest entries."""
    from whyrank.tables import short, summary

    found = summary(opened, top)
    if as_json:
        print(_json(found._asdict() | {"strongest": [[q, d, short(w)] for q, d, w in found.strongest]}))
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
    texts = ["word"] if opened.words else []
    entries = [[*_with_word(q, opened), *_with_word(d, opened), f"{w:.4g}"] for q, d, w in found.strongest]
    columns = ["query term", *texts, "document term", *texts, "weight"]
    table("strongest entries", columns, entries, len(columns) - 1, "of two different terms")


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


def _json(value: object) -> str:
    return printable(json.dumps(value, indent=1, ensure_ascii=False))


@dataclass(frozen=True, kw_only=True)
class DiffCommand:
    """Compare two tables: which associations only one of them has, and where their weights differ most.

    Attributes:
        first: a term table.
        second: another one.
        show: how many rows to show.
        out: all differences, as .tsv, .parquet or .json.
        equal_within: weights that differ by at most so much are the same.
        json: print JSON on standard output.
    """

    first: str = argument("A")
    second: str = argument("B")
    show: Whole = 10
    out: str | None = None
    equal_within: NonNegative = 1e-6
    json: bool = False

    def run(self) -> None:
        """Compare, write and print."""
        from whyrank.tables import open_table

        check_file(self.out, CHANGES, "differences")
        one, other = open_table(self.first, check=True), open_table(self.second, check=True)
        found = one.difference(other, self.equal_within)
        if self.out is not None:
            _write_changes(found, self.out)
        print(_json(_changes(found, self.show))) if self.json else _show_changes(found, self.show)
        _tell_settings(one, other)
        differ = int((found.only_first | found.only_second | found.changed).sum())
        where = f": {self.out}" if self.out else ""
        say(f"{differ:,} of {plural(len(found), 'association')} differ between {self.first} and {self.second}{where}")


def _counts(found: TableDifference) -> dict[str, int]:
    same = found.in_first & found.in_second & ~found.changed
    parts = {"same": same, "changed": found.changed, "only_a": found.only_first, "only_b": found.only_second}
    return {name: int(part.sum()) for name, part in parts.items()}


def _changes(found: TableDifference, top: int) -> dict[str, Any]:
    from whyrank.tables import short

    def plain(change: Change) -> dict[str, Any]:
        a, b = (None if weight is None else short(weight) for weight in (change.first, change.second))
        return {"query_term": change.query_term, "document_term": change.document_term, "a": a, "b": b}

    parts = {"changed": found.changed, "only_a": found.only_first, "only_b": found.only_second}
    return {"counts": _counts(found)} | {n: [plain(c) for c in found.largest(top, part)] for n, part in parts.items()}


def _show_changes(found: TableDifference, top: int) -> None:
    """Print how many pairs the tables share, and the largest differences."""
    names = ("in both, same weight", "in both, other weight", "only in A", "only in B")
    counts = [[name, f"{count:,}"] for name, count in zip(names, _counts(found).values(), strict=True)]
    table("", ["associations", "n"], counts, 1)
    parts = {"largest changes": found.changed, "only in A": found.only_first, "only in B": found.only_second}
    for title, among in parts.items():
        if rows := found.largest(top, among):
            columns: dict[str, Cell] = {
                "query term": lambda each: word(each.query_term),
                "document term": lambda each: word(each.document_term), "A": ("first", ".4g"),
                "B": ("second", ".4g"), "B - A": ("difference", "+.4g"),
            }  # fmt: skip
            show_rows(title, rows, columns, 2)


def _write_changes(found: TableDifference, out: str) -> None:
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


def _tell_settings(one: TermTable, other: TermTable) -> None:
    """Say what makes tables differ before their rankers do: other terms, or weak entries that one of them lacks."""
    from whyrank.tables import cut_at

    names = ("analyzer", "threshold", "renormalised")
    analyzers, thresholds, sums = ([table.facts.get(name) for table in (one, other)] for name in names)
    if None not in analyzers and analyzers[0] != analyzers[1]:
        say(f"note: terms are made by {analyzers[0]} in A and by {analyzers[1]} in B: one word may be two terms")
    if thresholds[0] != thresholds[1]:
        begins = " and ".join("unknown" if low is None else f"{low}" for low in thresholds)
        say(f"note: entries of A and B begin at different weights ({begins}): what one lacks may lie below")
    if (cuts := [cut_at(table) for table in (one, other)])[0] != cuts[1]:
        most = " and ".join(f"{cut:,}" if cut else "any number" for cut in cuts)
        say(f"note: query terms of A and B have so many entries at most: {most}; what one lacks may be weaker")
    if sums[0] != sums[1]:
        made = " and ".join("as learned" if by is None else f"with the sum 1 by {by} term" for by in sums)
        say(f"note: weights of A and B are on different scales ({made})")


@dataclass(frozen=True, kw_only=True)
class ExportCommand:
    """Write a table for others: as a synonym file or query expansions of a search engine, as a page, or as a table.

    Attributes:
        table: a term table: .parquet, .arrow, .tsv or .tsv.gz.
        out: where to write it.
        as_: synonyms, expansion, html, tsv, parquet, arrow; without it, as the name of the file ends.
        threshold: entries with a weight of at least so much.
        top: the best N document terms of each query term.
        equivalent: synonyms that count in both directions: 'a, b' instead of 'a => a, b'.
        replace: synonyms without the term itself: 'a => b'.
        collection: synonyms and expansions are the words of its texts, instead of those that the table knows.
    """

    table: str = argument("TABLE")
    out: str
    as_: str | None = None
    threshold: NonNegative | None = None
    top: Whole | None = None
    equivalent: bool = False
    replace: bool = False
    collection: str | None = None

    def run(self) -> None:
        """Write."""
        from whyrank.core import replacing
        from whyrank.report import write_page
        from whyrank.tables import open_table, write_expansions, write_synonyms, writer

        kind = self._kind()
        opened, chosen = open_table(self.table, check=True), (self.threshold, self.top)
        if kind in ("synonyms", "expansion"):
            words = self._words(opened)
            if kind == "synonyms":
                written = write_synonyms(opened, self.out, *chosen, self.equivalent, self.replace, words)
            else:
                written = write_expansions(opened, self.out, *chosen, words)
            if written.unknown:
                terms = plural(written.unknown, "term")
                say(f"note: {terms} left out that no text of {self.collection} has as a word")
            if written.left_out:
                entries = plural(written.left_out, "entry", "entries")
                why = "a synonym file cannot hold terms with line breaks or white space around them"
                say(f"note: {entries} left out: {why}")
            if written.flagged:
                several = plural(written.flagged, "association")
                say(f"note: {several} that may be opposites or names: see the comments")
            what = "line" if kind == "synonyms" else "query term"
            size = f"{plural(written.lines, what)} with {plural(written.entries, 'association')}"
        elif kind == "html":
            page = write_page(opened, self.out, Path(self.table).name, *chosen)
            if page.left_out:
                entries = plural(page.left_out, "weaker entry", "weaker entries")
                say(f"note: {entries} left out, to keep the page small enough for a browser")
            size = plural(page.entries, "entry", "entries")
        else:
            pruned = opened.prune(*chosen)
            write = writer(f".{kind}.gz" if kind == "tsv" and self.out.endswith(".gz") else f".{kind}")
            with replacing(self.out) as beside:
                write(pruned, beside)
            size = plural(len(pruned), "entry", "entries")
        say(f"{size} of {self.table}: {self.out}")

    def _words(self, opened: TermTable) -> Mapping[str, str] | None:
        """For each term the most frequent word of the collection, where one is named."""
        from whyrank.tables import collection_words
        from whyrank.text import analyzers

        if self.collection is None:
            return None
        made_by = str(opened.facts.get("analyzer") or "whitespace")
        return collection_words(open_collection(self.collection), analyzers.create(made_by))

    def _kind(self) -> str:
        """The format that is given, or that the name of the file says; an error for options of another one."""
        suffixes = {".tsv.gz": "tsv", ".html": "html", **{f".{kind}": kind for kind in ("tsv", "parquet", "arrow")}}
        kind = self.as_ or next((kind for suffix, kind in suffixes.items() if self.out.endswith(suffix)), None)
        if kind is None:
            remedy = f"choose one with --as {'|'.join(FORMATS)}"
            raise WhyrankError(f"--out {self.out}: the name says no format; {remedy}")
        if kind not in FORMATS:
            raise UnknownName("format", kind, FORMATS)
        if kind != "synonyms":
            refuse(self, ("equivalent", "replace"), "is for --as synonyms alone")
        if kind not in ("synonyms", "expansion"):
            refuse(self, ("collection",), "is for --as synonyms and --as expansion")
        if self.equivalent and self.replace:
            raise WhyrankError("--equivalent and --replace exclude each other; choose one")
        if kind == "synonyms" and self.threshold is None and self.top is None:
            why = "a synonym file has no weights, so every entry would count alike"
            raise WhyrankError(f"{why}; choose with --threshold W or --top N")
        return kind
