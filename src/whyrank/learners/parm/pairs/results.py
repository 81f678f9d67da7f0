"""Entries that were found, in files of some megabytes: int32 numbers of documents by query, and their weights.

Each block of queries is a file of its own as soon as it is scored, so that a stop costs one block. At the end the
blocks are packed into few files that no transfer minds. Of a query that is in two files, the entries are united.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, Codes, Ints, check_seal, read_sealed_json, sealed_file, sealed_json, write_text
from whyrank.learners.parm.pairs.task import BROKEN

MEGABYTES = 15
LOG, SPENT = "run.json", "spent.json"
_OTHER = "remove the folder, or name another one"
_AGAIN = "copy all of its files again, or remove it and score the folder again"


class Part(NamedTuple):
    """Entries of some queries.

    Attributes:
        round: of a cascade, from which cut on; 0 where all is scored.
        queries: their numbers.
        sizes: how many entries each has.
        docs: numbers of documents, ascending within a query.
        weights: of the entries.
        audited: numbers of queries that are kept with all documents.
        slices: their weights, [audited, documents].
    """

    round: int
    queries: Codes
    sizes: Ints
    docs: Codes
    weights: npt.NDArray[Any]
    audited: Codes
    slices: npt.NDArray[Any]

    def best(self, most: int | None) -> Part:
        """With so many entries of each query at most: those of the largest weights, of equal ones the first."""
        if most is None or self.sizes.max(initial=0) <= most:
            return self
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        order = np.lexsort((-self.weights.astype(np.float32), owner))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        keep = np.sort(order[rank < most])
        sizes = np.minimum(self.sizes, most)
        return self._replace(sizes=sizes, docs=self.docs[keep], weights=self.weights[keep])


class Held(NamedTuple):
    """A part, and how large its file is."""

    bytes: int
    part: Part

    def place(self) -> tuple[int, int]:
        """Round and first query."""
        return self.part.round, int(self.part.queries[0]) if len(self.part.queries) else 0


class Entries(NamedTuple):
    """All entries, by query and document, and the slices of audited queries."""

    queries: Codes
    docs: Codes
    weights: npt.NDArray[Any]
    slices: dict[int, npt.NDArray[Any]]


class Results:
    """The files of one task in a folder."""

    def __init__(self, folder: Path, identity: str, about: Mapping[str, Any] | None = None) -> None:
        """Open a folder; an error where results of another task, network or precision lie in it."""
        self.folder, self.identity, self._about = folder, identity, dict(about or {})
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(folder, f"is no folder to write to ({error.strerror})", "name another one") from None
        for file in self._files():
            _check(file, identity)

    def done(self, round: int = 0) -> set[int]:
        """Numbers of the queries that are finished."""
        return {int(q) for part in self.parts() if part.round == round for q in part.queries}

    def add(self, part: Part, seconds: float | None = None) -> None:
        """Keep the entries of a block, and how many seconds all blocks took so far."""
        self._write(f"block-{part.round}-{int(part.queries[0]):07}.npz", part)
        if seconds is not None:
            self.spend(seconds)

    def parts(self) -> Iterator[Part]:
        """All that is kept so far."""
        return (_read(file) for file in self._files())

    def entries(self) -> Entries:
        """All of it together, each pair once."""
        return united(list(self.parts()))

    def whole(self, queries: int, docs: int, audited: Collection[int] = (), rounds: int = 1) -> Entries:
        """All entries of so many queries and documents; an error where a file is missing or does not fit."""
        parts = list(self.parts())
        for round in range(rounds):
            lacking = set(range(queries)) - {int(q) for part in parts if part.round == round for q in part.queries}
            if lacking:
                what = f"lacks the entries of {len(lacking):,} of {queries:,} distinct query terms"
                raise BadInput(self.folder, what, _AGAIN)
        found = united(parts)
        slices = all(len(found.slices.get(q, ())) == docs for q in audited)
        if not slices or found.queries.max(initial=0) >= queries or found.docs.max(initial=0) >= docs:
            raise BadInput(self.folder, "has entries that do not fit the vocabulary", _AGAIN)
        return found

    def pack(self, limit: int = MEGABYTES << 20, most: int | None = None) -> list[Path]:
        """Few files instead of many, with the best entries of each query; the old ones go when the new are there."""
        old, packed = self._files(), []
        held = [Held(file.stat().st_size, _read(file).best(most)) for file in old]
        for number, parts in enumerate(_grouped(held, limit)):
            packed.append(self._write(f"entries-{number:03}.npz", joined(parts)))
        for file in set(old) - set(packed):
            file.unlink()
        return packed

    def clear(self) -> None:
        """Begin anew."""
        for file in self._files():
            file.unlink()

    @property
    def finished(self) -> bool:
        """Whether all of it is scored, so that there is a log."""
        try:
            return bool(read_sealed_json(self.folder / LOG, _AGAIN)["identity"] == self.identity)
        except (OSError, ValueError, KeyError, TypeError, BadInput):
            return False

    @property
    def seconds(self) -> float:
        """How long the parts of an unfinished run took so far; another run's do not count."""
        try:
            told = read_sealed_json(self.folder / SPENT, _AGAIN)
            return max(0.0, float(told["seconds"])) if told.get("identity", self.identity) == self.identity else 0.0
        except (*BROKEN, AttributeError, BadInput):
            return 0.0

    def spend(self, seconds: float) -> None:
        """Note how long an unfinished run took so far, where it has left anything to go on with."""
        if any(self.folder.iterdir()):
            told = {"seconds": round(seconds, 2), "identity": self.identity}
            write_text(self.folder / SPENT, sealed_json(told))

    def log(self, facts: dict[str, Any]) -> None:
        """Note how the results came about."""
        content = {"identity": self.identity, **self._about, **facts}
        write_text(self.folder / LOG, sealed_json(content, indent=2))
        (self.folder / SPENT).unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*-*.npz"))

    def _write(self, name: str, part: Part) -> Path:
        arrays = part._asdict() | {"docs": _steps(part), "identity": np.array(self.identity)}
        with sealed_file(self.folder / name) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        return self.folder / name


def read_log(folder: Path) -> dict[str, Any]:
    """How the results in a folder came about; an error where they are not whole."""
    try:
        found: dict[str, Any] = read_sealed_json(folder / LOG, _AGAIN)
    except (OSError, ValueError) as error:
        more = "run `python -m whyrank.learners.parm.pairs.main FOLDER` to its end first"
        raise BadInput(folder, f"holds no finished results ({error})", more) from None
    if not isinstance(found, dict):
        raise BadInput(folder / LOG, "is no log of results", _AGAIN)
    return found


def united(parts: Sequence[Part]) -> Entries:
    """The entries of all parts, each pair once."""
    slices = {int(q): part.slices[i] for part in parts for i, q in enumerate(part.audited)}
    if not parts:
        return Entries(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float16), slices)
    queries = np.concatenate([np.repeat(part.queries, part.sizes) for part in parts])
    docs, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("docs", "weights"))
    _, first = np.unique(queries.astype(np.int64) << 32 | docs, return_index=True)
    return Entries(queries[first], docs[first], weights[first], slices)


def joined(parts: Sequence[Part]) -> Part:
    """Several parts of one round as one."""
    slices = [part.slices for part in parts if len(part.audited)] or [parts[0].slices]
    columns = {name: [getattr(part, name) for part in parts] for name in Part._fields[1:-1]} | {"slices": slices}
    return Part(parts[0].round, **{name: np.concatenate(column) for name, column in columns.items()})


def _grouped(parts: Sequence[Held], limit: int) -> Iterator[list[Part]]:
    """Parts of one round that fit together into a file."""
    held: list[Held] = []
    for each in sorted(parts, key=Held.place):
        if held and (held[0].part.round != each.part.round or sum(one.bytes for one in held) + each.bytes > limit):
            yield [one.part for one in held]
            held = []
        held.append(each)
    if held:
        yield [one.part for one in held]


def _steps(part: Part) -> Codes:
    """Numbers of documents as steps from one to the next of a query, which are small."""
    steps = np.diff(part.docs, prepend=np.int32(0))
    starts = _starts(part.sizes)
    steps[starts] = part.docs[starts]
    return steps


def _summed(steps: Codes, sizes: Ints) -> Codes:
    total = np.cumsum(steps, dtype=np.int64)
    starts = _starts(sizes)
    before = total[starts] - steps[starts]
    found: Codes = (total - np.repeat(before, sizes[sizes > 0])).astype(np.int32)
    return found


def _starts(sizes: Ints) -> Ints:
    filled = sizes[sizes > 0]
    starts: Ints = np.cumsum(filled) - filled
    return starts


def _read(file: Path) -> Part:
    try:
        check_seal(file, _AGAIN)
        with np.load(file, allow_pickle=False) as held:
            found = {name: held[name] for name in Part._fields}
        if not found["sizes"].sum() == len(found["docs"]) == len(found["weights"]):
            raise ValueError("its columns differ in length")
        docs = _summed(found["docs"], found["sizes"])
        return Part(**found | {"round": int(found["round"]), "docs": docs})
    except BROKEN as error:
        raise BadInput(file, f"cannot be read ({type(error).__name__}: {error})", _AGAIN) from None


def _identity(file: Path) -> str:
    try:
        check_seal(file, _AGAIN)
        with np.load(file, allow_pickle=False) as held:
            return str(held["identity"])
    except BROKEN as error:
        raise BadInput(file, f"cannot be read ({type(error).__name__}: {error})", _AGAIN) from None


def _check(file: Path, identity: str) -> None:
    if _identity(file) != identity:
        raise BadInput(file.parent, "holds results of another network, vocabulary, precision or setting", _OTHER)
