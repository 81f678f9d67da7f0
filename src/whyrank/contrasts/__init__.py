"""Contrasts, effects, calibration of delta, statistics and findings."""

from whyrank.contrasts.contrasts import Categories, Contrasts, Pair
from whyrank.contrasts.delta import Calibration, calibrate
from whyrank.contrasts.finding import Finding
from whyrank.contrasts.readout import Reading, read_out

__all__ = ["Calibration", "Categories", "Contrasts", "Finding", "Pair", "Reading", "calibrate", "read_out"]
