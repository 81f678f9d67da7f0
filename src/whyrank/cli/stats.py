"""`whyrank stats`: count the terms of a collection once, for rankers that score other texts."""

from __future__ import annotations

from whyrank.cli import options as o
from whyrank.cli import setup


def stats(
    collection: o.CollectionOption = "sample",
    analyzer: o.AnalyzerOption = "lucene",
    out: o.OutOption = None,
    strict: o.StrictOption = False,
) -> None:
    """Write the background statistics of a collection (.parquet), to be used with --stats FILE."""
    from whyrank.core import WhyrankError
    from whyrank.rankers import Background
    from whyrank.text import analyzers

    if out is None or not out.endswith(".parquet"):
        raise WhyrankError("stats needs --out FILE.parquet")
    opened = setup.open_collection(collection, strict)
    background = Background.of(opened.docs, analyzers.create(analyzer))
    background.save(out)
    facts = f"{background.n_docs:,} documents, {background.n_tokens:,} tokens, {len(background.terms):,} terms"
    setup.say(f"{facts} of {opened.name}: {out}")
