"""Learn to rank from judgements: LambdaRank over lexical features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import (
    BadInput,
    Floats,
    Ints,
    MissingExtra,
    UnknownName,
    WhyrankError,
    check_number,
    check_whole,
    write_text,
)
from whyrank.data import Collection, Run, first_stage, open_collection, open_run, texts_of
from whyrank.rankers.ltr.features import FEATURES, Features, open_features
from whyrank.rankers.ltr.trees import read_trees, with_facts
from whyrank.rankers.opening import Setting

TRAIN, DEV, MEASURE = "training", "dev", "ndcg@10"
_BOOSTING = ("trees", "leaves", "rate", "min_docs", "patience")
_OTHERS = ("analyzer", "stats", "features")
_HIGHEST = 30  # grade that LightGBM has a gain for


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


class Examples(NamedTuple):
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
    lightgbm, grown = _lightgbm(), boosting or Boosting()
    chosen = tuple(FEATURES if features is None else features)
    facts = {"analyzer": analyzer, "collection": collection.name, "boosting": asdict(grown)}
    _check_own(out, replace or _told(out) == (chosen, facts))
    training, *others = [
        _examples(each, candidates, open_features(chosen, Setting(each, analyzer, stats)))
        for each, candidates in [(collection, run), *([dev] if dev else [])]
    ]
    booster, reached = _grow(lightgbm, training, others, chosen, grown)
    made = with_facts(booster.model_to_string(), facts)
    _check_own(out, replace or not Path(out).exists() or Path(out).read_text(encoding="utf-8") == made)
    write_text(out, made)
    gains = dict(zip(chosen, booster.feature_importance("gain").tolist(), strict=True))
    best = {name: float(values[MEASURE][booster.num_trees() - 1]) for name, values in reached.items()}
    sizes = len(training.groups), len(training.grades), booster.num_trees()
    return TrainedLTR(Path(out), *sizes, best[TRAIN], best.get(DEV), gains)


def train_recipe(
    data: Mapping[str, Any], settings: Mapping[str, Any], out: str | PathLike[str], seed: int, replace: bool = True
) -> TrainedLTR:
    """Train as a recipe says.

    `data` names a `collection` and in `negatives` the run of the candidates: by default the collection's BM25 run or
    its only one; `judged` takes all judged documents. `settings` are those of `Boosting`, and `analyzer`, `stats` and
    `features`.
    """
    unknown = [key for key in settings if key not in (*_BOOSTING, *_OTHERS)]
    if unknown:
        raise UnknownName("setting of 'ltr'", str(unknown[0]), [*_BOOSTING, *_OTHERS])
    if not isinstance(data.get("collection"), str):
        raise WhyrankError("data: name one collection that 'ltr' is to learn from")
    collection = open_collection(data["collection"])
    boosting = Boosting(**{key: value for key, value in settings.items() if key in _BOOSTING}, seed=seed)
    others = {key: value for key, value in settings.items() if key in _OTHERS} | {"replace": replace}
    return train_ltr(collection, _candidates(collection, data.get("negatives")), out, boosting=boosting, **others)


def _told(path: str | PathLike[str]) -> tuple[Any, Any] | None:
    """The features and facts of the model in a file; None where it holds something else."""
    try:
        found = read_trees(path)
    except BadInput:
        return None
    return found.names, dict(found.facts)


def _check_own(path: str | PathLike[str], same: bool) -> None:
    if not same and Path(path).exists():
        raise BadInput(path, "holds something else than this recipe gives", "name another file, or remove it")


def _candidates(collection: Collection, source: object) -> str | Run:
    if source == "judged":
        return {q: {d: float(grade) for d, grade in judged.items()} for q, judged in collection.qrels.items()}
    name = source or first_stage(collection)
    if name is None:
        known = ", ".join(collection.runs) or "it has none"
        raise WhyrankError(f"data: name a run of {collection.name} as negatives: {known}; or 'judged'")
    return str(name)


def _grow(
    lightgbm: Any, training: Examples, others: Sequence[Examples], names: Sequence[str], grown: Boosting
) -> tuple[Any, Mapping[str, Any]]:
    """A booster, cut by LightGBM where it ranked the others best, and the course of the measures."""
    reached: dict[str, Any] = {}
    first = lightgbm.Dataset(training.matrix, training.grades, group=training.groups, feature_name=list(names))
    sets = [first, *(first.create_valid(e.matrix, e.grades, group=e.groups) for e in others)]
    callbacks = [lightgbm.record_evaluation(reached)]
    if others:
        callbacks.append(lightgbm.early_stopping(grown.patience, verbose=False))
    options = {"valid_sets": sets, "valid_names": [TRAIN, DEV][: len(sets)], "callbacks": callbacks}
    try:
        return lightgbm.train(grown.parameters, first, grown.trees, **options), reached
    except lightgbm.basic.LightGBMError as error:
        raise WhyrankError(f"LightGBM cannot train: {error}") from None


def _examples(collection: Collection, run: str | Run, features: Features) -> Examples:
    candidates = open_run(collection, run).run if isinstance(run, str) else run
    pools = {q: _pool(collection, q, candidates.get(q, {})) for q in collection.queries}
    graded = {q: pool for q, pool in pools.items() if len(set(pool.values())) > 1}
    if not graded:
        what = f"no query of collection {collection.name} has candidates of more than one grade in the run"
        raise WhyrankError(f"{what}, so there is nothing to learn from; take a run of its judged queries")
    ids = [doc_id for pool in graded.values() for doc_id in pool]
    queries = [collection.queries[q] for q, pool in graded.items() for _ in pool]
    grades = np.array([grade for pool in graded.values() for grade in pool.values()], dtype=np.int64)
    return Examples(features.matrix(queries, texts_of(collection.docs, ids)), grades, [*map(len, graded.values())])


def _pool(collection: Collection, query_id: str, candidates: Mapping[str, float]) -> dict[str, int]:
    """The grade of each candidate that has a text, by id, so that the order tells nothing."""
    judged = collection.qrels.get(query_id, {})
    known = sorted(doc_id for doc_id in candidates if doc_id in collection.docs)
    return {doc_id: min(max(judged.get(doc_id, 0), 0), _HIGHEST) for doc_id in known}


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("training a ranker 'ltr'", "ltr") from None
    return lightgbm
