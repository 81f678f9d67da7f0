"""Fidelity: how well one ranker stands in for another."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.evaluation.fidelity.agreement import (
        Comparison,
        PerQuery,
        check_settings,
        compare_rankers,
        compare_runs,
        measures_of,
    )
    from whyrank.evaluation.fidelity.kernels import dense_ranks, greedy
    from whyrank.evaluation.fidelity.summary import (
        SUFFIXES,
        Fidelity,
        FidelityDifference,
        FidelityRow,
        differences,
        fidelity,
        measure_fidelity,
        summarise,
    )

front_door(__name__)
