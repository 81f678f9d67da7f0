"""Files with fitted weights: a JSON object with the parts of a `fuse`, how they are normalised, and their weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whyrank.core.checks import check_number
from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.files import write_text

KIND = "whyrank fusion weights"
_REMEDY = "make one with 'whyrank tune --ranker \"fuse(...)\" --out FILE'"


def write_weights(
    path: str, of: Sequence[str], normalise: str, weights: Sequence[float], facts: Mapping[str, Any]
) -> None:
    """Write weights for the given parts, and how they came about."""
    found = {"kind": KIND, "of": list(of), "normalise": normalise, "weights": list(weights), **facts}
    write_text(path, json.dumps(found, indent=1) + "\n")


def read_weights(path: str, of: Sequence[str], normalise: str) -> list[float]:
    """The weights of a file; an error unless they were fitted for these parts with this normalisation."""
    found = _content(path)
    if found.get("of") != list(of):
        raise BadInput(path, f"has weights for {found.get('of')}, not for {list(of)}", "fit them again")
    if found.get("normalise") != normalise:
        what = f"was fitted with normalise={found.get('normalise')}, not {normalise}"
        raise BadInput(path, what, "use the same, or fit again")
    weights = found.get("weights")
    if not isinstance(weights, list) or len(weights) != len(of):
        raise BadInput(path, f"does not have a weight for each of {len(of)} rankers", _REMEDY)
    return [_number(path, weight) for weight in weights]


def _content(path: str) -> dict[str, Any]:
    try:
        found = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
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
