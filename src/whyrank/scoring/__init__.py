"""Scores for pairs of texts: each distinct pair once, batched, stored, in one process or several."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.scoring.batches import Failure, one_line
    from whyrank.scoring.engine import Engine, Scores, default_engine, whose
    from whyrank.scoring.metadata import run_metadata
    from whyrank.scoring.pairs import distinct_keys
    from whyrank.scoring.ranking import (
        candidates_for,
        first_ranker,
        rank,
        rerank,
        rescore,
        retrieve,
        score_candidates,
        warn_of,
    )
    from whyrank.scoring.store import ScoreStore

front_door(__name__)
