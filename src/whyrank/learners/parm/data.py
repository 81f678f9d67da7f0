"""What PaRM learns from: queries with candidate texts, the target's scores for them, and their terms.

`prepare_parm` makes all of it from a recipe and a target: any ranker, or the call string of one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Progress, WhyrankError, generator, parse_call
from whyrank.learners.parm.alignment import Occlusion, attends, occlusion, token_texts
from whyrank.learners.parm.phases import ParmData, analyzer_of, check_phases, first_phase
from whyrank.networks import ParmNetwork
from whyrank.training import (
    BEST,
    EpochExamples,
    Recipe,
    SourcedQueries,
    Sources,
    check_settings,
    new_network,
    sourced_queries,
    sources_of,
)

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.rankers import Setting
    from whyrank.rankers.lexical import LexicalIndex
    from whyrank.scoring import Engine

Numbers = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Say = Callable[[str], None]
_CHUNK = 5000  # queries that are searched for at a time


def parm_queries(data: ParmData) -> SourcedQueries:
    """The queries and texts that a recipe names, and the text that each query belongs to."""
    found = sourced_queries(data.collection, data.cuts, data.without, data.limit or None)
    if len(found.docs) < 2:
        raise WhyrankError("data: there are fewer than two texts to compare; name a larger collection")
    return found


def draw_candidates(index: LexicalIndex, given: SourcedQueries, data: ParmData) -> Numbers:
    """The candidates of each query, all different: its own text, BM25's best and next best, some at random."""
    drawn = data.candidates
    random, width = generator(0, "parm", "candidates"), min(1 + sum(drawn), len(given.docs))
    found = np.empty((len(given.queries), width), np.int32)
    with Progress("finding candidates: queries", len(given.queries)) as progress:
        for start in range(0, len(given.queries), _CHUNK):
            chunk = {str(i): query for i, query in enumerate(given.queries[start : start + _CHUNK])}
            for number, ranked in enumerate(index.search(chunk, data.depth).values(), start):
                source = int(given.source[number])
                others = [int(doc) for doc in ranked if int(doc) != source]
                row = [source]
                for part, n in ((others[:BEST], drawn[0]), (others[BEST:], drawn[1])):
                    row += [part[i] for i in random.permutation(len(part))[:n].tolist()]
                known = dict.fromkeys(row[:width])
                while len(known) < width:
                    known.update(dict.fromkeys(random.integers(0, len(given.docs), width - len(known)).tolist()))
                found[number] = list(known)
                progress.step()
    return found


class Terms(NamedTuple):
    """The analysed terms of queries and texts, and the parts of BM25 that phase 2 puts together again."""

    names: Sequence[str]  # all terms
    query: Numbers  # the distinct terms of each query, one after the other
    weight: Scores  # BM25's weight of each of these: idf * query term frequency * (k1 + 1)
    query_ends: Rows  # 0 and the end of each query's terms
    absent: npt.NDArray[np.bool_]  # whether a text lacks the term: [query terms, candidates]
    doc: Numbers  # the distinct terms of each text, one after the other
    doc_ends: Rows  # 0 and the end of each text's terms
    norm: Scores  # K of each text: k1 (1 - b + b length / average length)
    value: Scores  # the BM25 score of the terms that do occur: [queries, candidates]


def terms_of(index: LexicalIndex, queries: Sequence[str], doc: Numbers) -> Terms:
    """The terms of all queries and texts; `doc` holds the candidates of each query by row of the index."""
    from whyrank.rankers.lexical import kernels, weighed

    vocabulary = index.ranker.analyzer.vocabulary
    flat, weights, values = [np.zeros(0, np.int32)], [np.zeros(0)], []
    absent = [np.zeros((0, doc.shape[1]), np.bool_)]
    with Progress("analysing queries", len(queries)) as progress:
        for query, rows in zip(queries, doc, strict=True):
            terms, formula = index.ranker.query(query)
            tf = np.zeros((len(rows), len(terms)), np.int32)
            if len(terms):
                slots = np.full(len(vocabulary), -1, np.int32)
                kernels.scan(index.tokens.ids, index.tokens.offsets, rows, terms, slots, tf)
            flat.append(terms)
            weights.append(formula.weights)
            absent.append((tf == 0).T)
            values.append(weighed(formula, tf, index.lengths[rows]))
            progress.step()
    size = int(index.tokens.ids.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(index.lengths)), index.lengths)
    distinct = np.unique(owner * size + index.tokens.ids)  # the distinct terms of each text
    counts = np.bincount(distinct // size, minlength=len(index.lengths))
    query_terms, norm = np.concatenate(flat), index.ranker.query(queries[0])[1]
    used, number = np.unique(np.concatenate([query_terms, (distinct % size).astype(np.int32)]), return_inverse=True)
    return Terms(
        names=[vocabulary.terms[i] for i in used],
        query=number[: len(query_terms)].astype(np.int32),
        weight=np.concatenate(weights).astype(np.float32),
        query_ends=np.cumsum([len(terms) for terms in flat]),
        absent=np.concatenate(absent),
        doc=number[len(query_terms) :].astype(np.int32),
        doc_ends=np.concatenate([[0], np.cumsum(counts)]),
        norm=(norm.a + norm.b * index.lengths).astype(np.float32),
        value=np.stack(values).astype(np.float32),
    )


def ranges(starts: Rows, sizes: Rows) -> Rows:
    """The numbers of all ranges [start, start + size), one range after the other."""
    found: Rows = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return found


class TargetScores(NamedTuple):
    """Texts of each query, the first of which is the one that it belongs to, and the target's scores for them.

    Both are [queries, candidates]; `doc` holds numbers of texts.
    """

    doc: Numbers
    scores: Scores

    def scaled(self) -> TargetScores:
        """Scores in units of the spread of the differences between candidates of one query."""
        spread = float(np.sqrt(2 * self.scores.astype(np.float64).var(axis=1).mean()))
        return TargetScores(self.doc, (self.scores / (spread or 1.0)).astype(np.float32))


PARTS = 2  # of a query, in phase 1
CUTS = 2  # uniform draws that cut a query


class CandidateSampler:
    """Draws examples from candidates: so many texts of each query and epoch, with the draws that phase 1 needs.

    The `doc` of an example holds positions in the matrix of candidates, counted row by row. Behind the target's
    scores in `target` stand two uniform draws for the query and a normal one for each text and part. What a query
    gets in an epoch depends on the seed, the epoch and the set of queries alone, not on batches.
    """

    def __init__(
        self, candidates: TargetScores, queries: Rows, texts: int, positives: str, phase: str, own: bool = True
    ) -> None:
        """Draw for some of the queries; `phase` is part of the seed.

        Without `own`, a query's first candidate, the text that it belongs to, is never drawn.
        """
        self.candidates, self.queries, self.phase, self.first = candidates, queries, phase, int(not own)
        self.gold, self.texts = positives == "gold", min(texts, candidates.doc.shape[1] - self.first)

    def epoch(self, seed: int, epoch: int) -> EpochExamples:
        """One example per query, in the order of this epoch."""
        random = generator(seed, "parm", self.phase, str(epoch))
        n, width = len(self.queries), self.candidates.doc.shape[1]
        keys = random.random((n, width), dtype=np.float32)
        if self.gold:
            keys[:, 0] = -1
        keys[:, : self.first] = 2
        column = np.argsort(keys, axis=1)[:, : self.texts]
        draws = np.concatenate([random.random((n, CUTS)), random.standard_normal((n, PARTS * self.texts))], axis=1)
        order = random.permutation(n)
        scores = np.take_along_axis(self.candidates.scores[self.queries], column, axis=1)
        if not self.gold:
            best = np.argsort(-scores, axis=1, kind="stable")
            column, scores = np.take_along_axis(column, best, axis=1), np.take_along_axis(scores, best, axis=1)
        position = self.queries[:, None] * width + column
        target = np.concatenate([scores, draws], axis=1).astype(np.float32)
        return EpochExamples(self.queries[order].astype(np.int32), position[order].astype(np.int32), target[order])


def split_queries(n: int, share: float, seed: int = 0) -> tuple[Rows, Rows]:
    """The queries to learn from and those that are held out, at most one in two."""
    order = generator(seed, "parm", "held out").permutation(n)
    held = min(round(share * n), n // 2)
    return np.sort(order[held:]), np.sort(order[:held])


class ParmPrepared(NamedTuple):
    """All that training needs."""

    recipe: Recipe  # what is trained, and how
    queries: Sequence[str]  # texts of the queries
    docs: Sequence[str]  # texts of the candidates
    candidates: TargetScores  # the candidates of each query, and the target's scores
    terms: Terms  # the terms of queries and texts
    sources: Sources  # what the network starts from
    facts: Mapping[str, Any]  # of the network: target, alignment, analyzer, collections
    reader: Path | None = None  # the folder of the model that aligns, unless words are left out for that
    occlusion: Occlusion | None = None  # alignments that were found by leaving words out

    def identity(self, seed: int) -> str:
        """A digest of all that the result depends on: two runs that share it are the same run."""
        recipe = {name: value for name, value in self.recipe.as_dict().items() if name != "seeds"}
        digest = hashlib.sha256(json.dumps([recipe, dict(self.facts), seed], sort_keys=True, default=str).encode())
        for texts in (self.queries, self.docs, self.terms.names):
            digest.update(hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).digest())
        for array in (*self.candidates, *self.terms[1:], *(self.occlusion or ())):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def network(self, seed: int) -> ParmNetwork:
        """The network before its training."""
        made = new_network(self.recipe, seed, self.sources)
        assert isinstance(made, ParmNetwork)
        return made


def prepare_parm(recipe: Recipe, ranker: str | Ranker, engine: Engine, say: Say = print) -> ParmPrepared:
    """All that training needs: texts, candidates, scores of the target, terms and alignments by occlusion."""
    from whyrank.data import Collection
    from whyrank.rankers import Setting, open_ranker
    from whyrank.rankers.lexical import LexicalIndex, LexicalRanker

    check_parm(recipe, ranker)
    data = ParmData(**recipe.data)
    given = parm_queries(data)
    collection = Collection.of({str(i): text for i, text in enumerate(given.docs)}, {}, name="texts to learn from")
    setting = Setting(collection, analyzer_of(recipe.phases, recipe.data))
    parameters = "".join(f",{name}={recipe.data[name]}" for name in ("k1", "b", "k2") if name in recipe.data)
    bm25 = open_ranker(f"bm25(variant=parm{parameters})", setting)
    assert isinstance(bm25, LexicalRanker)
    index = LexicalIndex.of(bm25, collection.docs)
    doc = draw_candidates(index, given, data)
    say(f"{len(given.queries):,} queries, {len(given.docs):,} texts, {doc.shape[1]} candidates for each query")
    target = open_target(ranker, setting)
    alignment = choose_alignment(recipe, target)
    scores = _target_scores(target.ranker, engine, given, doc)
    names = list(dict.fromkeys([*data.collection, *data.cuts]))
    sources = sources_of(replace(recipe, phases={}, data={"collection": names}))
    facts = {
        "learner": f"parm(preset={recipe.phases.get('preset', 'target')})", "ranker": repr(target.ranker),
        "target": target.ranker.name, "alignment": alignment, "analyzer": setting.analyzer, "collection": names,
    }  # fmt: skip
    terms, reader = terms_of(index, given.queries, doc), target.folder or sources.encoder
    made = ParmPrepared(recipe, given.queries, given.docs, TargetScores(doc, scores), terms, sources, facts, reader)
    if alignment != "occlusion":
        return made
    network = made.network(0)
    texts = token_texts(network, made.queries, made.docs)
    return made._replace(occlusion=occlusion(target.ranker, engine, network.tokenizer, *texts, doc))


def check_parm(recipe: Recipe, ranker: str | Ranker) -> None:
    """Raise an error unless a recipe is one for `tables learn parm`, and the target a ranker."""
    from whyrank.rankers import rankers

    if recipe.architecture != ParmNetwork.architecture or not recipe.phases:
        raise WhyrankError("this recipe has no phases of parm; take `parm` or `parm-smoke`, or copy one of these")
    check_phases(recipe.phases, recipe.data)
    if not recipe.data.get("collection") and not recipe.data.get("cut"):
        raise WhyrankError("data: name collections to learn from, with -c or data.collection")
    check_settings(recipe)
    if isinstance(ranker, str):
        name = parse_call(ranker).name
        rankers.factory(name)
        if name == "run":
            raise WhyrankError(f"target {ranker!r}: a run has no scores for other texts; take a ranker that has")


class Target(NamedTuple):
    """The ranker to explain, and the folder of the model behind it where that can be read.

    `attends`: whether that model reads query and text together, and the attention between them can be read.
    """

    ranker: Ranker
    folder: Path | None = None
    attends: bool = False


def open_target(given: str | Ranker, setting: Setting) -> Target:
    """A ranker, or the one that a call string describes, and the model behind it."""
    from whyrank.rankers import as_ranker
    from whyrank.rankers.neural import NeuralRanker, architecture_of, model_folder

    ranker = as_ranker(given, setting)
    call = parse_call(ranker.name) if isinstance(ranker, NeuralRanker) else None
    if call is None or call.arguments or call.name not in ("cross", "bi"):
        return Target(ranker)
    folder = model_folder(str(call.resource))
    if call.name == "bi":
        return Target(ranker, folder)
    reads = attends(folder)  # cross-encoders of other packages without readable attention are like any ranker
    return Target(ranker, folder, reads) if reads or architecture_of(folder) == "cross" else Target(ranker)


def choose_alignment(recipe: Recipe, target: Target) -> str:
    """What aligns queries and texts: what the recipe says, or the best that there is."""
    requested = first_phase(recipe.phases).alignment
    embeds = target.folder is not None or isinstance(recipe.encoder, str)
    if requested == "attention" and not target.attends:
        raise WhyrankError("alignment: the target has no attention to offer; choose embeddings or occlusion")
    if requested == "embeddings" and not embeds:
        raise WhyrankError("alignment: a new encoder has no embeddings to align by; choose occlusion")
    if requested != "auto":
        return requested
    return "attention" if target.attends else "embeddings" if embeds else "occlusion"


def _target_scores(ranker: Ranker, engine: Engine, given: SourcedQueries, doc: Numbers) -> Scores:
    """The target's scores of all candidates."""
    from whyrank.scoring import one_line

    query = np.repeat(np.arange(len(doc), dtype=np.int32), doc.shape[1])
    found = engine.score(ranker, given.queries, given.docs, query, doc.reshape(-1))
    if found.failures:
        failed = f"{len(found.failures):,} of {found.values.size:,} pairs ({one_line(found.failures[0].reason)})"
        raise WhyrankError(f"the target {ranker.name!r} has no finite score for {failed}; mend it")
    scores = found.values.reshape(doc.shape)
    if not np.ptp(scores, axis=1).any():
        raise WhyrankError(f"the target {ranker.name!r} scores all texts of a query alike: nothing to learn")
    return scores.astype(np.float32)
