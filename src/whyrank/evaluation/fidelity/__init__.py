"""Fidelity: how well one ranker stands in for another."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.evaluation.fidelity.agreement import (
        Compared,
        check_settings,
        common_pairs,
        compare_rankers,
        compare_runs,
        effectiveness,
        measures_of,
    )
    from whyrank.evaluation.fidelity.kernels import dense_ranks, greedy
    from whyrank.evaluation.fidelity.rows import FidelityDifference, FidelityRow, differences, summarise

front_door(__name__)
