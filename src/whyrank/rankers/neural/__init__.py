"""Neural rankers: one loader and one scorer for every model."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.rankers.neural.base import NeuralRanker
    from whyrank.rankers.neural.computing import Computing, Precision
    from whyrank.rankers.neural.deviation import lines_of
    from whyrank.rankers.neural.scorer import by_length
    from whyrank.rankers.neural.weights import architecture_of, check_folder, config_of, digest_of, model_folder

front_door(__name__)
