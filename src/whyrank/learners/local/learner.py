"""Local-to-global: local explanations of ranked lists, added up to a table.

    learner = LocalToGlobal("cross:bundled", method="bm25")
    table = learner.learn(open_collection("sample"))

Each explanation word w of a query is aligned with one of its terms, the one that the target holds to match w best:
argmax over qt of target(qt as the query, w as the document). Then

    weight(qt, w) = number of queries in which w is aligned with qt / occurrences of qt in all queries

`min-frequency` keeps pairs that were seen more than once; `uniform` aligns w with every term of its query. The
baseline of Kim, Rahimi and Allan, EMNLP 2024.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from whyrank.core import Progress, Range, Ranker, Share, Whole, WhyrankError, generator, write_text
from whyrank.data import Collection, Run, open_run, ranking, texts_of
from whyrank.learners.local.explaining import RankedList, explain_lists
from whyrank.rankers import Described, RunRanker, Setting, open_ranker
from whyrank.rankers.lexical import LexicalRanker
from whyrank.scoring import (
    Engine,
    Failure,
    candidates_for,
    default_engine,
    first_ranker,
    one_line,
    score_candidates,
)
from whyrank.tables import TermTable

BLOCK = 8  # queries that are explained together: enough to fill batches, few enough to hold their changed texts

Pair = tuple[str, str]  # query term, explanation word


class Explained(NamedTuple):
    """A query, its terms as often as they occur, its explanation words, and the terms that each is aligned with."""

    query_id: str
    terms: Sequence[str]
    words: Sequence[str]
    aligned: Mapping[str, Sequence[str]]


class ExplainedTable(NamedTuple):
    """A table, the explanations behind it, and the pairs that the target has no finite score for."""

    table: TermTable
    explained: list[Explained]
    failures: list[Failure]

    def save_explanations(self, path: str) -> None:
        """Write the explanation words of each query, with the terms that each is aligned with, as JSON lines."""
        lines = [json.dumps(each._asdict(), ensure_ascii=False) + "\n" for each in self.explained]
        write_text(path, "".join(lines))


def default_analyzer() -> str:
    """`krovetz` where its stemmer is installed, for its terms are words; else `lucene`."""
    return "krovetz" if find_spec("krovetzstemmer") else "lucene"


@dataclass(frozen=True)
class LocalToGlobal(Described):
    """Local explanations of a ranker's lists, added up: how often a word explains the lists of a query term.

    Attributes:
        target: the ranker to be explained: a call string.
        method: how a list is explained: `occlusion`, `lime` or `bm25`.
        variant: how explanations are added up: `plain`, `min-frequency` or `uniform`.
        depth: documents per query.
        explained: of these the best, which are explained.
        words: explanation words per query, at most.
        samples: texts per document (`lime`).
        pool: terms per query that are tried (`bm25`).
        threshold: smaller weights are left out of the table.
        seed: seed of everything random.
        analyzer: what a term is; by default krovetz if its stemmer is installed, else lucene.
        query_sample: so many queries, drawn at random; all by default.
        candidates: a run file, or the name of a run of the collection.
        stats: background statistics of lexical rankers and axioms, if not the collection's own; a collection or a
            file of `data stats`.
        precision: how neural rankers compute that do not say it themselves: exact, or fast, which is bf16 where the
            hardware has it.
        explanations: a file for the explanation words of each query, with the terms that each is aligned with.
    """

    target: str
    method: Literal["occlusion", "lime", "bm25"] = "occlusion"
    variant: Literal["plain", "min-frequency", "uniform"] = "plain"
    depth: Whole = 1000
    explained: Whole = 10
    words: Whole = 10
    samples: Annotated[int, Range(2, 100_000)] = 100
    pool: Whole = 100
    threshold: Share = 0.0
    seed: int = 0
    analyzer: str | None = None
    query_sample: Whole | None = None
    candidates: str | None = None
    stats: str | None = None
    precision: str | None = None
    explanations: str | None = None

    registered: ClassVar[str] = "local-to-global"

    def learn(self, collection: Collection | None = None, engine: Engine | None = None) -> TermTable:
        """The table of a collection; without an engine nothing is kept of the scores."""
        if collection is None:
            raise WhyrankError("local-to-global learns from the queries and documents of a collection; give one")
        analyzer = self.analyzer or default_analyzer()
        target = open_ranker(self.target, Setting(collection, analyzer, self.stats, self.precision))
        given = open_run(collection, self.candidates).run if self.candidates else None
        learned = self.explain(collection, target, engine or default_engine(), given)
        if self.explanations:
            learned.save_explanations(self.explanations)
        return learned.table

    def explain(
        self, collection: Collection, target: Ranker, engine: Engine, candidates: Run | None = None
    ) -> ExplainedTable:
        """Explain the lists of an opened target, and add the explanations up.

        What the store of the engine knows is not scored again, so that a broken run goes on where it stopped.
        """
        if isinstance(target, RunRanker) and (self.method, self.variant) != ("bm25", "uniform"):
            raise WhyrankError(
                f"ranker {target.name!r} has no scores for changed texts and single words; take a ranker that scores "
                "any text, or --method bm25 --variant uniform"
            )
        bm25 = first_ranker(collection, self.analyzer or default_analyzer())
        chosen = draw_queries(collection.queries, self.query_sample, self.seed)
        words, failures = self._words(collection, chosen, target, engine, bm25, candidates)
        explained, more = align(words, target, engine, self.variant)
        failures += more
        learner = replace(self, target=target.name, analyzer=bm25.analyzer.id, explanations=None)
        source = "bm25" if candidates is None else repr(RunRanker(self.candidates or "run", candidates, collection))
        settings = ("method", "variant", "depth", "explained", "words", "samples", "pool", "threshold", "seed")
        facts = {
            **{name: getattr(self, name) for name in settings}, "learner": learner.name, **bm25.analyzer.facts,
            "collection": collection.name, "ranker": repr(target), "queries": len(chosen),
            "first_stage": repr(bm25), "candidates": source,
        }  # fmt: skip
        return ExplainedTable(self._table(explained, facts, failures), explained, failures)

    def _words(
        self, collection: Collection, queries: Mapping[str, str], target: Ranker, engine: Engine,
        bm25: LexicalRanker, given: Run | None,
    ) -> tuple[list[Explained], list[Failure]]:  # fmt: skip
        """The words of every query, not yet aligned."""
        candidates = candidates_for(collection, queries, self.depth, given, bm25.analyzer.id)
        ids, found, failures = list(queries), list[Explained](), list[Failure]()
        with Progress("explaining", len(ids), unit="queries") as progress:
            for start in range(0, len(ids), BLOCK):
                block, lists = ids[start : start + BLOCK], []
                run, failed = score_candidates(engine, target, collection, {q: candidates.get(q, {}) for q in block})
                for query_id in block:
                    query, docs = collection.queries[query_id], run.get(query_id, {})
                    terms, order = bm25.analyzer.query_terms(query), ranking(docs)
                    scores = np.array([docs[d] for d in order], dtype=np.float64)
                    lists.append(RankedList(query_id, query, terms, texts_of(collection.docs, order), scores))
                words, more = explain_lists(lists, target, engine, bm25, self)
                found += [Explained(each.query_id, each.terms, w, {}) for each, w in zip(lists, words, strict=True)]
                failures += [*failed, *more]
                progress.step(len(block))
        return found, failures

    def _table(
        self, explained: Sequence[Explained], facts: Mapping[str, Any], failures: Sequence[Failure]
    ) -> TermTable:
        """The table of the explanations, without weights below the threshold; failures say why there may be none."""
        weights = pair_weights(explained, self.variant)
        kept = sorted(pair for pair, weight in weights.items() if weight >= self.threshold)
        if not kept:
            remedy = "take more queries, a larger --depth, or another --method or --variant"
            if weights:
                remedy = f"all {len(weights):,} pairs weigh less than --threshold {self.threshold:g}; lower it"
            elif failures:
                reason = one_line(failures[0].reason)
                remedy = f"{len(failures):,} pairs have no finite score ({reason}); mend the target"
            raise WhyrankError(f"none of {len(explained):,} queries gave an entry of the table; {remedy}")
        terms, words = ([pair[side] for pair in kept] for side in (0, 1))
        return TermTable.from_triples(terms, words, [weights[pair] for pair in kept], **facts)


def draw_queries(queries: Mapping[str, str], most: int | None, seed: int) -> dict[str, str]:
    """So many queries, drawn at random, in the order of the collection."""
    if most is None or most >= len(queries):
        return dict(queries)
    ids = sorted(queries)
    taken = {ids[i] for i in generator(seed, "local-to-global").permutation(len(ids))[:most].tolist()}
    return {q: text for q, text in queries.items() if q in taken}


def align(
    explained: Sequence[Explained], target: Ranker, engine: Engine, variant: str
) -> tuple[list[Explained], list[Failure]]:
    """The explanations with each word aligned: with all terms of its query (`uniform`), or with the best one.

    The best term is the one that the target matches best with the word, of equal ones the first; none where nothing
    is scored.
    """
    if variant == "uniform":
        return [each._replace(aligned={w: _distinct(each.terms) for w in each.words}) for each in explained], []
    pairs = list(dict.fromkeys((t, w) for each in explained for w in each.words for t in _distinct(each.terms)))
    terms, words = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
    number = [{name: i for i, name in enumerate(names)} for names in (terms, words)]
    query, doc = (np.array([number[side][pair[side]] for pair in pairs], np.int32) for side in (0, 1))
    found = engine.score(target, terms, words, query, doc)
    scores = dict(zip(pairs, found.values.tolist(), strict=True))

    def best(each: Explained, word: str) -> list[str]:
        known = [term for term in _distinct(each.terms) if np.isfinite(scores[term, word])]
        return [max(known, key=lambda term: scores[term, word])] if known else []

    return [each._replace(aligned={w: best(each, w) for w in each.words}) for each in explained], found.failures


def _distinct(terms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(terms))


def pair_weights(explained: Sequence[Explained], variant: str) -> dict[Pair, float]:
    """The weight of every pair of a query term and a word."""
    seen = Counter((t, w) for each in explained for w, terms in each.aligned.items() for t in terms)
    occurrences = Counter(term for each in explained for term in each.terms)
    least = 2 if variant == "min-frequency" else 1
    return {pair: count / occurrences[pair[0]] for pair, count in seen.items() if count >= least}
