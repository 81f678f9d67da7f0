"""Pair sets: texts that differ in one thing, such as a sentence and its correction, and their readers."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.data.pairs.rows import TextPair
    from whyrank.data.pairs.sets import PairSet, open_pairs, pair_layouts

front_door(__name__)
