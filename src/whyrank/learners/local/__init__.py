"""Local explanations of ranked lists, gathered into one table."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.local.learner import Explained, LocalToGlobal, default_analyzer

front_door(__name__)
