"""Small random networks of every architecture, pairs of texts for them, and a puzzle to learn by heart."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from pair_models import forward
from whyrank.networks import ModelTokenizer, Network, join, make, networks, new_encoder, tensors
from whyrank.training import Trainer, TrainingSet
from whyrank.training.data import Judged
from whyrank.training.losses import CrossEntropy
from whyrank.training.schedule import Schedule

torch.set_num_threads(1)
CHUNKED = ("vanilla", "cedr-knrm", "cedr-drmm", "cedr-pacrr", "bert-model1")
SEPARATE = ("knrm", "conv-knrm", "epic", "late", "sparse", "neural-model1")
ALL = ("cross", "parm", *CHUNKED, *SEPARATE)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]")
PUNCTUATION = (".", ",", "!")
WORDS = tuple(f"w{i}" for i in range(120))
QUERIES = ("w1 w2", "w3", "", "w1 w1 w9 w4, w7", "unheard w5")
DOCS = ("w1 w7 w8. w2!", "", "w3 w3 w3", ". , !", "w5 unheard unseen w11 w12 w13 w14 w15 w16 w17 w18 w1 w2 w3 w4")
ENCODER = {
    "model_type": "bert", "vocab_size": len(SPECIAL) + len(PUNCTUATION) + len(WORDS), "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.2,  # states of different tokens lie far apart: cosines of all sizes
}  # fmt: skip


def tokenizer_file(folder: Path, special: tuple[str, ...] = SPECIAL) -> Path:
    """A folder with a tokenizer of whole words."""
    made = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate((*special, *PUNCTUATION, *WORDS))}, unk_token="[UNK]")
    )
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder


def small(architecture: str, folder: Path, seed: int = 0, **settings) -> Network:
    """A network with random weights: two layers of 64, or words with 16 numbers each; chunks have 12 tokens."""
    torch.manual_seed(seed)
    factory = networks.factory(architecture)
    if architecture in ("knrm", "conv-knrm"):
        vectors = np.random.default_rng(seed).standard_normal((len(WORDS), 16))
        return factory.over(WORDS, vectors, buckets=50, **settings).eval()
    tokenizer = ModelTokenizer(tokenizer_file(folder))
    if architecture == "neural-model1":
        return factory.over_tokenizer(tokenizer, **({"dims": 16, "widths": (12, 10, 8)} | settings)).eval()
    if architecture not in SEPARATE:
        settings = {"max_query": 8, "max_doc": 12} | settings
    made = make(architecture, new_encoder(ENCODER), tokenizer, **settings).eval()
    for parameter in made.heads():
        if not parameter.any():  # what starts at zero would hide mistakes
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def long_pairs(seed: int = 0) -> tuple[list[str], list[str]]:
    """Queries of 1 to 10 words and texts of 0 to 60, some at the edges of chunks of 12."""
    random = np.random.default_rng(seed)
    queries = [words(random, n) for n in (3, 1, 10, 5, 2, 8, 4, 6, 1, 7)]
    return queries, [words(random, n) for n in (5, 0, 1, 12, 13, 24, 25, 36, 37, 60)]


def words(random: np.random.Generator, n: int) -> str:
    return " ".join(random.choice(WORDS[:60], n))


def scores(network: Network, queries, docs) -> np.ndarray:
    with torch.inference_mode():
        return forward(network, queries, docs).numpy()


def arrays_of(network: Network, side: str, texts):
    if side == "query":
        return tensors(network.query_arrays(network.query_ids(texts)))
    return tensors(network.doc_arrays(network.doc_ids(texts)))


def states(network: Network, side: str, text: str) -> np.ndarray:
    """The encoder's states of one text, by itself: [positions, width]."""
    with torch.inference_mode():
        return network.encoder.last(arrays_of(network, side, [text]))[0].double().numpy()


def encoded(network: Network, side: str, texts) -> dict[str, torch.Tensor]:
    """The encodings of texts, of which two are read at a time."""
    encode = network.encode_queries if side == "query" else network.encode_docs
    return join([encode(arrays_of(network, side, texts[i : i + 2])) for i in range(0, len(texts), 2)])


def layer(module: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    """A linear layer in numpy."""
    weight = module.weight.detach().double().numpy()
    return x @ weight.T + (0.0 if module.bias is None else module.bias.detach().double().numpy())


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
