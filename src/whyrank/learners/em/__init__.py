"""IBM Model 1 by expectation maximisation."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.em.bitext import Bitext, Growing, make_bitext
    from whyrank.learners.em.learner import learn_em, memory_limit

front_door(__name__)
