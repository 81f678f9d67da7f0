"""Characteristics: what can be measured on the documents of a query, to be varied or held equal.

A new one is a function of a `Pool` that gives one number per document (or a row of numbers, compared as a whole):

    @characteristics.register("digits")
    def digits(pool: Pool) -> Floats:
        "more digits"
        return np.array([sum(c.isdigit() for c in text) for text in pool.texts], dtype=float)

Its docstring says in words what a higher value is. NaN means: not measurable, never paired. From then on
`matched/digits|length`, `matched/relevance|digits` and so on exist.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from whyrank.core import Floats, Registry
from whyrank.studies.pools import Pool

Characteristic = Callable[[Pool], Floats]
characteristics: Registry[Characteristic] = Registry("characteristics", "characteristic")


@characteristics.register("relevance")
def relevance(pool: Pool) -> Floats:
    """A higher relevance grade"""
    return pool.relevance


@characteristics.register("length")
def length(pool: Pool) -> Floats:
    """More words"""
    return pool.lengths.astype(np.float64)


@characteristics.register("tf")
def tf(pool: Pool) -> Floats:
    """More of some query term and less of none"""
    return pool.counts


@characteristics.register("sum-tf")
def sum_tf(pool: Pool) -> Floats:
    """More query-term occurrences"""
    return np.asarray(pool.counts.sum(axis=1))


@characteristics.register("overlap")
def overlap(pool: Pool) -> Floats:
    """A larger share of query terms among its words"""
    total = pool.counts.sum(axis=1)
    return np.where(total > 0, total / np.maximum(pool.lengths, 1), np.nan)


def measure(name: str, pool: Pool) -> Floats:
    """A characteristic of all documents of a pool as a matrix: one row per document."""
    values = np.asarray(characteristics.factory(name)(pool), dtype=np.float64)
    return np.ascontiguousarray(values if values.ndim == 2 else values[:, None])


def in_words(name: str) -> str:
    """What a higher value of a characteristic is, in words."""
    text = (characteristics.factory(name).__doc__ or f"a higher {name}").strip().splitlines()[0].rstrip(".")
    return text[:1].lower() + text[1:]
