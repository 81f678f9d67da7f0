"""A toy world for PaRM: nonsense words, two of which mean the same to a toy ranker, and tiny networks."""

from __future__ import annotations

import numpy as np

from training_models import ENCODER, WORDS
from whyrank.learners.parm import ParmPrepared
from whyrank.learners.parm.alignment import Occlusion, token_texts
from whyrank.learners.parm.data import TargetScores, Terms
from whyrank.training import Recipe, Sources, new_network, recipe_of
from whyrank.training.sources import wordpiece_tokenizer

SHAPE = {**ENCODER, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SCHEDULE = {"epochs": 2, "batch": 8, "rate": 1e-3, "head_rate": 1e-3, "threads": 1}


def parm_recipe(**changes: object) -> Recipe:
    phases = {"preset": "target", "first": {"schedule": SCHEDULE, "held_out": 0.2},
              "second": {"schedule": SCHEDULE, "texts": 3}}  # fmt: skip
    given = {"architecture": "parm", "encoder": SHAPE, "tokenizer": "collection", "phases": phases,
             "settings": {"max_query": 6, "max_doc": 16, "dropout": 0.0}, "data": {"collection": "sample"}}  # fmt: skip
    return recipe_of(given | changes)


def toy_sources(words=WORDS) -> Sources:
    return Sources(tokenizer=wordpiece_tokenizer([" ".join(words)] * 3, 400))


def parm_network(seed: int = 0, recipe: Recipe | None = None, **changes: object):
    made = recipe or parm_recipe(**changes)
    return new_network(made, seed, toy_sources())


def toy_world(n: int = 40, docs: int = 60, seed: int = 0) -> tuple[list[str], list[str]]:
    """Queries of two or three words, and texts of five to ten."""
    random = np.random.default_rng(seed)
    queries = [" ".join(random.choice(WORDS, random.integers(2, 4), replace=False)) for _ in range(n)]
    texts = [" ".join(random.choice(WORDS, random.integers(5, 11))) for _ in range(docs)]
    return list(dict.fromkeys(queries)), list(dict.fromkeys(texts))


def toy_terms(queries, docs, doc, seed=0):
    """Every word is a term; weights and norms are arbitrary, values too."""
    random = np.random.default_rng(seed)
    names = sorted({word for text in [*queries, *docs] for word in text.split()})
    number = {name: i for i, name in enumerate(names)}
    query_terms = [list(dict.fromkeys(number[w] for w in q.split())) for q in queries]
    doc_terms = [sorted({number[w] for w in d.split()}) for d in docs]
    absent = [
        [term not in doc_terms[d] for d in row] for terms, row in zip(query_terms, doc, strict=True) for term in terms
    ]
    flat = np.array([t for terms in query_terms for t in terms], np.int32)
    return Terms(
        names, flat, random.uniform(1, 9, len(flat)).astype(np.float32), ends(query_terms), np.array(absent, bool),
        np.array([t for terms in doc_terms for t in terms], np.int32), ends(doc_terms),
        random.uniform(0.5, 1.5, len(docs)).astype(np.float32), random.uniform(0, 5, doc.shape).astype(np.float32),
    )  # fmt: skip


def ends(rows):
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


def toy_candidates(n=40, docs=60, width=4, seed=0):
    queries, texts = toy_world(n, docs, seed)
    random = np.random.default_rng(seed)
    doc = np.stack([random.permutation(len(texts))[:width] for _ in queries]).astype(np.int32)
    return queries, texts, doc, random.standard_normal(doc.shape).astype(np.float32)


def toy_prepared(**changes):
    queries, docs, doc, scores = toy_candidates()
    network = parm_network()
    sizes = [q * d for q, d in word_counts(network, queries, docs, doc)]
    values = np.random.default_rng(1).random(sum(sizes)).astype(np.float32)
    other = Occlusion(values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    facts = {"ranker": "toy", "target": "toy", "alignment": "occlusion", "collection": ["toy"], "analyzer": "krovetz"}
    return ParmPrepared(
        parm_recipe(**changes), queries, docs, TargetScores(doc, scores), toy_terms(queries, docs, doc), toy_sources(),
        facts, occlusion=other,
    )  # fmt: skip


def word_counts(network, queries, docs, doc):
    one, two = token_texts(network, queries, docs)
    return [(one.word_counts[q], two.word_counts[d]) for q, row in enumerate(doc) for d in row]
