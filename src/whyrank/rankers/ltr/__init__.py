"""Learning to rank: gradient-boosted trees over lexical features."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.rankers.ltr.features import FEATURES, open_features
    from whyrank.rankers.ltr.ranker import LTR, Boosting, read_model, train_ltr, train_recipe

front_door(__name__)
