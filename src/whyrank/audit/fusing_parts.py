"""Fusion with ranges in its parts: weights are fitted for every setting of the parts, and the best one is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from whyrank.audit.fusing import Fusion, config_of, fit_fusion
from whyrank.audit.tuning import MOST, Runner, Split, without_ranges
from whyrank.core.callstrings import parse_call
from whyrank.core.errors import WhyrankError
from whyrank.core.progress import track
from whyrank.rankers.fuse import Fuse


def fit_best(spec: str, split: Split, measure: str, runner: Runner, **chosen: Any) -> tuple[Fusion, int]:
    """The best fusion on the development queries, of all settings of its parts, and how many there were.

    A part may have ranges, `fuse(of=['bm25(k1=0.6:1.2:0.3)','ql'])`; ties go to the first setting. `chosen` are
    further arguments of `fit_fusion`.
    """
    settings = list(_settings(config_of(spec)))
    found = [
        fit_fusion(each.name, split, measure, runner, **chosen)
        for each in track(settings, "settings of parts", len(settings))
    ]
    return max(found, key=lambda fusion: fusion.rows[-1].dev), len(settings)


def _settings(config: Fuse) -> Iterator[Fuse]:
    """The fuse with each combination of values of its parts' ranges; itself where there is none."""
    parts = [without_ranges(parse_call(part)) for part in config.of]
    grids = [[dict(zip(grid, values, strict=True)) for values in product(*grid.values())] for _, grid in parts]
    total = 1
    for grid in grids:
        total *= len(grid)
    if total > MOST:
        raise WhyrankError(f"the ranges of the parts have {total:,} settings together; at most {MOST:,} are tried")
    calls = [call for call, _ in parts]
    for values in product(*grids):
        made = [str(c._replace(arguments={**c.arguments, **v})) for c, v in zip(calls, values, strict=True)]
        yield replace(config, of=made)
