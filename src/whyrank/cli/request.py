"""The options that `audit`, `probe`, `axioms` and the other commands over studies share, declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from whyrank.cli import options as o
from whyrank.core import WhyrankError


@dataclass(frozen=True)
class Request:
    """What is asked of whom: every field is a command-line option."""

    collection: o.CollectionOption = "sample"
    ranker: o.RankerOption = None
    analyzer: o.AnalyzerOption = "lucene"
    stats: o.StatsOption = None
    precision: o.PrecisionOption = None
    compat: o.CompatOption = None
    pairs: o.PairsOption = None
    candidates: o.CandidatesOption = None
    max_tokens: o.MaxTokensOption = None
    tolerance: o.ToleranceOption = None
    delta: o.DeltaOption = None
    delta_from: o.DeltaFromOption = None
    alpha: o.AlphaOption = 0.05
    correction: o.CorrectionOption = "holm"
    by: o.ByOption = None
    seed: o.SeedOption = 0
    limit: o.LimitOption = None
    executor: o.ExecutorOption = "serial"
    batch_size: o.BatchOption = None
    store: o.StoreOption = None
    fresh: o.FreshOption = False
    timeout: o.TimeoutOption = None
    out: o.OutOption = None
    json: o.JsonOption = False
    strict: o.StrictOption = False
    format: o.FormatOption = None
    sweep: o.SweepOption = False
    group: o.GroupOption = None

    def __post_init__(self) -> None:
        empty = [field.name for field in fields(self) if getattr(self, field.name) == ""]
        if empty:
            raise WhyrankError(f"--{empty[0].replace('_', '-')} is empty; give a value or leave the option out")
        if self.format and self.out is None:
            raise WhyrankError("--format writes tables into the result folder; say where with --out FOLDER")

    def settings(self) -> dict[str, Any]:
        """All options as plain values, for the result folder."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def with_request(
    without: Collection[str] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a `Request`, but for some, with its own defaults; it gets them as `request`."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "request"]
        shared = {field.name for field in fields(Request)}

        def called(**given: Any) -> None:
            options = {name: value for name, value in given.items() if name in shared}
            command(
                **{name: value for name, value in given.items() if name not in shared},
                request=Request(**options),
            )

        called.__doc__, called.__name__ = command.__doc__, command.__name__
        called.__signature__ = inspect.Signature([*own, *_options(without, defaults)])  # type: ignore[attr-defined]
        return called

    return wrap


def _options(without: Collection[str], defaults: dict[str, Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(Request, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(field.name, field.default),
            annotation=hints[field.name],
        )
        for field in fields(Request)
        if field.name not in without
    ]
