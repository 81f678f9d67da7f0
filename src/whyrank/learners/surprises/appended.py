"""Characters at the end of words: whether a table weighs longer forms of its query terms by their last character."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whyrank.core import Call, Flags, Floats, Ints, generator
from whyrank.learners.surprises.surprise import (
    APPENDED,
    STANDS_OUT,
    Surprise,
    Tested,
    Unjudged,
    censored,
    most_unseen,
)
from whyrank.tables import TermTable

CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DRAWS = 5_000  # at most


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
    left = _letters(forms, min(permutations, DRAWS), random)
    if len(left) < 2:
        return Tested([], [Unjudged("appended", "fewer than two characters end three longer forms of query terms")])
    partly, least = censored(table, "appended", forms.present), max(2, len(left) / 2)
    while len(left) > least:
        odd = min(left, key=lambda s: (s.p_value, -abs(s.weight - s.others)))
        if odd.p_value * len(left) >= STANDS_OUT:
            break
        found.append(odd)
        forms = _without(forms, odd.value)
        left = _letters(forms, min(permutations, DRAWS), random)
    return Tested(found + left, [], partly)


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
