"""IBM Model 1 by expectation maximisation."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.em.bitext import Bitext, Growing, bitext_of
    from whyrank.learners.em.learner import EM, learn_em, make_bitext

front_door(__name__)
