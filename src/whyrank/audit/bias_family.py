"""The bias studies that are built in, by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from whyrank.audit.bias_letters import PostfixLetter
from whyrank.audit.bias_substitution import PRESETS, Substitution

LETTERS = "bias/postfix-letter"


class BiasFamily:
    """The general substitution study, its presets, and the study of appended letters."""

    def arguments(self, name: str) -> set[str]:
        """The arguments that a study takes."""
        made = PostfixLetter if name == LETTERS else Substitution
        return {field.name for field in fields(made)} - {"name"}

    def names(self) -> Iterable[str]:
        """Ids such as `bias/car-brand`."""
        return [*(f"bias/{name}" for name in PRESETS), LETTERS]

    def make(self, name: str, **arguments: Any) -> Substitution | PostfixLetter:
        """The study with this id."""
        if name == LETTERS:
            return PostfixLetter(**arguments)
        return Substitution(name.removeprefix("bias/"), **arguments)


family = BiasFamily()
