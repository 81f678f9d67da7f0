"""Files with fitted weights: a JSON object with the parts of a `fuse`, how they are normalised, and their weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whyrank.core.checks import check_number
from whyrank.core.checksums import KEY, read_sealed_json, sealed_json
from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.files import write_text
from whyrank.core.protocols import Ranker

KIND = "whyrank fusion weights"
_CONTENT = re.compile(r"\b(?:table|model)=([0-9a-f]{8,})")  # in what a ranker says of its identity
_REMEDY = "make one with 'whyrank tune --ranker \"fuse(...)\" --out FILE'"


def write_weights(
    path: str, of: Sequence[str], normalise: str, weights: Sequence[float], facts: Mapping[str, Any]
) -> None:
    """Write weights for the given parts, and how they came about."""
    found = {"kind": KIND, "of": list(of), "normalise": normalise, "weights": list(weights), **facts}
    write_text(path, sealed_json(found, indent=1))


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
    found = _content(path)
    if found.get("of") != list(of):
        raise BadInput(path, f"has weights for {found.get('of')}, not for {list(of)}", "fit them again")
    if found.get("normalise") != normalise:
        what = f"was fitted with normalise={found.get('normalise')}, not {normalise}"
        raise BadInput(path, what, "use the same, or fit again")
    _check_numbers(path, found.get("numbers"), numbers or {})
    _check_contents(path, of, found.get("contents"), contents)
    weights = found.get("weights")
    if not isinstance(weights, list) or len(weights) != len(of):
        raise BadInput(path, f"does not have a weight for each of {len(of)} rankers", _REMEDY)
    return [_number(path, weight) for weight in weights]


def _check_numbers(path: str, then: Any, now: Mapping[str, Any]) -> None:
    for name, number in now.items() if isinstance(then, dict) else ():
        if then.get(name) != number:
            what = f"was fitted with {name}={then.get(name)}, not {number}"
            raise BadInput(path, what, "use the same, or fit again")


def _check_contents(path: str, of: Sequence[str], then: Any, now: Sequence[list[str]] | None) -> None:
    if then is None or now is None or then == list(now):
        return
    old = then if isinstance(then, list) else []
    changed = next((part for part, a, b in zip(of, old, now, strict=False) if a != b), "its parts")
    raise BadInput(path, f"was fitted with another table or model behind {changed}", "fit the weights again")


def _content(path: str) -> dict[str, Any]:
    try:
        found = read_sealed_json(
            Path(path).expanduser(), f"fit the weights again; if you edited it, remove its {KEY!r}"
        )
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})", _REMEDY) from None
    except ValueError as error:
        raise BadInput(path, f"not a file of weights ({error})", _REMEDY) from None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise BadInput(path, "not a file of weights", _REMEDY)
    return found


def _number(path: str, weight: object) -> float:
    try:
        check_number("a weight", weight, float("-inf"))
    except WhyrankError as error:
        raise BadInput(path, str(error), _REMEDY) from None
    return float(weight)  # type: ignore[arg-type]  # it has just been checked
