"""Contrasts, effects, calibration of delta, statistics and findings."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.studies.asking import ask
    from whyrank.studies.auditing import all_answers, is_bias, most_templates, with_adjusted_kinds
    from whyrank.studies.catalogue import Catalogue, Options, every_kind, everything, unjudged_options
    from whyrank.studies.contrasts import Categories, Contrasts, Labels, Pair
    from whyrank.studies.delta import Calibration, calibrate
    from whyrank.studies.files import arrow, save
    from whyrank.studies.findings import Finding, or_none
    from whyrank.studies.pools import Pool, Pools, Source
    from whyrank.studies.reading import Reading, read_out
    from whyrank.studies.runner import Answer, Plan, Threshold, answers, few_queries, is_exact
    from whyrank.studies.sweep import LAST, MEDIAN, SweepPoint, stable_from
    from whyrank.studies.thresholds import Candidates, candidates_for_delta, needs_calibration, uncalibrated

front_door(__name__)
