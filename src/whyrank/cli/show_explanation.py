"""Explanations on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whyrank.cli.setup import plural
from whyrank.cli.show import table
from whyrank.core import printable

if TYPE_CHECKING:
    from whyrank.core import Floats, Ints
    from whyrank.rankers.lexical import Explanation

_LOG = "cells: shares of P(q|D), the probability of the query term in this text\n"
_BACKGROUND = "background: the share that the collection gives\n"


def matrix(found: Explanation, top: int) -> None:
    """Print the strongest document terms, what all others give together, and what each query term adds."""
    if not found.query_terms:
        return
    chosen = found.strongest(top)
    more = len(found.strongest()) - len(chosen)
    header = ["query term", *(_word(found.document_terms[i]) for i in chosen.tolist())]
    header += [*[f"{more} more"] * bool(more), *_last(found)]
    rows = [_row(found, i, chosen, bool(more)) for i in range(len(found.query_terms))]
    table("", header, rows, 1)
    print(printable(_caption(found, len(chosen), more)))  # a caption of the table would be folded to its width


def _last(found: Explanation) -> list[str]:
    if found.kind == "additive":
        return ["sum"]
    return [*["background"] * bool(found.background.any()), "P(q|D)", "adds"]


def _row(found: Explanation, i: int, chosen: Ints, more: bool) -> list[str]:
    """A query term, its cells, and what it adds."""
    rest = np.delete(found.cells[i], chosen).sum()
    cells = np.concatenate([found.cells[i, chosen], [rest] * more])
    part = _signed(found.parts[i])
    if found.kind == "additive":
        return [_word(found.query_terms[i]), *(_signed(cell) for cell in cells), part]
    total, background = found.totals[i], [found.background[i]] * bool(found.background.any())
    return [_word(found.query_terms[i]), *_shares([*cells, *background], total), f"{total:.3g}", part]


def _caption(found: Explanation, shown: int, more: int) -> str:
    silent = len(found.document_terms) - shown - more
    lines = [f"{plural(shown, 'document term')} shown"]
    lines += [f"{more:,} weaker ones summed up (--top)"] * bool(more)
    lines += [f"{silent:,} without effect left out"] * bool(silent)
    made = "the sum of all cells" if found.kind == "additive" else "the sum of what the rows add"
    explained = _LOG * (found.kind == "log") + _BACKGROUND * bool(found.background.any())
    explained += f"a P(q|D) below {found.floor:g} counts as {found.floor:g}\n" if found.floor else ""
    return f"{explained}{', '.join(lines)}\nscore {found.score:.6g}: {made}"


def _shares(cells: list[float] | Floats, total: float) -> list[str]:
    return [_percent(cell / total) if total else "" for cell in cells]


def _percent(share: float) -> str:
    """A share in per cent; nothing for zero."""
    return "" if share == 0 else "<0.1%" if share < 0.001 else f"{100 * share:.1f}%"


def _signed(value: float) -> str:
    return "" if value == 0 else f"{value:+.4g}" if abs(value) < 1e-3 else f"{value:+.4f}"


def _word(term: str) -> str:
    """A term for the terminal: one with line breaks or other controls as Python would write it."""
    return term if term.isprintable() else repr(term)
