"""`whyrank explain`: what the score of one text is made of, query term by document term."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whyrank.cli.command import Whole, argument
from whyrank.cli.console import plural, say, table, word
from whyrank.cli.options import Input, RankerOptions
from whyrank.core import UnknownName, WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.rankers.lexical import Explanation

SHOWN = 8
_NO_WORD = "the query has no word that this ranker reads: all texts score alike"


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(RankerOptions, Input):
    """Show what a ranker's score of one text is made of: a matrix of query terms and document terms.

    Attributes:
        texts: the query and the text ('-' reads the text from standard input), unless ids name them.
        ranker: a ranker's call string, such as model1:table.parquet.
        query_id: a query of the collection.
        doc_id: a document of the collection.
        top: document terms to show, the strongest; 8, in JSON all.
        json: print JSON on standard output.
    """

    texts: tuple[str, ...] = argument("QUERY TEXT", ())
    ranker: str = "bm25"
    query_id: str | None = None
    doc_id: str | None = None
    top: Whole | None = None
    json: bool = False

    def run(self) -> None:
        """Explain and print."""
        from whyrank.rankers import rankers
        from whyrank.rankers.lexical import Explaining

        self._check_count()
        collection = self.open_collection()
        query, text = self._texts(collection)
        typed = self.query_id is None and self.doc_id is None
        [ranker] = self.open_rankers([self.ranker], collection, typed)
        if not isinstance(ranker, Explaining):
            able = ", ".join(name for name in rankers.names() if getattr(rankers.factory(name), "explains", False))
            raise WhyrankError(f"{self.ranker} does not explain its scores term by term; rankers that do: {able}")
        found = ranker.explain(query, text)
        notes = found.notes if found.query_terms else (*found.notes, _NO_WORD)
        if self.json:
            record = {"ranker": ranker.name, **found.as_json(self.top), "notes": list(notes)}
            print(printable(json.dumps(record, indent=1, ensure_ascii=False)))
        elif found.query_terms:
            show_matrix(found, self.top or SHOWN)
        for note in notes:
            say(f"note: {note}")
        say(f"score {found.score:.6g} by {ranker.name}; collection {collection.name}")

    def _check_count(self) -> None:
        """Raise an error unless query and text are both given, and once each."""
        typed = [name for name, given in (("QUERY", self.query_id), ("TEXT", self.doc_id)) if given is None]
        if len(self.texts) != len(typed):
            by_id = "" if len(typed) < 2 else ", or --query-id and --doc-id for those of the collection"
            wanted = " and ".join(typed) or "no text besides --query-id and --doc-id"
            count = plural(len(self.texts), "text")
            raise WhyrankError(f"explain takes {wanted}, in quotes{by_id}; {count} given")

    def _texts(self, collection: Collection) -> tuple[str, str]:
        """The query and the text, typed or named."""
        given = list(self.texts)
        sides = (("query", self.query_id, collection.queries), ("document", self.doc_id, collection.docs))
        for kind, name, known in sides:
            if name is not None and name not in known:
                raise UnknownName(f"{kind} of {collection.name}", name, known)
        query = given.pop(0) if self.query_id is None else collection.queries[self.query_id]
        text = given.pop(0) if self.doc_id is None else collection.docs[self.doc_id]
        return query, sys.stdin.read() if self.doc_id is None and text == "-" else text


def show_matrix(found: Explanation, top: int) -> None:
    """Print the strongest document terms, what all others give together, and what each query term adds."""
    chosen = found.strongest(top)
    more, additive, background = (
        len(found.strongest()) - len(chosen),
        found.kind == "additive",
        found.background.any(),
    )
    last = ["sum"] if additive else [*["background"] * bool(background), "P(q|D)", "adds"]
    header = ["query term", *(word(found.document_terms[i]) for i in chosen.tolist()), *[f"{more} more"] * bool(more)]
    rows = []
    for i, term in enumerate(found.query_terms):
        rest = np.delete(found.cells[i], chosen).sum()
        cells = [*found.cells[i, chosen], *[rest] * bool(more)]
        if additive:
            shown = [_signed(cell) for cell in cells]
        else:
            cells += [found.background[i]] * bool(background)
            total = found.totals[i]
            shown = [*(_percent(cell / total) if total else "" for cell in cells), f"{total:.3g}"]
        rows.append([word(term), *shown, _signed(found.parts[i])])
    table("", [*header, *last], rows, 1)
    lines = [] if additive else ["cells: shares of P(q|D), the probability of the query term in this text"]
    lines += ["background: the share that the collection gives"] * bool(background)
    lines += [f"a P(q|D) below {found.floor:g} counts as {found.floor:g}"] * bool(found.floor)
    silent = len(found.document_terms) - len(chosen) - more
    counts = [f"{plural(len(chosen), 'document term')} shown"]
    counts += [f"{more:,} weaker ones summed up (--top)"] * bool(more)
    counts += [f"{silent:,} without effect left out"] * bool(silent)
    made = "the sum of all cells" if additive else "the sum of what the rows add"
    for line in (*lines, ", ".join(counts), f"score {found.score:.6g}: {made}"):
        print(printable(line))  # a caption of the table would be folded to its width


def _percent(share: float) -> str:
    """A share in per cent; nothing for zero."""
    return "" if share == 0 else "<0.1%" if share < 0.001 else f"{100 * share:.1f}%"


def _signed(value: float) -> str:
    return "" if value == 0 else f"{value:+.4g}" if abs(value) < 1e-3 else f"{value:+.4f}"
