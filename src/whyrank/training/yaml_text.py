"""YAML in which 2e-5 is a number."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml import YAMLError

YAML_ERRORS = (YAMLError, RecursionError)


class _Loader(yaml.SafeLoader):
    """The safe loader, with numbers as YAML 1.2 has them: an exponent needs neither a point nor a sign."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def parse_yaml(text: str) -> Any:
    """Plain values from YAML; raises one of `YAML_ERRORS`."""
    return yaml.load(text, _Loader)  # a safe loader


def problem_of(error: BaseException) -> tuple[str, int | None]:
    """What is wrong in a few words, and the line."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    return str(what), None if mark is None else mark.line + 1
