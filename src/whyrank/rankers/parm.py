"""PaRM as a ranker of whole queries and texts, which it was not trained on: good to look at, not to rank by."""

from __future__ import annotations

from typing import ClassVar

from whyrank.rankers.trained import TrainedRanker


class Parm(TrainedRanker):
    """The partial relevance model behind a relevance thesaurus, trained by `whyrank tables learn parm`.

    Its logit for a query and a text as they are; with a term on either side, the sigmoid of it is their weight in the
    table.
    """

    registered: ClassVar[str] = "parm"
