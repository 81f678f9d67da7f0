"""`whyrank tables`: look into term tables, compare them, and hand them to a search engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import tables_learn, tables_surprises
from whyrank.cli.setup import plural, say

if TYPE_CHECKING:
    from whyrank.tables import TermTable

FORMATS = ("synonyms", "expansion", "html", "tsv", "parquet", "arrow")
TableFile = Annotated[
    str, typer.Argument(metavar="TABLE", help="A term table: .parquet, .arrow, .tsv or .tsv.gz.", show_default=False)
]
Terms = Annotated[
    list[str] | None, typer.Argument(metavar="[TERM]...", help="Terms to look up, as the analyzer writes them.")
]
Top = Annotated[int, typer.Option("--top", metavar="N", help="How many entries to show.", min=1)]
Most = Annotated[
    int | None, typer.Option("--top", metavar="N", help="The best N document terms of each query term.", min=1)
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", metavar="W", help="Entries with a weight of at least W.", min=0.0)
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help=f"{', '.join(FORMATS)}; without it, as the name of the file ends."),
]
Equivalent = Annotated[
    bool, typer.Option("--equivalent", help="Synonyms that count in both directions: 'a, b' instead of 'a => a, b'.")
]
Replace = Annotated[bool, typer.Option("--replace", help="Synonyms without the term itself: 'a => b'.")]

app = typer.Typer(name="tables", help="Look into term tables, compare and export them.", rich_markup_mode=None)
app.add_typer(tables_learn.app, name="learn")
app.command("surprises")(tables_surprises.surprises)


@app.callback(invoke_without_command=True)
def top(context: typer.Context) -> None:
    """Look into term tables, compare and export them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("show")
def show(table: TableFile, terms: Terms = None, top: Top = 10, json_: o.JsonOption = False) -> None:
    """Show what a table holds: all of it in figures, or what it says about some terms, in both directions."""
    from whyrank.cli import show_tables
    from whyrank.tables import open_table

    opened = open_table(table, check=True)
    if terms:
        _check_known(opened, terms)
        show_tables.terms(opened, terms, top, json_)
        say(f"{plural(len(terms), 'term')} of {table}")
        return
    show_tables.whole(opened, top, json_)
    say(f"{plural(len(opened), 'entry', 'entries')}: {table}")


@app.command("diff")
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A term table.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    top: Top = 10,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="All differences, as .tsv, .parquet or .json.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="W", help="Weights that differ by at most W are the same.", min=0)
    ] = 1e-6,
    json_: o.JsonOption = False,
) -> None:
    """Compare two tables: which associations only one of them has, and where their weights differ most."""
    from whyrank.cli import show_tables
    from whyrank.tables import open_table

    o.check_filled(out=out)
    if out is not None:
        show_tables.check_changes_file(out)
    one, other = open_table(first, check=True), open_table(second, check=True)
    found = one.difference(other, tolerance)
    if out is not None:
        show_tables.write_changes(found, out)
    show_tables.changes(found, top, json_)
    _tell_settings(one, other)
    differ = int((found.only_first | found.only_second | found.changed).sum())
    pairs = plural(len(found), "association")
    say(f"{differ:,} of {pairs} differ between {first} and {second}" + (f": {out}" if out else ""))


@app.command("export")
def export(
    table: TableFile,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write it.", show_default=False)],
    format_: Format = None,
    threshold: Threshold = None,
    top: Most = None,
    equivalent: Equivalent = False,
    replace: Replace = False,
) -> None:
    """Write a table for a search engine (synonyms, expansion), to look at (html) or in another format."""
    from whyrank.tables import open_table

    kind = _format(out, format_)
    _check_export(kind, threshold, top, equivalent, replace)
    opened = open_table(table, check=True)
    if kind == "synonyms":
        said = _synonyms(opened, out, threshold, top, equivalent, replace)
    elif kind == "expansion":
        said = _expansions(opened, out, threshold, top)
    elif kind == "html":
        said = _page(opened, out, table, threshold, top)
    else:
        chosen = opened.pruned(threshold, top)
        _write(chosen, out, kind)
        said = plural(len(chosen), "entry", "entries")
    say(f"{said} of {table}: {out}")


def _tell_settings(one: TermTable, other: TermTable) -> None:
    """What makes tables differ before their rankers do: other terms, or weak entries that one of them lacks."""
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


def _synonyms(table: TermTable, out: str, threshold: float | None, top: int | None, both: bool, replace: bool) -> str:
    from whyrank.tables import write_synonyms

    written = write_synonyms(table, out, threshold, top, both, replace)
    if written.left_out:
        entries = plural(written.left_out, "entry", "entries")
        say(f"note: {entries} left out: a synonym file cannot hold terms with line breaks or white space around them")
    return f"{plural(written.lines, 'line')} with {plural(written.entries, 'association')}"


def _expansions(table: TermTable, out: str, threshold: float | None, top: int | None) -> str:
    from whyrank.tables import write_expansions

    written = write_expansions(table, out, threshold, top)
    return f"{plural(written.lines, 'query term')} with {plural(written.entries, 'association')}"


def _page(table: TermTable, out: str, name: str, threshold: float | None, top: int | None) -> str:
    from pathlib import Path

    from whyrank.report import write_page

    written = write_page(table, out, Path(name).name, threshold, top)
    if written.left_out:
        say(f"note: {plural(written.left_out, 'weaker entry', 'weaker entries')} left out, so that a browser copes")
    return plural(written.entries, "entry", "entries")


def _write(table: TermTable, out: str, kind: str) -> None:
    from whyrank.core import replacing
    from whyrank.tables import writer

    write = writer(f".{kind}.gz" if kind == "tsv" and out.endswith(".gz") else f".{kind}")
    with replacing(out) as beside:
        write(table, beside)


def _format(out: str, given: str | None) -> str:
    """The format that is asked for, or that the name of the file says."""
    from whyrank.core import UnknownName, WhyrankError

    o.check_filled(out=out, format=given)
    if given is not None:
        if given not in FORMATS:
            raise UnknownName("format", given, FORMATS)
        return given
    named = {".tsv": "tsv", ".tsv.gz": "tsv", ".parquet": "parquet", ".arrow": "arrow", ".html": "html"}
    for suffix, kind in named.items():
        if out.endswith(suffix):
            return kind
    raise WhyrankError(f"--out {out}: the name says no format; choose one with --format {'|'.join(FORMATS)}")


def _check_export(kind: str, threshold: float | None, top: int | None, equivalent: bool, replace: bool) -> None:
    from whyrank.core import WhyrankError

    if kind != "synonyms" and (equivalent or replace):
        raise WhyrankError(f"--{'equivalent' if equivalent else 'replace'} is for --format synonyms alone")
    if equivalent and replace:
        raise WhyrankError("--equivalent and --replace exclude each other; choose one")
    if kind == "synonyms" and threshold is None and top is None:
        raise WhyrankError(
            "a synonym file has no weights, so every entry would count alike; choose with --threshold W or --top N"
        )


def _check_known(table: TermTable, terms: list[str]) -> None:
    """Raise an error with a suggestion for a term that neither side has."""
    from whyrank.core import UnknownName

    for term in terms:
        if term not in table.query_numbers and term not in table.doc_numbers:
            raise UnknownName("term", term, _alike(term, {**table.query_numbers, **table.doc_numbers}))


def _alike(term: str, known: dict[str, int], most: int = 5_000) -> list[str]:
    """Terms worth a close look: to compare with each of a million would take a minute."""
    if len(known) <= most:
        return list(known)
    folded = term.casefold()
    near = [t for t in known if abs(len(t) - len(term)) <= 2 and t[:1].casefold() == folded[:1]]
    return sorted(near, key=lambda t: (t.casefold()[:3] != folded[:3], abs(len(t) - len(term))))[:most]
