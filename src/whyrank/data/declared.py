"""`collection.yaml`: what a folder declares about itself (its name, its grades, where its corpus is)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.data.grades import Grades
from whyrank.data.yaml_text import YAML_ERRORS, problem_of, read_yaml

_REMEDY = "known keys: name, grades (names, relevant, nonrelevant), corpus"


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
    corpus: str | None = None


def read_declaration(path: Path) -> tuple[str | None, Grades | None]:
    """Name and grades as the file declares them; None for what it leaves open."""
    found = _validated(path)
    try:
        return found.name, found.grades.meaning() if found.grades else None
    except WhyrankError as error:
        raise BadInput(path, str(error), "mend 'relevant' or 'nonrelevant'") from None


def declared_corpus(path: Path) -> Path | None:
    """The corpus file that a declaration names, if it does; a relative path starts where the declaration is."""
    named = _validated(path).corpus
    if named is None:
        return None
    file = path.parent / Path(named).expanduser()
    if not file.is_file():
        raise BadInput(path, f"corpus: there is no file {named}", "say where the corpus is now")
    return file


def _validated(path: Path) -> Declaration:
    try:
        return Declaration.model_validate(_content(path))
    except ValidationError as error:
        raise BadInput(path, _first_problem(error), _REMEDY) from None


def _content(path: Path) -> Any:
    try:
        content = read_yaml(path)
    except YAML_ERRORS as error:
        what, line = problem_of(error)
        raise BadInput(path, f"malformed YAML ({what})", _REMEDY, line) from None
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error})", _REMEDY) from None
    if content is None:
        raise BadInput(path, "the file is empty", _REMEDY)
    return content


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"] if part != "[key]")
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])
