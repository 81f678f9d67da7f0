"""The bias studies that are built in: values that take turns in a slot of texts, and letters appended to a word."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from whyrank.core import Checked, Floats, Natural, Whole, WhyrankError, call_of, generator
from whyrank.data import Collection
from whyrank.studies.bias.filters import Scorer, apply_filters
from whyrank.studies.bias.reading import ValueComparison
from whyrank.studies.bias.templates import (
    HEAD,
    JUDGED,
    JUDGED_HEAD,
    FoundTemplates,
    Grid,
    Scan,
    Template,
    ValueContrasts,
    found_templates,
    given_templates,
    written_templates,
)
from whyrank.studies.bias.values import DOUBTFUL, PLAIN, SLOT, Slotted, ValueClass, values_of
from whyrank.text import LUCENE

FOUND, WRITTEN, BOTH, PUBLISHED = "found", "written", "both", "published"
Cluster = Literal["both", "doc", "query", "pair"]
LETTERS = "bias/postfix-letter"
POOL, MOST = 20, 500  # pairs that are looked at for every template that is kept at most, or for so many
_scans: WeakKeyDictionary[Collection, dict[ValueClass, Scan]] = WeakKeyDictionary()


class Preset(NamedTuple):
    """What a named study fills in where nothing else is said."""

    values: str | None
    head: str | None = None
    queries: str = JUDGED
    templates: str = BOTH
    filters: str = "one-value"
    ordered: bool = False


PRESETS: Mapping[str, Preset] = {
    "substitution": Preset(None, templates=FOUND),
    "car-brand": Preset("car-makes", "car", HEAD, BOTH, "one-value|without(words=car-models)|relevant(rank=20)"),
    "when-year": Preset("2000..2024", "when", JUDGED_HEAD, BOTH, "one-value", True),
    "country": Preset("countries", "country"),
    "nationality": Preset("nationalities", "people"),
    "currency": Preset("currencies", "money"),
    "first-name": Preset("first-names", "name"),
}
PUBLISHED_FILTERS = "one-value|without(words=car-models,parts=True)|relevant(above=0)"


class ValueStudy(Checked, ABC):
    """A study whose contrasts are those of a grid of templates and values."""

    registered: ClassVar[str] = "bias"
    symmetric: ClassVar[bool] = True  # no value is the favoured one
    reading: ClassVar[ValueComparison] = ValueComparison()
    cluster: Cluster
    most: Whole
    seed: Natural

    @abstractmethod
    def grid(self, collection: Collection, scores: Scorer | None = None) -> Grid:
        """The templates that stay, and the values; `scores` gives a ranker's scores of templates as they are."""

    def contrasts(self, collection: Collection) -> ValueContrasts:
        """Every template with every two values; filters that ask a ranker let all pass."""
        return self.grid(collection).contrasts()

    def contrasts_for(
        self, collection: Collection, score: Callable[[Sequence[str], Sequence[str]], Floats]
    ) -> ValueContrasts:
        """The contrasts for one ranker, whose scores filters may use."""

        def scores(templates: Sequence[Template]) -> Floats:
            return score([template.query for template in templates], [template.original for template in templates])

        return self.grid(collection, scores).contrasts()

    def draw(self, templates: list[Template], dropped: dict[str, int], purpose: str) -> list[Template]:
        """At most `most` of the templates; how many are not drawn is added to what is dropped."""
        if len(templates) <= self.most:
            return templates
        dropped["not drawn"] = len(templates) - self.most
        chosen = generator(self.seed, "bias", purpose).choice(len(templates), self.most, replace=False)
        return [templates[i] for i in sorted(chosen.tolist())]


@dataclass(frozen=True)
class Substitution(ValueStudy):
    """A study of one class of values; what is None comes from the preset of that name.

    Attributes:
        name: `substitution`, or a preset such as `car-brand`.
        values: the class: a built-in list, a range such as 2000..2024, a file with one a line, or `a+b+c`.
        head: the word of queries about the class, and the query term whose weights in a table are compared.
        term: that query term, where it is another word.
        queries: `judged` (queries that judge a text relevant), `head` (queries with the head word, for every text),
            `judged-head` (both), or a file with one query a line, for every text.
        templates: `found` in the collection, `written` (those of the preset), `both`, `published` (when-year), or a
            file: query, tab, text with `{value}`.
        query: one query instead, together with `doc`, one text with `{value}`.
        doc: one text with `{value}`.
        filters: call strings of filters, with `|` between them.
        cluster: templates that are not independent: those of one `doc`, those of one `query`, `both` kinds, or none
            but the `pair` itself.
        most: at most so many templates, drawn at random.
        compat: `relevance-thesaurus` takes the published template (when-year) and filters (car-brand).
        seed: of the draws.
    """

    name: str = "substitution"
    values: str | None = None
    head: str | None = None
    term: str | None = None
    queries: str | None = None
    templates: str | None = None
    query: str | None = None
    doc: str | None = None
    filters: str | None = None
    cluster: Cluster = "both"
    most: Whole = MOST
    compat: Literal["relevance-thesaurus"] | None = None
    seed: Natural = 0

    def __post_init__(self) -> None:
        if isinstance(self.values, int | float) and not isinstance(self.values, bool):
            object.__setattr__(self, "values", str(self.values))
        super().__post_init__()
        empty = [each.name for each in fields(self) if each.name != "filters" and getattr(self, each.name) == ""]
        if empty:
            raise WhyrankError(f"bias/{self.name}: {empty[0]}= is empty; give a value or leave it out")
        if (self.query is None) != (self.doc is None):
            raise WhyrankError(f"bias/{self.name}: query= and doc= go together: one query and one text with {SLOT}")
        if SLOT in (self.query or ""):
            raise WhyrankError(f"bias/{self.name}: query= has {SLOT}; values go into the text, doc=")

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, f"bias/{self.name}", without=("name",))

    @property
    def positive(self) -> str:
        """What +1 means, in a contrast of two values."""
        return "scores a text differently with another " + self.name.replace("substitution", "value of a class")

    @property
    def unavailable(self) -> str:
        """What is missing; empty when nothing is."""
        return "" if self.values or self.preset.values else "it needs values=a+b+c"

    @property
    def preset(self) -> Preset:
        """What is filled in where nothing else is said."""
        return PRESETS[self.name]

    @cached_property
    def value_class(self) -> ValueClass:
        """The values."""
        given = self.values or self.preset.values
        if given is None:
            raise WhyrankError(f"bias/{self.name} needs its values; write bias/{self.name}(values=a+b+c)")
        return ValueClass(values_of(given), DOUBTFUL.get(given, frozenset()))

    def grid(self, collection: Collection, scores: Scorer | None = None) -> Grid:
        """The templates that stay, and the values; `scores` gives a ranker's scores of templates as they are."""
        known = _scans.setdefault(collection, {})  # a collection is scanned for a class once
        if self.value_class not in known:
            known[self.value_class] = Scan.of(collection, self.value_class)
        scan = known[self.value_class]
        candidates = self._candidates(collection, scan)
        unique = list(dict.fromkeys(template for found in candidates.values() for template in found.templates))
        filters = self.preset.filters if self.filters is None else self.filters
        if self.filters is None and self.compat and self.name == "car-brand":
            filters = PUBLISHED_FILTERS
        templates, dropped = apply_filters(unique, filters, scores)
        dropped = {why: found.besides for why, found in candidates.items() if found.besides} | dropped
        kept = self.draw(templates, dropped, "templates")
        values, doubtful = self.value_class.values, self.value_class.doubtful
        counts = [np.nan if value in doubtful else float(scan.counts[value]) for value in values]
        term = self.term or self.head or self.preset.head
        ordered = self.preset.ordered and list(values) == sorted(values, key=lambda value: (len(value), value))
        return Grid(kept, values, self.cluster, term, False, np.array(counts), dropped, ordered)

    def _candidates(self, collection: Collection, scan: Scan) -> dict[str, FoundTemplates]:
        """Templates, by the reason why others besides them are none."""
        if self.query is not None and self.doc is not None:
            return {"": FoundTemplates([Template(self.query, Slotted.of(self.doc))])}
        by_default = PUBLISHED if self.compat and self.name == "when-year" else self.preset.templates
        wanted = self.templates or by_default
        if wanted not in (FOUND, WRITTEN, BOTH, PUBLISHED):
            if not Path(wanted).is_file():
                ways = f"{FOUND}, {WRITTEN}, {BOTH}, {PUBLISHED} or a file: query, tab, text with {SLOT}"
                raise WhyrankError(f"templates {wanted!r} is no file; give {ways}")
            return {"": FoundTemplates(given_templates(wanted))}
        if wanted == PUBLISHED and self.name != "when-year":
            raise WhyrankError(f"bias/{self.name} has no published templates; only bias/when-year has")
        has_written = self.preset.templates == BOTH
        if wanted == WRITTEN and not has_written:
            raise WhyrankError(f"bias/{self.name} has no written templates; give templates={FOUND}, or a file")
        candidates: dict[str, FoundTemplates] = {}
        if wanted != FOUND and has_written:
            name = "when-year-published" if wanted == PUBLISHED else self.name
            candidates["by a value in the query"] = written_templates(name, self.value_class)
        if wanted in (FOUND, BOTH):
            queries, head = self.queries or self.preset.queries, self.head or self.preset.head
            pairs = POOL * max(self.most, MOST)
            candidates["not looked at"] = found_templates(collection, scan, queries, head, pairs, self.seed)
        return candidates


_WORD = re.compile(r"(?<![\w-])[A-Za-z]{3,}(?![\w-])")
_QUESTION = "how what when where which who why does did can you your has have had from its"
_CARRIER = LUCENE | frozenset(_QUESTION.split())


@dataclass(frozen=True)
class PostfixLetter(ValueStudy):
    """What a letter at the end of a word that query and text share does to the score of a relevant text, per letter.

    Attributes:
        values: the letters, or any endings: as of `bias/substitution`.
        filters: call strings of filters, with `|` between them.
        cluster: pairs that are not independent: those of one `doc`, those of one `query`, `both` kinds, or none but
            the `pair` itself.
        most: at most so many pairs of a query and a text, drawn at random.
        seed: of the draws: of the pairs, and of one shared word for each.
    """

    values: str = "letters"
    filters: str = ""
    cluster: Cluster = "both"
    most: Whole = MOST
    seed: Natural = 0

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, LETTERS)

    @property
    def positive(self) -> str:
        """What +1 means, in a contrast of two letters."""
        return "scores a text differently with another letter appended to a word of the query"

    def grid(self, collection: Collection, scores: Scorer | None = None) -> Grid:
        """The texts with a letter appended to every occurrence of the word."""
        found = sorted(self._templates(collection), key=lambda t: (t.query_id, t.doc_id))
        templates, dropped = apply_filters(found, self.filters, scores)
        kept = self.draw(templates, dropped, "pairs")
        return Grid(kept, values_of(self.values), self.cluster, None, True, None, dropped)

    def _templates(self, collection: Collection) -> Iterator[Template]:
        """A template for every query and relevant text that share a word."""
        for query_id, judged in collection.qrels.items():
            query = collection.queries.get(query_id, "")
            words = {word.lower() for word in _WORD.findall(query)} - _CARRIER
            relevant = [doc_id for doc_id, grade in judged.items() if grade >= collection.grades.relevant]
            for doc_id in relevant if words else ():
                text = collection.docs.get(doc_id, SLOT)
                shared = sorted(words & {word.lower() for word in _WORD.findall(text)})
                if shared and SLOT not in text:
                    term = shared[int(generator(self.seed, "bias", query_id, doc_id).integers(len(shared)))]
                    ends = [m.end() for m in _WORD.finditer(text) if m[0].lower() == term]
                    parts = tuple(text[a:b] for a, b in pairwise([0, *ends, len(text)]))
                    yield Template(query, Slotted(parts, (PLAIN,) * len(ends)), query_id, doc_id, term=term)


class BiasFamily:
    """The general substitution study, its presets, and the study of appended letters."""

    def arguments(self, name: str) -> set[str]:
        """The arguments that a study takes."""
        made = PostfixLetter if name == LETTERS else Substitution
        return {field.name for field in fields(made)} - {"name"}

    def names(self) -> Iterable[str]:
        """Ids such as `bias/car-brand`."""
        return [*(f"bias/{name}" for name in PRESETS), LETTERS]

    def make(self, name: str, **arguments: Any) -> Substitution | PostfixLetter:
        """The study with this id."""
        if name == LETTERS:
            return PostfixLetter(**arguments)
        return Substitution(name.removeprefix("bias/"), **arguments)


family = BiasFamily()
