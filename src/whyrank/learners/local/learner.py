"""Local-to-global as a learner by name: `local-to-global(target='cross:bundled',method=bm25)`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Progress, Ranker, WhyrankError, call_of, check_text, check_whole, generator
from whyrank.data import Collection, Run, ranking, texts_of
from whyrank.learners.local.explaining import LocalSettings, RankedList, explain_lists
from whyrank.rankers import RunRanker
from whyrank.rankers.lexical import LexicalRanker
from whyrank.scoring import Engine, Failure, candidates_for, first_ranker, one_line, scored
from whyrank.tables import TermTable

# From local explanations to a table: how often a word explains the lists of queries with a query term.
#
#     from whyrank.learners.local.learner import learn_local
#     learned = learn_local(collection, target, engine, LocalSettings(method="occlusion"))
#
# Each explanation word w of a query is aligned with one of its terms, the one that the target holds to match w best:
# argmax over qt of target(qt as the query, w as the document). Then
#
#     weight(qt, w) = number of queries in which w is aligned with qt / occurrences of qt in all queries
#
# `min-frequency` keeps pairs that were seen more than once; `uniform` aligns w with every term of its query. The
# baseline of Kim, Rahimi and Allan, EMNLP 2024.

BLOCK = 8  # queries that are asked together: enough to fill batches, few enough to hold their changed texts

Pair = tuple[str, str]  # query term, explanation word


class Explained(NamedTuple):
    """A query, its terms as often as they occur, its explanation words, and the terms that each is aligned with."""

    query_id: str
    terms: Sequence[str]
    words: Sequence[str]
    aligned: Mapping[str, Sequence[str]]


class Learned(NamedTuple):
    """A table, the explanations behind it, and the pairs that the target has no finite score for."""

    table: TermTable
    explained: list[Explained]
    failures: list[Failure]


def default_analyzer() -> str:
    """`krovetz` where its stemmer is installed, for its terms are words; else `lucene`."""
    from importlib.util import find_spec

    return "krovetz" if find_spec("krovetzstemmer") else "lucene"


def learn_local(
    collection: Collection, target: Ranker, engine: Engine, settings: LocalSettings | None = None,
    analyzer: str | None = None, queries: int | None = None, candidates: Run | None = None,
    opened: Mapping[str, Any] | None = None,
) -> Learned:  # fmt: skip
    """Explain the lists of a target and add the explanations up.

    Args:
        collection: queries and documents; judgements are not used.
        target: any ranker that scores any text.
        engine: scores; what its store knows is not asked again, so that a broken run goes on where it stopped.
        settings: how lists are explained.
        analyzer: what a term is; `default_analyzer` by default.
        queries: so many, drawn at random; all by default.
        candidates: a run in the place of what BM25 retrieves.
        opened: the `candidates`, `stats` and `precision` of the learner's call string, to open them again.
    """
    settings = settings or LocalSettings()
    check_target(target, settings)
    bm25 = first_ranker(collection, analyzer or default_analyzer())
    chosen = drawn(collection.queries, queries, settings.seed)
    found, failures = _explanations(collection, chosen, target, engine, bm25, settings, candidates)
    explained, more = aligned(found, target, engine, settings.variant)
    learner = LocalToGlobal(
        target.name, **asdict(settings), analyzer=bm25.analyzer.id, queries=queries, **opened or {}
    )
    facts = _facts(collection, target, bm25, learner, len(chosen), candidates)
    table = table_of(explained, settings, facts, [*failures, *more])
    return Learned(table, explained, [*failures, *more])


def check_target(target: Ranker, settings: LocalSettings) -> None:
    """Raise an error for a run file where texts that are in no run must be scored."""
    if isinstance(target, RunRanker) and (settings.method, settings.variant) != ("bm25", "uniform"):
        raise WhyrankError(
            f"ranker {target.name!r} has no scores for changed texts and single words; take a ranker that scores any "
            "text, or --method bm25 --variant uniform"
        )


def drawn(queries: Mapping[str, str], most: int | None, seed: int) -> dict[str, str]:
    """So many queries, drawn at random, in the order of the collection."""
    if most is None or most >= len(queries):
        return dict(queries)
    ids = sorted(queries)
    taken = {ids[i] for i in generator(seed, "local-to-global").permutation(len(ids))[:most].tolist()}
    return {q: text for q, text in queries.items() if q in taken}


def _explanations(
    collection: Collection, queries: Mapping[str, str], target: Ranker, engine: Engine, bm25: LexicalRanker,
    settings: LocalSettings, given: Run | None,
) -> tuple[list[Explained], list[Failure]]:  # fmt: skip
    """The words of every query, not yet aligned."""
    candidates = candidates_for(collection, queries, settings.depth, given, bm25.analyzer.id)
    found: list[Explained] = []
    failures: list[Failure] = []
    with Progress("explaining", len(queries), unit="queries") as progress:
        for block in _blocks(list(queries)):
            run, failed = scored(engine, target, collection, {q: candidates.get(q, {}) for q in block})
            lists = [_list(collection, q, run.get(q, {}), bm25) for q in block]
            words, more = explain_lists(lists, target, engine, bm25, settings)
            found += [Explained(each.query_id, each.terms, w, {}) for each, w in zip(lists, words, strict=True)]
            failures += [*failed, *more]
            progress.step(len(block))
    return found, failures


def _blocks(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + BLOCK] for start in range(0, len(ids), BLOCK))


def _list(collection: Collection, query_id: str, docs: Mapping[str, float], bm25: LexicalRanker) -> RankedList:
    query, order = collection.queries[query_id], ranking(docs)
    scores = np.array([docs[d] for d in order], dtype=np.float64)
    return RankedList(query_id, query, bm25.analyzer.query_terms(query), texts_of(collection.docs, order), scores)


def aligned(
    explained: Sequence[Explained], target: Ranker, engine: Engine, variant: str
) -> tuple[list[Explained], list[Failure]]:
    """The explanations with each word aligned: with all terms of its query (`uniform`), or with the best one."""
    if variant == "uniform":
        return [each._replace(aligned={w: _distinct(each.terms) for w in each.words}) for each in explained], []
    scores, failures = _affinities(explained, target, engine)
    return [each._replace(aligned=_best_terms(each, scores)) for each in explained], failures


def _best_terms(each: Explained, scores: Mapping[Pair, float]) -> dict[str, list[str]]:
    """The term that the target matches best with each word, of equal ones the first; none where nothing is scored."""
    terms = _distinct(each.terms)
    found: dict[str, list[str]] = {}
    for word in each.words:
        known = [term for term in terms if np.isfinite(scores[term, word])]
        found[word] = [max(known, key=lambda term: scores[term, word])] if known else []
    return found


def _affinities(
    explained: Sequence[Explained], target: Ranker, engine: Engine
) -> tuple[dict[Pair, float], list[Failure]]:
    """What the target says of every query term as a query and every explanation word as a document."""
    pairs = list(dict.fromkeys((t, w) for each in explained for w in each.words for t in _distinct(each.terms)))
    terms, words = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
    place = tuple({name: i for i, name in enumerate(names)} for names in (terms, words))
    query, doc = (np.array([place[side][pair[side]] for pair in pairs], np.int32) for side in (0, 1))
    scores = engine.score(target, terms, words, query, doc)
    return dict(zip(pairs, scores.values.tolist(), strict=True)), scores.failures


def _distinct(terms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(terms))


def pair_weights(explained: Sequence[Explained], variant: str) -> dict[Pair, float]:
    """The weight of every pair of a query term and a word."""
    seen = Counter((t, w) for each in explained for w, terms in each.aligned.items() for t in terms)
    occurrences = Counter(term for each in explained for term in each.terms)
    least = 2 if variant == "min-frequency" else 1
    return {pair: count / occurrences[pair[0]] for pair, count in seen.items() if count >= least}


def table_of(
    explained: Sequence[Explained],
    settings: LocalSettings,
    facts: Mapping[str, Any],
    failures: Sequence[Failure] = (),
) -> TermTable:
    """The table of the explanations, without weights below the threshold; failures say why there may be none."""
    weights = pair_weights(explained, settings.variant)
    kept = sorted(pair for pair, weight in weights.items() if weight >= settings.threshold)
    if not kept:
        raise WhyrankError(
            f"none of {len(explained):,} queries gave an entry of the table; "
            + _remedy(len(weights), settings, failures)
        )
    terms, words = ([pair[side] for pair in kept] for side in (0, 1))
    return TermTable.from_triples(terms, words, [weights[pair] for pair in kept], **facts)


def _remedy(below: int, settings: LocalSettings, failures: Sequence[Failure]) -> str:
    """What to do about a table without entries."""
    if below:
        return f"all {below:,} pairs weigh less than --threshold {settings.threshold:g}; lower it"
    if failures:
        return f"{len(failures):,} pairs have no finite score ({one_line(failures[0].reason)}); mend the target"
    return "take more queries, a larger --depth, or another --method or --variant"


def _facts(
    collection: Collection, target: Ranker, bm25: LexicalRanker, learner: LocalToGlobal, queries: int,
    given: Run | None,
) -> dict[str, Any]:  # fmt: skip
    source = "bm25" if given is None else repr(RunRanker(learner.candidates or "run", given, collection))
    return {
        **asdict(learner.settings), "learner": learner.name, **bm25.analyzer.facts,
        "collection": collection.name, "ranker": repr(target), "queries": queries, "first_stage": repr(bm25),
        "candidates": source,
    }  # fmt: skip


@dataclass(frozen=True)
class LocalToGlobal:
    """Local explanations of a ranker's lists, added up: how often a word explains the lists of a query term.

    The settings are those of `LocalSettings`; `analyzer` and `queries` those of `learn_local`. The target is opened
    with `stats` and `precision`; `candidates` is a run of the collection, or a run file, in the place of BM25's.
    """

    target: str
    method: str = "occlusion"
    variant: str = "plain"
    depth: int = 1000
    top: int = 10
    words: int = 10
    samples: int = 100
    pool: int = 100
    threshold: float = 0.0
    seed: int = 0
    analyzer: str | None = None
    queries: int | None = None
    candidates: str | None = None
    stats: str | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        for name in ("target", "analyzer", "candidates", "stats", "precision"):
            check_text(f"local-to-global: {name}", getattr(self, name))
        if self.queries is not None:
            check_whole("local-to-global: queries", self.queries, 1)
        _ = self.settings

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "local-to-global")

    @property
    def settings(self) -> LocalSettings:
        """How lists are explained."""
        return LocalSettings(**{field.name: getattr(self, field.name) for field in fields(LocalSettings)})

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of a collection; nothing is kept of the scores."""
        from whyrank.data import open_run
        from whyrank.rankers import Setting, open_ranker
        from whyrank.scoring import Engine

        pass  # INNER

        if collection is None:
            raise WhyrankError("local-to-global learns from the queries and documents of a collection; give one")
        chosen = self.analyzer or default_analyzer()
        target = open_ranker(self.target, Setting(collection, chosen, self.stats, self.precision))
        given = open_run(collection, self.candidates).run if self.candidates else None
        opened = {"candidates": self.candidates, "stats": self.stats, "precision": self.precision}
        return learn_local(collection, target, Engine(), self.settings, chosen, self.queries, given, opened).table
