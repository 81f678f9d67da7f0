"""Contrasts, effects, calibration of delta, statistics and findings."""

from whyrank.studies.contrasts import Categories, Contrasts, Pair
from whyrank.studies.delta import Calibration, calibrate
from whyrank.studies.findings import Finding
from whyrank.studies.reading import Reading, read_out

__all__ = ["Calibration", "Categories", "Contrasts", "Finding", "Pair", "Reading", "calibrate", "read_out"]
