"""Rankers of whyrank as PyTerrier transformers, without Java; the other way round, `as_ranker` takes transformers.

import pyterrier as pt
from whyrank.integrations.pyterrier import Transformer

pipeline = retriever >> pt.text.get_text(dataset) >> Transformer("cross:bundled")
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyterrier as pt

from whyrank.core import Ranker, WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, as_ranker
from whyrank.scoring import Engine, default_engine, warn_of
from whyrank.studies import index_texts


class Transformer(pt.Transformer):
    """Scores the pairs of a result frame anew with any ranker; it reads the columns `query` and `text`.

    Args:
        ranker: a call string, or whatever else `whyrank.audit` takes as a ranker.
        collection: where lexical rankers count terms: a collection, or its spec.
        engine: scores, and keeps the scores; by default in the user's cache folder, as the command line does.

    Example:
        >>> import pandas as pd
        >>> rows = [("q", "wall", "d1", "a door"), ("q", "wall", "d2", "a wall")]
        >>> frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
        >>> Transformer("bm25", "sample")(frame)[["docno", "rank"]].values.tolist()
        [['d1', 1], ['d2', 0]]
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "whyrank", "help_url": None}  # else PyTerrier asks the network

    def __init__(
        self, ranker: str | Ranker | Any, collection: str | Collection | None = None, engine: Engine | None = None
    ) -> None:
        opened = None if collection is None else open_collection(collection)
        self.ranker = as_ranker(ranker, Setting(opened, typed=True))
        self.engine = engine or default_engine()

    def transform(self, inp: Any) -> Any:
        """The frame with the columns `score` and `rank` of this ranker, without pairs that get no finite score."""
        pt.validate.result_frame(inp, extra_columns=["query", "text"])
        if inp[["query", "text"]].isna().any(axis=None):
            raise WhyrankError(
                "the column query or text has empty cells; fill them first, such as by pt.text.get_text"
            )
        (queries, query), (docs, doc) = (index_texts(inp[name].tolist()) for name in ("query", "text"))
        if not len(inp):
            return pt.model.add_ranks(inp.assign(score=0.0))
        scores = self.engine.score(self.ranker, queries, docs, query, doc)
        warn_of(scores.failures, self.ranker, self.engine)
        finite = np.isfinite(scores.values)
        return pt.model.add_ranks(inp[finite].assign(score=scores.values[finite]))

    def __repr__(self) -> str:
        return f"whyrank({self.ranker.name})"
