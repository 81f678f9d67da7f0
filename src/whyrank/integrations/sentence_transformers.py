"""An evaluator for the trainers of sentence-transformers: chosen studies, run on the model while it is trained.

from whyrank.integrations.sentence_transformers import StudyEvaluator

evaluator = StudyEvaluator(["edited/typos", "axiom/TFC1"], "my-collection", limit=200)
CrossEncoderTrainer(model=model, ..., evaluator=evaluator).train()
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentence_transformers.base.evaluation import BaseEvaluator

from whyrank.core import Study, UnknownName
from whyrank.data import Collection, open_collection
from whyrank.report.audit import Audit, audit
from whyrank.scoring import Engine
from whyrank.studies import Request, choose_studies


class StudyEvaluator(BaseEvaluator):
    """Puts studies to a `CrossEncoder`, `SentenceTransformer` or `SparseEncoder`, and gives the score of each.

    Args:
        studies: names, patterns or call strings of studies, or study objects.
        collection: a collection, or its spec.
        primary: the study whose score chooses the best checkpoint; by default the first one, of a pattern its first.
        greater_is_better: whether a higher score of that study is better.
        name: put in front of the names of the scores.
        limit: at most so many contrasts of each study, the same at each step.
        options: further options of `whyrank.audit`, such as `delta=0`, which saves a calibration at each step.

    Attributes:
        last: the audit of the last call.

    Example:
        >>> StudyEvaluator("edited/typos", "sample", limit=20).primary_metric
        'edited/typos'
    """

    def __init__(
        self, studies: str | Study | Sequence[str | Study], collection: str | Collection = "sample", *,
        primary: str | None = None, greater_is_better: bool = True, name: str = "", limit: int | None = 200,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.greater_is_better, self.name = greater_is_better, name
        self._studies, self._collection = studies, open_collection(collection)
        self._options: dict[str, Any] = {"limit": limit, "engine": Engine(), **options}
        given = [studies] if isinstance(studies, str) or not isinstance(studies, Sequence) else studies
        request = Request(
            studies=given, collection=lambda: self._collection, rankers=lambda _: [], engine=self._options["engine"]
        )
        names = list(choose_studies(request).studies)
        if not names or (primary is not None and primary not in names):
            raise UnknownName("study to choose checkpoints by", primary or "none", names)
        self.primary_metric = primary or names[0]
        self.last: Audit | None = None

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """The score of each study, from -1 to 1; a row of `whyrank_studies.csv` where a folder is named."""
        self.last = audit({"model": model}, self._collection, self._studies, **self._options)
        found = {f.study: math.nan if f.score is None else f.score for f in self.last if f.group is None}
        if output_path is not None:
            path = Path(output_path) / "whyrank_studies.csv"
            fresh = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8", newline="") as file:
                rows = csv.writer(file)
                rows.writerows([["epoch", "steps", *found]] if fresh else [])
                rows.writerow([epoch, steps, *found.values()])
        scores: dict[str, float] = self.prefix_name_to_metrics(found, self.name)
        self.store_metrics_in_model_card_data(model, scores, epoch, steps)
        return scores

    def get_config_dict(self) -> dict[str, Any]:
        """What the card of the model says of the evaluation."""
        return {"studies": str(self._studies), "collection": self._collection.name, "limit": self._options["limit"]}
