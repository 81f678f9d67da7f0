"""Learn to rank from judgements: LambdaRank over lexical features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import BadInput, Floats, Ints, UnknownName, WhyrankError, check_number, check_whole, write_text
from whyrank.data import Collection, Run, first_stage, open_collection, open_run, texts_of
from whyrank.rankers.ltr.features import FEATURES, Features, open_features
from whyrank.rankers.ltr.ranker import import_lightgbm, read_model, with_facts
from whyrank.rankers.opening import Setting

TRAIN, DEV, MEASURE = "training", "dev", "ndcg@10"
_MAX_GRADE = 30  # the highest grade that LightGBM has a gain for


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """How trees are grown.

    Attributes:
        trees: how many, or with a dev collection at most.
        leaves: of one tree, at most.
        rate: how much of each tree is added.
        min_docs: pairs that a leaf needs.
        patience: trees without a better dev nDCG@10 after which to stop.
        seed: of all that is random.
    """

    trees: int = 200
    leaves: int = 15
    rate: float = 0.05
    min_docs: int = 10
    patience: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in (("trees", 1), ("leaves", 2), ("min_docs", 1), ("patience", 1), ("seed", 0)):
            check_whole(f"ltr: {name}", getattr(self, name), low)
        check_number("ltr: rate", self.rate, 0, 1, strict=True)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that LightGBM takes; one thread and one layout, so that equal input gives equal models."""
        fixed = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbosity": -1}
        same = {"deterministic": True, "force_row_wise": True, "num_threads": 1, "seed": self.seed % (1 << 31)}
        shape = {"num_leaves": self.leaves, "learning_rate": self.rate, "min_data_in_leaf": self.min_docs}
        return fixed | same | shape


class TrainedLTR(NamedTuple):
    """What was learned: the file, from how much, how well it fits (mean nDCG@10), and the gain of each feature."""

    path: Path
    queries: int
    pairs: int
    trees: int
    ndcg: float
    dev_ndcg: float | None
    gains: dict[str, float]


class JudgedPairs(NamedTuple):
    """Pairs with features and grades, query by query; `groups` has the number of pairs of each query."""

    matrix: Floats
    grades: Ints
    groups: list[int]


def train_ltr(
    collection: Collection,
    run: str | Run,
    out: str | PathLike[str],
    *,
    dev: tuple[Collection, str | Run] | None = None,
    analyzer: str = "lucene",
    stats: str | None = None,
    features: Sequence[str] | None = None,
    boosting: Boosting | None = None,
    replace: bool = True,
) -> TrainedLTR:
    """Train on the candidates of a run and write the model, a LightGBM text file for the ranker `ltr:FILE`.

    Candidates without a judgement count as not relevant, and so do negative grades. Queries whose candidates all have
    one grade teach nothing and are left out. Equal input gives equal files.

    Args:
        collection: documents, queries and judgements.
        run: the candidates, a run of the collection by name, a file, or query id -> document id -> score.
        out: the file to write.
        dev: a collection and candidates to stop by; the model is cut where it ranks them best.
        analyzer: makes the terms that features count; noted in the model.
        stats: where document frequencies come from; the collection itself by default.
        features: names of the features, all by default.
        boosting: how trees are grown.
        replace: whether a file of that name that holds something else may be written over.
    """
    lightgbm = import_lightgbm("training a ranker 'ltr'")
    boosting = boosting or Boosting()
    names = tuple(FEATURES if features is None else features)
    facts = {"analyzer": analyzer, "collection": collection.name, "boosting": asdict(boosting)}
    different = BadInput(out, "holds something else than this recipe gives", "name another file, or remove it")
    if not replace and Path(out).exists():
        try:
            before = read_model(out)
        except BadInput:
            raise different from None
        if (before.names, dict(before.facts)) != (names, facts):
            raise different
    sources = [(collection, run), *([dev] if dev else [])]
    examples = [_examples(each, pool, open_features(names, Setting(each, analyzer, stats))) for each, pool in sources]
    booster, history = _fit(lightgbm, examples, names, boosting)
    model = with_facts(booster.model_to_string(), facts)
    if not replace and Path(out).exists() and Path(out).read_text(encoding="utf-8") != model:
        raise different
    write_text(out, model)
    trees, training = booster.num_trees(), examples[0]
    ndcg = {name: float(values[MEASURE][trees - 1]) for name, values in history.items()}
    gains = dict(zip(names, booster.feature_importance("gain").tolist(), strict=True))
    sizes = len(training.groups), len(training.grades), trees
    return TrainedLTR(Path(out), *sizes, ndcg[TRAIN], ndcg.get(DEV), gains)


def train_recipe(
    data: Mapping[str, Any], settings: Mapping[str, Any], out: str | PathLike[str], seed: int, replace: bool = True
) -> TrainedLTR:
    """Train as a recipe says.

    `data` names a `collection` and in `negatives` the run of the candidates: by default the collection's BM25 run or
    its only one; `judged` takes all judged documents. `settings` are those of `Boosting`, and `analyzer`, `stats` and
    `features`.
    """
    of_boosting = {each.name for each in fields(Boosting)} - {"seed"}
    known = sorted(of_boosting | {"analyzer", "stats", "features"})
    for key in settings:
        if key not in known:
            raise UnknownName("setting of 'ltr'", str(key), known)
    if not isinstance(data.get("collection"), str):
        raise WhyrankError("data: name one collection that 'ltr' is to learn from")
    collection, source = open_collection(data["collection"]), data.get("negatives")
    run: str | Run
    if source == "judged":
        run = {q: {d: float(grade) for d, grade in judged.items()} for q, judged in collection.qrels.items()}
    elif name := source or first_stage(collection):
        run = str(name)
    else:
        runs = ", ".join(collection.runs) or "it has none"
        raise WhyrankError(f"data: name a run of {collection.name} as negatives: {runs}; or 'judged'")
    boosting = Boosting(**{key: value for key, value in settings.items() if key in of_boosting}, seed=seed)
    others = {key: value for key, value in settings.items() if key not in of_boosting}
    return train_ltr(collection, run, out, boosting=boosting, replace=replace, **others)


def _fit(
    lightgbm: Any, examples: Sequence[JudgedPairs], names: Sequence[str], boosting: Boosting
) -> tuple[Any, Mapping[str, Any]]:
    """A booster, and nDCG after each tree; with dev examples it is cut where it ranks them best."""
    training, *others = examples
    first = lightgbm.Dataset(training.matrix, training.grades, group=training.groups, feature_name=list(names))
    sets = [first, *(first.create_valid(each.matrix, each.grades, group=each.groups) for each in others)]
    history: dict[str, Any] = {}
    callbacks = [lightgbm.record_evaluation(history)]
    if others:
        callbacks.append(lightgbm.early_stopping(boosting.patience, verbose=False))
    options = {"valid_sets": sets, "valid_names": [TRAIN, DEV][: len(sets)], "callbacks": callbacks}
    try:
        return lightgbm.train(boosting.parameters, first, boosting.trees, **options), history
    except lightgbm.basic.LightGBMError as error:
        raise WhyrankError(f"LightGBM cannot train: {error}") from None


def _examples(collection: Collection, run: str | Run, features: Features) -> JudgedPairs:
    """The candidates of all queries that have candidates of more than one grade, with features and grades."""
    candidates = open_run(collection, run).run if isinstance(run, str) else run
    pools: dict[str, dict[str, int]] = {}
    for query_id in collection.queries:
        judged = collection.qrels.get(query_id, {})
        known = sorted(doc_id for doc_id in candidates.get(query_id, {}) if doc_id in collection.docs)
        pool = {doc_id: min(max(judged.get(doc_id, 0), 0), _MAX_GRADE) for doc_id in known}
        if len(set(pool.values())) > 1:
            pools[query_id] = pool
    if not pools:
        what = f"no query of collection {collection.name} has candidates of more than one grade in the run"
        raise WhyrankError(f"{what}, so there is nothing to learn from; take a run of its judged queries")
    ids = [doc_id for pool in pools.values() for doc_id in pool]
    queries = [collection.queries[query_id] for query_id, pool in pools.items() for _ in pool]
    grades = np.array([grade for pool in pools.values() for grade in pool.values()], dtype=np.int64)
    return JudgedPairs(features.matrix(queries, texts_of(collection.docs, ids)), grades, [*map(len, pools.values())])
