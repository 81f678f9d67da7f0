"""A toy task and tiny networks for it: each query has one text that holds both of its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from whyrank.networks import Network
from whyrank.training import Recipe, Sources, TrainingInputs, TrainingSet, new_network, recipe_of
from whyrank.training.data import Judged
from whyrank.training.running import train
from whyrank.training.sources import wordpiece_tokenizer
from whyrank.training.validation import Validation

WORDS = [f"{a}{b}" for a in ("ba", "ce", "di", "fo", "gu") for b in ("lan", "mer", "nis", "rop", "tuk")]
ENCODER = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 48, "initializer_range": 0.2,
}  # fmt: skip
SCHEDULE = {"epochs": 4, "batch": 5, "rate": 1e-3, "head_rate": 2e-3, "threads": 1}


def toy_texts(n: int = 20, seed: int = 0) -> tuple[list[str], list[str]]:
    """Queries of two words, and texts of 6 to 12 words, of which text i has the words of query i."""
    random = np.random.default_rng(seed)
    queries = [" ".join(random.choice(WORDS, 2, replace=False)) for _ in range(n)]
    texts = [" ".join([query, *random.choice(WORDS, random.integers(4, 10))]) for query in queries]
    return queries, texts


def toy_data(n: int = 20, negatives: int = 1) -> TrainingSet:
    queries, texts = toy_texts(n)
    own = [np.array([i], np.int32) for i in range(n)]
    others = [np.setdiff1d(np.arange(n, dtype=np.int32), row) for row in own]
    return TrainingSet(queries, texts, Judged(own, others, negatives))


def toy_validation(n: int = 20, measure: str = "nDCG@10") -> Validation:
    queries, texts = toy_texts(n)
    query, doc = np.repeat(np.arange(n), n).astype(np.int32), np.tile(np.arange(n), n).astype(np.int32)
    return Validation(queries, texts, query, doc, (query == doc).astype(np.float32), [[1.0]] * n, measure)


def toy_recipe(**changes: object) -> Recipe:
    given = {"architecture": "cross", "encoder": ENCODER, "tokenizer": "collection", "loss": "margin",
             "settings": {"max_query": 8, "max_doc": 24}, "data": {"collection": "toy"}}  # fmt: skip
    schedule = {**SCHEDULE, **changes.pop("schedule", {})}
    return recipe_of(given | {"schedule": schedule} | changes)


def toy_run(
    validated: bool = True, negatives: int = 1, corpus: tuple[str, ...] = (), **changes: object
) -> TrainingInputs:
    validation = toy_validation() if validated else None
    return TrainingInputs(toy_recipe(**changes), toy_data(negatives=negatives), validation, corpus, toy_sources())


def toy_sources() -> Sources:
    queries, texts = toy_texts()
    return Sources(tokenizer=wordpiece_tokenizer([*queries, *texts], 200))


def toy_network(seed: int = 0, dropout: float = 0.1, **settings: object) -> Network:
    still = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    chosen = {"max_query": 8, "max_doc": 24, "dropout": dropout} | settings
    return new_network(toy_recipe(encoder=ENCODER | still, settings=chosen), seed, toy_sources())


def quiet(text: str) -> None:
    """Say nothing."""


def train_quietly(prepared: TrainingInputs, out: Path, seed: int = 0):
    return train(prepared, out, seed=seed, say=quiet)
