"""Studies during the training of a tiny random model."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

pytest.importorskip("sentence_transformers", reason="pip install 'whyrank[models]' to run this test")
pytest.importorskip("accelerate", reason="pip install accelerate to run this test")
pytest.importorskip("datasets", reason="pip install 'whyrank[datasets]' to run this test")
sys.path.append(str(Path(__file__).parents[1] / "rankers"))

from tiny_models import bert, save, wordpiece

from whyrank.core import UnknownName
from whyrank.integrations.sentence_transformers import StudyEvaluator

ROWS = {
    "query": ["berlin wall", "robert gray"] * 4,
    "text": ["the wall fell", "simple emoji"] * 4,
    "label": [1.0, 0.0] * 4,
}


@pytest.mark.parametrize("kind", ["CrossEncoder", "SentenceTransformer"])
def test_scores_of_studies_while_a_model_is_trained(kind, tmp_path):
    import sentence_transformers as st
    import torch
    from datasets import Dataset
    from transformers import BertForSequenceClassification, BertModel

    torch.manual_seed(0)
    tokenizer = wordpiece()
    made = (
        BertForSequenceClassification(bert(tokenizer, num_labels=1))
        if kind == "CrossEncoder"
        else BertModel(bert(tokenizer))
    )
    model = getattr(st, kind)(str(save(made, tokenizer, tmp_path / "model")), device="cpu")
    losses = {
        "CrossEncoder": ("cross_encoder.losses", "BinaryCrossEntropyLoss"),
        "SentenceTransformer": ("losses", "CosineSimilarityLoss"),
    }
    module, loss = losses[kind]
    module = __import__(f"sentence_transformers.{module}", fromlist=[loss])
    evaluator = StudyEvaluator(["edited/typos", "edited/case-fold"], "sample", name="why", limit=5, delta=0)
    args = getattr(st, f"{kind}TrainingArguments")(
        str(tmp_path / "out"), max_steps=2, eval_strategy="steps", eval_steps=1, per_device_train_batch_size=4,
        report_to="none", save_strategy="no", use_cpu=True, learning_rate=1e-3, disable_tqdm=True,
    )  # fmt: skip
    trainer = getattr(st, f"{kind}Trainer")(
        model=model,
        args=args,
        train_dataset=Dataset.from_dict(ROWS),
        loss=getattr(module, loss)(model),
        evaluator=evaluator,
    )
    trainer.train()
    seen = [row for row in trainer.state.log_history if "eval_why_edited/typos" in row]
    assert len(seen) == 2
    assert all(-1 <= row["eval_why_edited/case-fold"] <= 1 for row in seen)
    assert evaluator.primary_metric == "why_edited/typos"
    assert evaluator.last["edited/typos"].findings[0].n == 5
    assert (tmp_path / "out" / "eval" / "whyrank_studies.csv").read_text().startswith("epoch,steps,edited/typos")


def test_checkpoints_are_chosen_by_a_study_that_runs():
    evaluator = StudyEvaluator("matched/length|*", "sample", limit=20)
    assert evaluator.primary_metric == "matched/length|overlap"
    with pytest.raises(UnknownName, match="did you mean 'edited/typos'"):
        StudyEvaluator(["edited/typos"], "sample", primary="edited/typo")


def test_without_contrasts_a_score_is_nan():
    import sentence_transformers  # noqa: F401

    from whyrank import Collection

    nothing = Collection.of({"a": "x"}, {"q": "x"}, {"q": {"a": 1}})
    evaluator = StudyEvaluator("matched/length|relevance", nothing, delta=0)

    class Card:
        def set_evaluation_metrics(self, *arguments):
            pass

    class Model:
        name, model_card_data = "m", Card()

        def score(self, queries, docs):
            return [0.0] * len(docs)

    assert math.isnan(evaluator(Model())["matched/length|relevance"])
