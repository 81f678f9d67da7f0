"""Surprises in a term table, and the studies that ask a ranker about them."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.surprises.classes import PATTERNS
    from whyrank.learners.surprises.discovery import Discovery, Looking, confirm, surprises
    from whyrank.learners.surprises.surprise import Surprise, absent_entries

front_door(__name__)
