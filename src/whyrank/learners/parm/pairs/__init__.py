"""The pair scorer of PaRM: weights of all pairs of two vocabularies."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.parm.pairs.blocks import Blocks, Entries, PairTask, Say, score_block, score_blocks
    from whyrank.learners.parm.pairs.scorer import PairScorer, TermSequences

front_door(__name__)
