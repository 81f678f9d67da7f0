"""Rerank services as rankers, and the secrets that their call strings may hold."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.rankers.http.ranker import HttpRanker, HttpsRanker
    from whyrank.rankers.http.secrets import HARMLESS, hide_values

front_door(__name__)
