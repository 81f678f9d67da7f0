"""Combinations of axioms that are axioms themselves: agreement, fallback, reversal, weighted sums and votes.

    both = TFC1() & M_AND()                 what both say
    first = both | DIV()                    the first that says something
    against = -DIV()                        the reverse
    mixed = 2 * TFC1() + M_AND()            the sign of the weighted sum
    most = vote(TFC1(), M_AND(), DIV())     what more than half of all say

A combination holds its parts as call strings without `axiom/`, so its own call string says all of it. What axioms
have in common (analyzer, documents, cut, sample) belongs to the combination and holds for all its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Flags, Share, WhyrankError, call_of, check, parse_call
from whyrank.studies.axioms import axioms
from whyrank.studies.axioms.axiom import Axiom, Signs
from whyrank.studies.axioms.view import View, Views

COMMON = ("analyzer", "pairs", "candidates", "stats", "max_tokens", "most", "seed")
PREFIX = "axiom/"
_EXACT = 1 << 62  # sums of whole weights up to here fit in 64 bits


@dataclass(frozen=True, kw_only=True)
class Combination(Axiom):
    """An axiom that follows from the preferences of others.

    Attributes:
        of: the parts, as call strings without `axiom/`, such as `('TFC1(length=5)', 'M-AND')`.
    """

    of: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = (self.of,) if isinstance(self.of, str) else self.of
        if not isinstance(given, list | tuple) or not given or not all(isinstance(text, str) for text in given):
            how = f"write {self.name}(of=('TFC1', 'DIV'))"
            raise WhyrankError(f"axiom {self.name!r} needs call strings of axioms, not {self.of!r}; {how}")
        object.__setattr__(self, "of", tuple(given))
        object.__setattr__(self, "of", tuple(map(call_within, self.parts)))

    @cached_property
    def parts(self) -> tuple[Axiom, ...]:
        """The axioms that are combined."""
        common = {field: getattr(self, field) for field in COMMON}
        parts = tuple(axiom_of_call(text, common) for text in self.of)
        for part in parts:
            _check_part("the combination", common, part)
        return parts

    @property
    def concludes(self) -> str:
        """`strict` or `weak`: what is given, else what follows from the parts."""
        return self.conclusion or self._follows({part.concludes for part in self.parts})

    def combine(self, signs: Signs) -> Signs:
        """The preferences that follow from those of the parts, [parts, pairs]."""
        raise NotImplementedError

    def preferences(self, view: View, a: Codes, b: Codes) -> Signs:
        """+1, -1 or 0 for each pair, from what the parts say of it."""
        return self.combine(np.stack([part.preferences(view, a, b) for part in self.parts])).astype(np.int8)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Whether the combination prefers `a[i]`."""
        return np.asarray(self.preferences(view, a, b) > 0)

    def remarks(self, views: Views) -> Mapping[str, int]:
        """What the parts could not ask."""
        found = [(text, part.remarks(views)) for text, part in zip(self.of, self.parts, strict=True)]
        return {f"{text}: {reason}": count for text, remarks in found for reason, count in remarks.items()}

    def _follows(self, conclusions: set[str]) -> str:
        return "weak" if "weak" in conclusions else "strict"

    def _words(self) -> list[str]:
        return [f"({part.favoured})" if isinstance(part, Combination) else part.favoured for part in self.parts]


@dataclass(frozen=True, kw_only=True)
class And(Combination):
    """What all parts say: each of them decides, and all agree. Strict where any part is."""

    name = "and"

    @property
    def favoured(self) -> str:
        """What all parts favour, in words."""
        return ", and also ".join(self._words())

    def combine(self, signs: Signs) -> Signs:
        """The sign that all have."""
        return np.where((signs == signs[0]).all(axis=0), signs[0], np.int8(0))

    def _follows(self, conclusions: set[str]) -> str:
        return "strict" if "strict" in conclusions else "weak"


@dataclass(frozen=True, kw_only=True)
class Or(Combination):
    """What the first part says that says anything. Weak where any part is."""

    name = "or"

    @property
    def favoured(self) -> str:
        """What the parts favour, in words and in their order."""
        return ", else ".join(self._words())

    def combine(self, signs: Signs) -> Signs:
        """The first sign that is not 0."""
        first = (signs != 0).argmax(axis=0)
        return np.asarray(np.take_along_axis(signs, first[None], axis=0)[0], dtype=np.int8)


@dataclass(frozen=True, kw_only=True)
class Not(Combination):
    """The reverse of its one part."""

    name = "not"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.of) != 1:
            raise WhyrankError(f"axiom 'not' reverses one axiom, not {len(self.of)}; write not(of=DIV)")

    @property
    def favoured(self) -> str:
        """What the part favours, in words."""
        return f"the reverse of ({self.parts[0].favoured})"

    def combine(self, signs: Signs) -> Signs:
        """The other sign."""
        return np.asarray(-signs[0], dtype=np.int8)


@dataclass(frozen=True, kw_only=True)
class Sum(Combination):
    """The sign of the weighted sum of what the parts say. Weak where any part is.

    Attributes:
        weights: a finite number for each part, taken as the decimal it is written as; none given, each counts 1.
    """

    weights: tuple[float, ...] = ()

    name = "sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.weights if isinstance(self.weights, list | tuple) else (self.weights,)
        weights = tuple(map(_finite_weight, given))
        if given and len(given) != len(self.of):
            counts = f"{len(self.of)} axioms, {len(given)} weights"
            raise WhyrankError(f"axiom 'sum' takes one weight for each axiom ({counts}); give as many, or none")
        object.__setattr__(self, "weights", weights if set(weights) != {1.0} else ())

    @property
    def every_weight(self) -> tuple[float, ...]:
        """A weight for each part, also where all are 1."""
        return self.weights or (1.0,) * len(self.of)

    @property
    def favoured(self) -> str:
        """What is weighed, in words."""
        weighed = zip(self.every_weight, self.parts, strict=True)
        return "what a weighted sum favours: " + " + ".join(f"{w:g} x ({part.favoured})" for w, part in weighed)

    def combine(self, signs: Signs) -> Signs:
        """The sign of the sum, computed without rounding: 0.1 + 0.2 - 0.3 is nothing."""
        fractions = [Fraction(repr(weight)) for weight in self.every_weight]
        scale = math.lcm(*(fraction.denominator for fraction in fractions))
        whole = [int(fraction * scale) for fraction in fractions]
        kind: Any = np.int64 if sum(map(abs, whole)) < _EXACT else object
        total: npt.NDArray[Any] = np.array(whole, dtype=kind) @ signs.astype(kind)
        return (total > 0).astype(np.int8) - (total < 0).astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class Vote(Combination):
    """What the larger share of all parts says, if it is more than `minimum`. Weak where any part is.

    Attributes:
        minimum: that share of all parts, those that say nothing included; from 0 to below 1.
    """

    minimum: Share = 0.5

    name = "vote"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minimum == 1:
            raise WhyrankError("minimum must be below 1: no share is more than all")

    @property
    def favoured(self) -> str:
        """What is voted on, in words."""
        return f"what more than {self.minimum:.4g} of the votes favour: " + ", ".join(f"({w})" for w in self._words())

    def combine(self, signs: Signs) -> Signs:
        """The sign of the majority."""
        ups, downs = (signs > 0).sum(axis=0), (signs < 0).sum(axis=0)
        least = math.floor(Fraction(repr(self.minimum)) * len(self.of)) + 1  # a whole number of votes above the share
        return np.where(np.maximum(ups, downs) >= least, np.sign(ups - downs), 0).astype(np.int8)


# The operators.

C = TypeVar("C", bound=Combination)


def both(*given: Axiom) -> Axiom:
    """What all say: `a & b`."""
    return _combination(And, _flat(And, given))


def either(*given: Axiom) -> Axiom:
    """What the first says that says anything: `a | b`."""
    return _combination(Or, _flat(Or, given))


def reverse(axiom: Axiom) -> Axiom:
    """The reverse: `-a`; the reverse of a reverse is the axiom itself."""
    [part] = _flat(Not, [axiom])
    return part if part is not axiom else _combination(Not, [axiom])


def plus(*given: Axiom) -> Axiom:
    """The sign of the sum: `a + b`; sums of sums are one sum."""
    return _combination(Sum, _flat(Sum, given), weights=tuple(w for axiom in given for w in _weights(axiom)))


def times(axiom: Axiom, weight: float) -> Axiom:
    """An axiom with a weight, to be added to others: `2 * a`; products of decimals are decimals, 3 * 0.1 is 0.3."""
    factor = Fraction(repr(_finite_weight(weight)))
    weights = tuple(float(Fraction(repr(float(each))) * factor) for each in _weights(axiom))
    return _combination(Sum, _flat(Sum, [axiom]), weights=weights)


def vote(*given: Axiom, minimum: float = 0.5) -> Axiom:
    """What the larger share of all says, if it is more than `minimum`."""
    return _combination(Vote, given, minimum=minimum)


def call_within(axiom: Axiom) -> str:
    """The call string of an axiom inside a combination: without `axiom/` and without what is common to all parts."""
    return call_of(axiom, axiom.name, COMMON)


def axiom_of_call(text: str, common: Mapping[str, Any]) -> Axiom:
    """The axiom of a call string, with or without `axiom/`; `common` fills what the call string does not give."""
    call = parse_call(text)
    made: Axiom = axioms.build(call._replace(name=PREFIX + call.name.removeprefix(PREFIX)), **common)
    return made


def check_pairs(axiom: object) -> None:
    """Raise an error unless this is an axiom with a condition on two documents."""
    if not isinstance(axiom, Axiom):
        raise WhyrankError(f"{axiom!r} is no axiom; make one with axioms.create('axiom/NAME')")
    kind = type(axiom)
    # those with contrasts of their own compare texts that they write themselves
    if axiom.size != 2 or kind.contrasts is not Axiom.contrasts or kind.wins is Axiom.wins:
        raise WhyrankError(f"axiom {axiom.name} has no condition on two documents, so it states no preference")


def _combination(kind: type[C], given: Iterable[Axiom], **more: Any) -> C:
    parts, common = list(given), dict[str, Any]()
    for part in parts:
        check_pairs(part)
        common = common or {field: getattr(part, field) for field in COMMON}
        _check_part(parts[0].id, common, part)
        if PREFIX + part.name not in axioms or axiom_of_call(call_within(part), common) != part:
            what = f"{type(part).__name__} is not registered as axiom {part.name!r}"
            raise WhyrankError(f"{what}; to combine it, add @axioms.register('{PREFIX}{part.name}')")
    return kind(of=tuple(map(call_within, parts)), **common, **more)


def _flat(kind: type[Combination], given: Iterable[Axiom]) -> list[Axiom]:
    """The axioms, with the parts of combinations of this kind in their place; one with its own conclusion stays."""
    found: list[Axiom] = []
    for axiom in given:
        found += axiom.parts if isinstance(axiom, kind) and axiom.conclusion is None else (axiom,)
    return found


def _weights(axiom: Axiom) -> tuple[float, ...]:
    return axiom.every_weight if isinstance(axiom, Sum) and axiom.conclusion is None else (1.0,)


def _finite_weight(weight: Any) -> float:
    check("the weight of an axiom", weight, float)
    return float(weight)


def _check_part(owner: str, common: Mapping[str, Any], part: Axiom) -> None:
    """Raise an error unless an axiom states preferences and shares the common fields."""
    check_pairs(part)
    for field, value in common.items():
        if getattr(part, field) != value:
            where = f"it is {value!r} for {owner} and {getattr(part, field)!r} for {call_within(part)}"
            raise WhyrankError(f"axioms that are combined must have the same {field}; {where}")
