"""The four kinds of surprise, each with its test.

A value of a class against the rest of it; the spread of a class for one query term; characters at the end of longer
forms of query terms; and entries that the documents of a collection contradict.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from whyrank.core import Call, Flags, Floats, Ints, WhyrankError, generator
from whyrank.data import Collection
from whyrank.learners.surprises.classes import FEWEST, PRESET_OF, SurfaceForms, TermClass
from whyrank.learners.surprises.surprise import (
    APPENDED,
    EVIDENCE,
    SPREAD,
    STANDS_OUT,
    VALUE,
    Surprise,
    TestedSurprises,
    Unjudged,
    absent_note,
    most_unseen,
    note_missing,
)
from whyrank.studies.bias import PRESETS, Clustered, centred, cluster_scores, value_p
from whyrank.tables import TermTable, self_entries
from whyrank.text import analyzers

# Values of a class that should be alike.

MOST_ROWS, MOST_SPREADS = 200, 50  # query terms with most entries of a class: over all of them, and one by one
FIRST_DRAWS, MORE_DRAWS, ENOUGH = 200, 2_000, 10
FEWEST_ROWS = 6  # fewer cannot be significant at 5%


def value_surprises(table: TermTable, group: TermClass, permutations: int, seed: int) -> TestedSurprises:
    """Each value of a class against the others, over the query terms that have an entry for half of them or more."""
    cells = _cells(table, group)
    full = cells.present.mean(axis=1) >= 0.5
    if np.count_nonzero(full) < FEWEST_ROWS:
        why = f"fewer than {FEWEST_ROWS} query terms have entries for half of the class{absent_note(table)}"
        return TestedSurprises([], [Unjudged(group.name, why)])
    weights, known = cells.weights[full], (cells.present | cells.own)[full]
    study, found = _study(group, None), []
    sums = cluster_scores(weights, np.arange(len(weights), dtype=np.int32))
    for one in against_rest(sums, permutations, seed):
        mean, others = float(weights[:, one.value].mean()), float(weights[:, one.others].mean())
        figures = mean, others, len(weights), 1 if mean >= others else -1, one.p_value
        found.append(Surprise(VALUE, group.name, "", group.values[one.value], *figures, study))
    return TestedSurprises(found, [], note_missing(table, group.name, known))


def spread_surprises(
    table: TermTable, group: TermClass, permutations: int, seed: int, words: SurfaceForms | None = None
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
            study = _study(group, (words or SurfaceForms()).of(term))
            found.append(Surprise(SPREAD, group.name, term, group.values[odd], *figures, study))
    return found


class ClassWeights(NamedTuple):
    """The weights of some query terms (rows) and the terms of a class; `most_unseen` where the table has no entry.

    `own`: where a term meets itself, which says nothing of its class; there stands the mean of the rest of the row.
    """

    rows: Ints
    weights: Floats
    present: Flags
    own: Flags


def _cells(table: TermTable, group: TermClass, most: int = MOST_ROWS) -> ClassWeights:
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
    return ClassWeights(chosen, np.where(own, others, weights), present & ~own, own)


class ValueTest(NamedTuple):
    """The number of a value of a class, those that it is compared with, and the p-value."""

    value: int
    others: list[int]
    p_value: float


def against_rest(sums: Clustered, permutations: int, seed: int) -> list[ValueTest]:
    """Every value against the others; one that stands out is taken away before the rest are compared.

    Else one extreme value moves the mean of the class, and all others differ from it. The most extreme value goes as
    long as its p-value times the number of values is below 5%, up to half of the class.
    """
    values = sums.cells.effects.shape[1]
    left = list(range(values))
    found: list[ValueTest] = []
    while True:
        here = sums.map_effects(lambda effects: centred(effects[:, left]))
        p = value_p(here, permutations, seed)
        odd = int(np.argmax(np.abs(here.cells.effects.sum(axis=0))))
        if p[odd] * len(left) >= STANDS_OUT or len(left) <= max(FEWEST, values / 2):
            return found + [ValueTest(i, [j for j in left if j != i], float(p[k])) for k, i in enumerate(left)]
        number = left.pop(odd)
        found.append(ValueTest(number, list(left), float(p[odd])))


def _spread_p(weights: Floats, whole: Floats, permutations: int, random: np.random.Generator) -> float:
    """Few draws first; more of them until enough are as wide, else chance decides what a small p-value is."""
    hits, draws, size, chosen = 0, 0, FIRST_DRAWS, len(weights)
    while hits < ENOUGH and draws < permutations:
        size = min(size, permutations - draws)
        if len(whole) > 20 * chosen:  # of many numbers, drawing one twice is too rare to matter
            sets = random.integers(0, len(whole), size=(size, chosen))
        else:
            sets = np.argpartition(random.random((size, len(whole))), chosen - 1, axis=1)[:, :chosen]
        hits += int(np.count_nonzero(whole[sets].var(axis=1) >= weights.var() * (1 - 1e-10)))
        draws, size = draws + size, MORE_DRAWS
    return (1 + hits) / (1 + draws)


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


# Characters at the end of words.

CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DRAWS = 5_000  # at most


class Forms(NamedTuple):
    """Longer forms: numbers of the word and of the appended character, the weight, and whether there is an entry."""

    words: Ints
    characters: Ints
    weights: Floats
    present: Flags


def appended_surprises(table: TermTable, permutations: int, seed: int) -> TestedSurprises:
    """For each character, whether words that have it appended weigh more, or less, than their other longer forms.

    As among the values of a class, a character that stands out is taken away before the others are compared.
    """
    forms, random, found = _forms(table), generator(seed, "surprises", "appended"), list[Surprise]()
    left = _letters(forms, min(permutations, DRAWS), random)
    if len(left) < 2:
        return TestedSurprises(
            [], [Unjudged("appended", "fewer than two characters end three longer forms of query terms")]
        )
    partly, least = note_missing(table, "appended", forms.present), max(2, len(left) / 2)
    while len(left) > least:
        odd = min(left, key=lambda s: (s.p_value, -abs(s.weight - s.others)))
        if odd.p_value * len(left) >= STANDS_OUT:
            break
        found.append(odd)
        kept = forms.characters != CHARACTERS.index(odd.value)
        kept &= np.bincount(forms.words[kept], minlength=len(table.query_terms))[forms.words] > 1
        forms = Forms(*(column[kept] for column in forms))  # of words that still have two or more
        left = _letters(forms, min(permutations, DRAWS), random)
    return TestedSurprises(found + left, [], partly)


def _letters(forms: Forms, permutations: int, random: np.random.Generator) -> list[Surprise]:
    """Every character of three forms or more against the other forms of the same words."""
    counts = np.bincount(forms.characters, minlength=len(CHARACTERS))
    known = np.flatnonzero(counts >= 3).tolist()
    if not known:
        return []
    _, words = np.unique(forms.words, return_inverse=True)
    siblings = np.bincount(words, weights=forms.weights)[words] - forms.weights
    gaps = forms.weights - siblings / (np.bincount(words)[words] - 1)  # from the mean of a word's other forms
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


# Corpus evidence: strong entries whose terms avoid each other, weak ones whose terms seek each other.

SHARE, MOST = 0.05, 2_000  # of the entries, the strongest and the weakest
LEAST = 4.0  # expected documents with both terms, below which absence says nothing
NEAREST, COMPARED = 200, 5  # terms that are as frequent, and those of them in the study


class Postings(NamedTuple):
    """For every term of a collection that a table has, the documents that it is in; and how many there are."""

    docs: dict[str, Ints]
    size: int


def postings_of(collection: Collection, table: TermTable) -> Postings:
    """Analyse every text as the table's analyzer does."""
    learned = str(table.facts.get("analyzer") or "lucene")
    try:
        analyzer = analyzers.create(learned)
    except WhyrankError as error:
        raise WhyrankError(f"the table was learned with {learned}: {error}; leave out the collection") from None
    tokens = analyzer.docs(list(collection.docs.values()))
    doc = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets))
    ids, docs = np.unique(np.stack([tokens.ids.astype(np.int64), doc]), axis=1)
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    terms = [analyzer.vocabulary.terms[i] for i in ids[starts].tolist()]
    wanted = {*table.query_terms, *table.doc_terms}
    found = zip(terms, np.split(docs, starts[1:]), strict=True)
    return Postings({term: own for term, own in found if term in wanted}, len(collection.docs))


def evidence_surprises(table: TermTable, postings: Postings) -> TestedSurprises:
    """Strong entries that are together in too few documents, and weak ones of whole rows that are in too many."""
    order = np.argsort(-table.weights, kind="stable")
    order = order[~self_entries(table)[order]]
    whole = np.diff(table.indptr) >= 0.9 * len(table.doc_terms)
    ascending = order[whole[table.row_numbers()[order]]][::-1]
    strong, weak = (side[: min(MOST, max(1, int(SHARE * len(side))))] for side in (order, ascending))
    above, below = _contradictions(table, postings, strong, 1), _contradictions(table, postings, weak, -1)
    unjudged = []
    if len(above) < len(strong):
        rare = f"{len(strong) - len(above):,} of {len(strong):,} strong entries have terms that are too rare"
        unjudged.append(Unjudged("evidence", rare))
    if not len(weak):
        why = "no query term has an entry for every document term, so nothing shows which weights are too small"
        unjudged.append(Unjudged("evidence", why))
    return TestedSurprises([*above, *below], unjudged)


def _contradictions(table: TermTable, postings: Postings, entries: Ints, direction: int) -> list[Surprise]:
    """How likely so few (or so many) documents with both terms are, when terms fall on documents independently.

    Entries are left out whose terms chance alone would hardly bring together.
    """
    from scipy.stats import hypergeom  # importing it takes a second, and every report imports this module

    found, rows = [], table.row_numbers()
    for entry in entries.tolist():
        term, value = table.query_terms[rows[entry]], table.doc_terms[table.indices[entry]]
        first, second = postings.docs.get(term), postings.docs.get(value)
        if first is None or second is None:
            continue
        expected = len(first) * len(second) / postings.size
        if direction > 0 and expected < LEAST:
            continue
        both = len(np.intersect1d(first, second, assume_unique=True))
        chance = hypergeom(postings.size, len(first), len(second))
        p = float(chance.cdf(both) if direction > 0 else chance.sf(both - 1))
        weight = float(table.weights[entry])
        found.append(Surprise(EVIDENCE, "evidence", term, value, weight, expected, both, direction, p, ""))
    return found


def evidence_study(table: TermTable, postings: Postings, words: SurfaceForms, surprise: Surprise) -> str:
    """The value among terms that are about as frequent and that the table weighs the other way."""
    query_term = surprise.query_term
    weights = {entry.term: entry.weight for entry in table.doc_terms_for(query_term, None)}
    size = len(postings.docs[surprise.value])
    others = (set(table.doc_terms) & postings.docs.keys()) - {surprise.value, query_term}
    terms = [term for term in others if term.isalnum()]
    near = sorted(terms, key=lambda term: (abs(len(postings.docs[term]) - size), term))[:NEAREST]
    near.sort(key=lambda term: surprise.direction * weights.get(term, 0.0))
    values = "+".join(dict.fromkeys(words.of(term) for term in (surprise.value, *near[:COMPARED])))
    return str(Call("bias/substitution", None, {"values": values, "queries": "head", "head": words.of(query_term)}))
