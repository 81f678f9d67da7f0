"""The two phases of PaRM as a recipe says them: what the paper, its code and we do differently, under three names.

phases:
  preset: target                                  # or paper, code
  first: {alignment: auto, schedule: {epochs: 4}}  # what is said here goes before the preset
  second: {rounds: 2}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from whyrank.core import UnknownName, WhyrankError, check_flag, check_number, check_text, check_whole
from whyrank.training.schedule import Schedule

ALIGNMENTS = ("auto", "attention", "embeddings", "occlusion")
UNITS, POSITIVES, DELETIONS = ("word", "token"), ("gold", "target"), ("paper", "code")
SCALES, MISSING, MASKS = ("unit", "raw"), ("all", "one"), ("each", "runs")
FRAMES = ("bare", "masks", "runs")  # of `networks.parm`, which would import torch
DATA = ("collection", "cut", "without", "limit", "candidates", "depth", "analyzer", "target", "k1", "b", "k2")
_PARTS = ("preset", "first", "second")
_FOREVER = 1_000_000
_STEPS = {"epochs": _FOREVER, "warmup": 0.0, "decay_all": True, "epsilon": 1e-7}
_FIRST_STEPS = {**_STEPS, "max_steps": 20_000, "batch": 16, "rate": 2e-5, "head_rate": 2e-5}
_SECOND_STEPS = {**_STEPS, "max_steps": 10_000, "batch": 256, "rate": 1e-5, "head_rate": 1e-5, "decay": False}
PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "paper": {
        "first": {"unit": "word", "ends": "word", "deletion": "paper", "positives": "gold", "loss": "margin-mse",
                  "scale": "raw", "schedule": {**_FIRST_STEPS, "patience": 5}},
        "second": {"missing": "all", "positives": "gold", "texts": 2, "loss": "margin", "regulariser": 0.0,
                   "schedule": _SECOND_STEPS},
    },
    "code": {
        "first": {"unit": "token", "ends": "token", "deletion": "code", "positives": "gold", "loss": "margin",
                  "schedule": _FIRST_STEPS},
        "second": {"missing": "one", "positives": "gold", "texts": 2, "loss": "margin", "regulariser": 0.1,
                   "schedule": _SECOND_STEPS},
    },
    "target": {"first": {}, "second": {}},
}  # fmt: skip
ANALYZERS = {"paper": "chain(possessive=True,stem=krovetz)", "code": "krovetz", "target": "krovetz"}
T = TypeVar("T", bound="_Phase")


@dataclass(frozen=True, kw_only=True)
class _Phase:
    """What both phases have.

    Attributes:
        positives: where the first text of an example comes from: `gold`, the text that the query belongs to, or
            `target`, the one of those drawn that the target ranks first.
        texts: texts of an example, 2 for triples.
        loss: call string of a loss over the scores of these texts.
        schedule: arguments of `Schedule`.
    """

    positives: str = "target"
    texts: int = 2
    loss: str = "margin-mse"
    schedule: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, known in self._choices().items():
            _choose(f"{name} of {self._name()}", getattr(self, name), known)
        check_whole(f"{self._name()}: texts", self.texts, 2)
        check_text(f"{self._name()}: loss", self.loss)
        self.schedule_for(0)

    def schedule_for(self, seed: int) -> Schedule:
        """The schedule with a seed."""
        check_keys(f"{self._name()}: schedule", self.schedule, [f.name for f in fields(Schedule) if f.name != "seed"])
        return Schedule(**{**self.schedule, "seed": seed})

    def _choices(self) -> dict[str, tuple[str, ...]]:
        return {"positives": POSITIVES}

    @classmethod
    def _name(cls) -> str:
        return cls.__name__.lower()


@dataclass(frozen=True, kw_only=True)
class First(_Phase):
    """Phase 1: parts of queries against texts of which what matters less is masked.

    Attributes:
        unit: what is deleted from a text as a whole: `word` or `token`.
        ends: whether the span of a query ends at a `word` only, or at any `token`.
        deletion: how many units are deleted, as the `paper` or as its `code` draws it.
        masks: whether `each` deleted token becomes a [MASK], or one stands for all of a run (`runs`).
        alignment: what says how much a text's tokens matter to a part of the query: the target's `attention`, the
            `embeddings` of the target or of the encoder, `occlusion` (leave one word out), or what is to be had.
        scale: `unit` divides the target's scores by the spread of their differences; `raw` takes them as they are.
        held_out: share of the queries on which the network is validated.
    """

    unit: str = "word"
    ends: str = "word"
    deletion: str = "paper"
    masks: str = "each"
    alignment: str = "auto"
    scale: str = "unit"
    held_out: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("first: held_out", self.held_out, 0, 0.5)

    def _choices(self) -> dict[str, tuple[str, ...]]:
        own = {"unit": UNITS, "ends": UNITS, "deletion": DELETIONS, "masks": MASKS, "alignment": ALIGNMENTS,
               "scale": SCALES}  # fmt: skip
        return super()._choices() | own


@dataclass(frozen=True, kw_only=True)
class Second(_Phase):
    """Phase 2: calibration of single terms through BM25.

    Attributes:
        missing: whether `all` query terms that a text lacks count, or `one` that is drawn.
        regulariser: weight of the mean of all p in the loss.
        others: weight of the mean p of terms that are no partners: one of each slot's text, drawn at random.
        own: whether the text that a query belongs to is among its texts.
        start: mean and spread of the logits that the first round starts with; None leaves them as phase 1 did.
        rounds: how often best partners are looked for; 0 leaves the network of phase 1 as it is.
        frame: what stands around terms when the network of phase 1 is asked for partners, see `networks.parm`.
        limit: so many queries at most, drawn at random; None for all.
    """

    texts: int = 6
    loss: str = "pearson"
    missing: str = "all"
    regulariser: float = 0.02
    others: float = 0.0
    own: bool = True
    start: Sequence[float] | None = None
    rounds: int = 1
    frame: str = "bare"
    limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("second: regulariser", self.regulariser, 0)
        check_number("second: others", self.others, 0)
        check_flag("second: own", self.own)
        self._check_start()
        check_whole("second: rounds", self.rounds, 0)
        check_whole("second: limit", 1 if self.limit is None else self.limit, 1)

    def _check_start(self) -> None:
        if self.positives == "gold" and not self.own:
            raise WhyrankError("second: positives are gold texts, which own: false leaves out; change one of them")
        given = [0.0, 1.0] if self.start is None else self.start
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise WhyrankError(f"second: start must be two numbers, mean and spread of logits, not {given!r}")
        check_number("second: mean of start", given[0], -math.inf)
        check_number("second: spread of start", given[1], 0, strict=True)

    def _choices(self) -> dict[str, tuple[str, ...]]:
        return super()._choices() | {"missing": MISSING, "frame": FRAMES}


def first_phase(phases: Mapping[str, Any]) -> First:
    """Phase 1 of a recipe: its preset, and what it says itself."""
    return _phase(First, phases, "first")


def second_phase(phases: Mapping[str, Any]) -> Second:
    """Phase 2 of a recipe: its preset, and what it says itself."""
    return _phase(Second, phases, "second")


def analyzer_of(phases: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """The analyzer of the terms: the recipe's own, or that of its preset."""
    return str(data.get("analyzer") or ANALYZERS[str(phases.get("preset", "target"))])


def check_phases(phases: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error for anything in a recipe of PaRM that cannot be meant."""
    check_keys("phases", phases, _PARTS)
    _choose("preset", phases.get("preset", "target"), PRESETS)
    check_keys("data", data, DATA)
    first_phase(phases)
    _check_candidates(data.get("candidates", [3, 3, 1]), second_phase(phases).own)
    for name in ("depth", "limit"):
        check_whole(f"data: {name}", data.get(name) or 1, 1)


def _check_candidates(drawn: object, own: bool) -> None:
    what = "of BM25's first ten, of its next ones, at random"
    if not isinstance(drawn, list) or len(drawn) != 3 or not all(type(n) is int and n >= 0 for n in drawn):
        raise WhyrankError(f"data: candidates must be three whole numbers ({what}), not {drawn!r}")
    least, why = (1, "besides its own") if own else (2, "as second: own: false leaves its own out")
    if sum(drawn) < least:
        raise WhyrankError(f"data: candidates {drawn}: each query needs {least} or more texts ({what}), {why}")


def _phase(kind: type[T], phases: Mapping[str, Any], name: str) -> T:
    own = phases.get(name) or {}
    check_keys(name, own, [f.name for f in fields(kind)])
    preset = PRESETS[str(phases.get("preset", "target"))][name]
    schedule = {**preset.get("schedule", {}), **(own.get("schedule") or {})}
    return kind(**{**preset, **own, "schedule": schedule})


def _choose(what: str, given: object, known: Iterable[str]) -> None:
    if given not in tuple(known):
        raise UnknownName(what, str(given), known)


def check_keys(what: str, given: object, known: Iterable[str] | None) -> None:
    """Raise an error unless a part of a recipe has keys, all of which are known; None for any keys."""
    if not isinstance(given, Mapping):
        raise WhyrankError(f"{what}: keys with values are expected, not {given!r}")
    for name in given:
        if not isinstance(name, str) or (known is not None and name not in tuple(known)):
            raise UnknownName(f"key of {what}", str(name), known or [])
