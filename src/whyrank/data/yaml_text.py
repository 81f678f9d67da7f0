"""YAML files: read within limits, and with 2e-5 as a number."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml
from yaml import YAMLError

YAML_ERRORS = (YAMLError, RecursionError)
MOST_BYTES = 2**20  # of a file
MOST_VALUES = 100_000  # with all aliases written out


class _Loader(yaml.SafeLoader):
    """The safe loader, with numbers as YAML 1.2 has them: an exponent needs neither a point nor a sign."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(path: Path) -> Any:
    """Plain values from a YAML file; raises one of `YAML_ERRORS`, or an error of the system."""
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    return parse_yaml(raw if len(raw) > MOST_BYTES else raw.decode("utf-8-sig"))


def parse_yaml(text: str | bytes) -> Any:
    """Plain values from YAML; raises one of `YAML_ERRORS`."""
    if len(text) > MOST_BYTES:
        raise YAMLError(f"it has more than {MOST_BYTES:,} bytes")
    loader = _Loader(text)  # a safe loader
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > MOST_VALUES:
            raise YAMLError(f"its aliases stand for more than {MOST_VALUES:,} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _values(node: Any, known: dict[int, float]) -> float:
    """How many values a node holds when all aliases are written out; infinitely many where it holds itself."""
    if id(node) not in known:
        known[id(node)] = math.inf
        inside = node.value if isinstance(node.value, list) else []
        parts = (part for item in inside for part in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(node)]


def problem_of(error: BaseException) -> tuple[str, int | None]:
    """What is wrong in a few words, and the line."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    return str(what), None if mark is None else mark.line + 1
