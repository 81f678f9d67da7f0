"""Small random networks over chunks, and pairs of texts for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from whyrank.networks import ModelTokenizer, Network, make, new_encoder

ARCHITECTURES = ("vanilla", "cedr-knrm", "cedr-drmm", "cedr-pacrr", "bert-model1")
WORDS = [f"w{i}" for i in range(60)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENCODER = {
    "model_type": "bert", "vocab_size": len(WORDS) + len(SPECIAL), "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 64,
    "initializer_range": 0.2,  # states of different tokens lie far apart: cosines of all sizes
}  # fmt: skip


def small_pieces(folder: Path) -> ModelTokenizer:
    """A tokenizer of whole words."""
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*SPECIAL, *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return ModelTokenizer(folder)


def small_network(architecture: str, tokenizer: ModelTokenizer, seed: int = 0, **settings: int) -> Network:
    """A network with random weights that reads 8 tokens of a query and chunks of 12; its encoder has no dropout."""
    torch.manual_seed(seed)
    encoder = new_encoder(ENCODER | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    return make(architecture, encoder, tokenizer, **({"max_query": 8, "max_doc": 12} | settings)).eval()


def words(random: np.random.Generator, n: int) -> str:
    """A text of n words."""
    return " ".join(random.choice(WORDS, n))


def small_pairs(seed: int = 0) -> tuple[list[str], list[str]]:
    """Queries of 1 to 10 words and texts of 0 to 60, some at the edges of chunks of 12."""
    random = np.random.default_rng(seed)
    queries = [words(random, n) for n in (3, 1, 10, 5, 2, 8, 4, 6, 1, 7)]
    docs = [words(random, n) for n in (5, 0, 1, 12, 13, 24, 25, 36, 37, 60)]
    return queries, docs
