"""Classes of document terms that should be alike: built-in lists, patterns, entity types, neighbours in vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whyrank.core import Ints
from whyrank.learners.surprises.words import Words
from whyrank.studies.bias import LISTS, doc_term, values_of
from whyrank.tables import TermTable
from whyrank.text.vectors import Vectors

FEWEST, LARGEST = 4, 30
MOST_TERMS = 2_000  # document terms whose neighbours are looked up
MOST_NEIGHBOURHOODS, NEIGHBOURS, NEAR = 50, 12, 0.6
PATTERNS: Mapping[str, str] = {
    "years": r"(?:1[5-9]|20)\d\d",
    "numerals": r"(?!(?:1[5-9]|20)\d\d$)\d{1,9}",
    "ordinals": r"\d+(?:st|nd|rd|th)",
}
PRESET_OF = {
    "car-makes": "car-brand",
    "countries": "country",
    "nationalities": "nationality",
    "currencies": "currency",
    "first-names": "first-name",
    "years": "when-year",
}
_ENTITIES = ("PERSON", "GPE", "ORG", "NORP", "LOC", "PRODUCT", "LANGUAGE", "DATE")
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True)
class TermClass:
    """Document terms of a class by their numbers in the table, and how studies write them."""

    name: str
    numbers: tuple[int, ...]
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.numbers)


def classes_of(
    table: TermTable, vectors: Vectors | None = None, words: Words | None = None, values: str | None = None
) -> list[TermClass]:
    """All classes with at least four document terms that have entries; of a large one, the terms with most entries.

    `words` says how a collection writes terms, and their entity types; `values` adds a class of one's own, as for
    `bias/substitution`.
    """
    words = words or Words()
    used = np.bincount(table.indices, minlength=len(table.doc_terms))
    found = [*_listed(table, values), *_patterned(table), *_entities(table, words)]
    found += _neighbourhoods(table, used, vectors, words) if vectors is not None else []
    limited = (_limited(each, used) for each in found)
    return [each for each in limited if len(each) >= FEWEST]


def _listed(table: TermTable, own: str | None) -> Iterator[TermClass]:
    """The built-in lists, and one's own, in the spelling of the table."""
    lists = {name: LISTS[name] for name in PRESET_OF if name in LISTS} | ({own: values_of(own)} if own else {})
    for name, values in lists.items():
        numbers = [(table.doc_numbers.get(doc_term(table, value), -1), value) for value in values]
        yield _made(name, [(number, value) for number, value in numbers if number >= 0])


def _patterned(table: TermTable) -> Iterator[TermClass]:
    for name, pattern in PATTERNS.items():
        fits = re.compile(pattern).fullmatch
        yield _made(name, [(i, term) for i, term in enumerate(table.doc_terms) if fits(term)])


def _entities(table: TermTable, words: Words) -> Iterator[TermClass]:
    """Terms of one entity type."""
    for label in _ENTITIES:
        terms = [term for term, found in words.entities.items() if found == label and term in table.doc_numbers]
        yield _made(f"entity {label}", [(table.doc_numbers[term], words.of(term)) for term in terms])


def _neighbourhoods(table: TermTable, used: Ints, vectors: Vectors, words: Words) -> Iterator[TermClass]:
    """Around frequent terms, the nearest others; none that is mostly another one again."""
    numbers = np.array(_frequent(table, used), dtype=np.int64)
    rows = vectors.rows([table.doc_terms[i] for i in numbers])
    numbers, units = numbers[rows >= 0], vectors.units(rows[rows >= 0])
    taken: list[set[int]] = []
    for i in range(len(numbers)):
        likeness = units @ units[i]
        near = [int(j) for j in np.argsort(-likeness, kind="stable")[: NEIGHBOURS + 1] if likeness[j] >= NEAR]
        if len(near) < FEWEST or any(len(other & set(near)) > len(near) / 2 for other in taken):
            continue
        taken.append(set(near))
        members = [(int(numbers[j]), words.of(table.doc_terms[numbers[j]])) for j in near]
        yield _made(f"near {table.doc_terms[numbers[i]]}", members)
        if len(taken) == MOST_NEIGHBOURHOODS:
            return


def _frequent(table: TermTable, used: Ints) -> list[int]:
    """The words with most entries."""
    order = np.argsort(-used, kind="stable")
    words = (int(i) for i in order if used[i] and _WORD.fullmatch(table.doc_terms[int(i)]))
    return [number for number, _ in zip(words, range(MOST_TERMS), strict=False)]


def _limited(made: TermClass, used: Ints) -> TermClass:
    members = [pair for pair in zip(made.numbers, made.values, strict=True) if used[pair[0]]]
    if len(members) > LARGEST:
        members = sorted(sorted(members, key=lambda pair: -used[pair[0]])[:LARGEST])
    return _made(made.name, members)


def _made(name: str, members: Sequence[tuple[int, str]]) -> TermClass:
    unique = dict(members)
    return TermClass(name, tuple(unique), tuple(unique.values()))
