"""What the explorer works with: an audit, a collection, rankers that score what one types, edits and term tables."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from whyrank.core import Ranker, UnknownName, WhyrankError, seed_for
from whyrank.data import Collection
from whyrank.explain import Explanation, explain
from whyrank.explorer.jobs import Job, TakingTurns, Turns
from whyrank.report import Audit
from whyrank.report.audit import audit
from whyrank.report.examples import Example
from whyrank.report.words import short_names
from whyrank.scoring import Engine, one_line
from whyrank.studies import Contrasts, Finding, Pair
from whyrank.studies.bias import DOUBTFUL, LISTS, ValueClass, values_of
from whyrank.studies.pools import candidates_of
from whyrank.tables import TermTable
from whyrank.text import analyzers
from whyrank.text.annotation import Annotator
from whyrank.text.edits import Passage, edits, in_words

MOST_CHARACTERS = 200_000  # of a text
MOST_COLLECTED = 1_000
CALLS = 200  # texts that are scored for an explanation
BATCH = 4  # pairs that a job scores before others get the ranker
OFFERED = 200  # queries or documents of the collection that a list offers
SEARCHED = 20_000  # characters of a text in which values are looked for
OWN = "your own list"
MOST_VALUES = 500  # of a list of one's own
_VALUES = {name: ValueClass(values, DOUBTFUL.get(name, frozenset())) for name, values in LISTS.items()
           if name != "letters"} | {"years": ValueClass(values_of("1980..2030"))}  # fmt: skip


@dataclass(frozen=True)
class Texts:
    """What stands in the workbench: a query, the texts A and B, and both as they were before they were edited."""

    query: str = ""
    a: str = ""
    b: str = ""
    start_a: str = ""
    start_b: str = ""
    own: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Texts:
        """The texts of a form; an error where one is too long."""
        made = cls(*(fields.get(name, "") for name in ("query", "a", "b", "start_a", "start_b", "own")))
        for name, text in vars(made).items():
            if len(text) > MOST_CHARACTERS:
                what = f"{name} has {len(text):,} characters"
                raise WhyrankError(f"{what}: the explorer takes {MOST_CHARACTERS:,} at most; shorten it")
        return made

    @classmethod
    def fresh(cls, query: str, a: str, b: str = "") -> Texts:
        """Texts from elsewhere, which edits will be compared with."""
        return cls(query, a[:MOST_CHARACTERS], b[:MOST_CHARACTERS], a[:MOST_CHARACTERS], b[:MOST_CHARACTERS])

    def put(self, which: str, text: str) -> Texts:
        """The same with another text A or B."""
        return replace(self, a=text) if which == "a" else replace(self, b=text)


class Line(NamedTuple):
    """The scores of one ranker; NaN where there is none, `step` is its typical rank step where that is known."""

    ranker: str
    a: float
    b: float
    start_a: float
    start_b: float
    step: float | None
    reason: str

    @property
    def gap(self) -> float:
        """score(A) - score(B)."""
        return self.a - self.b

    def steps(self, difference: float) -> float:
        """A difference in rank steps; NaN where the step is not known."""
        return difference / self.step if self.step else float("nan")


class Offer(NamedTuple):
    """A list of values of which a text has one."""

    which: str
    name: str
    value: str
    values: Sequence[str]


@dataclass(frozen=True)
class Collected:
    """The study of what somebody typed: the text A should be above the text B."""

    pairs: tuple[Pair, ...]

    id: ClassVar[str] = "explorer/collected"
    positive: ClassVar[str] = "prefers the text A"
    symmetric: ClassVar[bool] = False

    def contrasts(self, collection: Collection) -> Contrasts:
        """The contrasts as they were collected."""
        return Contrasts.from_pairs(self.pairs)


@dataclass
class Explorer:
    """All that the pages show and do.

    Attributes:
        rankers: who scores.
        collection: where queries and documents are picked from.
        audit: the findings and examples to start from, if any.
        tables: term tables to look terms up in, by name.
        analyzer: whose stop words are stop words in edits.
    """

    rankers: Sequence[Ranker]
    collection: Collection
    audit: Audit | None = None
    tables: Mapping[str, TermTable] = field(default_factory=dict)
    analyzer: str = "lucene"

    def __post_init__(self) -> None:
        """Rankers by name, and the rank steps that the audit measured."""
        self.by_name = {ranker.name: ranker for ranker in self.rankers}
        self.names = short_names(self.by_name)
        self._turns = Turns(self.by_name)
        known = {} if self.audit is None else self.audit.record.get("thresholds", {})
        self.steps: dict[str, float | None] = {name: known.get(name, {}).get("delta") for name in self.by_name}
        own = {f"{self.names[ranker.name]}, its table": getattr(ranker, "table", None) for ranker in self.rankers}
        self.tables = {**self.tables, **{name: t for name, t in own.items() if isinstance(t, TermTable)}}
        self._engine = Engine(executor=TakingTurns(self._turns))
        self.examples = lru_cache(maxsize=256)(self._examples)

    def warm_up(self) -> None:
        """Load models and compile kernels, so that the first request need not wait for them."""
        self.scores(Texts("query", "text"))

    def scores(self, texts: Texts) -> list[Line]:
        """The scores of all rankers for the texts that are there, as they are now and as they were."""
        given = (texts.a, texts.b, texts.start_a, texts.start_b)
        docs = list(dict.fromkeys(text for text in given if text.strip()))
        if not texts.query.strip() or not docs:
            return []
        with self._turns.request():
            return self._lines(texts.query, given, docs)

    def _lines(self, query: str, given: Sequence[str], docs: Sequence[str]) -> list[Line]:
        lines = []
        for name, ranker in self.by_name.items():
            zeros, rows = np.zeros(len(docs), np.int32), np.arange(len(docs), dtype=np.int32)
            try:
                found = self._engine.score(ranker, [query], docs, zeros, rows)
                known, reasons = dict(zip(docs, found.values.tolist(), strict=True)), found.failures
                reason = one_line(reasons[0].reason) if reasons else ""
            except WhyrankError as error:  # the others have their say
                known, reason = {}, str(error)
            a, b, start_a, start_b = (known.get(text, float("nan")) for text in given)
            lines.append(Line(self.names[name], a, b, start_a, start_b, self.steps[name], reason))
        return lines

    def explanation(self, job: Job, ranker: str, texts: Texts, which: str) -> Explanation:
        """Why a ranker scores A or B as it does, or with `both` why one is above the other."""
        docs = [text for name, text in (("a", texts.a), ("b", texts.b)) if which in (name, "both")]
        if not texts.query.strip() or not all(text.strip() for text in docs):
            raise WhyrankError("there is nothing to explain: type a query and the text or texts")
        found = explain(self.ranker(ranker), texts.query, *docs, calls=CALLS, engine=self._job_engine(job))
        return replace(found, ranker=self.names[ranker])

    def study(self, job: Job, pairs: Sequence[Pair]) -> list[Finding]:
        """What every ranker answers to the collected contrasts; rank steps are measured where they are not known."""
        found = []
        calibrates = bool(self.collection.qrels or self.collection.runs)
        for name, ranker in self.by_name.items():
            known = self.steps[name] if self.steps[name] is not None or calibrates else 0.0
            answer = audit(
                ranker, self.collection, Collected(tuple(pairs)), delta=known, correction="none",
                engine=self._job_engine(job),
            )  # fmt: skip
            found += answer.findings
            if calibrates:
                self.steps[name] = answer.findings[0].delta
        return found

    def ranker(self, name: str) -> Ranker:
        """The ranker of a name."""
        if name not in self.by_name:
            raise UnknownName("ranker of the explorer", name, self.by_name)
        return self.by_name[name]

    def _job_engine(self, job: Job) -> Engine:
        return Engine(executor=TakingTurns(self._turns, job), batch_size=BATCH)

    def _examples(self, study: str, ranker: str) -> list[Example]:
        """A few contrasts of a study of the audit, those with the largest differences."""
        if self.audit is None:
            raise WhyrankError("there is no audit; start the explorer with a result folder")
        view = self.audit[study]
        if ranker not in view.rankers:
            raise UnknownName(f"ranker of {study}", ranker, view.rankers)
        return view.examples(2, ranker)

    @cached_property
    def charts(self) -> dict[str, Any]:
        """The charts of the audit, by name."""
        from whyrank.report.charts import charts_of

        return {} if self.audit is None else charts_of(self.audit)

    # What changes a text.

    @cached_property
    def edits(self) -> dict[str, str]:
        """The registered edits that need no option, in words."""
        found = {name: edits.factory(name) for name in edits.names()}
        ready = {name: edit for name, edit in found.items() if not getattr(edit, "lacking", lambda options: "")({})}
        return {name: in_words(edit) for name, edit in ready.items()}

    def edit(self, texts: Texts, which: str, name: str) -> Texts:
        """The texts with an edit applied to A or B."""
        text = getattr(texts, which)
        if name not in self.edits:
            raise UnknownName("edit", name, self.edits)
        passage = Passage(
            text, texts.query, random.Random(seed_for(0, name, text)), analyzers.create(self.analyzer),
            Annotator("en_core_web_sm"), lambda: self._nonrelevant(texts.query, text),
        )  # fmt: skip
        edited = passage.apply(edits.factory(name), {})
        if edited is None or edited == text:
            raise WhyrankError(f"the edit {name} does not change this text")
        return texts.put(which, edited)

    def offers(self, texts: Texts) -> list[Offer]:
        """The lists of values of which A or B has one."""
        lists, short = _VALUES | _own_list(texts), {which: getattr(texts, which)[:SEARCHED] for which in "ab"}
        slots = [(which, name, lists[name].slot(text)) for which, text in short.items() for name in lists]
        return [Offer(which, name, s.value, lists[name].values) for which, name, s in slots if s is not None]

    def replace_value(self, texts: Texts, which: str, name: str, value: str) -> Texts:
        """The texts with another value of a list in A or B, in all positions of the one that was there."""
        found = (_VALUES | _own_list(texts)).get(name)
        slot = found.slot(getattr(texts, which)) if found is not None else None
        if found is None or slot is None or value not in found.values:
            raise WhyrankError(f"the text has no value of {name} that {value!r} could replace")
        return texts.put(which, slot.slotted.filled(value))

    # What is picked from the collection.

    @cached_property
    def _query_ids(self) -> dict[str, str]:
        return {text: query_id for query_id, text in self.collection.queries.items()}

    @cached_property
    def _candidates(self) -> Mapping[str, list[str]]:
        return candidates_of(self.collection, "all")

    def documents(self, query: str) -> list[str]:
        """Ids of documents that are judged for a query or in one of its runs, the most relevant first."""
        query_id = self._query_ids.get(query, "")
        grades = self.collection.qrels.get(query_id, {})
        found = [doc_id for doc_id in self._candidates.get(query_id, []) if doc_id in self.collection.docs]
        return sorted(found, key=lambda doc_id: -grades.get(doc_id, -1))

    def pick_query(self, texts: Texts, given: str) -> Texts:
        """The texts with a query of the collection, by id or text; two of its documents where A and B are empty."""
        queries = self.collection.queries
        query = queries.get(given, given if given in self._query_ids else None)
        if query is None:
            raise UnknownName(f"query of {self.collection.name}", given, queries)
        if texts.a.strip() or texts.b.strip():
            return replace(texts, query=query)
        found = [self.collection.docs[doc_id] for doc_id in self.documents(query)]
        return Texts.fresh(query, *found[:2]) if found else replace(texts, query=query)

    def pick_document(self, texts: Texts, which: str, doc_id: str) -> Texts:
        """The texts with a document of the collection as A or B."""
        if doc_id not in self.collection.docs:
            raise UnknownName(f"document of {self.collection.name}", doc_id, self.documents(texts.query))
        text = self.collection.docs[doc_id][:MOST_CHARACTERS]
        return replace(texts, a=text, start_a=text) if which == "a" else replace(texts, b=text, start_b=text)

    def _nonrelevant(self, query: str, text: str) -> list[str]:
        judged = self.collection.qrels.get(self._query_ids.get(query, ""), {})
        worst, docs = self.collection.grades.nonrelevant, self.collection.docs
        return sorted(
            {docs[doc_id] for doc_id, grade in judged.items() if grade <= worst and doc_id in docs} - {text}
        )


def _own_list(texts: Texts) -> dict[str, ValueClass]:
    """The values that somebody typed with commas between them, once there are two."""
    values = tuple(dict.fromkeys(each.strip() for each in texts.own.split(",") if each.strip()))[:MOST_VALUES]
    return {OWN: ValueClass(values)} if len(values) > 1 else {}
