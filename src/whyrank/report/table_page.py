"""A term table as one HTML file: search, sort, filter by class, in a browser and without a network."""

from __future__ import annotations

import json
import re
from os import PathLike
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, replacing
from whyrank.learners.surprises import PATTERNS
from whyrank.report.html import fill, script_json
from whyrank.studies.bias import LISTS, doc_term
from whyrank.tables import TermTable, best_of_each, self_entries, strongest

MOST = 500_000
SAME, LONGER, SHORTER, MIXED, WORDS = "the term itself", "a character more", "a character less", "mixed", "words"


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
    chosen = table.prune(threshold, top)
    shown = strongest_entries(chosen)
    with replacing(path) as beside:
        beside.write_text(render_table(shown, name, len(chosen) - len(shown)), encoding="utf-8")
    return Page(len(shown), len(chosen) - len(shown))


def render_table(table: TermTable, name: str, left_out: int = 0) -> str:
    """The page of a table as HTML."""
    classes, codes = classes_of_entries(table)
    data = {
        "query": [table.word(term) for term in table.query_terms],
        "doc": [table.word(term) for term in table.doc_terms],
        "classes": classes,
        "rows": np.diff(table.indptr).tolist(),
        "terms": table.indices.tolist(),
        "kinds": codes.tolist(),
        "weights": [float(f"{weight:.4g}") for weight in table.weights.tolist()],
    }
    facts = [
        (key.replace("_", " "), str(value))
        for key, value in table.facts.items()
        if isinstance(value, (str, int, float)) and value != ""
    ]
    page = {"name": name, "facts": facts, "left_out": left_out, "entries": len(table)}
    page |= {"data": script_json(json.dumps(data, ensure_ascii=False, separators=(",", ":")))}
    return fill("table", ("palette", "report", "table"), page)


def strongest_entries(table: TermTable) -> TermTable:
    """What a page holds: the best entries of each query term, so that none is missing, and the strongest others."""
    if len(table) <= MOST:
        return table.compact()
    share = MOST // int(np.count_nonzero(np.diff(table.indptr)))
    among = best_of_each(table, share) if share else np.zeros(len(table), np.bool_)
    among[strongest(table, MOST - int(np.count_nonzero(among)), ~among)] = True
    return table.select(among).compact()


def classes_of_entries(table: TermTable) -> tuple[list[str], Codes]:
    """Names of classes, and the number of each entry's: how its terms are related, or what its document term is."""
    lists = {name: values for name, values in LISTS.items() if name != "letters"}
    listed = {doc_term(table, value): name for name, values in lists.items() for value in values if value}
    names = [SAME, LONGER, SHORTER, *PATTERNS, *lists, MIXED, WORDS]

    def kind(term: str) -> str:
        for name, pattern in PATTERNS.items():
            if re.fullmatch(pattern, term):
                return name
        return listed.get(term) or (WORDS if re.fullmatch(r"[^\W\d_]+", term) else MIXED)

    if not len(table):
        return [], np.zeros(0, np.int32)
    row_numbers = table.row_numbers()
    longer = np.array([table.query_numbers.get(term[:-1], -1) for term in table.doc_terms], dtype=np.int64)
    shorter = np.array([table.doc_numbers.get(term[:-1], -1) for term in table.query_terms], dtype=np.int64)
    codes = np.array([names.index(kind(term)) for term in table.doc_terms], dtype=np.int32)[table.indices]
    codes[shorter[row_numbers] == table.indices] = names.index(SHORTER)
    codes[longer[table.indices] == row_numbers] = names.index(LONGER)
    codes[self_entries(table)] = names.index(SAME)
    used = np.unique(codes)
    return [names[i] for i in used], np.searchsorted(used, codes).astype(np.int32)
