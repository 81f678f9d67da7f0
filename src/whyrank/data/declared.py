"""`collection.yaml`: what a folder declares about itself (its name and the meaning of its grades)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.data.grades import Grades

_REMEDY = "known keys: name, grades (names, relevant, nonrelevant)"


class DeclaredGrades(BaseModel):
    """The `grades` part of a declaration."""

    model_config = ConfigDict(extra="forbid")
    names: dict[int, str] = {}
    relevant: int = 1
    nonrelevant: int = 0

    def meaning(self) -> Grades:
        """The grades as the rest of the package knows them."""
        return Grades(self.names, self.relevant, self.nonrelevant)


class Declaration(BaseModel):
    """A whole `collection.yaml`; everything in it is optional."""

    model_config = ConfigDict(extra="forbid")
    name: str | None = None
    grades: DeclaredGrades | None = None


def read_declaration(path: Path) -> tuple[str | None, Grades | None]:
    """Name and grades as the file declares them; None for what it leaves open."""
    try:
        found = Declaration.model_validate(_content(path))
        grades = found.grades.meaning() if found.grades else None
    except ValidationError as error:
        raise BadInput(path, _first_problem(error), _REMEDY) from None
    except BadInput:
        raise
    except WhyrankError as error:
        raise BadInput(path, str(error), "mend 'relevant' or 'nonrelevant'") from None
    return found.name, grades


def _content(path: Path) -> Any:
    try:
        content = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise BadInput(path, f"malformed YAML ({what})", _REMEDY, mark.line + 1 if mark else None) from None
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error})", _REMEDY) from None
    if content is None:
        raise BadInput(path, "the file is empty", _REMEDY)
    return content


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"] if part != "[key]")
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])
