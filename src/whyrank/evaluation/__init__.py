"""How good rankers are: effectiveness, fidelity, tuning, fusion weights, stability and the overlap split."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.evaluation.effectiveness import (
        Effectiveness,
        Hypothesis,
        HypothesisTest,
        against,
        default_measures,
        evaluate,
        judge,
        measure_of,
        parse_groups,
        read_hypotheses,
    )
    from whyrank.evaluation.overlap import ALL, OverlapRow, PlanEffectiveness, effectiveness_of_plan, overlap_split
    from whyrank.evaluation.stability import Spread, group_rankers
    from whyrank.evaluation.tuning import Runner, Split, Trial, parse_grid, split_queries, tune

front_door(__name__)
