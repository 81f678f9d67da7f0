"""Small random networks that read queries and texts apart, and what several of their tests do with them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from whyrank.networks import ModelTokenizer, Network, joined, make, networks, new_encoder, tensors
from whyrank.training import Trainer, TrainingSet
from whyrank.training.data import Judged
from whyrank.training.losses import CrossEntropy
from whyrank.training.schedule import Schedule
from whyrank.training.validation import Validation

ALL = ("knrm", "conv-knrm", "epic", "late", "sparse", "neural-model1")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]")
WORDS = tuple(f"w{i}" for i in range(120))
PUNCTUATION = (".", ",", "!")
QUERIES = ("w1 w2", "w3", "", "w1 w1 w9 w4, w7", "unheard w5")
DOCS = ("w1 w7 w8. w2!", "", "w3 w3 w3", ". , !", "w5 unheard unseen w11 w12 w13 w14 w15 w16 w17 w18 w1 w2 w3 w4")
SHAPE = {
    "model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 128, "max_position_embeddings": 64, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "initializer_range": 0.2,
}  # fmt: skip


def tokenizer_file(folder: Path, special: tuple[str, ...] = SPECIAL) -> Path:
    words = (*special, *PUNCTUATION, *WORDS)
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    return folder


def small(architecture: str, folder: Path, seed: int = 0, **settings) -> Network:
    """A network with random weights: two layers of 64, or words with 16 numbers each."""
    torch.manual_seed(seed)
    factory = networks.factory(architecture)
    if "knrm" in architecture:
        vectors = np.random.default_rng(seed).standard_normal((len(WORDS), 16))
        return factory.over(WORDS, vectors, buckets=50, **settings).eval()
    tokenizer = ModelTokenizer(tokenizer_file(folder))
    if architecture == "neural-model1":
        return factory.over_tokenizer(tokenizer, **({"dims": 16, "widths": (12, 10, 8)} | settings)).eval()
    made = make(architecture, new_encoder(SHAPE | {"vocab_size": len(tokenizer)}), tokenizer, **settings).eval()
    for parameter in made.heads():
        if not parameter.any():  # what starts at zero would hide mistakes
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def states(network: Network, side: str, text: str) -> np.ndarray:
    """The encoder's states of one text, by itself: [positions, width]."""
    ids = (network.query_ids if side == "query" else network.doc_ids)([text])
    arrays = (network.query_arrays if side == "query" else network.doc_arrays)(ids)
    with torch.inference_mode():
        return network.encoder.last(tensors(arrays))[0].double().numpy()


def encoded(network: Network, side: str, texts) -> dict[str, torch.Tensor]:
    """What a network makes of texts, of which two are read at a time."""
    made = []
    for some in (texts[start : start + 2] for start in range(0, len(texts), 2)):
        if side == "query":
            made.append(network.encode_queries(tensors(network.query_arrays(network.query_ids(some)))))
        else:
            made.append(network.encode_docs(tensors(network.doc_arrays(network.doc_ids(some)))))
    return joined(made)


def scores(network: Network, queries, docs) -> np.ndarray:
    with torch.inference_mode():
        return network.score_texts(queries, docs).numpy()


def layer(module: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    """A linear layer in numpy."""
    weight = module.weight.detach().double().numpy()
    bias = 0.0 if module.bias is None else module.bias.detach().double().numpy()
    return x @ weight.T + bias


def puzzle(seed: int = 0, n: int = 20) -> tuple[list[str], list[str]]:
    """Queries and texts that share no word, so that which belongs to which can only be learned by heart."""
    random = Random(seed)
    queries = [" ".join(random.sample(WORDS[:60], 4)) for _ in range(n)]
    return queries, [" ".join(random.sample(WORDS[60:], 8)) for _ in range(n)]


def trainer(network: Network, queries: list[str], docs: list[str], schedule: Schedule) -> Trainer:
    own = [np.array([i], np.int32) for i in range(len(queries))]
    others = [np.array([j for j in range(len(docs)) if j != i], np.int32) for i in range(len(queries))]
    data = TrainingSet(queries, docs, Judged(own, others, n=7))
    return Trainer(network, data, CrossEntropy(), schedule, say=lambda text: None)


def reciprocal_rank_of(network: Network, queries: list[str], docs: list[str]) -> float:
    n, m = len(queries), len(docs)
    query, doc = np.repeat(np.arange(n), m).astype(np.int32), np.tile(np.arange(m), n).astype(np.int32)
    grade = (query == doc).astype(np.float32)
    check = Validation(queries, docs, query, doc, grade, [[1.0]] * n, "RR@10")
    network.eval()
    with torch.inference_mode():
        return check(network)
