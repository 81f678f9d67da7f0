"""A learned combination of lexical features, `ltr:MODEL.txt`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whyrank.core import EMPTY, KEY, BadInput, Floats, MissingExtra, check_seal, check_text, file_digest, sealed_text
from whyrank.rankers.ltr.features import FEATURES, Features, open_features
from whyrank.rankers.opening import Described, Setting

FACTS = "whyrank"  # the header line of a model that holds what training noted
_REMEDY = "give a model that was saved by train_ltr, or by save_model of a LightGBM booster"


@dataclass(frozen=True)
class LTR(Described):
    """Trees over lexical features of query and text: a LightGBM model in text form whose features have our names.

    `whyrank.rankers.ltr.FEATURES` has the features and `train_ltr` learns such a model by LambdaRank
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

    def __post_init__(self) -> None:
        check_text("ltr: analyzer", self.analyzer)
        check_text("ltr: stats", self.stats)

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
