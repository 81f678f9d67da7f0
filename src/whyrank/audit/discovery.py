"""Discovery: ranks a term table for surprises, and puts the studies that they call for to a ranker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from whyrank.audit.bias import bias_studies
from whyrank.audit.bias_asking import ask_bias
from whyrank.audit.bias_result import BiasResult
from whyrank.audit.bias_substitution import Substitution
from whyrank.audit.discovery_classes import FEWEST, classes_of
from whyrank.audit.discovery_evidence import Postings, evidence_study, evidence_surprises, postings_of
from whyrank.audit.discovery_surprise import EVIDENCE, NULLS, Surprise, corrected
from whyrank.audit.discovery_tests import (
    Tested,
    Unjudged,
    appended_surprises,
    spread_surprises,
    value_surprises,
)
from whyrank.audit.discovery_words import Words, words_of
from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ranker
from whyrank.data import Collection
from whyrank.data.term_table import TermTable
from whyrank.scoring import Engine
from whyrank.text.vectors import Vectors

STUDIES = 50  # contradictions of the corpus that get a study


@dataclass(frozen=True)
class Looking:
    """How a table is searched: with which vectors, spaCy pipeline, own class of values and collection."""

    vectors: Vectors | None = None
    pipeline: str | None = None
    values: str | None = None
    collection: Collection | None = None
    correction: str = "bh"
    permutations: int = 10_000
    seed: int = 0


class Discovery(NamedTuple):
    """All that was tested, the surest surprises first; what cannot be judged, or only with weights missing."""

    surprises: list[Surprise]
    unjudged: list[str]
    notes: list[str]

    def sure(self, alpha: float = 0.05) -> list[Surprise]:
        """Those that stay after correction."""
        return [surprise for surprise in self.surprises if surprise.p_adjusted < alpha]

    def first(self, most: int) -> list[Surprise]:
        """The surest of every kind."""
        return [s for kind in NULLS for s in [each for each in self.surprises if each.kind == kind][:most]]


def surprises(table: TermTable, looking: Looking | None = None) -> Discovery:
    """Test every class, appended characters and, with a collection, the entries against it."""
    how = looking or Looking()
    texts = how.collection
    words = words_of(texts, table, how.pipeline, how.seed) if texts is not None else Words()
    postings = postings_of(texts, table) if texts is not None else None
    tested = [*_classes(table, how, words), appended_surprises(table, how.permutations, how.seed)]
    tested += [evidence_surprises(table, postings)] if postings is not None else []
    ranked = corrected([surprise for each in tested for surprise in each.found], how.correction)
    if postings is not None:
        ranked = _with_studies(table, postings, words, ranked)
    unjudged = _merged([each for test in tested for each in test.unjudged])
    notes = _merged([each for test in tested for each in test.partly])
    return Discovery(ranked, [f"cannot be judged: {line}" for line in unjudged], notes)


def _classes(table: TermTable, how: Looking, words: Words) -> Iterator[Tested]:
    groups = classes_of(table, how.vectors, words, how.values)
    if how.values and all(group.name != how.values for group in groups):
        why = f"fewer than {FEWEST} of its values are document terms with entries"
        yield Tested([], [Unjudged(how.values, why)])
    for group in groups:
        tested = value_surprises(table, group, how.permutations, how.seed)
        spreads = spread_surprises(table, group, how.permutations, how.seed, words)
        yield Tested(tested.found + spreads, tested.unjudged, tested.partly)


def _with_studies(table: TermTable, postings: Postings, words: Words, found: list[Surprise]) -> list[Surprise]:
    """The studies of the surest contradictions of the corpus; to choose terms for all of them would take long."""
    chosen = [id(s) for s in found if s.kind == EVIDENCE][:STUDIES]
    made = [evidence_study(table, postings, words, s) if id(s) in chosen else s.study for s in found]
    asked = [words.of(s.value) if s.kind == EVIDENCE else s.value for s in found]
    return [replace(s, study=study, value=value) for s, study, value in zip(found, made, asked, strict=True)]


def _merged(unjudged: Sequence[Unjudged]) -> list[str]:
    """One line per reason."""
    reasons: dict[str, list[str]] = {}
    for what, why in unjudged:
        reasons.setdefault(why, []).append(what)
    return [f"{', '.join(what)}: {why}" for why, what in reasons.items()]


def confirmed(
    found: Sequence[Surprise], ranker: Ranker, collection: Collection, engine: Engine | None = None,
    table: TermTable | None = None, alpha: float = 0.05, seed: int = 0, limit: int | None = None,
) -> list[Surprise]:  # fmt: skip
    """Ask each study once; a surprise is confirmed where its value differs in the same direction after correction.

    `limit` is the most templates of a study. A study that cannot be made has its reason in the outcome.
    """
    asked: dict[str, BiasResult | str] = {}
    for study in dict.fromkeys(surprise.study for surprise in found):
        reason = _refused(study)
        if reason:
            asked[study] = reason
            continue
        [asked[study]] = ask_bias(study, ranker, collection, table=table, engine=engine, seed=seed, limit=limit)
    return [_judged(surprise, asked, alpha) for surprise in found]


def _refused(study: str) -> str:
    """Why a study, or its class of values, cannot be made; empty where it can."""
    try:
        made = bias_studies.create(study)
        _ = made.value_class if isinstance(made, Substitution) else None
    except WhyrankError as error:
        return str(error)
    return ""


def _judged(surprise: Surprise, asked: Mapping[str, BiasResult | str], alpha: float) -> Surprise:
    result = asked[surprise.study]
    if isinstance(result, str):
        return replace(surprise, outcome=f"not asked: {result}")
    if not result.n_templates and not result.nonfinite:
        return replace(surprise, outcome="not asked: the collection has no templates for it")
    row = next((row for row in result.values if row.value.lower() == surprise.value.lower()), None)
    if row is None and (not result.values or surprise.value.lower() in map(str.lower, result.unscored)):
        return replace(surprise, outcome="not answered: the ranker has no finite scores for it")
    if row is None:
        return replace(surprise, outcome="not asked: a study takes it only from a file of values")
    p = "p undefined" if row.p_adjusted is None else f"p adj. {row.p_adjusted:.3g}"
    agrees = row.p_adjusted is not None and row.p_adjusted < alpha and row.effect * surprise.direction > 0
    within = "" if row.low is None or row.high is None else f" [{row.low:+.3g}, {row.high:+.3g}]"
    told = f"effect {row.effect:+.4g}{within}, {p}, {result.n_templates:,} templates"
    return replace(surprise, confirmed=bool(agrees), outcome=told)
