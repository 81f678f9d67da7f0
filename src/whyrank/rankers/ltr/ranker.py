"""A learned combination of lexical features, `ltr:MODEL.txt`, and how it is learned from judgements by LambdaRank."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from whyrank.core import (
    EMPTY,
    KEY,
    BadInput,
    Checked,
    Floats,
    Ints,
    MissingExtra,
    Natural,
    Range,
    UnknownName,
    Whole,
    WhyrankError,
    Within,
    check_seal,
    file_digest,
    sealed_text,
    write_text,
)
from whyrank.data import Collection, Run, first_stage, open_collection, open_run, texts_of
from whyrank.rankers.base import Described
from whyrank.rankers.ltr.features import FEATURES, Features, open_features
from whyrank.rankers.opening import Setting

FACTS = "whyrank"  # the header line of a model that holds what training noted
TRAIN, MEASURE = "training", "ndcg@10"
_MAX_GRADE = 30  # the highest grade that LightGBM has a gain for
_REMEDY = "give a model that was saved by train_ltr, or by save_model of a LightGBM booster"


@dataclass(frozen=True)
class LTR(Described):
    """Trees over lexical features of query and text: a LightGBM model in text form whose features have our names.

    `whyrank.rankers.ltr.FEATURES` has the features. `train_ltr` learns such a model by LambdaRank
    (Burges, "From RankNet to LambdaRank to LambdaMART: an overview", 2010; Ke et al., "LightGBM: a highly efficient
    gradient boosting decision tree", NIPS 2017).

    Attributes:
        resource: the file of the model.
        analyzer: None takes the analyzer that the model was trained with, or that of the setting where it names none.
        stats: where document frequencies come from; None as for other lexical rankers.
    """

    resource: str
    analyzer: str | None = None
    stats: str | None = None

    registered: ClassVar[str] = "ltr"

    def bind(self, setting: Setting) -> LearnedRanker:
        """Read the model and take statistics from the setting."""
        model = read_model(self.resource)
        for name in model.names:
            if name not in FEATURES:
                what = f"the model needs the feature {name!r}, which is none of ours"
                raise BadInput(self.resource, what, f"train it on some of: {', '.join(FEATURES)}")
        trained = model.facts.get("analyzer")
        analyzer = self.analyzer or (trained if isinstance(trained, str) else None)
        return LearnedRanker(self.name, model, open_features(model.names, setting, analyzer, self.stats))


@dataclass(frozen=True, repr=False, eq=False)
class LearnedRanker:
    """Scores pairs by the trees of a model over their features."""

    name: str
    model: TreeModel
    features: Features

    batch_size: ClassVar[int] = 10_000
    scale: ClassVar[str] = "sum of trees"

    def __repr__(self) -> str:
        return f"ltr(model={self.model.digest}) {self.features.identity}"

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        return self.model.predict(self.features.matrix(queries, docs))


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A LightGBM model: its text, its features by column, the digest of its file, and what training noted."""

    text: str
    names: tuple[str, ...]
    digest: str
    facts: Mapping[str, Any]

    def __getstate__(self) -> dict[str, Any]:
        """Without the booster: a worker process parses the text itself."""
        return {key: value for key, value in self.__dict__.items() if key != "booster"}

    def predict(self, matrix: Floats) -> Floats:
        """The sum of all trees for each row of features."""
        if not len(matrix):
            return np.zeros(0)
        return np.asarray(self.booster.predict(matrix, raw_score=True, num_threads=1), dtype=np.float64)

    @cached_property
    def booster(self) -> Any:
        """LightGBM's own form of the model."""
        lightgbm = import_lightgbm("ranker 'ltr'")
        try:
            return lightgbm.Booster(model_str=self.text)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from None


def read_model(path: str | PathLike[str]) -> TreeModel:
    """Read a model in LightGBM's text form; the sizes of its trees are checked, because LightGBM trusts them."""
    check_seal(path, "train it again")
    try:
        text = Path(path).read_text(encoding="utf-8")
        header = dict(line.split("=", 1) for line in text.partition("\nTree=")[0].splitlines() if "=" in line)
        size = len(text[text.find("\nTree=") : text.find("\nend of trees")].encode())
        problem = None
        if not text.startswith("tree\n") or size != sum(map(int, header.get("tree_sizes", "").split())):
            problem = "it is not LightGBM's text form, or cut off"
        elif header.get("num_class") != "1":
            problem = "it has more than one class"
        else:
            facts = json.loads(header.get(FACTS, "{}"))
            model = TreeModel(text, tuple(header.get("feature_names", "").split()), file_digest(path), facts)
            _ = model.booster
            return model
    except (OSError, ValueError) as error:
        problem = str(error)
    raise BadInput(path, f"is no model that can be used ({problem})", _REMEDY)


def with_facts(model: str, facts: Mapping[str, Any]) -> str:
    """The text of a model with facts noted in its header, where LightGBM leaves them alone."""
    first, _, rest = model.partition("\n")
    noted = json.dumps(facts).replace("=", "\\u003d")  # LightGBM reads KEY=VALUE with one sign of equality only
    return sealed_text(f"{first}\n{FACTS}={noted}\n{KEY}={EMPTY}\n{rest}")


def import_lightgbm(what: str) -> Any:
    """The package LightGBM, or an error that says what needs it."""
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra(what, "ltr") from None
    return lightgbm


# Training.


@dataclass(frozen=True, kw_only=True)
class Boosting(Checked):
    """How trees are grown.

    Attributes:
        trees: how many.
        leaves: of one tree, at most.
        rate: how much of each tree is added.
        min_docs: pairs that a leaf needs.
        seed: of all that is random.
    """

    trees: Whole = 200
    leaves: Annotated[int, Range(2)] = 15
    rate: Within = 0.05
    min_docs: Whole = 10
    seed: Natural = 0

    registered: ClassVar[str] = "ltr"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that LightGBM takes; one thread and one layout, so that equal input gives equal models."""
        fixed = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbosity": -1}
        same = {"deterministic": True, "force_row_wise": True, "num_threads": 1, "seed": self.seed % (1 << 31)}
        shape = {"num_leaves": self.leaves, "learning_rate": self.rate, "min_data_in_leaf": self.min_docs}
        return fixed | same | shape


class TrainedLTR(NamedTuple):
    """What was learned: the file, from how much, and how well it fits (mean nDCG@10)."""

    path: Path
    queries: int
    pairs: int
    trees: int
    ndcg: float


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
    analyzer: str = "lucene",
    stats: str | None = None,
    features: Sequence[str] | None = None,
    boosting: Boosting | None = None,
) -> TrainedLTR:
    """Train on the candidates of a run and write the model, a LightGBM text file for the ranker `ltr:FILE`.

    Candidates without a judgement count as not relevant, and so do negative grades. Queries whose candidates all have
    one grade teach nothing and are left out. Equal input gives equal files.

    Args:
        collection: documents, queries and judgements.
        run: the candidates, a run of the collection by name, a file, or query id -> document id -> score.
        out: the file to write.
        analyzer: makes the terms that features count; noted in the model.
        stats: where document frequencies come from; the collection itself by default.
        features: names of the features, all by default.
        boosting: how trees are grown.
    """
    lightgbm = import_lightgbm("training a ranker 'ltr'")
    boosting = boosting or Boosting()
    names = tuple(FEATURES if features is None else features)
    facts = {"analyzer": analyzer, "collection": collection.name, "boosting": asdict(boosting)}
    training = _examples(collection, run, open_features(names, Setting(collection, analyzer, stats)))
    data = lightgbm.Dataset(training.matrix, training.grades, group=training.groups, feature_name=list(names))
    history: dict[str, Any] = {}
    options = {"valid_sets": [data], "valid_names": [TRAIN], "callbacks": [lightgbm.record_evaluation(history)]}
    try:
        booster = lightgbm.train(boosting.parameters, data, boosting.trees, **options)
    except lightgbm.basic.LightGBMError as error:
        raise WhyrankError(f"LightGBM cannot train: {error}") from None
    write_text(out, with_facts(booster.model_to_string(), facts))
    ndcg = float(history[TRAIN][MEASURE][-1])
    return TrainedLTR(Path(out), len(training.groups), len(training.grades), booster.num_trees(), ndcg)


def train_recipe(
    data: Mapping[str, Any], settings: Mapping[str, Any], out: str | PathLike[str], seed: int
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
    return train_ltr(collection, run, out, boosting=boosting, **others)


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
