"""Values of a class that should be alike in a term table: each against the rest, and the spread for a query term."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from whyrank.core import Call, Flags, Floats, Ints, generator
from whyrank.learners.surprises.classes import FEWEST, PRESET_OF, TermClass, Words
from whyrank.learners.surprises.surprise import (
    SPREAD,
    STANDS_OUT,
    VALUE,
    Surprise,
    Tested,
    Unjudged,
    censored,
    left_out,
    most_unseen,
)
from whyrank.studies.bias import PRESETS, Clustered, centred, cluster_scores, value_p
from whyrank.tables import TermTable

MOST_ROWS, MOST_SPREADS = 200, 50  # query terms with most entries of a class: over all of them, and one by one
FIRST_DRAWS, MORE_DRAWS, ENOUGH = 200, 2_000, 10
FEWEST_ROWS = 6  # fewer cannot be significant at 5%


def value_surprises(table: TermTable, group: TermClass, permutations: int, seed: int) -> Tested:
    """Each value of a class against the others, over the query terms that have an entry for half of them or more."""
    cells = _cells(table, group)
    full = cells.present.mean(axis=1) >= 0.5
    if np.count_nonzero(full) < FEWEST_ROWS:
        why = f"fewer than {FEWEST_ROWS} query terms have entries for half of the class{left_out(table)}"
        return Tested([], [Unjudged(group.name, why)])
    weights, known = cells.weights[full], (cells.present | cells.own)[full]
    study, found = _study(group, None), []
    sums = cluster_scores(weights, np.arange(len(weights), dtype=np.int32))
    for one in against_rest(sums, permutations, seed):
        mean, others = float(weights[:, one.value].mean()), float(weights[:, one.others].mean())
        figures = mean, others, len(weights), 1 if mean >= others else -1, one.p_value
        found.append(Surprise(VALUE, group.name, "", group.values[one.value], *figures, study))
    return Tested(found, [], censored(table, group.name, known))


def spread_surprises(
    table: TermTable, group: TermClass, permutations: int, seed: int, words: Words | None = None
) -> list[Surprise]:
    """For each query term, whether the variance within a class is larger than that of random sets of its terms."""
    cells, own, found = _cells(table, group, MOST_SPREADS), table.own_numbers(), []
    for row, weights, present in zip(cells.rows.tolist(), cells.weights, cells.present, strict=True):
        here = np.flatnonzero(present)
        entries = slice(table.indptr[row], table.indptr[row + 1])
        whole = table.weights[entries][table.indices[entries] != own[row]].astype(np.float64)
        if len(here) >= FEWEST and len(whole) >= 2 * len(here):
            p = _spread_p(weights[here], whole, permutations, generator(seed, "surprises", group.name, str(row)))
            term, median = table.query_terms[row], float(np.median(weights[here]))
            odd = here[int(np.argmax(np.abs(weights[here] - median)))]
            figures = float(weights[odd]), median, len(here), 1 if weights[odd] >= median else -1, p
            study = _study(group, (words or Words()).of(term))
            found.append(Surprise(SPREAD, group.name, term, group.values[odd], *figures, study))
    return found


class Cells(NamedTuple):
    """The weights of some query terms (rows) and the terms of a class; `most_unseen` where the table has no entry.

    `own`: where a term meets itself, which says nothing of its class; there stands the mean of the rest of the row.
    """

    rows: Ints
    weights: Floats
    present: Flags
    own: Flags


def _cells(table: TermTable, group: TermClass, most: int = MOST_ROWS) -> Cells:
    """The query terms with most entries of a class, at least four each."""
    shape = len(table.query_terms), len(table.doc_terms)
    numbered = csr_array((np.arange(1, len(table) + 1), table.indices, table.indptr), shape=shape)
    entries = numbered[:, list(group.numbers)]
    counts = np.diff(entries.indptr)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most])
    chosen = chosen[counts[chosen] >= FEWEST]
    entry = entries[chosen].toarray()  # counted from 1; 0 where the table has none
    present = entry > 0
    weights = np.where(present, table.weights[entry - 1].astype(np.float64), most_unseen(table)[chosen][:, None])
    own = table.own_numbers()[chosen][:, None] == np.array(group.numbers)
    others = np.where(own, 0.0, weights).sum(axis=1, keepdims=True) / (len(group) - own.sum(axis=1, keepdims=True))
    return Cells(chosen, np.where(own, others, weights), present & ~own, own)


class Compared(NamedTuple):
    """The number of a value of a class, those that it is compared with, and the p-value."""

    value: int
    others: list[int]
    p_value: float


def against_rest(sums: Clustered, permutations: int, seed: int) -> list[Compared]:
    """Every value against the others; one that stands out is taken away before the rest are compared.

    Else one extreme value moves the mean of the class, and all others differ from it. The most extreme value goes as
    long as its p-value times the number of values is below 5%, up to half of the class.
    """
    values = sums.cells.effects.shape[1]
    left = list(range(values))
    found: list[Compared] = []
    while True:
        here = sums.map_effects(lambda effects: centred(effects[:, left]))
        p = value_p(here, permutations, seed)
        odd = int(np.argmax(np.abs(here.cells.effects.sum(axis=0))))
        if p[odd] * len(left) >= STANDS_OUT or len(left) <= max(FEWEST, values / 2):
            return found + [Compared(i, [j for j in left if j != i], float(p[k])) for k, i in enumerate(left)]
        number = left.pop(odd)
        found.append(Compared(number, list(left), float(p[odd])))


def _spread_p(weights: Floats, whole: Floats, permutations: int, random: np.random.Generator) -> float:
    """Few draws first; more of them until enough are as wide, else chance decides what a small p-value is."""
    hits, draws, size = 0, 0, FIRST_DRAWS
    while hits < ENOUGH and draws < permutations:
        size = min(size, permutations - draws)
        drawn = whole[_sets(len(whole), len(weights), size, random)].var(axis=1)
        hits += int(np.count_nonzero(drawn >= weights.var() * (1 - 1e-10)))
        draws, size = draws + size, MORE_DRAWS
    return (1 + hits) / (1 + draws)


def _sets(size: int, chosen: int, draws: int, random: np.random.Generator) -> Ints:
    """Random sets of numbers below `size`; of many numbers, drawing one twice is too rare to matter."""
    if size > 20 * chosen:
        return random.integers(0, size, size=(draws, chosen))
    order: Ints = np.argpartition(random.random((draws, size)), chosen - 1, axis=1)[:, :chosen]
    return order


def _study(group: TermClass, term: str | None) -> str:
    """The study that varies the class: its preset over all query terms, or texts for queries with one term.

    The preset too where its queries are about that term: it has templates where a collection has no such query.
    """
    plain = [value for value in group.values if "+" not in value]
    joined = "+".join({value.casefold(): value for value in plain}.values())
    if len(plain) < len(group) and Path(group.name).is_file():  # values with a plus stand in a file only
        joined = group.name
    values, preset = {"values": joined}, PRESET_OF.get(group.name)
    if preset is not None and term in (None, PRESETS[preset].head):
        return str(Call(f"bias/{preset}", None, values if group.name == "years" else {}))
    rest = {"queries": "head", "head": term} if term else {}
    return str(Call("bias/substitution", None, values | rest))
