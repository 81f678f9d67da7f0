"""`whyrank evaluate --by overlap`: the overlap split as a table, and as a .csv, .json or .svg file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.cli import setup
from whyrank.core import BadInput, UnknownName

if TYPE_CHECKING:
    from whyrank.data import Collection, Run
    from whyrank.evaluation import OverlapRow

SUFFIXES = (".csv", ".json", ".svg")
_NO_RUN = "note: no first stage to look for relevant documents in; give it with --candidates RUN"


def check(by: str, out: str | None) -> None:
    """Refuse an unknown split, or a file of another kind, before anything is computed."""
    if by != "overlap":
        raise UnknownName("way to split queries", by, ("overlap",))
    if out is not None and Path(out).suffix not in SUFFIXES:
        raise BadInput(out, "the overlap split cannot be written so", f"end the name in {', '.join(SUFFIXES)}")


def rows_of(
    collection: Collection, runs: Mapping[str, Run], candidates: str | None, strict: bool, **options: Any
) -> list[OverlapRow]:
    """The split of the runs; the first stage is the given run, or the collection's BM25 or only run."""
    from whyrank.data import first_stage
    from whyrank.evaluation import overlap_split

    name = candidates or first_stage(collection)
    first = setup.open_run(collection, name, strict) if name else None
    rows = overlap_split(collection, runs, first, **options)
    kept = sum(row.n for row in rows if (row.run, row.measure, row.queries) == (rows[0].run, rows[0].measure, "all"))
    left = len(collection.qrels) - kept
    if left:
        setup.say(
            f"note: {setup.plural(left, 'judged query', 'judged queries')} without terms or relevant text left out"
        )
    setup.say(f"note: retrieved: the relevant document is in {name}" if name else _NO_RUN)
    return rows


def show(rows: Sequence[OverlapRow], out: str | None, json_: bool) -> None:
    """Write the rows where they are wanted, and print them."""
    if out:
        _write(rows, Path(out))
    print(_json(rows)) if json_ else _tables(rows)


def _tables(rows: Sequence[OverlapRow]) -> None:
    """Print the means, and where there is a baseline the differences from it: a column per group."""
    from whyrank.report import interval_of, mean_of, overlap_panels

    first = overlap_panels(rows)[0]
    kinds = [panel for panel in overlap_panels(rows) if panel.measure == first.measure]
    sizes = "; ".join(f"{kind.queries} {', '.join(f'{row.n:,}' for row in kind.groups)}" for kind in kinds)
    caption = "groups by the share of query terms in a relevant document; in brackets the 95% interval, by query\n"
    caption += f"queries per group: {sizes}"
    _table("", rows, lambda row: f"{mean_of(row)} {interval_of(row)}", caption)
    compared = [row for row in rows if row.baseline is not None]
    if compared:
        _table(f"difference from {compared[0].baseline}", compared, _difference)


def _write(rows: Sequence[OverlapRow], path: Path) -> None:
    from whyrank.core import write_text
    from whyrank.report import csv_of, overlap_svg, overlap_table

    if path.suffix == ".json":
        write_text(path, _json(rows) + "\n")
    else:
        write_text(path, overlap_svg(rows) if path.suffix == ".svg" else csv_of(overlap_table(rows)))


def _json(rows: Sequence[OverlapRow]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=1)


def _table(title: str, rows: Sequence[OverlapRow], cell: Callable[[OverlapRow], str], caption: str = "") -> None:
    from whyrank.cli.show import table
    from whyrank.report import overlap_panels, shares_of

    panels = overlap_panels(rows)
    header = ["run", "measure", "queries", *(f"group {row.group}: {shares_of(row)}" for row in panels[0].groups)]
    shown = [
        [run, panel.measure, panel.queries, *map(cell, cells)]
        for panel in panels
        for run, cells in panel.runs.items()
    ]
    table(title, header, shown, 3, caption)


def _difference(row: OverlapRow) -> str:
    from whyrank.cli.show import figure

    low, high = figure(row.difference_low, "+.3f"), figure(row.difference_high, "+.3f")
    return f"{figure(row.difference, '+.3f')} [{low}, {high}]"
