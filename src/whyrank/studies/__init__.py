"""Contrasts, effects, calibration of delta, statistics and findings."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.studies.catalogue import (
        DEMO_BIAS,
        DEMO_TOLERANCE,
        Catalogue,
        Options,
        all_studies,
        limit_options,
        probes_and_axioms,
        unjudged_options,
        usual_studies,
    )
    from whyrank.studies.contrasts import Categories, Contrasts, Labels, Pair, index_texts
    from whyrank.studies.delta import (
        LAST,
        MEDIAN,
        Calibration,
        SweepPoint,
        Threshold,
        calibrate,
        candidates_for_delta,
        given_thresholds,
        needs_calibration,
        stable_from,
        sweep,
        thresholds,
    )
    from whyrank.studies.differences import (
        DELTAS,
        SCORE,
        SHARE,
        Difference,
        Side,
        common_rows,
        difference_of,
        paired_interval,
        value_differences,
        with_differences,
    )
    from whyrank.studies.files import arrow, check_target, labels_of, save
    from whyrank.studies.findings import Finding, or_none
    from whyrank.studies.planning import Request, choose_studies, make_plan, unjudged_note
    from whyrank.studies.pools import Pool, Pools, Source
    from whyrank.studies.reading import Context, Reading, reading_of
    from whyrank.studies.runner import (
        FEW_QUERIES,
        Answer,
        Plan,
        answers,
        few_queries,
        read_scores,
        with_adjusted_p,
    )
    from whyrank.studies.sampling import Budget, TextStudy, draw_contrasts, drawing_notes

front_door(__name__)
