"""Terms as tokens: tokenised once, each sequence once, grouped by length so that nothing is padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Ints
from whyrank.networks import Ids


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of tokens end to end: sequence `i` is `tokens[ends[i]:ends[i + 1]]`."""

    tokens: Codes
    ends: Ints

    @classmethod
    def of(cls, rows: Sequence[Ids]) -> Sequences:
        """Lay sequences end to end."""
        ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return cls(np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32), ends)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.ends) - 1


class DistinctSequences(NamedTuple):
    """Distinct sequences in the order of their first appearance, and which of them each term has."""

    sequences: Sequences
    of_term: Codes

    @property
    def counts(self) -> Ints:
        """How many terms share each sequence."""
        return np.bincount(self.of_term, minlength=len(self.sequences))


def distinct(rows: Sequence[Ids]) -> DistinctSequences:
    """Terms that the network cannot tell apart are scored once."""
    numbers: dict[bytes, int] = {}
    of_term = [numbers.setdefault(np.ascontiguousarray(row, np.int32).tobytes(), len(numbers)) for row in rows]
    found = [np.frombuffer(key, np.int32) for key in numbers]
    return DistinctSequences(Sequences.of(found), np.array(of_term, np.int32))


class LengthGroup(NamedTuple):
    """The sequences of one length, and the distinct (token, position) in them."""

    members: Codes  # numbers of the sequences
    tokens: Codes  # the token of each distinct (token, position)
    positions: Codes  # its position, counted from 0
    rows: Codes  # for each member and position the number of its (token, position)


class TermGroups(NamedTuple):
    """All sequences of one side of the pairs, by length."""

    lengths: Codes  # of each sequence
    inside: Codes  # the position of each sequence among the members of its group
    groups: dict[int, LengthGroup]  # by length


def group_terms(sequences: Sequences) -> TermGroups:
    """Group sequences by length."""
    lengths = np.diff(sequences.ends).astype(np.int32)
    inside, groups = np.zeros(len(lengths), np.int32), {}
    for length in np.unique(lengths).tolist():
        members = np.flatnonzero(lengths == length).astype(np.int32)
        inside[members] = np.arange(len(members), dtype=np.int32)
        at = sequences.ends[members][:, None] + np.arange(length)
        keys = sequences.tokens[at].astype(np.int64) * max(length, 1) + np.arange(length)
        found, rows = np.unique(keys, return_inverse=True)
        tokens, positions = (part.astype(np.int32) for part in np.divmod(found, max(length, 1)))
        groups[length] = LengthGroup(members, tokens, positions, rows.reshape(len(members), length).astype(np.int32))
    return TermGroups(lengths, inside, groups)
