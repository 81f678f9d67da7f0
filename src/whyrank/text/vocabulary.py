"""Terms as numbers: a vocabulary that grows, and texts as arrays of term ids."""

from __future__ import annotations

from typing import NamedTuple

from whyrank.core import Codes, Ints


class Tokens(NamedTuple):
    """Analysed texts: text `i` has the term ids `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Codes
    offsets: Ints


class Vocabulary:
    """Numbers terms in the order of first sight; the ids hold for one process only."""

    def __init__(self) -> None:
        """Start without terms."""
        self.terms: list[str] = []
        self._ids: dict[str, int] = {}

    def id(self, term: str) -> int:
        """The id of a term, which is added when it is new."""
        found = self._ids.setdefault(term, len(self.terms))
        if found == len(self.terms):
            self.terms.append(term)
        return found

    def find(self, term: str) -> int:
        """The id of a term, or -1 when no text had it so far."""
        return self._ids.get(term, -1)

    def __len__(self) -> int:
        """How many terms there are so far."""
        return len(self.terms)
