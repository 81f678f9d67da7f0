"""Tests of a term table for what should be alike and is not: the values of a class, and characters at word ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Call, Flags, Floats, Ints, adjust, generator
from whyrank.learners.surprises.classes import FEWEST, PRESET_OF, TermClass, Words
from whyrank.studies.bias import PRESETS, Clustered, centred, cluster_scores, value_p
from whyrank.tables import TermTable, cut_at

VALUE, SPREAD, APPENDED, EVIDENCE = "value", "spread", "appended", "evidence"
NULLS = {
    VALUE: "over query terms, the value's difference from the rest of its class is symmetric about zero",
    SPREAD: "the class is as alike as random document terms of the same query term",
    APPENDED: "the weights of a word's forms that are one character longer are exchangeable",
    EVIDENCE: "the two terms are independent in the documents of the collection",
}
MOST_ROWS, MOST_SPREADS = 200, 50  # query terms with most entries of a class: over all of them, and one by one
FIRST_DRAWS, MORE_DRAWS, ENOUGH = 200, 2_000, 10
STANDS_OUT = 0.05
FEWEST_ROWS = 6  # fewer cannot be significant at 5%
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
CHARACTER_DRAWS = 5_000  # at most


@dataclass(frozen=True)
class Surprise:
    """One odd thing.

    `value` is what the study varies, `weight` its weight in the table (a mean over `n` query terms or words), and
    `others` what the rest of its class has; for evidence, `n` is in how many documents both terms are, and `others`
    in how many they would be by chance. `direction` is +1 where the table weighs more than it should. `confirmed` is
    None until the study was asked; `outcome` says what it answered.
    """

    kind: str
    group: str
    query_term: str
    value: str
    weight: float
    others: float
    n: int
    direction: int
    p_value: float
    study: str
    p_adjusted: float = float("nan")
    confirmed: bool | None = None
    outcome: str = ""

    @property
    def null(self) -> str:
        """What is tested."""
        return NULLS[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self) | {"null": self.null}


def corrected(found: Sequence[Surprise], method: str) -> list[Surprise]:
    """The surprises with p-values corrected over all of them, the surest first; of equals the largest difference.

    Where differences are figures of other things, as for evidence, the larger weight.
    """

    def size(s: Surprise) -> float:
        return s.weight if s.kind == EVIDENCE else abs(s.weight - s.others)

    adjusted = adjust(np.array([s.p_value for s in found]), method).tolist()
    made = [replace(s, p_adjusted=p) for s, p in zip(found, adjusted, strict=True)]
    return sorted(made, key=lambda s: (s.p_adjusted, s.p_value, -size(s)))


# The values of a class.


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
    study, found = _study(group, None), []
    sums = cluster_scores(weights, np.arange(len(weights), dtype=np.int32))
    for one in against_rest(sums, permutations, seed):
        mean, others = float(weights[:, one.value].mean()), float(weights[:, one.others].mean())
        direction, value = 1 if mean >= others else -1, group.values[one.value]
        found.append(
            Surprise(VALUE, group.name, "", value, mean, others, len(weights), direction, one.p_value, study)
        )
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
            middle = float(np.median(weights[here]))
            odd = here[int(np.argmax(np.abs(weights[here] - middle)))]
            direction, value, weight = 1 if weights[odd] >= middle else -1, group.values[odd], float(weights[odd])
            study = _study(group, (words or Words()).of(term))
            found.append(Surprise(SPREAD, group.name, term, value, weight, middle, len(here), direction, p, study))
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
    values, preset = {"values": _values(group)}, PRESET_OF.get(group.name)
    if preset is not None and term in (None, PRESETS[preset].head):
        return str(Call(f"bias/{preset}", None, values if group.name == "years" else {}))
    rest = {"queries": "head", "head": term} if term else {}
    return str(Call("bias/substitution", None, values | rest))


def _values(group: TermClass) -> str:
    """The values as a study takes them; of a file whose values have a plus, the file, else those without one."""
    plain = [value for value in group.values if "+" not in value]
    if len(plain) < len(group) and Path(group.name).is_file():
        return group.name
    return "+".join({value.casefold(): value for value in plain}.values())


def censored(table: TermTable, name: str, known: Flags) -> list[Unjudged]:
    """What is judged with weights missing, how many, and what they count as."""
    missing, top = 1 - float(known.mean()), cut_at(table)
    if missing == 0:
        return []
    last = f", or as the last of a query term's best {top:,} where it has so many" if top else ""
    return [Unjudged(name, f"{missing:.0%} of the weights are missing and count as zero{last}{_below(table)}")]


def _below(table: TermTable) -> str:
    absent = absent_entries(table)
    return f"; {absent} are not in this table" if absent else ""


def absent_entries(table: TermTable) -> str:
    """Which entries a table leaves out, in words; empty where nothing says so."""
    limit, top = table.facts.get("threshold"), cut_at(table)
    weak = f"entries below {limit:g}" if isinstance(limit, int | float) and limit > 0 else ""
    more = f"entries after the best {top:,} of a query term" if top else ""
    return " and ".join(each for each in (weak, more) if each)


# Characters at the end of words.


class Forms(NamedTuple):
    """Longer forms: numbers of the word and of the appended character, the weight, and whether there is an entry."""

    words: Ints
    characters: Ints
    weights: Floats
    present: Flags


def appended_surprises(table: TermTable, permutations: int, seed: int) -> Tested:
    """For each character, whether words that have it appended weigh more, or less, than their other longer forms.

    As among the values of a class, a character that stands out is taken away before the others are compared.
    """
    forms, random, found = _forms(table), generator(seed, "surprises", "appended"), list[Surprise]()
    left = _letters(forms, min(permutations, CHARACTER_DRAWS), random)
    if len(left) < 2:
        return Tested([], [Unjudged("appended", "fewer than two characters end three longer forms of query terms")])
    partly, least = censored(table, "appended", forms.present), max(2, len(left) / 2)
    while len(left) > least and (odd := min(left, key=_sureness)).p_value * len(left) < STANDS_OUT:
        found.append(odd)
        forms = _without(forms, odd.value)
        left = _letters(forms, min(permutations, CHARACTER_DRAWS), random)
    return Tested(found + left, [], partly)


def _letters(forms: Forms, permutations: int, random: np.random.Generator) -> list[Surprise]:
    """Every character of three forms or more against the other forms of the same words."""
    counts = np.bincount(forms.characters, minlength=len(CHARACTERS))
    known = np.flatnonzero(counts >= 3).tolist()
    if not known:
        return []
    gaps = _gaps(forms)
    p = _label_p(forms, gaps, permutations, random)
    sums = [np.bincount(forms.characters, weights=each, minlength=len(CHARACTERS)) for each in (forms.weights, gaps)]
    means, over = (each / np.maximum(counts, 1) for each in sums)
    found = []
    for i in known:
        mean, others, direction = float(means[i]), float(means[i] - over[i]), 1 if over[i] >= 0 else -1
        study = str(Call("bias/postfix-letter", None, {} if i < 26 else {"values": "+".join(CHARACTERS)}))
        figures = (mean, others, int(counts[i]), direction, float(p[i]))
        found.append(Surprise(APPENDED, "appended", "", CHARACTERS[i], *figures, study))
    return found


def _sureness(surprise: Surprise) -> tuple[float, float]:
    """Lowest for the least p-value, of equals for the largest difference."""
    return surprise.p_value, -abs(surprise.weight - surprise.others)


def _without(forms: Forms, character: str) -> Forms:
    """The forms without those of one character, of words that still have two or more."""
    kept = forms.characters != CHARACTERS.index(character)
    kept &= np.bincount(forms.words[kept], minlength=int(forms.words.max()) + 1)[forms.words] > 1
    return Forms(*(column[kept] for column in forms))


def _forms(table: TermTable) -> Forms:
    """The longer forms of query terms that have two or more: `most_unseen` where the table has no entry."""
    found, unseen = [], most_unseen(table)
    for word, term in enumerate(table.query_terms):
        if len(term) >= 3 and term.isalpha():
            longer = [(i, term + c) for i, c in enumerate(CHARACTERS) if term + c in table.doc_numbers]
            forms = [
                (word, i, max(table.weight(term, form), unseen[word]), table.has(term, form)) for i, form in longer
            ]
            found += forms if len(forms) > 1 else []
    words, characters, weights, present = zip(*found, strict=True) if found else ((), (), (), ())
    numbers, columns = np.array([words, characters], np.int64), np.array([weights, present], np.float64)
    return Forms(numbers[0], numbers[1], columns[0], columns[1] > 0)


def _gaps(forms: Forms) -> Floats:
    """How much more a form weighs than the other longer forms of its word do on average."""
    _, words = np.unique(forms.words, return_inverse=True)
    size = np.bincount(words)[words]
    others = (np.bincount(words, weights=forms.weights)[words] - forms.weights) / (size - 1)
    return forms.weights - others


def _label_p(forms: Forms, gaps: Floats, draws: int, random: np.random.Generator) -> Floats:
    """Two-sided, for each character, when the weights of each word's forms are shuffled among them."""
    shown = np.zeros((len(gaps), len(CHARACTERS)))
    shown[np.arange(len(gaps)), forms.characters] = 1.0
    least, hits = np.abs(gaps @ shown) * (1 - 1e-10), np.zeros(len(CHARACTERS))
    most = max(1, 2_000_000 // len(gaps))
    for start in range(0, draws, most):
        order = np.argsort(random.random((min(most, draws - start), len(gaps))) + forms.words, axis=1)
        hits += np.count_nonzero(np.abs(gaps[order] @ shown) >= least, axis=0)
    p: Floats = (1 + hits) / (1 + draws)
    return p
