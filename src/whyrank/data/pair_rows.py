"""Rows of a pair set, packed: all texts in one block of UTF-8, made into strings when they are asked for."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ints
from whyrank.data.tallies import Tally, without_surrogates


class TextPair(NamedTuple):
    """One row of a pair set: the texts by their roles, such as `fluent` and `source`, or `title`."""

    id: str
    texts: Mapping[str, str]


class PackedPairs(Sequence[TextPair]):
    """Pairs that take the bytes of their texts and eight more for each text.

    A row is its id and then its texts in the order of the roles' names; `ends` says where each of them ends.
    """

    def __init__(self, roles: Sequence[str], data: bytes | bytearray, ends: Ints) -> None:
        """Take the block and the ends, len(roles) + 1 of them for each row."""
        self.roles, self._data, self._ends = tuple(roles), data, ends

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._ends) // self._width

    def __iter__(self) -> Iterator[TextPair]:
        """The pairs in the order of the file."""
        return map(self._row, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> TextPair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TextPair]: ...
    def __getitem__(self, index: int | slice) -> TextPair | Sequence[TextPair]:
        """One pair, or a list of them."""
        wanted = range(len(self))[index]
        return [self._row(i) for i in wanted] if isinstance(wanted, range) else self._row(wanted)

    def __eq__(self, other: object) -> bool:
        """Whether roles, ids and texts are the same."""
        return isinstance(other, PackedPairs) and self._parts() == other._parts()

    def __hash__(self) -> int:
        """Hash of the digest."""
        return hash(self.digest())

    def __repr__(self) -> str:
        """The roles and the number of pairs."""
        return f"PackedPairs({', '.join(self.roles)}; {len(self):,} pairs)"

    def ids(self) -> Iterator[str]:
        """The ids alone, without making the texts."""
        return (self._text(i) for i in range(0, len(self._ends), self._width))

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 of roles, ids and texts, in their order."""
        found = hashlib.sha256()
        for part in self._parts():
            found.update(part)
        return found.hexdigest()[:16]

    @property
    def _width(self) -> int:
        return len(self.roles) + 1

    def _parts(self) -> tuple[bytes, bytes, bytes | bytearray]:
        return "\0".join(self.roles).encode(), self._ends.astype("<i8").tobytes(), self._data

    def _row(self, i: int) -> TextPair:
        row_id, *texts = (self._text(j) for j in range(i * self._width, (i + 1) * self._width))
        return TextPair(row_id, dict(zip(self.roles, texts, strict=True)))

    def _text(self, j: int) -> str:
        return self._data[int(self._ends[j - 1]) if j else 0 : int(self._ends[j])].decode()


class Packed(NamedTuple):
    """Packed pairs, and notes on what had to be mended in them."""

    rows: PackedPairs
    notes: list[str]


def pack(pairs: Iterable[TextPair], source: str) -> Packed:
    """Pack pairs as they stream by; the first one says which roles there are, and all must have them."""
    data, ends, roles = bytearray(), array("q"), None
    mended = Tally("pairs with lone surrogates (each replaced by U+FFFD)")
    for pair in pairs:
        roles = sorted(pair.texts) if roles is None else roles
        _check(source, pair, roles)
        texts = [pair.id, *(pair.texts[role] for role in roles)]
        clean = [without_surrogates(text) for text in texts]
        if clean != texts:
            mended.add(clean[0])
        for text in clean:
            data += text.encode()
            ends.append(len(data))
    if roles is None:
        raise WhyrankError(f"{source}: there are no pairs in it; a pair set needs one at least")
    return Packed(PackedPairs(roles, data, np.frombuffer(ends, np.int64)), mended.notes(source))


def _check(source: str, pair: TextPair, roles: Sequence[str]) -> None:
    if not roles:
        raise WhyrankError(f"{source}: pair {pair.id!r} has no texts")
    if pair.texts.keys() != set(roles):
        found = ", ".join(sorted(pair.texts))
        raise WhyrankError(f"{source}: pair {pair.id!r} has the roles {found}, the first one {', '.join(roles)}")
