"""Text as terms: analyzers, vocabularies and token arrays."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.text.analyzer import Analyzer, State, TextCache, Tokens, analyzers, cut_texts
    from whyrank.text.generation import MAX_INPUT, MAX_NEW, generate, load, positions_of
    from whyrank.text.steps import LUCENE, plain_words

front_door(__name__)
