"""Templates: a query, and a text with a slot that goes with it; found in a collection, or given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank.core import BadInput, WhyrankError, generator
from whyrank.data import Collection, read_lines
from whyrank.studies.bias.values import SLOT, Slot, Slotted, ValueClass, mentions

JUDGED, HEAD, JUDGED_HEAD = "judged", "head", "judged-head"


class Template(NamedTuple):
    """A query and a text with a slot; `value` stood there, `others` are values that stay in the text.

    Templates that are not of a collection have no ids. `term` is the word in front of the slots, where values are
    appended to a word.
    """

    query: str
    slotted: Slotted
    query_id: str = ""
    doc_id: str = ""
    value: str = ""
    others: frozenset[str] = frozenset()
    term: str = ""

    @property
    def original(self) -> str:
        """The text as it was found; of a given one, the text around its slot."""
        return self.slotted.filled(self.value)


@dataclass(frozen=True, eq=False)
class Scan:
    """The texts of a collection that have a value of a class, as templates, and how often each value occurs."""

    values: ValueClass
    slots: dict[str, Slot]
    counts: Counter[str]

    @classmethod
    def of(cls, collection: Collection, values: ValueClass) -> Scan:
        """Read every text once."""
        slots: dict[str, Slot] = {}
        counts: Counter[str] = Counter()
        for doc_id, text in collection.docs.items():
            if slot := values.slot(text):
                slots[doc_id] = slot
                counts.update(values.counts(text))
        return cls(values, slots, counts)

    def template(self, query_id: str, query: str, doc_id: str) -> Template:
        """The template of one query and one text that has a value."""
        slot = self.slots[doc_id]
        return Template(query, slot.slotted, query_id, doc_id, slot.value, slot.others)


class Found(NamedTuple):
    """Templates, and how many there are besides."""

    templates: list[Template]
    besides: int = 0


def found_templates(
    collection: Collection, scan: Scan, queries: str, head: str | None, most: int, seed: int
) -> Found:
    """Templates of queries that name no value: judged for the text, with the head word, or from a file.

    Of all queries with the head word and all texts with a value, at most `most` pairs are drawn.
    """
    if queries in (JUDGED, JUDGED_HEAD):
        return Found(list(_judged(collection, scan, head if queries == JUDGED_HEAD else None)))
    if queries == HEAD and head is None:
        raise WhyrankError("queries=head needs the word that queries must have; give head=WORD")
    if queries != HEAD and not Path(queries).is_file():
        ways = f"{JUDGED}, {HEAD}, {JUDGED_HEAD} or a file with one query a line"
        raise WhyrankError(f"queries {queries!r} is no file; give {ways}")
    if queries == HEAD:
        asked = [(query_id, query) for query_id, query in collection.queries.items() if mentions(query, head or "")]
    else:
        asked = [(str(line.number), line.text.strip()) for line in read_lines(Path(queries))]
    free, docs = [(query_id, query) for query_id, query in asked if not scan.values.named(query)], sorted(scan.slots)
    size = len(free) * len(docs)
    drawn = np.arange(size)
    if size > most:
        drawn = np.sort(generator(seed, "bias", "pairs").choice(size, most, replace=False))
    pairs = [(*free[number // len(docs)], docs[number % len(docs)]) for number in drawn.tolist()]
    return Found([scan.template(*pair) for pair in pairs], max(0, size - most))


def _judged(collection: Collection, scan: Scan, head: str | None) -> Iterator[Template]:
    for query_id, judged in collection.qrels.items():
        query = collection.queries.get(query_id, "")
        if not query or scan.values.named(query) or (head and not mentions(query, head)):
            continue
        for doc_id, grade in judged.items():
            if grade >= collection.grades.relevant and doc_id in scan.slots:
                yield scan.template(query_id, query, doc_id)


def given_templates(path: str | Path) -> list[Template]:
    """The templates of a file: query, tab, text with `{value}`, one a line."""
    found = []
    for line in read_lines(Path(path)):
        query, tab, text = line.text.partition("\t")
        if not tab or SLOT not in text or SLOT in query or not query.strip():
            raise BadInput(path, "is no template", f"write query, tab, text with {SLOT}", line.number)
        found.append(Template(query.strip(), Slotted.of(text.strip())))
    return found


def written_templates(pairs: Iterable[tuple[str, str]], values: ValueClass) -> Found:
    """The templates of pairs of a query and a text with `{value}`; without queries that name a value."""
    made = [(query, Slotted.of(text)) for query, text in pairs]
    free = [Template(q, text, others=values.named(text.around)) for q, text in made if not values.named(q)]
    return Found(free, len(made) - len(free))
