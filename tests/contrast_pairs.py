"""Contrasts one at a time, for tests that look at texts."""

from __future__ import annotations

from collections.abc import Iterator

from whyrank.studies import Contrasts, Pair


def pairs_of(contrasts: Contrasts) -> Iterator[Pair]:
    for row in range(len(contrasts)):
        yield Pair(contrasts.queries[contrasts.query[row]], tuple(contrasts.docs[d] for d in contrasts.doc[row]))
