"""Classes of document terms that should be alike: built-in lists, patterns, entity types, neighbours in vectors.

Studies ask about words, so this is also where the terms of a table are matched with the words of a collection.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from whyrank.core import Ints, generator
from whyrank.data import Collection, texts_of
from whyrank.studies.bias import LISTS, doc_term, spelled, values_of
from whyrank.tables import TermTable
from whyrank.text.annotation.annotator import annotator
from whyrank.text.vectors import Vectors

FEWEST, LARGEST = 4, 30
MOST_TERMS = 2_000  # document terms whose neighbours are looked up
MOST_NEIGHBOURHOODS, NEIGHBOURS, NEAR = 50, 12, 0.6
TEXTS = 400  # texts that are annotated
MOSTLY = 0.6  # share of a word's occurrences that must be of one entity type
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
_TERM = re.compile(r"[a-z]{3,}")
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


@dataclass(frozen=True, eq=False)
class SurfaceForms:
    """For terms of a table, the word that stands for it in texts; the term itself where no text has one."""

    forms: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)

    def of(self, term: str) -> str:
        """The commonest word behind a term."""
        return self.forms.get(term, term)


def words_of(collection: Collection, table: TermTable, pipeline: str | None = None, seed: int = 0) -> SurfaceForms:
    """Read all texts and queries; with a pipeline, annotate some texts for the entity types of words."""
    counts: Counter[str] = Counter()
    for text in (*collection.queries.values(), *collection.docs.values()):
        counts.update(word.lower() for word in _WORD.findall(text))
    analyzer, wanted = str(table.facts.get("analyzer", "")), {*table.query_terms, *table.doc_terms}
    forms: dict[str, str] = {}
    for word, _ in counts.most_common():
        term = spelled(analyzer, word, False)
        if term in wanted:
            forms.setdefault(term, word)
    return SurfaceForms(forms, _entity_types(collection, analyzer, pipeline, seed) if pipeline else {})


def _entity_types(collection: Collection, analyzer: str, pipeline: str, seed: int) -> dict[str, str]:
    """The entity type of terms that are mostly, and alone, an entity of one type, in texts drawn at random."""
    ids = sorted(collection.docs)
    if len(ids) > TEXTS:
        ids = [ids[i] for i in generator(seed, "surprises", "entities").choice(len(ids), TEXTS, replace=False)]
    labels: dict[str, Counter[str]] = {}
    for annotated in annotator(pipeline).annotate(texts_of(collection.docs, ids)):
        types = {e.start: e.label for e in annotated.entities if e.end == e.start + 1}
        for i, word in enumerate(annotated.tokens):
            labels.setdefault(spelled(analyzer, word.lower(), False), Counter())[types.get(i, "")] += 1
    most = {term: found.most_common(1)[0] for term, found in labels.items()}
    return {t: label for t, (label, n) in most.items() if label and n >= MOSTLY * labels[t].total()}


@dataclass(frozen=True)
class TermClass:
    """Document terms of a class by their numbers in the table, and how studies write them."""

    name: str
    numbers: tuple[int, ...]
    values: tuple[str, ...]

    @classmethod
    def of(cls, name: str, members: Iterable[tuple[int, str]]) -> TermClass:
        """The class of some numbers and values; a number that comes twice has the last value."""
        unique = dict(members)
        return cls(name, tuple(unique), tuple(unique.values()))

    def __len__(self) -> int:
        return len(self.numbers)


def classes_of(
    table: TermTable, vectors: Vectors | None = None, words: SurfaceForms | None = None, values: str | None = None
) -> list[TermClass]:
    """All classes with at least four document terms that have entries; of a large one, the terms with most entries.

    `words` says how a collection writes terms, and their entity types; `values` adds a class of one's own, as for
    `bias/substitution`.
    """
    words = words or SurfaceForms()
    used = np.bincount(table.indices, minlength=len(table.doc_terms))
    found = list(_named(table, words, values))
    found += _neighbourhoods(table, used, vectors, words) if vectors is not None else []
    kept = []
    for each in found:
        members = [pair for pair in zip(each.numbers, each.values, strict=True) if used[pair[0]]]
        if len(members) > LARGEST:
            members = sorted(sorted(members, key=lambda pair: -used[pair[0]])[:LARGEST])
        if len(members) >= FEWEST:
            kept.append(TermClass.of(each.name, members))
    return kept


def _named(table: TermTable, words: SurfaceForms, own: str | None) -> Iterator[TermClass]:
    """The built-in lists and one's own, in the spelling of the table; patterns; terms of one entity type."""
    lists = {name: LISTS[name] for name in PRESET_OF if name in LISTS} | ({own: values_of(own)} if own else {})
    for name, values in lists.items():
        numbers = [(table.doc_numbers.get(doc_term(table, value), -1), value) for value in values]
        yield TermClass.of(name, [(number, value) for number, value in numbers if number >= 0])
    for name, pattern in PATTERNS.items():
        fits = re.compile(pattern).fullmatch
        yield TermClass.of(name, [(i, term) for i, term in enumerate(table.doc_terms) if fits(term)])
    for label in _ENTITIES:
        terms = [term for term, found in words.entities.items() if found == label and term in table.doc_numbers]
        yield TermClass.of(f"entity {label}", [(table.doc_numbers[term], words.of(term)) for term in terms])


def _neighbourhoods(table: TermTable, used: Ints, vectors: Vectors, words: SurfaceForms) -> Iterator[TermClass]:
    """Around the words with most entries, the nearest others; none that is mostly another one again."""
    order = np.argsort(-used, kind="stable")
    frequent = [int(i) for i in order if used[i] and _TERM.fullmatch(table.doc_terms[int(i)])][:MOST_TERMS]
    numbers = np.array(frequent, dtype=np.int64)
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
        yield TermClass.of(f"near {table.doc_terms[numbers[i]]}", members)
        if len(taken) == MOST_NEIGHBOURHOODS:
            return
