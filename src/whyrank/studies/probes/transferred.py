"""Dataset transfer probes: pairs of texts that differ in one quality, and a query for each pair.

MacAvaney et al., "ABNIRML: Analyzing the Behavior of Neural IR Models", TACL 2022 (and arXiv 2011.00696v1, 2020).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from whyrank.core import Checked, Natural, UnknownName, WhyrankError, call_of
from whyrank.data.pairs import PairSet, TextPair, open_pairs
from whyrank.studies.contrasts import Contrasts, Pair
from whyrank.studies.probes.edited import missing
from whyrank.studies.probes.queries import PUBLISHED_SEED, Discard, Draft, content_lemmas, query_strategies
from whyrank.text import analyzers
from whyrank.text.annotation.annotator import Annotation, annotator

_TRIED = 100  # pairs on which other query strategies are tried where a pair set keeps nothing


class Kind(NamedTuple):
    """What one transfer probe compares: two roles of a pair set, and where the query comes from."""

    first: str
    second: str
    pairs: str
    query: str
    positive: str
    symmetric: bool = False
    shared_word: bool = False
    keeps_identical: bool = False


KINDS: Mapping[str, Kind] = {
    "paraphrase": Kind("a", "b", "paraphrase", "noun-chunk", "scores two wordings of one thing differently", True),
    "fluency": Kind("fluent", "source", "fluency", "noun-chunk", "prefers the fluent text", keeps_identical=True),
    "fluency-spellchecked": Kind(
        "fluent",
        "spellchecked",
        "fluency",
        "noun-chunk",
        "prefers the fluent text to one that is only spell-checked",
        keeps_identical=True,
    ),
    "formality": Kind("formal", "informal", "formality", "question", "prefers the formal text", shared_word=True),
    "simplicity": Kind(
        "simple", "source", "simplicity", "noun-chunk", "prefers the simpler text", keeps_identical=True
    ),
    "neutrality": Kind("neutral", "biased", "neutrality", "noun-chunk", "prefers the neutral text"),
    "succinctness": Kind("summary", "body", "succinctness", "title", "prefers the summary", shared_word=True),
    "factuality": Kind("passage", "altered", "factuality", "question", "prefers the text with the right answer"),
}


@dataclass(frozen=True)
class Transferred(Checked):
    """Pairs of texts of a pair set, the favoured text first; the collection plays no part.

    Attributes:
        name: which quality is compared.
        pairs: a pair set: a file, `LAYOUT:PATH`, or `sample` for the bundled one.
        query: where queries come from: `noun-chunk`, `title`, `question`, `overlapping-terms`, or a registered one.
        compat: `abnirml` reproduces the released code: its draws, identical texts, answers replaced inside words.
        pipeline: the spaCy pipeline that annotates.
        entity: factuality only: one type of entity (PERSON, GPE, LOC, NORP, ORG) instead of all.
        analyzer: factuality only: counts the words of an answer.
        seed: of all that is random: queries that are noun chunks, and wrong answers; 0 draws what was published.
    """

    name: str
    pairs: str = "sample"
    query: str | None = None
    compat: Literal["abnirml"] | None = None
    pipeline: str = "en_core_web_sm"
    entity: str | None = None
    analyzer: str = "lucene"
    seed: Natural = 0

    registered: ClassVar[str] = "transferred"

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, f"transferred/{self.name}", without=("name",))

    @property
    def kind(self) -> Kind:
        """What the probe compares."""
        return KINDS[self.name]

    @property
    def positive(self) -> str:
        """What +1 means."""
        return self.kind.positive

    @property
    def symmetric(self) -> bool:
        """Paraphrases have no direction."""
        return self.kind.symmetric

    @property
    def source(self) -> str:
        """What the findings name in the place of the collection."""
        return f"pairs of {self.pairs}"

    @property
    def unavailable(self) -> str:
        """What is missing on this machine; empty when nothing is."""
        return missing(self.pipeline)

    def contrasts(self, collection: Any = None) -> Contrasts:
        """Every pair that can be asked about; the others are counted by reason."""
        run = _Transfer(self, open_pairs(self.pairs, self.kind.pairs))
        return Contrasts.from_pairs(run.pairs(), dropped=run.dropped)


class _Transfer:
    """One study on one pair set, and how many pairs could not be asked about, by reason."""

    def __init__(self, study: Transferred, given: PairSet) -> None:
        self.study, self.given = study, given
        self.dropped: Counter[str] = Counter()
        self.roles = (study.kind.first, study.kind.second)
        self.query = study.query or study.kind.query  # the name of the query strategy
        self.seed = PUBLISHED_SEED + (0 if study.compat else study.seed)
        self.factual = study.name == "factuality"
        self.given.need(*(("question", "answer", "passage") if self.factual else self.roles))

    def pairs(self) -> list[Pair]:
        """The pairs that can be asked about, each with the name of its cluster."""
        self._annotate_all()
        kept = list(self._kept())
        if self.dropped and not kept:
            self._suggest_strategy()
        names = cluster_names([self._shared_texts(given) for given, _ in kept])
        rows = zip(kept, names, strict=True)
        return [pair._replace(labels={**pair.labels, "cluster": name}) for (_, pair), name in rows]

    def _kept(self) -> Iterator[tuple[TextPair, Pair]]:
        for given in self.given:
            try:
                yield given, self._pair(given)
            except Discard as reason:
                self.dropped[str(reason)] += 1

    def _pair(self, given: TextPair) -> Pair:
        study, kind, labels = self.study, self.study.kind, dict[str, Any]()
        if self.factual:
            first, (second, labels["entity"]) = given.texts["passage"], self._answers.alter(given)
        else:
            first, second = (given.texts[role] for role in self.roles)
        if not first.strip() or not second.strip():
            raise Discard("empty text")
        if first == second and not (study.compat and kind.keeps_identical):
            raise Discard("identical")
        draft = Draft(given, first, second, self._annotation, seed=self.seed)
        query: str = query_strategies.factory(self.query)(draft)
        if kind.shared_word:  # the released code does not fold the case of the texts
            lemmas = [self._annotation(text).lemmas for text in (first, second)]
            one, two = (set(each) if study.compat else {lemma.lower() for lemma in each} for each in lemmas)
            if not content_lemmas(self._annotation(query)) & one & two:
                raise Discard("no word shared by query and both texts")
        ids = (f"{given.id}/{kind.first}", f"{given.id}/{kind.second}")
        return Pair(query, (first, second), {"query_id": given.id, "doc_ids": ids, **labels})

    def _suggest_strategy(self) -> None:
        """Add to the most frequent reason the query strategy that keeps most of the first pairs, where one does."""
        first, kept = PairSet.of(islice(self.given, _TRIED), self.given.name, self.given.source), Counter[str]()
        for name in query_strategies.names():
            with suppress(WhyrankError):  # a strategy may need what the pipeline does not give
                kept[name] = sum(1 for _ in _Transfer(replace(self.study, query=name), first)._kept())
        [(best, count)], [(reason, discarded)] = kept.most_common(1), self.dropped.most_common(1)
        if count:
            del self.dropped[reason]
            self.dropped[f"{reason} (query={best} keeps {count} of the first {len(first)})"] = discarded

    def _shared_texts(self, given: TextPair) -> list[str]:
        """What several pairs may share: a sentence that has several versions, on either side, and the question."""
        texts = [] if self.factual else [given.texts[role] for role in self.roles]
        return [*texts, given.texts["question"]] if not texts or self.query == "question" else texts

    def _annotate_all(self) -> None:
        """Annotate in one go whatever will be needed, many texts at a time."""
        if self.factual or self.study.kind.shared_word or self.query in ("noun-chunk", "overlapping-terms"):
            roles, required = ("answer",) if self.factual else self.roles, self.query in ("title", "question")
            usable = [given for given in self.given if not required or given.texts.get(self.query, "").strip()]
            texts = [given.texts[role] for given in usable for role in roles if given.texts.get(role)]
            annotator(self.study.pipeline).annotate(texts)

    def _annotation(self, text: str) -> Annotation:
        return annotator(self.study.pipeline).annotate([text])[0]

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self.given, self.study, self._annotation, self.seed)


class TransferredFamily:
    """A probe for every quality that pair sets exist for."""

    arguments = tuple(each.name for each in fields(Transferred) if each.name != "name")
    not_filled = ("pairs",)  # the command line's --pairs is about documents of a query

    def names(self) -> Iterable[str]:
        """Ids such as `transferred/fluency`."""
        return [f"transferred/{name}" for name in KINDS]

    def make(self, name: str, **arguments: Any) -> Transferred:
        """The probe with this id."""
        return Transferred(name.removeprefix("transferred/"), **arguments)


family = TransferredFamily()


# Wrong answers for the factuality probe: another answer of the same kind in the place of the right one.

ENTITIES = ("PERSON", "GPE", "LOC", "NORP", "ORG")
_WORD = re.compile(r"\w+")
_BETWEEN = r"(?:\s+|(?<!\w)|(?!\w))"  # white space, which may be missing beside punctuation


class Bucket(NamedTuple):
    """Answers that may stand for each other: as many words, the same type of entity."""

    words: int
    entity: str


class Answers:
    """All answers of a pair set in buckets, to draw wrong ones from."""

    def __init__(self, pairs: PairSet, study: Transferred, annotate: Callable[[str], Annotation], seed: int) -> None:
        if study.entity not in (None, *ENTITIES):
            raise UnknownName("type of entity", str(study.entity), ENTITIES)
        self.wanted = (study.entity,) if study.entity else ENTITIES
        self.analyzer, self.annotate = analyzers.create(study.analyzer), annotate
        self.seed, self.compat = seed, study.compat
        self.buckets: dict[Bucket, set[str]] = {}
        for pair in pairs:
            if bucket := self.bucket(pair):
                self.buckets.setdefault(bucket, set()).add(pair.texts["answer"])

    def bucket(self, pair: TextPair) -> Bucket | None:
        """The bucket of a pair's answer: its declared type, else that of the first entity the parser finds in it."""
        answer, declared = pair.texts.get("answer", ""), pair.texts.get("entity", "")
        found = [declared] if declared else [span.label for span in self.annotate(answer).entities]
        types = [label for label in found if label in self.wanted]
        return Bucket(len(self.analyzer.terms(answer)), types[0]) if types else None

    def alter(self, pair: TextPair) -> tuple[str, str]:
        """The passage with every occurrence of the answer replaced by another of its bucket, and the answer's type.

        With `compat`, an answer is replaced inside words too, as by the released code.
        """
        answer, passage, bucket = pair.texts["answer"], pair.texts["passage"], self.bucket(pair)
        words = [re.escape(word) for word in answer.split()]  # whatever their case, as whole words or anywhere
        whole = r"\s*".join(words) if self.compat else rf"(?<!\w){_BETWEEN.join(words)}(?!\w)"
        pattern = re.compile(whole if words else r"(?!)", re.IGNORECASE)
        if bucket is None:
            raise Discard("no entity of the type in the answer")
        if not pattern.search(passage):
            raise Discard("answer not in the passage")
        if set(_WORD.findall(answer.lower())) & set(_WORD.findall(pair.texts["question"].lower())):
            raise Discard("a word of the answer is in the question")
        others = [other for other in sorted(self.buckets[bucket]) if other.lower() != answer.lower()]
        if not others:
            raise Discard("no other answer of the kind")
        chosen = random.Random(repr((pair.id, answer, self.seed))).choice(others)
        return pattern.sub(lambda _: chosen, passage), bucket.entity


# Clusters of text pairs: those that share a text belong together, as contrasts of one query do elsewhere.


def cluster_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """A short name for the cluster of each row: rows with a common text, also by way of other rows, have the same.

    It is made of the cluster's first text in the order of the alphabet, so that the order of rows does not matter.
    """
    texts = sorted({text for row in rows for text in row})
    number = {text: i for i, text in enumerate(texts)}
    edges = [(number[row[0]], number[text]) for row in rows for text in row]
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges), bool), (ends[0], ends[1])), shape=(len(texts), len(texts)))
    _, cluster = connected_components(graph, directed=False)
    _, first = np.unique(cluster, return_index=True)
    names = [blake2b(texts[i].encode("utf-8", "surrogatepass"), digest_size=6).hexdigest() for i in first]
    return [names[cluster[number[row[0]]]] for row in rows]
