"""How a collection writes the terms of a table: the commonest word behind each term, and its entity type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from whyrank.core import generator
from whyrank.data import Collection, texts_of
from whyrank.studies.bias import spelled
from whyrank.tables import TermTable
from whyrank.text.annotation.annotator import annotator

TEXTS = 400  # texts that are annotated
SURE = 0.6  # share of a word's occurrences that must be of one entity type
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


@dataclass(frozen=True, eq=False)
class Words:
    """For terms of a table, the word that stands for it in texts; the term itself where no text has one."""

    forms: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)

    def of(self, term: str) -> str:
        """The commonest word behind a term."""
        return self.forms.get(term, term)


def words_of(collection: Collection, table: TermTable, pipeline: str | None = None, seed: int = 0) -> Words:
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
    return Words(forms, _entities(collection, analyzer, pipeline, seed) if pipeline else {})


def _entities(collection: Collection, analyzer: str, pipeline: str, seed: int) -> dict[str, str]:
    """The entity type of terms that are mostly of one, in texts drawn at random."""
    ids = sorted(collection.docs)
    if len(ids) > TEXTS:
        ids = [ids[i] for i in generator(seed, "surprises", "entities").choice(len(ids), TEXTS, replace=False)]
    labels: dict[str, Counter[str]] = {}
    for word, label in _labelled(texts_of(collection.docs, ids), pipeline):
        labels.setdefault(spelled(analyzer, word, False), Counter())[label] += 1
    most = {term: found.most_common(1)[0] for term, found in labels.items()}
    return {t: label for t, (label, n) in most.items() if label and n >= SURE * labels[t].total()}


def _labelled(texts: list[str], pipeline: str) -> Iterator[tuple[str, str]]:
    """Every word of the texts and the type of the entity that it is alone; no type otherwise."""
    for said in annotator(pipeline).annotate(texts):
        types = {e.start: e.label for e in said.entities if e.end == e.start + 1}
        for i, word in enumerate(said.tokens):
            yield word.lower(), types.get(i, "")
