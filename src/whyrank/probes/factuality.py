"""Wrong answers for the factuality probe: another answer of the same kind in the place of the right one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from whyrank.core.errors import UnknownName
from whyrank.data.pairs import PairSet, TextPair
from whyrank.probes.queries import PUBLISHED_SEED, Discard
from whyrank.text import Analyzer, analyzers
from whyrank.text.annotate import Annotation

ENTITIES = ("PERSON", "GPE", "LOC", "NORP", "ORG")
_BETWEEN = r"(?:\s+|(?<!\w)|(?!\w))"  # white space, which may be missing beside punctuation


class Altered(NamedTuple):
    """A passage with another answer, and the type of the answer."""

    text: str
    entity: str


class Bucket(NamedTuple):
    """Answers that may stand for each other: as many words, the same type of entity."""

    words: int
    entity: str


@dataclass(frozen=True, eq=False)
class Answers:
    """All answers of a pair set in buckets, to draw wrong ones from.

    With `compat`, an answer is replaced inside words too, as by the released code.
    """

    buckets: Mapping[Bucket, list[str]]
    analyzer: Analyzer
    annotate: Callable[[str], Annotation]
    wanted: tuple[str, ...]
    seed: int = PUBLISHED_SEED
    compat: str | None = None

    @classmethod
    def of(
        cls, pairs: PairSet, entity: str | None, analyzer: str, annotate: Callable[[str], Annotation],
        seed: int = PUBLISHED_SEED, compat: str | None = None,
    ) -> Answers:  # fmt: skip
        """Sort the answers of all pairs into buckets."""
        if entity not in (None, *ENTITIES):
            raise UnknownName("type of entity", str(entity), ENTITIES)
        made = cls({}, analyzers.create(analyzer), annotate, (entity,) if entity else ENTITIES, seed, compat)
        found: dict[Bucket, dict[str, None]] = {}
        for pair in pairs:
            bucket = made.bucket(pair)
            if bucket:
                found.setdefault(bucket, {})[pair.texts["answer"]] = None
        return replace(made, buckets={bucket: sorted(answers) for bucket, answers in found.items()})

    def bucket(self, pair: TextPair) -> Bucket | None:
        """The bucket of a pair's answer: its declared type, else that of the first entity the parser finds in it."""
        answer, declared = pair.texts.get("answer", ""), pair.texts.get("entity", "")
        found = [declared] if declared else [span.label for span in self.annotate(answer).entities]
        types = [label for label in found if label in self.wanted]
        return Bucket(len(self.analyzer.terms(answer)), types[0]) if types else None

    def altered(self, pair: TextPair) -> Altered:
        """The passage with every occurrence of the answer replaced by another answer of its bucket."""
        answer, passage, bucket = pair.texts["answer"], pair.texts["passage"], self.bucket(pair)
        pattern = _occurrences(answer, whole_words=not self.compat)
        if bucket is None:
            raise Discard("no entity of the type in the answer")
        if not pattern.search(passage):
            raise Discard("answer not in the passage")
        if _some_word_in(answer, pair.texts["question"]):
            raise Discard("a word of the answer is in the question")
        others = [other for other in self.buckets[bucket] if other.lower() != answer.lower()]
        if not others:
            raise Discard("no other answer of the kind")
        chosen = random.Random(repr((pair.id, answer, self.seed))).choice(others)
        return Altered(pattern.sub(lambda _: chosen, passage), bucket.entity)


def _occurrences(answer: str, whole_words: bool) -> re.Pattern[str]:
    """The answer whatever its case: as whole words, or anywhere, with or without blanks between its words."""
    words = [re.escape(word) for word in answer.split()]
    if not words:
        return re.compile(r"(?!)")
    pattern = rf"(?<!\w){_BETWEEN.join(words)}(?!\w)" if whole_words else r"\s*".join(words)
    return re.compile(pattern, re.IGNORECASE)


def _some_word_in(answer: str, question: str) -> bool:
    words = set(re.findall(r"\w+", question.lower()))
    return any(word in words for word in re.findall(r"\w+", answer.lower()))
