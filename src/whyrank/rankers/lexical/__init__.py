"""Lexical rankers: BM25, query likelihood, and their versions with a term table."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.rankers.lexical.background import Background
    from whyrank.rankers.lexical.explanations import Explaining, ScoreMatrix
    from whyrank.rankers.lexical.index import LexicalIndex, rows_of
    from whyrank.rankers.lexical.ranker import BM25, QL, VARIANTS, Formula, LexicalRanker, Weights, weighed

front_door(__name__)
