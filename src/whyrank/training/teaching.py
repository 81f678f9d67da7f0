"""What the `data` of a recipe says of distillation, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whyrank.core.checks import check_number, check_whole
from whyrank.core.errors import WhyrankError

DRAWN = 3  # numbers of `candidates`: of the teachers' best, of their next best, at random


def check_teaching(data: Mapping[str, Any]) -> None:
    """Raise an error for a part that cannot be meant."""
    if not data.get("collection") and not data.get("cut"):
        raise WhyrankError("data: name collections to learn from (collection), or to cut queries from (cut)")
    for model, share in _mapping("teachers", data["teachers"]).items():
        check_number(f"data: teachers: {model}", share, 0, strict=True)
    for name, count in _mapping("cut", data.get("cut", {"": 1})).items():
        check_whole(f"data: cut: {name}", count, 1)
    check_whole("data: lexical", data.get("lexical", 0), 0)
    for key in ("collection", "without"):
        _check_names(key, data.get(key, []))
    _check_candidates(data.get("candidates", [1, 1, 1]))


def _mapping(key: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise WhyrankError(f"data: {key} must be names with numbers, such as {{NAME: 1}}, not {given!r}")
    return given


def _check_names(key: str, given: Any) -> None:
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, list) or not all(isinstance(name, str) and name for name in several):
        raise WhyrankError(f"data: {key} must be a name or a list of names, not {given!r}")


def _check_candidates(given: Any) -> None:
    plain = isinstance(given, Sequence) and len(given) == DRAWN and all(type(n) is int and n >= 0 for n in given)
    if not plain or not any(given):
        what = "of the teachers' first ten, of their next ones, at random"
        raise WhyrankError(f"data: candidates must be three whole numbers ({what}), not {given!r}")
