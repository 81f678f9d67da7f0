"""A learned combination of lexical features, `ltr:MODEL.txt`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from whyrank.core import BadInput, Floats, UnknownName, call_of, check_text
from whyrank.rankers.ltr.features import FEATURES, Features, check_names, open_features
from whyrank.rankers.ltr.training import train_ltr, train_recipe
from whyrank.rankers.ltr.trees import Trees, read_trees
from whyrank.rankers.opening import Setting

__all__ = ["LTR", "LearnedRanker", "train_ltr", "train_recipe"]


@dataclass(frozen=True)
class LTR:
    """Trees over lexical features of query and text: a LightGBM model in text form whose features have our names.

    `whyrank.rankers.ltr.features.FEATURES` has the features and `train_ltr` learns such a model by LambdaRank
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

    def __post_init__(self) -> None:
        check_text("ltr: analyzer", self.analyzer)
        check_text("ltr: stats", self.stats)

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "ltr")

    def bind(self, setting: Setting) -> LearnedRanker:
        """Read the model and take statistics from the setting."""
        model = read_trees(self.resource)
        try:
            check_names(model.names)
        except UnknownName as error:
            known = ", ".join(FEATURES)
            what = f"the model needs the feature {error.name!r}, which is none of ours"
            raise BadInput(self.resource, what, f"train it on some of: {known}") from None
        trained = model.facts.get("analyzer")
        analyzer = self.analyzer or (trained if isinstance(trained, str) else None)
        return LearnedRanker(self.name, model, open_features(model.names, setting, analyzer, self.stats))


@dataclass(frozen=True, repr=False, eq=False)
class LearnedRanker:
    """Scores pairs by the trees of a model over their features."""

    name: str
    model: Trees
    features: Features

    batch_size: ClassVar[int] = 10_000
    scale: ClassVar[str] = "sum of trees"

    def __repr__(self) -> str:
        return f"ltr(model={self.model.digest}) {self.features.identity}"

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        return self.model.predict(self.features.matrix(queries, docs))
