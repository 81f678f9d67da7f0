"""What is to be scored, in a folder: the pieces of all terms and the settings, for machines with torch alone.

whyrank tables build NETWORK --prepare FOLDER -c COLLECTION   # here
python -m whyrank.learners.parm.pairs.main FOLDER                  # there
whyrank tables build --collect FOLDER --out TABLE             # here
"""

from __future__ import annotations

import hashlib
import json
import tokenize
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core import (
    BadInput,
    UnknownName,
    check_number,
    check_seal,
    check_whole,
    read_sealed_json,
    sealed_file,
    sealed_json,
    write_text,
)
from whyrank.learners.parm.pairs.terms import Distinct, Sequences
from whyrank.networks import digest

METHODS = ("exhaustive", "cascade")
TASK, TERMS, NETWORK, RESULTS = "task.json", "terms.npz", "network", "results"
_REMEDY = "make the folder again with `whyrank tables build NETWORK --prepare FOLDER`"
BROKEN = (  # what numpy and json raise for damaged files
    OSError, EOFError, ValueError, KeyError, TypeError, IndexError, SyntaxError, NotImplementedError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What is kept of all pairs, and how they are found.

    Attributes:
        threshold: pairs with a smaller weight are left out.
        audited: numbers of query terms that are kept with all document terms.
        method: exhaustive scores every pair; cascade those that a student proposes.
        recall: of a cascade, the lower bound that is aimed at.
        level: the probability with which that bound holds.
        strata: groups of query terms by frequency, each with a bound of its own.
        sample: pairs in each of the cascade's samples; by default as many as suit device and recall.
        seed: of the samples and of the student.
        top: so many document terms of each query term are kept at most, the best ones.
    """

    threshold: float = 0.1
    audited: tuple[int, ...] = ()
    method: str = "exhaustive"
    recall: float = 0.99
    level: float = 0.95
    strata: int = 5
    sample: int | None = None
    seed: int = 0
    top: int | None = None

    @property
    def most(self) -> int | None:
        """Sequences that are kept of a query: one more than terms, since a term is not tied to itself in a table."""
        return None if self.top is None else self.top + 1

    def checked(self) -> Settings:
        """The settings; an error for one that makes no sense."""
        check_number("threshold", self.threshold, 0, 1)
        check_number("recall", self.recall, 0, 1, strict=True)
        check_number("level", self.level, 0, 1, strict=True)
        check_whole("strata", self.strata, 1)
        for name in ("sample", "top"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        if self.method not in METHODS:
            raise UnknownName("method", self.method, METHODS)
        return self


@dataclass(frozen=True, eq=False)
class Task:
    """The distinct sequences of pieces of both sides, the most frequent query terms first, and the settings."""

    queries: Distinct
    docs: Distinct
    settings: Settings

    def identity(self, network: str, precision: str) -> str:
        """A digest of terms, settings, network and precision: results that share it belong together."""
        head = json.dumps([asdict(self.settings), network, precision], sort_keys=True)
        found = hashlib.sha256(head.encode())
        for array in _arrays(self).values():
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:16]

    @property
    def pairs(self) -> int:
        """How many distinct pairs there are."""
        return len(self.queries.sequences) * len(self.docs.sequences)

    @property
    def pieces(self) -> float:
        """Pieces of a pair on average, [CLS] and both [SEP] included."""
        return 3 + sum(len(side.sequences.pieces) / len(side.sequences) for side in (self.queries, self.docs))


def save_task(folder: Path, task: Task) -> None:
    """Write a task; the settings come last, so that a folder with them is whole."""
    with sealed_file(folder / TERMS) as file:
        np.savez_compressed(file, allow_pickle=False, **_arrays(task))
    write_text(folder / TASK, sealed_json(asdict(task.settings), indent=2))


def load_task(folder: Path) -> Task:
    """Read what `save_task` wrote."""
    if not (folder / TASK).exists():
        raise BadInput(folder, "is no prepared folder, or not a whole one", _REMEDY)
    try:
        settings = read_sealed_json(folder / TASK, _REMEDY)
        check_seal(folder / TERMS, _REMEDY)
        with np.load(folder / TERMS, allow_pickle=False) as file:
            queries, docs = (_side(file, name) for name in ("query", "doc"))
        made = Settings(**settings | {"audited": tuple(settings["audited"])}).checked()
        _check_range(made.audited, len(queries.of_term))
        return Task(queries, docs, made)
    except BROKEN as error:
        raise BadInput(folder, f"cannot be read ({type(error).__name__}: {error})", _REMEDY) from None


def network_digest(folder: Path) -> str:
    """What tells networks apart; an error where there is none."""
    try:
        return digest(folder)
    except OSError as error:
        raise BadInput(
            folder, f"holds no whole network ({error.strerror})", "give a folder of a parm network"
        ) from None


def _arrays(task: Task) -> dict[str, Any]:
    sides = {"query": task.queries, "doc": task.docs}
    return {
        f"{name}_{what}": array
        for name, side in sides.items()
        for what, array in (("pieces", side.sequences.pieces), ("ends", side.sequences.ends), ("of", side.of_term))
    }


def _side(file: Any, name: str) -> Distinct:
    pieces, ends, of_term = (file[f"{name}_{what}"] for what in ("pieces", "ends", "of"))
    if not len(ends) or ends[0] != 0 or ends[-1] != len(pieces) or np.any(np.diff(ends) < 0):
        raise ValueError("pieces and their ends do not fit together")
    _check_range(of_term, len(ends) - 1)
    return Distinct(Sequences(pieces, ends), of_term)


def _check_range(numbers: Any, size: int) -> None:
    found = np.asarray(numbers, np.int64)
    if len(found) and (found.min() < 0 or found.max() >= size):
        raise ValueError(f"a number of a term is not below {size:,}")
