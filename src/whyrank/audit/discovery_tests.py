"""Tests of a term table for what should be alike and is not: the values of a class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank.audit.bias_statistics import Clustered, centred, cluster_scores, value_p
from whyrank.audit.bias_substitution import PRESETS
from whyrank.audit.discovery_classes import FEWEST, PRESET_OF, TermClass
from whyrank.audit.discovery_surprise import SPREAD, VALUE, Surprise
from whyrank.audit.discovery_words import Words
from whyrank.core.callstrings import Call
from whyrank.core.protocols import Flags, Floats, Ints
from whyrank.core.seeds import generator
from whyrank.data.term_table import TermTable
from whyrank.data.term_table_algebra import cut_at

MOST_ROWS, MOST_SPREADS = 200, 50  # query terms with most entries of a class: over all of them, and one by one
FIRST_DRAWS, MORE_DRAWS, ENOUGH = 200, 2_000, 10
STANDS_OUT = 0.05
FEWEST_ROWS = 6  # fewer cannot be significant at 5%


class Cells(NamedTuple):
    """The weights of some query terms (rows) and the terms of a class; `most_unseen` where the table has no entry.

    `own`: where a term meets itself, which says nothing of its class; there stands the mean of the rest of the row.
    """

    rows: Ints
    weights: Floats
    present: Flags
    own: Flags


class Compared(NamedTuple):
    """The number of a value of a class, those that it is compared with, and the p-value."""

    value: int
    others: list[int]
    p_value: float


class Unjudged(NamedTuple):
    """What could not be judged, and why."""

    what: str
    why: str


class Tested(NamedTuple):
    """Surprises, what could not be judged, and what was judged with some weights missing."""

    found: list[Surprise]
    unjudged: list[Unjudged]
    partly: Sequence[Unjudged] = ()


def value_surprises(table: TermTable, group: TermClass, permutations: int, seed: int) -> Tested:
    """Each value of a class against the others, over the query terms that have an entry for half of them or more."""
    cells = _cells(table, group)
    full = cells.present.mean(axis=1) >= 0.5
    if np.count_nonzero(full) < FEWEST_ROWS:
        why = f"fewer than {FEWEST_ROWS} query terms have entries for half of the class{_below(table)}"
        return Tested([], [Unjudged(group.name, why)])
    weights, known = cells.weights[full], (cells.present | cells.own)[full]
    study = _study(group, None)
    sums = cluster_scores(weights, np.arange(len(weights), dtype=np.int32))
    found = [_value(group, weights, one, study) for one in against_rest(sums, permutations, seed)]
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
            term = table.query_terms[row]
            study = _study(group, (words or Words()).of(term))
            found.append(_spread(group, term, here, weights[here], p, study))
    return found


def _cells(table: TermTable, group: TermClass, most: int = MOST_ROWS) -> Cells:
    """The query terms with most entries of a class, at least four each."""
    place = np.full(len(table.doc_terms), -1)
    place[list(group.numbers)] = np.arange(len(group))
    entries = np.flatnonzero(place[table.indices] >= 0)
    rows = np.searchsorted(table.indptr, entries, side="right") - 1
    counts = np.bincount(rows, minlength=len(table.query_terms))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most])
    chosen = chosen[counts[chosen] >= FEWEST]
    weights = np.repeat(most_unseen(table)[chosen][:, None], len(group), axis=1)
    number = np.full(len(table.query_terms), -1)
    number[chosen] = np.arange(len(chosen))
    kept = number[rows] >= 0
    where = number[rows[kept]], place[table.indices[entries[kept]]]
    weights[where] = table.weights[entries[kept]]
    present = np.zeros(weights.shape, bool)
    present[where] = True
    own = table.own_numbers()[chosen][:, None] == np.array(group.numbers)
    others = np.where(own, 0.0, weights).sum(axis=1, keepdims=True) / (len(group) - own.sum(axis=1, keepdims=True))
    return Cells(chosen, np.where(own, others, weights), present & ~own, own)


def most_unseen(table: TermTable) -> Floats:
    """What an absent entry of each query term counts as: zero, or the least weight that its row of the best has.

    A row that was cut at its best `top` terms says of all others that they weigh no more than its last one. As zeros
    they would look low where the whole row is high.
    """
    lowest = np.zeros(len(table.query_terms))
    for row in np.flatnonzero(np.diff(table.indptr) == (cut_at(table) or -1)).tolist():
        lowest[row] = table.weights[table.indptr[row] : table.indptr[row + 1]].min()
    return lowest


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


def _value(group: TermClass, weights: Floats, one: Compared, study: str) -> Surprise:
    mean, others = float(weights[:, one.value].mean()), float(weights[:, one.others].mean())
    direction, value = 1 if mean >= others else -1, group.values[one.value]
    return Surprise(VALUE, group.name, "", value, mean, others, len(weights), direction, one.p_value, study)


def _spread(group: TermClass, term: str, here: Ints, weights: Floats, p: float, study: str) -> Surprise:
    middle = float(np.median(weights))
    odd = int(np.argmax(np.abs(weights - middle)))
    direction = 1 if weights[odd] >= middle else -1
    value = group.values[int(here[odd])]
    return Surprise(SPREAD, group.name, term, value, float(weights[odd]), middle, len(here), direction, p, study)


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
    values, preset = {"values": _joined(group)}, PRESET_OF.get(group.name)
    if preset is not None and term in (None, PRESETS[preset].head):
        return str(Call(f"bias/{preset}", None, values if group.name == "years" else {}))
    rest = {"queries": "head", "head": term} if term else {}
    return str(Call("bias/substitution", None, values | rest))


def _joined(group: TermClass) -> str:
    """The values as a study takes them; of a file whose values have a plus, the file, else those without one."""
    plain = [value for value in group.values if "+" not in value]
    if len(plain) < len(group) and Path(group.name).is_file():
        return group.name
    return "+".join({value.casefold(): value for value in plain}.values())


def censored(table: TermTable, name: str, known: Flags) -> list[Unjudged]:
    """What is judged with weights missing, how many, and what they count as."""
    missing = 1 - float(known.mean())
    if missing == 0:
        return []
    return [Unjudged(name, f"{missing:.0%} of the weights are missing and count as {_taken_for(table)}")]


def _taken_for(table: TermTable) -> str:
    top = cut_at(table)
    last = f", or as the last of a query term's best {top:,} where it has so many" if top else ""
    return f"zero{last}{_below(table)}"


def _below(table: TermTable) -> str:
    absent = absent_entries(table)
    return f"; {absent} are not in this table" if absent else ""


def absent_entries(table: TermTable) -> str:
    """Which entries a table leaves out, in words; empty where nothing says so."""
    limit, top = table.facts.get("threshold"), cut_at(table)
    weak = f"entries below {limit:g}" if isinstance(limit, int | float) and limit > 0 else ""
    more = f"entries after the best {top:,} of a query term" if top else ""
    return " and ".join(each for each in (weak, more) if each)
