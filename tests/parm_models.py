"""A toy world for PaRM: nonsense words, two of which mean the same to a toy ranker, and tiny networks."""

from __future__ import annotations

import numpy as np

from training_models import ENCODER, WORDS
from whyrank.training import Recipe, Sources, new_network, recipe_of
from whyrank.training.sources import word_pieces

SHAPE = {**ENCODER, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SCHEDULE = {"epochs": 2, "batch": 8, "rate": 1e-3, "head_rate": 1e-3, "threads": 1}


def parm_recipe(**changes: object) -> Recipe:
    phases = {"preset": "target", "first": {"schedule": SCHEDULE, "held_out": 0.2},
              "second": {"schedule": SCHEDULE, "texts": 3}}  # fmt: skip
    given = {"architecture": "parm", "encoder": SHAPE, "tokenizer": "collection", "phases": phases,
             "settings": {"max_query": 6, "max_doc": 16, "dropout": 0.0}, "data": {"collection": "sample"}}  # fmt: skip
    return recipe_of(given | changes)


def toy_sources(words=WORDS) -> Sources:
    return Sources(tokenizer=word_pieces([" ".join(words)] * 3, 400))


def parm_network(seed: int = 0, recipe: Recipe | None = None, **changes: object):
    made = recipe or parm_recipe(**changes)
    return new_network(made, seed, toy_sources())


def toy_world(n: int = 40, docs: int = 60, seed: int = 0) -> tuple[list[str], list[str]]:
    """Queries of two or three words, and texts of five to ten."""
    random = np.random.default_rng(seed)
    queries = [" ".join(random.choice(WORDS, random.integers(2, 4), replace=False)) for _ in range(n)]
    texts = [" ".join(random.choice(WORDS, random.integers(5, 11))) for _ in range(docs)]
    return list(dict.fromkeys(queries)), list(dict.fromkeys(texts))
