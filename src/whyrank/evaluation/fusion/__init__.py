"""Fitting the weights of a `fuse` from judged queries."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.evaluation.fusion.fitting import DEPTH, Fusion, fit_fusion

front_door(__name__)
