"""The bias studies that are built in, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from whyrank.core import UnknownName, WhyrankError, call_of, check_text, check_whole, generator
from whyrank.data import Collection
from whyrank.studies import Contrasts
from whyrank.studies.bias.filters import Scorer, filtered
from whyrank.studies.bias.grid import CLUSTERS, Grid
from whyrank.studies.bias.letters import PostfixLetter
from whyrank.studies.bias.slots import SLOT, Slotted, ValueClass
from whyrank.studies.bias.templates import (
    HEAD,
    JUDGED,
    JUDGED_HEAD,
    Found,
    Scan,
    Template,
    found_templates,
    given_templates,
    written_templates,
)
from whyrank.studies.bias.values import DOUBTFUL, values_of
from whyrank.studies.bias.wordings import WHEN_YEAR_PUBLISHED, WORDINGS

# The general bias study: the values of a class take turns in a slot of texts, for queries that name none of them.

FOUND, WRITTEN, BOTH, PUBLISHED = "found", "written", "both", "published"
COMPAT = "relevance-thesaurus"
_NAMED, _UNSEEN = "by a value in the query", "not looked at"
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


@dataclass(frozen=True)
class Substitution:
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
    cluster: str = "both"
    most: int = MOST
    compat: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.values, int | float) and not isinstance(self.values, bool):
            object.__setattr__(self, "values", str(self.values))
        for what in ("values", "head", "term", "queries", "templates", "query", "doc", "filters", "compat"):
            check_text(what, getattr(self, what))
            if what != "filters" and getattr(self, what) == "":
                raise WhyrankError(f"bias/{self.name}: {what}= is empty; give a value or leave it out")
        check_whole("most", self.most, 1)
        check_whole("seed", self.seed, 0)
        if self.cluster not in CLUSTERS:
            raise UnknownName("cluster of templates", self.cluster, CLUSTERS)
        if self.compat not in (None, COMPAT):
            raise UnknownName("compat mode of bias studies", str(self.compat), (COMPAT,))
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
    def symmetric(self) -> bool:
        """No value is the favoured one."""
        return True

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

    @property
    def wanted(self) -> str:
        """Where templates come from."""
        if self.templates is not None:
            return self.templates
        published = self.compat is not None and self.name == "when-year"
        return PUBLISHED if published else self.preset.templates

    @property
    def kept_by(self) -> str:
        """The filters."""
        if self.filters is not None:
            return self.filters
        return PUBLISHED_FILTERS if self.compat and self.name == "car-brand" else self.preset.filters

    def contrasts(self, collection: Collection) -> Contrasts:
        """Every template with every two values; filters that ask a ranker let all pass."""
        return self.grid(collection).contrasts()

    def grid(self, collection: Collection, scores: Scorer | None = None) -> Grid:
        """The templates that stay, and the values; `scores` gives a ranker's scores of templates as they are."""
        scan = scan_of(collection, self.value_class)
        candidates = self._candidates(collection, scan)
        unique = list(dict.fromkeys(template for found in candidates.values() for template in found.templates))
        templates, dropped = filtered(unique, self.kept_by, scores)
        dropped = {why: found.besides for why, found in candidates.items() if found.besides} | dropped
        kept = self._drawn(templates)
        if len(templates) > len(kept):
            dropped["not drawn"] = len(templates) - len(kept)
        doubtful = self.value_class.doubtful
        counts = [np.nan if value in doubtful else float(scan.counts[value]) for value in self.value_class.values]
        term = self.term or self.head or self.preset.head
        values = self.value_class.values
        ordered = self.preset.ordered and list(values) == sorted(values, key=lambda value: (len(value), value))
        return Grid(kept, values, self.cluster, term, False, np.array(counts), dropped, ordered)

    def _candidates(self, collection: Collection, scan: Scan) -> dict[str, Found]:
        """Templates, by the reason why others besides them are none."""
        if self.query is not None and self.doc is not None:
            return {"": Found([Template(self.query, Slotted.of(self.doc))])}
        wanted = self.wanted
        if wanted == PUBLISHED:
            return {_NAMED: self._published()}
        if wanted not in (FOUND, WRITTEN, BOTH):
            return {"": Found(given_templates(_file(wanted)))}
        if wanted == WRITTEN and self.name not in WORDINGS:
            raise WhyrankError(f"bias/{self.name} has no written templates; give templates={FOUND}, or a file")
        written = {_NAMED: written_templates(WORDINGS.get(self.name, ()), self.value_class)}
        found = {} if wanted == WRITTEN else {_UNSEEN: self._found(collection, scan)}
        return found if wanted == FOUND else written | found

    def _found(self, collection: Collection, scan: Scan) -> Found:
        queries, head = self.queries or self.preset.queries, self.head or self.preset.head
        return found_templates(collection, scan, queries, head, POOL * max(self.most, MOST), self.seed)

    def _published(self) -> Found:
        if self.name != "when-year":
            raise WhyrankError(f"bias/{self.name} has no published templates; only bias/when-year has")
        return written_templates(WHEN_YEAR_PUBLISHED, self.value_class)

    def _drawn(self, templates: list[Template]) -> list[Template]:
        if len(templates) <= self.most:
            return templates
        drawn = generator(self.seed, "bias", "templates").choice(len(templates), self.most, replace=False)
        return [templates[i] for i in sorted(drawn.tolist())]


def scan_of(collection: Collection, values: ValueClass) -> Scan:
    """The scan of a collection for a class, done once."""
    known = _scans.setdefault(collection, {})
    if values not in known:
        known[values] = Scan.of(collection, values)
    return known[values]


def _file(path: str) -> str:
    if not Path(path).is_file():
        ways = f"{FOUND}, {WRITTEN}, {BOTH}, {PUBLISHED} or a file: query, tab, text with {SLOT}"
        raise WhyrankError(f"templates {path!r} is no file; give {ways}")
    return path


LETTERS = "bias/postfix-letter"


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
