"""Discovery: ranks a term table for surprises, and asks a ranker the studies that they call for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from whyrank.core import Floats, Ranker, WhyrankError, adjust
from whyrank.data import Collection
from whyrank.learners.surprises.classes import FEWEST, SurfaceForms, classes_of, words_of
from whyrank.learners.surprises.kinds import (
    against_rest,
    appended_surprises,
    evidence_study,
    evidence_surprises,
    postings_of,
    spread_surprises,
    value_surprises,
)
from whyrank.learners.surprises.surprise import EVIDENCE, NULLS, Surprise, TestedSurprises, Unjudged, rank_surprises
from whyrank.scoring import Engine
from whyrank.studies import Answer, Plan, answers
from whyrank.studies.bias import (
    BiasResult,
    Substitution,
    Sums,
    ValueContrasts,
    bias_studies,
    cluster_scores,
    finite_columns,
    finite_rows,
    mean_bounds,
)
from whyrank.tables import TermTable
from whyrank.text.vectors import Vectors

DRAWS = 10_000
STUDIES = 50  # contradictions of the corpus that get a study; to choose terms for all of them would take long


@dataclass(frozen=True)
class Looking:
    """How a table is searched.

    Attributes:
        vectors: word vectors, whose neighbourhoods are classes.
        pipeline: a spaCy pipeline, whose entity types are classes.
        values: a class of values of one's own, as for `bias/substitution`.
        collection: texts that entries are compared with.
        correction: of p-values over all that is tested.
        permutations: random draws of each test.
        seed: of these draws.
    """

    vectors: Vectors | None = None
    pipeline: str | None = None
    values: str | None = None
    collection: Collection | None = None
    correction: str = "bh"
    permutations: int = 10_000
    seed: int = 0


class Discovery(NamedTuple):
    """All that was tested, the most significant first; what cannot be judged, or only with weights missing."""

    surprises: list[Surprise]
    unjudged: list[str]
    notes: list[str]

    def significant(self, alpha: float = 0.05) -> list[Surprise]:
        """Those that are significant after correction."""
        return [surprise for surprise in self.surprises if surprise.p_adjusted < alpha]

    def first(self, most: int) -> list[Surprise]:
        """The most significant of every kind."""
        return [s for kind in NULLS for s in [each for each in self.surprises if each.kind == kind][:most]]


def surprises(table: TermTable, looking: Looking | None = None) -> Discovery:
    """Test every class, appended characters and, with a collection, the entries against it."""
    how = looking or Looking()
    texts = how.collection
    words = words_of(texts, table, how.pipeline, how.seed) if texts is not None else SurfaceForms()
    tested = [*_classes(table, how, words), appended_surprises(table, how.permutations, how.seed)]
    postings = postings_of(texts, table) if texts is not None else None
    if postings is not None:
        tested.append(evidence_surprises(table, postings))
    ranked = rank_surprises([surprise for each in tested for surprise in each.found], how.correction)
    if postings is not None:
        contradictions = [i for i, surprise in enumerate(ranked) if surprise.kind == EVIDENCE]
        for rank, i in enumerate(contradictions):
            study = evidence_study(table, postings, words, ranked[i]) if rank < STUDIES else ranked[i].study
            ranked[i] = replace(ranked[i], study=study, value=words.of(ranked[i].value))
    unjudged = _by_reason([each for test in tested for each in test.unjudged])
    notes = _by_reason([each for test in tested for each in test.partly])
    return Discovery(ranked, [f"cannot be judged: {line}" for line in unjudged], notes)


def _classes(table: TermTable, how: Looking, words: SurfaceForms) -> Iterator[TestedSurprises]:
    groups = classes_of(table, how.vectors, words, how.values)
    if how.values and all(group.name != how.values for group in groups):
        why = f"fewer than {FEWEST} of its values are document terms with entries"
        yield TestedSurprises([], [Unjudged(how.values, why)])
    for group in groups:
        tested = value_surprises(table, group, how.permutations, how.seed)
        spreads = spread_surprises(table, group, how.permutations, how.seed, words)
        yield TestedSurprises(tested.found + spreads, tested.unjudged, tested.partly)


def _by_reason(unjudged: Sequence[Unjudged]) -> list[str]:
    """One line per reason."""
    reasons: dict[str, list[str]] = {}
    for what, why in unjudged:
        reasons.setdefault(why, []).append(what)
    return [f"{', '.join(what)}: {why}" for why, what in reasons.items()]


class Standing(NamedTuple):
    """How much higher a value scores than the others, the 95% interval, and p corrected (Holm) over the values."""

    effect: float
    low: float
    high: float
    p_adjusted: float


def standings(answer: Answer, seed: int = 0) -> dict[str, Standing]:
    """Where the values of a bias study stand: each against those of its class that do not stand out themselves.

    They are compared as those of a table are; there are none without two independent templates.
    """
    if not isinstance(answer.contrasts, ValueContrasts):
        raise WhyrankError(
            f"{answer.name}: contrasts of values must come from a Grid, whose `contrasts()` makes them"
        )
    whole = answer.contrasts.grid.by_value(answer.reading.scores)
    columns = finite_columns(whole)
    grid, scores = answer.contrasts.grid.of_values(columns), whole[:, columns]
    usable = finite_rows(scores)
    sums = cluster_scores(scores[usable], *(way[usable] for way in grid.clusters))
    if sums.size < 2:
        return {}
    compared = against_rest(sums, DRAWS, seed)
    adjusted = adjust([one.p_value for one in compared], "holm").tolist()
    found = {}
    for (value, others, _), p in zip(compared, adjusted, strict=True):

        def apart(way: Sums, value: int = value, others: list[int] = others) -> Floats:
            mean: Floats = way.effects[:, others].mean(axis=1, keepdims=True)
            return way.effects[:, [value]] - mean

        low, high = (float(end[0]) for end in mean_bounds(sums, apart))
        found[grid.values[value]] = Standing((low + high) / 2, low, high, p)
    return found


def confirm(
    found: Sequence[Surprise], ranker: Ranker, collection: Collection, engine: Engine | None = None,
    table: TermTable | None = None, alpha: float = 0.05, seed: int = 0, limit: int | None = None,
) -> list[Surprise]:  # fmt: skip
    """Ask each study once; a surprise is confirmed where its value differs in the same direction after correction.

    As in the table, it is compared with the values of its class that do not stand out themselves.
    `limit` is the most templates of a study. A study that cannot be made has its reason in the outcome.
    """
    defaults = {"seed": seed} | ({} if limit is None else {"most": limit})
    answered: dict[str, tuple[BiasResult, dict[str, Standing]] | str] = {}  # results, or why there are none
    for study in dict.fromkeys(surprise.study for surprise in found):
        try:
            made = bias_studies.create(study, **defaults)
            _ = made.value_class if isinstance(made, Substitution) else None
        except WhyrankError as error:
            answered[study] = str(error)
            continue
        plan = Plan(collection, {study: made}, [ranker], engine or Engine(), seed=seed, table=table)
        [answer] = answers(plan)
        answered[study] = answer.details, standings(answer, seed)
    return [_judge(surprise, answered[surprise.study], alpha) for surprise in found]


def _judge(surprise: Surprise, answer: tuple[BiasResult, dict[str, Standing]] | str, alpha: float) -> Surprise:
    if isinstance(answer, str):
        return replace(surprise, outcome=f"not asked: {answer}")
    (result, compared), value = answer, surprise.value.lower()
    if not result.n_templates and not result.nonfinite:
        return replace(surprise, outcome="not asked: the collection has no templates for it")
    row = next((row for row in result.values if row.value.lower() == value), None)
    if row is None and (not result.values or value in map(str.lower, result.unscored)):
        return replace(surprise, outcome="not answered: the ranker has no finite scores for it")
    if row is None:
        return replace(surprise, outcome="not asked: a study takes it only from a file of values")
    if row.p_value is None:
        return replace(surprise, outcome=f"not tested: effect {row.effect:+.4g} in 1 independent template")
    effect, low, high, p = compared[row.value]
    outcome = f"effect {effect:+.4g} [{low:+.3g}, {high:+.3g}], p adj. {p:.3g}, {result.n_templates:,} templates"
    return replace(surprise, confirmed=p < alpha and effect * surprise.direction > 0, outcome=outcome)
