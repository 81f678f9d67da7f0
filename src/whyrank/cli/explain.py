"""`whyrank explain`: what the score of one text is made of, query term by document term."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup
from whyrank.core import UnknownName, WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.rankers.lexical import Explaining, Explanation

SHOWN = 8
Texts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY] [TEXT]",
        help="The query and the text ('-' reads the text from standard input), unless ids name them.",
        show_default=False,
    ),
]
Ranker = Annotated[
    str,
    typer.Option(
        "--ranker",
        "-r",
        metavar="SPEC",
        help="A ranker's call string, such as model1:table.parquet.",
        callback=o.hide_secrets,
    ),
]
QueryId = Annotated[str | None, typer.Option("--query-id", metavar="ID", help="A query of the collection.")]
DocId = Annotated[str | None, typer.Option("--doc-id", metavar="ID", help="A document of the collection.")]
Top = Annotated[
    int | None,
    typer.Option("--top", metavar="N", help=f"Document terms to show, the strongest; {SHOWN}, in JSON all.", min=1),
]


def explain(
    texts: Texts = None,
    ranker: Ranker = "bm25",
    collection: o.CollectionOption = "sample",
    query_id: QueryId = None,
    doc_id: DocId = None,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    precision: o.PrecisionOption = None,
    top: Top = None,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Show what a ranker's score of one text is made of: a matrix of query terms and document terms."""
    o.check_filled(
        ranker=ranker, query_id=query_id, doc_id=doc_id, analyzer=analyzer, stats=stats, precision=precision
    )
    _check_count(texts or [], query_id, doc_id)
    opened = setup.open_collection(collection, strict)
    query, text = _asked(texts or [], opened, query_id, doc_id)
    typed = query_id is None and doc_id is None
    [asked] = setup.open_rankers([ranker], opened, analyzer, stats, precision, typed)
    found = _noted(_able(asked, ranker).explain(query, text))
    if json_:
        print(printable(json.dumps({"ranker": asked.name, **found.as_json(top)}, indent=1, ensure_ascii=False)))
    else:
        from whyrank.cli.show_explanation import matrix

        matrix(found, top or SHOWN)
    for note in found.notes:
        setup.say(f"note: {note}")
    setup.say(f"score {found.score:.6g} by {asked.name}; collection {opened.name}")


def _noted(found: Explanation) -> Explanation:
    """With a note where there is nothing to show."""
    if found.query_terms:
        return found
    return replace(found, notes=(*found.notes, "the query has no word that this ranker reads: all texts score alike"))


def _check_count(texts: list[str], query_id: str | None, doc_id: str | None) -> None:
    """Raise an error unless query and text are both given, and once each."""
    open_ = [name for name, given in (("QUERY", query_id), ("TEXT", doc_id)) if given is None]
    if len(texts) == len(open_):
        return
    by_id = "" if len(open_) < 2 else ", or --query-id and --doc-id for those of the collection"
    wanted = " and ".join(open_) or "no text besides --query-id and --doc-id"
    raise WhyrankError(f"explain takes {wanted}, in quotes{by_id}; {setup.plural(len(texts), 'text')} given")


def _asked(texts: list[str], collection: Collection, query_id: str | None, doc_id: str | None) -> tuple[str, str]:
    """The query and the text, typed or named."""
    left = list(texts)
    for kind, name, known in (("query", query_id, collection.queries), ("document", doc_id, collection.docs)):
        if name is not None and name not in known:
            raise UnknownName(f"{kind} of {collection.name}", name, known)
    query = left.pop(0) if query_id is None else collection.queries[query_id]
    text = left.pop(0) if doc_id is None else collection.docs[doc_id]
    return query, sys.stdin.read() if doc_id is None and text == "-" else text


def _able(ranker: object, spec: str) -> Explaining:
    from whyrank.rankers import rankers
    from whyrank.rankers.lexical import Explaining

    if isinstance(ranker, Explaining):
        return ranker
    able = [name for name in rankers.names() if getattr(rankers.factory(name), "explains", False)]
    raise WhyrankError(f"{spec} does not explain its scores term by term; rankers that do: {', '.join(able)}")
