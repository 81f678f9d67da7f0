"""Edits: one change to a text, so that a ranker can be asked what the change is worth to it."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.text.edits.base import Edit, Passage, edits, in_words, inputs_of, options_of, word_of

front_door(__name__)
