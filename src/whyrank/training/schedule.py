"""How a network is trained: rates, batches, lengths of time; all that a recipe says besides data and loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    SkipValidation,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from whyrank.core import UnknownName, WhyrankError

T = TypeVar("T")
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Name], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
Part = SkipValidation[Mapping[str, Any]]  # whose keys and values its own class checks
Share = Annotated[float, Field(ge=0, le=1)]
_EXPECTED = {
    "missing": "is missing", "int_type": "must be a whole number", "int_from_float": "must be a whole number",
    "float_type": "must be a number", "string_type": "must be text", "bool_type": "must be true or false",
    "is_instance_of": "must be a list", "sequence_str": "must be a list", "list_type": "must be a list",
    "dict_type": "must be keys with values", "mapping_type": "must be keys with values",
    "unexpected_keyword_argument": "is no key of it",
}  # fmt: skip


@dataclass_transform(frozen_default=True)
def checked(cls: type[T]) -> type[T]:
    """A frozen dataclass whose values pydantic checks; what is wrong is one line that names the field."""
    made: Any = dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False))(cls)
    validate = made.__init__

    @wraps(validate)
    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            validate(self, *values, **named)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ": ".join(map(str, first["loc"]))
            message = first["msg"].partition(" should ")[2] or first["msg"]
            expected = _EXPECTED.get(first["type"], f"must {message}")
            given = "" if first["type"] == "missing" else f", not {first['input']!r}"
            raise WhyrankError(f"{field} {expected}{given}") from None

    made.__init__ = init
    return made  # type: ignore[no-any-return]


def check_keys(what: str, given: object, known: Iterable[str] | None) -> None:
    """Raise an error unless a part of a recipe has keys, all of which are known; None for any keys."""
    if not isinstance(given, Mapping):
        raise WhyrankError(f"{what}: keys with values are expected, not {given!r}")
    for name in given:
        if not isinstance(name, str) or (known is not None and name not in tuple(known)):
            raise UnknownName(f"key of {what}", str(name), known or [])


def part_of(what: str, kind: type[T], given: Any, without: str = "") -> T:
    """A part of a recipe as its class; an error of one line for a key or a value that it does not take."""
    check_keys(what, given, [each.name for each in fields(kind) if each.name != without])  # type: ignore[arg-type]
    try:
        return kind(**given)
    except UnknownName:
        raise
    except WhyrankError as error:
        raise WhyrankError(f"{what}: {error}") from None


@checked
class Schedule:
    """Settings of one training run.

    Attributes:
        epochs: passes over the examples.
        batch: queries per step, over all accumulated parts.
        accumulate: parts that a batch is computed in.
        rate: learning rate of the encoder.
        head_rate: learning rate of everything else.
        warmup: share of the steps in which the rates grow to their full size.
        decay: whether they then fall linearly to zero.
        epoch_factor: what the rates are multiplied by after each epoch, besides.
        weight_decay: of AdamW.
        decay_all: whether biases and norms are decayed too.
        epsilon: of AdamW.
        clip: largest norm of the gradient.
        precision: `fp32`, or `bf16` for mixed precision.
        max_steps: stop after so many steps; None for all.
        validate_every: steps between two validations; None for the end of each epoch.
        patience: validations without a better value before training stops; None for never.
        checkpoint_every: steps between two checkpoints; None for one every two minutes.
        threads: of the processor; None for torch's own choice. A small network is quickest with one.
        seed: of order, samples, dropout and new weights.
    """

    epochs: PositiveInt = 1
    batch: PositiveInt = 16
    accumulate: PositiveInt = 1
    rate: NonNegativeFloat = 2e-5
    head_rate: NonNegativeFloat = 2e-4
    warmup: Share = 0.1
    decay: bool = True
    epoch_factor: Share = 1.0
    weight_decay: NonNegativeFloat = 0.01
    decay_all: bool = False
    epsilon: PositiveFloat = 1e-8
    clip: PositiveFloat = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    max_steps: PositiveInt | None = None
    validate_every: PositiveInt | None = None
    patience: PositiveInt | None = None
    checkpoint_every: PositiveInt | None = None
    threads: PositiveInt | None = None
    seed: int = 0

    def share(self, step: int, steps: int, epoch: int | None = None) -> float:
        """The share of the full learning rate at a step, counted from 0; an epoch has so many steps."""
        factor = self.epoch_factor ** (step // epoch) if epoch else 1.0
        warm = max(1, round(self.warmup * steps))
        if step < warm:
            return factor * (step + 1) / warm
        return factor * (max(0.0, (steps - step) / max(1, steps - warm)) if self.decay else 1.0)
