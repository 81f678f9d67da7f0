"""The two phases of PaRM as a recipe says them: what the paper, its code and we do differently, under three names.

phases:
  preset: target                                  # or paper, code
  first: {alignment: auto, schedule: {epochs: 4}}  # what is said here goes before the preset
  second: {rounds: 2}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, SkipValidation

from whyrank.core import UnknownName, Whole, WhyrankError, check
from whyrank.training.schedule import Names, Part, Schedule, check_keys, checked, part_of

Unit = Literal["word", "token"]
Texts = Annotated[int, Field(ge=2)]
_STEPS = {"epochs": 1_000_000, "warmup": 0.0, "decay_all": True, "epsilon": 1e-7}
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


@checked
class ParmData:
    """The `data` of a recipe with phases.

    Attributes:
        collection: collections whose judged queries and texts are learned from.
        cut: how many queries are cut from each text, by collection; a number is for all of `collection`.
        without: collections whose queries and texts are left out.
        limit: so many queries at most.
        candidates: how many texts of a query come from BM25's first ten, from its next ones, and at random.
        depth: how far BM25's ranking goes.
        analyzer: makes the terms; by default that of the preset.
        target: the ranker to explain.
        k1: of BM25, as `b` and `k2`.
    """

    collection: Names = field(default_factory=list)
    cut: SkipValidation[Any] = field(default_factory=dict)
    without: Names = field(default_factory=list)
    limit: NonNegativeInt | None = None
    candidates: Annotated[Sequence[NonNegativeInt], Field(min_length=3, max_length=3)] = (3, 3, 1)
    depth: PositiveInt = 60
    analyzer: str | None = None
    target: str | None = None
    k1: float | None = None
    b: float | None = None
    k2: float | None = None

    def __post_init__(self) -> None:
        for name, n in self.cuts.items():
            check(f"cut: {name}", n, Whole)

    @property
    def cuts(self) -> dict[str, int]:
        """How many queries are cut from each text of collections."""
        given = self.cut or {}
        return dict(given if isinstance(given, Mapping) else dict.fromkeys(self.collection, given))


@checked
class _Phase:
    """What both phases have.

    Attributes:
        positives: where the first text of an example comes from: `gold`, the text that the query belongs to, or
            `target`, the one of those drawn that the target ranks first.
        texts: texts of an example, 2 for triples.
        loss: call string of a loss over the scores of these texts.
        schedule: arguments of `Schedule`.
    """

    positives: Literal["gold", "target"] = "target"
    texts: Texts = 2
    loss: str = "margin-mse"
    schedule: Part = field(default_factory=dict)

    def schedule_for(self, seed: int) -> Schedule:
        """The schedule with a seed."""
        return Schedule(**{**self.schedule, "seed": seed})


@checked
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

    unit: Unit = "word"
    ends: Unit = "word"
    deletion: Literal["paper", "code"] = "paper"
    masks: Literal["each", "runs"] = "each"
    alignment: Literal["auto", "attention", "embeddings", "occlusion"] = "auto"
    scale: Literal["unit", "raw"] = "unit"
    held_out: Annotated[float, Field(ge=0, le=0.5)] = 0.02


@checked
class Second(_Phase):
    """Phase 2: calibration of single terms through BM25.

    Attributes:
        missing: whether `all` query terms that a text lacks count, or `one` that is drawn.
        regulariser: weight of the mean of all p in the loss.
        others: weight of the mean p of terms that are no partners: one of each slot's text, drawn at random.
        own: whether the text that a query belongs to is among its texts.
        start: mean and spread of the logits that the first round starts with; None leaves them as phase 1 did.
        rounds: how often best partners are looked for; 0 leaves the network of phase 1 as it is.
        frame: what stands around terms when the network of phase 1 looks for partners, see `networks.parm`.
        limit: so many queries at most, drawn at random; None for all.
    """

    texts: Texts = 6
    loss: str = "pearson"
    missing: Literal["all", "one"] = "all"
    regulariser: NonNegativeFloat = 0.02
    others: NonNegativeFloat = 0.0
    own: bool = True
    start: Annotated[Sequence[float], Field(min_length=2, max_length=2)] | None = None
    rounds: NonNegativeInt = 1
    frame: Literal["bare", "masks", "runs"] = "bare"
    limit: PositiveInt | None = None

    def __post_init__(self) -> None:
        if self.positives == "gold" and not self.own:
            raise WhyrankError("positives are gold texts, which own: false leaves out; change one of them")
        if self.start is not None and self.start[1] <= 0:
            raise WhyrankError(f"the spread of start must be a number above 0, not {self.start[1]!r}")


def first_phase(phases: Mapping[str, Any]) -> First:
    """Phase 1 of a recipe: its preset, and what it says itself."""
    return _phase(First, phases, "first")


def second_phase(phases: Mapping[str, Any]) -> Second:
    """Phase 2 of a recipe: its preset, and what it says itself."""
    return _phase(Second, phases, "second")


def _phase(kind: type[T], phases: Mapping[str, Any], name: str) -> T:
    preset, own = PRESETS[str(phases.get("preset", "target"))][name], phases.get(name) or {}
    check_keys(name, own, None)
    schedule = own.get("schedule") or {}
    check_keys(f"{name}: schedule", schedule, None)
    schedule = {**preset.get("schedule", {}), **schedule}
    part_of(f"{name}: schedule", Schedule, schedule, without="seed")
    return part_of(name, kind, {**preset, **own, "schedule": schedule})


def analyzer_of(phases: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """The analyzer of the terms: the recipe's own, or that of its preset."""
    return str(data.get("analyzer") or ANALYZERS[str(phases.get("preset", "target"))])


def check_phases(phases: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Raise an error for anything in a recipe of PaRM that cannot be meant."""
    check_keys("phases", phases, ("preset", "first", "second"))
    if phases.get("preset", "target") not in PRESETS:
        raise UnknownName("preset", str(phases["preset"]), PRESETS)
    first_phase(phases)
    drawn = part_of("data", ParmData, data).candidates
    least, why = (
        (1, "besides its own") if second_phase(phases).own else (2, "as second: own: false leaves its own out")
    )
    if sum(drawn) < least:
        what = "of BM25's first ten, of its next ones, at random"
        raise WhyrankError(f"data: candidates {drawn}: each query needs {least} or more texts ({what}), {why}")
