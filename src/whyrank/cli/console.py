"""What people see: tables on standard output, notes on standard error, and what a stop leaves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from whyrank.core import printable

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.scoring import Failure

Cell = str | tuple[str, str] | Callable[[Any], str] | None
_NAME = 40  # characters of names of studies that are never broken
KEPT = 3  # columns of figures that no terminal is too narrow for
_kept: list[str] = []


def say(text: str) -> None:
    """Print a line for the person at the terminal; standard output stays free for results."""
    print(printable(text), file=sys.stderr)


def write(text: str) -> None:
    """Print sentences on standard output; a terminal breaks them between words."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(printable(text), soft_wrap=not console.is_terminal)


def plural(count: int, one: str, many: str = "") -> str:
    """A number and what it counts."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def figure(value: float | None, form: str = ".3f") -> str:
    """A number as in a report, with a minus that every terminal has."""
    from whyrank.report import words

    return words.figure(value, form, "-")


def p_value(value: float | None) -> str:
    """A p-value as in a report."""
    from whyrank.report import words

    return words.p_value(value)


def interval(low: float | None, high: float | None, form: str = "+.3f") -> str:
    """An interval as in a report."""
    from whyrank.report import words

    return words.bounds(low, high, lambda value: figure(value, form))


def star(p: float | None, alpha: float) -> str:
    """A mark for what is significant, else a blank."""
    return "*" if p is not None and p < alpha else " "


def word(term: str) -> str:
    """A term for the terminal: one with line breaks or other controls as Python would write it."""
    return term if term.isprintable() else repr(term)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, caption: str = "") -> None:
    """Print a table; the first `left` columns are text, the rest figures. Plain text when not on a terminal.

    On a terminal, the last figures are left out where the table would be too wide, with what the caption says of them
    (`name: words; name: words`). Figures are never broken; names in the columns of figures are, between words.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def drawn(columns: int) -> Table:
        gone, lines, kept = header[columns:], list[str](), True
        for line in caption.split("\n"):
            parts = []
            for part in line.split("; "):
                if ":" in part:
                    kept = not {*part.partition(":")[0].split(", ")} <= {*gone}
                parts += [part] * kept
            lines += ["; ".join(parts)] * any(parts)
            kept = True
        lines += [f"left out for want of room: {', '.join(gone)}"] * bool(gone)
        head, foot = Text(printable(title), "table.title"), Text(printable("\n".join(lines)), "table.caption")
        grid = Table(title=head, box=box.SIMPLE, title_justify="left", caption=foot, caption_justify="left")
        for i, name in enumerate(header[:columns]):
            if i:
                wraps = i < left or any(row[i][:1].isalpha() and " " in row[i] for row in rows)
            else:
                wraps = any(len(row[0]) > _NAME for row in rows)
            grid.add_column(
                Text(printable(name)), justify="left" if i < left else "right", overflow="fold", no_wrap=not wraps
            )
        for row in rows:
            grid.add_row(*(Text(printable(cell)) for cell in row[:columns]))
        return grid

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 400
    columns = len(header)
    while columns > left + KEPT and drawn(columns).__rich_measure__(console, console.options).maximum > console.width:
        columns -= 1
    console.print(drawn(columns))


def show_rows(title: str, rows: Sequence[Any], columns: Mapping[str, Cell], left: int = 1, caption: str = "") -> None:
    """Print a table of records.

    A column shows an attribute, an attribute in a format (`p` for p-values; a dash for None), or what a function
    makes of the record; one that is None is left out.
    """

    def shown(row: Any, cell: Cell) -> str:
        if callable(cell):
            return cell(row)
        name, form = (cell, "") if isinstance(cell, str) else cell or ("", "")
        value = row[name] if isinstance(row, dict) else getattr(row, name)
        return p_value(value) if form == "p" else figure(value, form) if form else str(value or "–")

    used = {name: cell for name, cell in columns.items() if cell is not None}
    table(title, list(used), [[shown(row, cell) for cell in used.values()] for row in rows], left, caption)


def test_columns(form: str) -> dict[str, Cell]:
    """The columns of a paired test: the interval of the difference, and the p-values of both tests."""
    return {
        "95% interval": lambda row: interval(row.ci_low, row.ci_high, form),
        "p": ("p_value", "p"), "p adj.": ("p_adjusted", "p"), "p (t)": ("p_t", "p"),
    }  # fmt: skip


def tell_failures(failures: Sequence[Failure]) -> None:
    """Say how many pairs have no finite score, and name the first."""
    from whyrank.scoring import one_line

    if failures:
        first = failures[0]
        text = first.doc if len(first.doc) <= 80 else first.doc[:77] + "..."
        where = f"{one_line(first.reason)} for query {first.query!r}, text {text!r}"
        have = "has" if len(failures) == 1 else "have"
        say(f"note: {plural(len(failures), 'pair')} {have} no finite score; the first: {where}")


def tell_computed(rankers: Sequence[Ranker]) -> None:
    """Say of each ranker, or part of one, that its scores were not computed by torch in fp32."""
    from whyrank.rankers.neural import lines_of

    for line in (line for ranker in rankers for line in lines_of(ranker)):
        say(f"note: {line}")


def keeps(what: str) -> None:
    """From now on a stop leaves this, and the same command goes on from there."""
    _kept[:] = [what]


def stop_line() -> str:
    """What a command says when it is stopped."""
    return "".join(["stopped", *(f"; {what} are kept, start again to go on" for what in _kept)])
