"""Clusters of text pairs: those that share a text hang together, as contrasts of one query do elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def cluster_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """A short name for the cluster of each row: rows with a common text, also by way of other rows, have the same.

    It is made of the cluster's first text in the order of the alphabet, so that the order of rows does not matter.
    """
    above: dict[str, str] = {}
    for first, *others in rows:
        for other in others:
            low, high = sorted((_top(above, first), _top(above, other)))
            above[high] = low
    return [_short(_top(above, row[0])) for row in rows]


def _top(above: dict[str, str], text: str) -> str:
    while (higher := above.setdefault(text, text)) != text:
        above[text] = above[higher]  # half of the way is kept, so that ways stay short
        text = higher
    return text


def _short(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
