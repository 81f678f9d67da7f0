"""`whyrank explain`: what the words of a text give to its score, or those of two texts to the gap between them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from whyrank.cli.command import argument
from whyrank.cli.console import plural, say, word
from whyrank.cli.options import Input, RankerOptions, Scoring, check_file
from whyrank.core import UnknownName, Whole, WhyrankError, printable, write_text

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.rankers.lexical import ScoreMatrix

SHOWN = 8
_NO_WORD = "the query has no word that this ranker reads: all texts score alike"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif }}</style></head>
<body>{body}</body></html>
"""


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(RankerOptions, Scoring, Input):
    """Explain why a ranker gives a text its score, or puts one of two texts above the other.

    Of lexical and table rankers it shows which document terms give to each query term, exactly, of all others what
    the score loses without words. Of two texts it shows what makes up the gap between their scores,
    and the smallest edit found that turns their order round.

    Attributes:
        texts: the query and the text ('-' reads the text from standard input), unless options name them.
        ranker: a ranker's call string, such as cross:bundled or model1:table.parquet.
        query: the query; a text, or an id of the collection.
        doc: a text, or an id of the collection; twice for two texts.
        query_id: a query of the collection.
        doc_id: a document of the collection.
        calls: most texts that are scored, where a ranker has no formula or there are two texts.
        top: document terms of each query term or words to show, the strongest; 8 or 12, in JSON all.
        seed: of the words that are left out at random.
        out: an .html file for the texts with their words shaded.
        json: print JSON on standard output.
    """

    texts: tuple[str, ...] = argument("QUERY TEXT", ())
    ranker: str = "bm25"
    query: str | None = None
    doc: tuple[str, ...] = ()
    query_id: str | None = None
    doc_id: str | None = None
    calls: Whole = 200
    top: Whole | None = None
    seed: int = 0
    out: str | None = None
    json: bool = False

    files: ClassVar[tuple[str, ...]] = (
        "docs",
        "doc_text",
        "queries",
        "query_text",
        "qrels",
        "qrels_columns",
    )  # ids are other options

    def run(self) -> None:
        """Explain, print, and write the page."""
        from whyrank.explain import explain
        from whyrank.rankers.lexical import Explaining

        self._check_count()
        check_file(self.out, [".html"], "an explanation")
        collection = self.open_collection()
        query, docs, typed = self._texts(collection)
        [ranker] = self.open_rankers([self.ranker], collection, typed)
        matrix = ranker.explain(query, docs[0]) if isinstance(ranker, Explaining) and len(docs) == 1 else None
        engine = self.engine() if matrix is None else None
        found = explain(ranker, query, *docs, calls=self.calls, seed=self.seed, engine=engine)
        if self.out:
            title = escape(f"{found.ranker}: {query}")
            write_text(self.out, _PAGE.format(title=title, body=found.to_html()))
        record: dict[str, Any] = {"ranker": found.ranker}
        if matrix:
            notes = matrix.notes if matrix.query_terms else (*matrix.notes, _NO_WORD)
            record |= {"score": matrix.score, "query_terms": matrix.partners(self.top), "notes": list(notes)}
        if self.json:
            record["explanation"] = found.to_dict()
            print(printable(json.dumps(record, indent=1, ensure_ascii=False)))
        elif matrix is None:
            print(found.to_text(self.top))
        elif matrix.query_terms:
            _show_partners(matrix, self.top or SHOWN)
        for note in record.get("notes", ()):
            say(f"note: {note}")
        scores = " and ".join(f"{score:.6g}" for score in found.scores)
        say(f"score{'s' * (len(docs) - 1)} {scores} by {found.ranker}; collection {collection.name}")

    def _check_count(self) -> None:
        """Raise an error unless the query is given once, and one text or two."""
        if len(self.doc) > 2:
            raise WhyrankError(f"explain compares two texts at most; --doc is given {len(self.doc)} times")
        for name, given in (("query", self.query), ("doc", self.doc)):
            if given and getattr(self, f"{name}_id") is not None:
                raise WhyrankError(f"--{name} and --{name}-id name the same thing: give one of them")
        named = {"QUERY": self.query or self.query_id, "TEXT": self.doc or self.doc_id}
        typed = [name for name, given in named.items() if not given]
        if len(self.texts) != len(typed):
            by_id = "" if len(typed) < 2 else ", or --query-id and --doc-id for those of the collection"
            wanted = " and ".join(typed) or "no text besides those that options name"
            count = plural(len(self.texts), "text")
            raise WhyrankError(f"explain takes {wanted}, in quotes{by_id}; {count} given")

    def _texts(self, collection: Collection) -> tuple[str, list[str], bool]:
        """The query, one or two texts, and whether all of them are typed."""
        typed, given = True, list(self.texts)

        def text_of(kind: str, known: Mapping[str, str], name: str, must: bool) -> str:
            nonlocal typed
            if name in known:
                typed = False
                return known[name]
            if must:
                raise UnknownName(f"{kind} of {collection.name}", name, known)
            if len(name.split()) == 1 and any(c.isdigit() for c in name):
                say(f"note: {name!r} is no {kind} of {collection.name}: it is taken as a text")
            return name

        def found(kind: str, known: Mapping[str, str], by_id: str | None, named: tuple[str, ...]) -> list[str]:
            if by_id is not None:
                return [text_of(kind, known, by_id, must=True)]
            return [text_of(kind, known, name, must=False) for name in named] or [given.pop(0)]

        [query] = found("query", collection.queries, self.query_id, (self.query,) if self.query else ())
        docs = found("document", collection.docs, self.doc_id, self.doc)
        return query, [sys.stdin.read() if self.doc_id is None and text == "-" else text for text in docs], typed


def _show_partners(matrix: ScoreMatrix, top: int) -> None:
    """Print what each query term adds, and the document terms that give most to it."""
    additive, rows = matrix.kind == "additive", matrix.partners(top)
    shown = _signed if additive else _percent
    wide = max(len(word(row["query_term"])) for row in rows)
    for row in rows:
        given = [f"{word(each['document_term'])} {shown(each['gives'])}" for each in row["document_terms"]]
        given += [f"{name} {shown(row[name])}" for name in ("rest", "background") if row[name]]
        shares = ", ".join(given) or "nothing"
        print(printable(f"{word(row['query_term']):{wide}}  {_signed(row['adds']):>10}  {shares}"))
    print("" if additive else "\nper cent of P(q|D), the probability of the query term in this text")


def _percent(share: float) -> str:
    """A share in per cent."""
    return "<0.1%" if share < 0.001 else f"{100 * share:.1f}%"


def _signed(value: float) -> str:
    return "" if value == 0 else f"{value:+.4g}" if abs(value) < 1e-3 else f"{value:+.4f}"
