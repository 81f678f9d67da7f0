"""Several rankers as one: a weighted sum of their scores, and files with fitted weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, FiniteFloat, ValidationError

from whyrank.core import (
    KEY,
    Answered,
    BadInput,
    Floats,
    NonNegative,
    Ranker,
    Whole,
    WhyrankError,
    ask,
    check,
    name_of,
    parse_call,
    read_sealed_json,
    sealed_json,
    write_text,
)
from whyrank.data import first_stage, open_run
from whyrank.rankers.base import Described, distinct, rows_by_code
from whyrank.rankers.fields import plain_text, wants_fields
from whyrank.rankers.normalisation import KINDS, CandidateScores, FixedScales, Normalisation, QueryScales
from whyrank.rankers.opening import Composite, Setting, is_strings, open_rankers, specs, tie_tolerance

_WITHOUT_CANDIDATES = ("none", "query")


@dataclass(frozen=True)
class Fuse(Described):
    """A weighted sum of rankers: sum of weight_i * n_i(score_i).

    | normalise | n(s) |
    | --- | --- |
    | none | (s - shift) / scale, with fixed `shifts` (0) and `scales` (1) |
    | minmax | (s - least) / (greatest - least) |
    | zscore | (s - mean) / standard deviation |
    | rank | 1 / (k + 1 + number of candidates with a higher score), k = 60 |
    | query | s / scale of the query: IDFs for bm25, tokens for ql, neural-model1 and bert-model1, else 1 |

    Least, greatest, mean, deviation and number are those of the query's candidates, which are fixed beforehand. These
    are the `depth` best documents of the run `candidates`: a run of the collection or a file, without a name the
    collection's first-stage run. No score depends on what else is in a batch. A query without candidates has no
    score, except with `none` and `query`. Where all candidates score the same, the scale is 1.

    With `fields`, a list of analyzers, each ranker of `of` is used once with each of them. `weights` may be a file
    that `whyrank tune --out FILE` wrote.

    Fox and Shaw, "Combination of multiple searches", TREC-2 (1994); Lee, "Analyses of multiple evidence combination",
    SIGIR 1997; Montague and Aslam, "Relevance score normalization for metasearch", CIKM 2001; Cormack et al.,
    "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009.

    Attributes:
        of: call strings of two or more rankers.
        weights: a number for each ranker, or a file of `tune`; 1 by default.
        normalise: none, minmax, zscore, rank or query.
        shifts: with normalise=none, what is subtracted from the scores of each ranker; 0 by default.
        scales: with normalise=none, what the scores of each ranker are divided by; 1 by default.
        candidates: the run whose documents normalise scores; by default the collection's first-stage run.
        depth: candidates of each query.
        k: the constant of normalise=rank.
        fields: analyzers; each ranker is used once with each of them.
    """

    of: Sequence[str] = field(hash=False)
    weights: Sequence[float] | str | None = field(default=None, hash=False)
    normalise: Literal["none", "minmax", "zscore", "rank", "query"] = "none"
    shifts: Sequence[float] | None = field(default=None, hash=False)
    scales: Sequence[float] | None = field(default=None, hash=False)
    candidates: str | None = None
    depth: Whole = 100
    k: NonNegative = 60.0
    fields: Sequence[str] | None = field(default=None, hash=False)

    registered: ClassVar[str] = "fuse"

    def __post_init__(self) -> None:
        super().__post_init__()
        given, least = self.of, 2
        if self.fields is not None:
            if not is_strings(self.fields, 2):
                what = "a list of two or more analyzers, such as fields=['lemmas','words']"
                raise WhyrankError(f"fuse: fields must be {what}, not {self.fields!r}")
            object.__setattr__(self, "fields", list(self.fields))
            given, least = [given] if isinstance(given, str) else given, 1
        object.__setattr__(self, "of", specs("fuse", given, least))
        for name in ("weights", "shifts", "scales"):
            self._check_numbers(name)
        if self.normalise != "none" and (self.shifts is not None or self.scales is not None):
            raise WhyrankError(f"fuse: shifts and scales are for normalise=none; {self.normalise} finds its own")
        if self.normalise in _WITHOUT_CANDIDATES and self.candidates is not None:
            needs = f"{self.normalise} needs no candidates"
            raise WhyrankError(f"fuse: candidates are for normalise=minmax, zscore or rank; {needs}")

    def _check_numbers(self, name: str) -> None:
        given, size = getattr(self, name), len(self.parts)
        if given is None or (name == "weights" and isinstance(given, str) and given):
            return
        if not isinstance(given, list | tuple) or len(given) != size:
            raise WhyrankError(f"fuse: {name} must be a list with a number for each of the {size} rankers")
        for number in given:
            check(f"fuse: {name}", number, float)
        if name == "scales" and not all(given):
            raise WhyrankError("fuse: scales must not be 0")
        object.__setattr__(self, name, list(given))

    @property
    def parts(self) -> list[str]:
        """The rankers that are added up, one for each field where there are fields."""
        if self.fields is None:
            return list(self.of)
        calls = [parse_call(each) for each in self.of]
        return [str(c._replace(arguments={**c.arguments, "analyzer": f})) for c in calls for f in self.fields]

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers that the normalisation depends on."""
        if self.normalise == "none":
            size = len(self.parts)
            return {"shifts": list(self.shifts or [0.0] * size), "scales": list(self.scales or [1.0] * size)}
        known = {"depth": self.depth} if self.normalise in KINDS else {}
        return known | ({"k": self.k} if self.normalise == "rank" else {})

    def bind(self, setting: Setting) -> FusedRanker:
        """Open all parts in the setting, read the weights, and fix the candidates."""
        parts, given = open_rankers(self.parts, setting), self.weights or [1.0] * len(self.parts)
        if isinstance(given, str):
            given = read_weights(given, self.parts, self.normalise, contents_of(parts), self.numbers)
        return FusedRanker(self.name, parts, tuple(map(float, given)), self._normalisation(setting))

    def _normalisation(self, setting: Setting) -> Normalisation:
        if self.normalise == "query":
            return QueryScales()
        if self.normalise == "none":
            return FixedScales(*(tuple(map(float, self.numbers[name])) for name in ("shifts", "scales")))
        name = self.candidates or (first_stage(setting.collection) if setting.collection else None)
        if setting.collection is None or name is None:
            raise WhyrankError(
                f"{self.name}: {self.normalise} compares with the candidates of a run; name one of the collection, "
                "or a file, with candidates=RUN"
            )
        run = open_run(setting.collection, name).run
        return CandidateScores.of(self.normalise, float(self.k), setting.collection, run, self.depth)


@dataclass(frozen=True, repr=False, eq=False)
class FusedRanker(Composite):
    """Rankers with their weights, and the normalisation under which their scores are added."""

    name: str
    parts: tuple[Ranker, ...]
    weights: tuple[float, ...]
    normalisation: Normalisation
    scale = "weighted sum"

    @cached_property
    def tie_tolerance(self) -> float:
        """The weighted sum of those of the parts, normalised as the scores are."""
        found = self.normalisation.tolerances(self.parts, [tie_tolerance(part) for part in self.parts])
        return sum(abs(weight) * each for weight, each in zip(self.weights, found, strict=True))

    def __repr__(self) -> str:
        return f"fuse weights={list(self.weights)} {self.normalisation.identity} of={list(self.parts)!r}"

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Add up the scores of all parts."""
        given, reasons, in_order = np.empty((len(self.parts), len(docs))), dict[int, str](), True
        texts = list(map(plain_text, docs)) if self.wants_fields else docs
        for row, part in zip(given, self.parts, strict=True):
            found = ask(part, queries, docs if wants_fields(part) else texts)
            row[:], in_order = found.scores, in_order and (found.in_order or not found.reasons)
            reasons |= {i: f"{name_of(part)}: {reason}" for i, reason in found.reasons.items() if i not in reasons}
        distinct_queries, codes = distinct(queries)
        total = np.zeros(len(docs))
        for query, rows in zip(distinct_queries, rows_by_code(codes, len(distinct_queries)), strict=True):
            curves = self.normalisation.curves(self.parts, query)
            if isinstance(curves, str):
                reasons |= {int(i): curves for i in rows if int(i) not in reasons}
                continue
            for scores, weight, curve in zip(given, self.weights, curves, strict=True):
                total[rows] += weight * curve(scores[rows])
        return Answered(total, reasons, in_order).scores_or_raise()


# Files with fitted weights: a JSON object with the parts of a `fuse`, how they are normalised, and their weights.

_CONTENT = re.compile(r"\b(?:table|model)=([0-9a-f]{8,})")  # in what a ranker says of its identity
_REMEDY = "make one with 'whyrank tune --ranker \"fuse(...)\" --out FILE'"


class _WeightsFile(BaseModel, strict=True):
    """What a file of weights holds; files of earlier versions say nothing about numbers and contents."""

    kind: Literal["whyrank fusion weights"]
    of: list[str]
    normalise: str
    weights: list[FiniteFloat]
    numbers: dict[str, Any] = {}
    contents: Any = None


def write_weights(
    path: str, of: Sequence[str], normalise: str, weights: Sequence[float], facts: Mapping[str, Any]
) -> None:
    """Write weights for the given parts, and how they came about."""
    found = {"kind": "whyrank fusion weights", "of": list(of), "normalise": normalise, "weights": list(weights)}
    write_text(path, sealed_json({**found, **facts}, indent=1))


def contents_of(rankers: Sequence[Ranker]) -> list[list[str]]:
    """Digests of the tables and models behind each ranker, which others may take the place of under the same name."""
    return [_CONTENT.findall(repr(ranker)) for ranker in rankers]


def read_weights(
    path: str, of: Sequence[str], normalise: str, contents: Sequence[list[str]] | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> list[float]:  # fmt: skip
    """The weights of a file; an error unless they were fitted for these parts with this normalisation.

    `contents` are those of the parts as they are now, `numbers` those behind the normalisation, such as scales; files
    that say nothing about them are taken as they are.
    """
    again = f"fit the weights again; if you edited it, remove its {KEY!r}"
    try:
        found = _WeightsFile.model_validate(read_sealed_json(Path(path).expanduser(), again))
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})", _REMEDY) from None
    except ValueError as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise BadInput(path, f"not a file of weights ({what})", _REMEDY) from None
    if found.of != list(of):
        raise BadInput(path, f"has weights for {found.of}, not for {list(of)}", "fit them again")
    if len(found.weights) != len(of):
        raise BadInput(path, f"does not have a weight for each of {len(of)} rankers", _REMEDY)
    fitted = {"normalise": found.normalise, **found.numbers}
    for name, value in {"normalise": normalise, **((numbers or {}) if found.numbers else {})}.items():
        if fitted.get(name) != value:
            what = f"was fitted with {name}={fitted.get(name)}, not {value}"
            raise BadInput(path, what, "use the same, or fit again")
    if found.contents is not None and contents is not None and found.contents != list(contents):
        old = found.contents if isinstance(found.contents, list) else []
        changed = next((part for part, a, b in zip(of, old, contents, strict=False) if a != b), "its parts")
        raise BadInput(path, f"was fitted with another table or model behind {changed}", "fit the weights again")
    return found.weights
