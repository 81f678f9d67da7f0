"""Templates: a query, and a text with a slot that goes with it; and their grid, a text for each value of a class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, Codes, Flags, Floats, Ints, WhyrankError, generator
from whyrank.data import Collection, read_lines
from whyrank.scoring import Scores
from whyrank.studies.bias.values import BUNDLED, SLOT, Slotted, ValueClass, ValueSlot, mentions
from whyrank.studies.contrasts import Categories, Contrasts, Labels, Scorer, index_texts, text_position

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
    slots: dict[str, ValueSlot]
    counts: Counter[str]

    @classmethod
    def of(cls, collection: Collection, values: ValueClass) -> Scan:
        """Read every text once."""
        slots: dict[str, ValueSlot] = {}
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


class FoundTemplates(NamedTuple):
    """Templates, and how many there are besides."""

    templates: list[Template]
    besides: int = 0


def found_templates(
    collection: Collection, scan: Scan, queries: str, head: str | None, most: int, seed: int
) -> FoundTemplates:
    """Templates of queries that name no value: judged for the text, with the head word, or from a file.

    Of all queries with the head word and all texts with a value, at most `most` pairs are drawn.
    """
    if queries in (JUDGED, JUDGED_HEAD):
        return FoundTemplates(list(_judged(collection, scan, head if queries == JUDGED_HEAD else None)))
    if queries == HEAD:
        if head is None:
            raise WhyrankError("queries=head needs the word that queries must have; give head=WORD")
        listed = [(query_id, query) for query_id, query in collection.queries.items() if mentions(query, head)]
    elif Path(queries).is_file():
        listed = [(str(line.number), line.text.strip()) for line in read_lines(Path(queries))]
    else:
        ways = f"{JUDGED}, {HEAD}, {JUDGED_HEAD} or a file with one query a line"
        raise WhyrankError(f"queries {queries!r} is no file; give {ways}")
    free, docs = [(query_id, query) for query_id, query in listed if not scan.values.named(query)], sorted(scan.slots)
    size = len(free) * len(docs)
    drawn = np.arange(size)
    if size > most:
        drawn = np.sort(generator(seed, "bias", "pairs").choice(size, most, replace=False))
    pairs = [(*free[number // len(docs)], docs[number % len(docs)]) for number in drawn.tolist()]
    return FoundTemplates([scan.template(*pair) for pair in pairs], max(0, size - most))


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


def written_templates(name: str, values: ValueClass) -> FoundTemplates:
    """The templates that come with a preset; without those whose query names a value."""
    made = given_templates(BUNDLED / f"{name}.tsv")
    free = [t._replace(others=values.named(t.slotted.around)) for t in made if not values.named(t.query)]
    return FoundTemplates(free, len(made) - len(free))


# The grid of a study: a text for every template and value, and its contrasts of two values.


@dataclass(frozen=True, eq=False)
class Grid:
    """Templates and values.

    Attributes:
        templates: a query and a text with a slot each.
        values: what goes into the slots, one after the other.
        cluster: which templates are not independent: those of one `doc`, those of one `query`, `both` kinds, or none
            but the `pair` itself.
        term: the query term whose weights in a table belong to the values; where values are appended to a word, each
            template has its own.
        appended: values are appended to the template's term, and scores are changes from the text without one.
        counts: how often each value occurs in the collection, where that is known; NaN where it is not.
        dropped: templates that were not kept, by reason.
        ordered: whether neighbours among the values are alike, as years are.
    """

    templates: Sequence[Template]
    values: tuple[str, ...]
    cluster: str = "both"
    term: str | None = None
    appended: bool = False
    counts: Floats | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.templates)

    @property
    def clusters(self) -> list[Codes]:
        """The cluster of each template, in each way that templates are clustered."""
        texts, queries = ["".join(t.slotted.parts) for t in self.templates], [t.query for t in self.templates]
        pairs = [f"{query}\t{text}" for query, text in zip(queries, texts, strict=True)]
        keys = {"doc": texts, "query": queries, "pair": pairs}
        ways = ("doc", "query") if self.cluster == "both" else (self.cluster,)
        return [index_texts(keys[way])[1] for way in ways]

    def of_values(self, kept: Flags) -> Grid:
        """The grid of some of the values."""
        values = tuple(value for value, keep in zip(self.values, kept.tolist(), strict=True) if keep)
        return replace(self, values=values, counts=None if self.counts is None else self.counts[kept])

    def texts(self) -> list[list[str]]:
        """The filled texts, a row per template and a column per value."""
        return [[t.slotted.filled(value) for value in self.values] for t in self.templates]

    def paired(self, figures: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Figures by template and value as those of the contrasts, two a row."""
        first, second = np.triu_indices(len(self.values), 1)
        return np.stack([figures[:, first], figures[:, second]], axis=-1).reshape(-1, 2)

    def by_value(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Figures of the contrasts by template and value: the first value meets all others in the first pairs."""
        values = len(self.values)
        shaped = pairs.reshape(len(self), values * (values - 1) // 2, 2)
        return np.concatenate([shaped[:, :1, 0], shaped[:, : values - 1, 1]], axis=1)

    def contrasts(self) -> ValueContrasts:
        """Every template with every two values, in the order of the values."""
        docs, codes = index_texts(text for row in self.texts() for text in row)
        queries, query = index_texts(template.query for template in self.templates)
        pairs = self.paired(codes.reshape(len(self), len(self.values)))
        numbers = np.broadcast_to(np.arange(len(self.values), dtype=np.int32), (len(self), len(self.values)))
        several = [way for way in self.clusters if way.max(initial=0) > 0] or self.clusters
        coarsest = min(several, key=lambda way: int(way.max(initial=0)))
        times = len(self.values) * (len(self.values) - 1) // 2

        def named(names: Sequence[str]) -> Categories:
            found, codes = index_texts(names)
            return Categories(np.repeat(codes, times), found)

        labels: dict[str, Labels] = {
            "query_id": named([t.query_id or t.query for t in self.templates]),
            "cluster": Categories(np.repeat(coarsest, times), [str(c) for c in range(len(self))]),
            "template": named([t.slotted.text for t in self.templates]),
            "value": Categories(self.paired(numbers), self.values),
        }
        return ValueContrasts(queries, docs, np.repeat(query, times), pairs, labels, self.dropped, self)


@dataclass(frozen=True, eq=False)
class ValueContrasts(Contrasts):
    """The contrasts of a grid; every text of the grid is scored once."""

    grid: Grid = field(default_factory=lambda: Grid((), ()))

    def scored(self, score: Scorer) -> Scores:
        """The scores of all texts; of appended values, their differences from the text without one."""
        doc, query = self.grid.by_value(self.doc), index_texts(t.query for t in self.grid.templates)[1]
        docs = self.docs
        if self.grid.appended:
            bare, number = index_texts(template.slotted.filled("") for template in self.grid.templates)
            docs, doc = [*docs, *bare], np.column_stack([doc, number + len(docs)])
        found = score(self.queries, docs, np.repeat(query, doc.shape[1]), doc.ravel())
        values = found.values.reshape(doc.shape)
        if self.grid.appended:
            values = values[:, :-1] - values[:, -1:]
        return found._replace(values=self.grid.paired(values))

    @property
    def units(self) -> int:
        """How many units can be drawn: the templates."""
        return len(self.grid)

    def drawing_order(self, seed: int, most: int) -> Ints:
        """The first templates in the order in which they are drawn: that of a hash of each."""
        templates = self.grid.templates
        keys = [text_position(seed, t.query_id or t.query, t.slotted.text) for t in templates]
        return np.argsort(np.array(keys, dtype=np.uint64), kind="stable")[:most]

    def draw(self, units: Ints) -> Contrasts:
        """The contrasts of some templates."""
        return replace(self.grid, templates=[self.grid.templates[i] for i in np.sort(units).tolist()]).contrasts()

    def cells(self, seed: int) -> npt.NDArray[np.uint64]:
        """The position of every text of every template, by value; of appended values, also without one."""
        values = [*self.grid.values, *([""] if self.grid.appended else [])]
        rows = [
            [text_position(seed, t.query, t.slotted.filled(value)) for value in values] for t in self.grid.templates
        ]
        return np.array(rows, dtype=np.uint64).reshape(len(rows), len(values))

    def take(self, rows: npt.NDArray[Any] | slice) -> Contrasts:
        """Some of the contrasts, which are no grid any more."""
        labels = dict(self.labels)
        return Contrasts(self.queries, self.docs, self.query, self.doc, labels, self.dropped).take(rows)


def finite_columns(values: Floats) -> Flags:
    """The values to compare: those with a finite score in any template; all of them where fewer than two have one."""
    known = np.asarray(np.isfinite(values).any(axis=0))
    return known if np.count_nonzero(known) > 1 else np.ones_like(known)


def finite_rows(values: Floats) -> Flags:
    """The templates that have a finite score for every value."""
    return np.asarray(np.isfinite(values).all(axis=1))
