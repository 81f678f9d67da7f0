"""A term table as one HTML file: search, sort, filter by class, in a browser and without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from whyrank.core import replacing
from whyrank.report.arrow import encodable
from whyrank.report.pages import csp_hash, new_environment, script_json, source_of, style_of
from whyrank.report.table_classes import classes_of_entries
from whyrank.tables import TermTable, best_of_each, kept, strongest

MOST = 500_000


class Page(NamedTuple):
    """How many entries a page holds, and how many it leaves out because a browser would be slow with them."""

    entries: int
    left_out: int


def write_page(
    table: TermTable, path: str | PathLike[str], name: str, threshold: float | None = None, top: int | None = None
) -> Page:
    """Write the entries of a table that weigh at least `threshold`, and of those the best `top` of each query term.

    A page holds 500,000 at most: an equal number of the best of each query term, then the strongest of the rest.
    """
    chosen = table.pruned(threshold, top)
    shown = _strongest(chosen).compacted()
    with replacing(path) as beside:
        beside.write_text(render_table(shown, name, len(chosen) - len(shown)), encoding="utf-8")
    return Page(len(shown), len(chosen) - len(shown))


def render_table(table: TermTable, name: str, left_out: int = 0) -> str:
    """The page of a table as HTML."""
    environment = new_environment()
    script = Markup(source_of(environment, "table.js").strip())
    style = style_of(environment, "palette", "report", "table")
    page = {"name": name, "facts": _facts(table.facts), "left_out": left_out, "entries": len(table)}
    page |= {"data": script_json(json.dumps(_data(table), ensure_ascii=False, separators=(",", ":")))}
    page |= {"style": style, "script": script, "script_hash": csp_hash(script)}
    return encodable(environment.get_template("table.html.j2").render(page))


def _strongest(table: TermTable) -> TermTable:
    """What a page holds: the best entries of each query term, so that none is missing, and the strongest others."""
    if len(table) <= MOST:
        return table
    share = MOST // int(np.count_nonzero(np.diff(table.indptr)))
    among = best_of_each(table, share) if share else np.zeros(len(table), np.bool_)
    among[strongest(table, MOST - int(np.count_nonzero(among)), ~among)] = True
    return kept(table, among)


def _data(table: TermTable) -> dict[str, Any]:
    classes = classes_of_entries(table)
    return {
        "query": list(table.query_terms),
        "doc": list(table.doc_terms),
        "classes": classes.names,
        "rows": np.diff(table.indptr).tolist(),
        "terms": table.indices.tolist(),
        "kinds": classes.codes.tolist(),
        "weights": [float(f"{weight:.4g}") for weight in table.weights.tolist()],
    }


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known of the table's making, as words."""
    plain = {key: value for key, value in facts.items() if isinstance(value, (str, int, float)) and value != ""}
    return [(key.replace("_", " "), str(value)) for key, value in plain.items()]
