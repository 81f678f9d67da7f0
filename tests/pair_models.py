"""A small PaRM with random weights over pieces of words, and terms of one to several tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from whyrank.learners.parm.pairs import PairScorer, TermSequences
from whyrank.networks import ModelTokenizer, Network, make, new_encoder, save, tensors

LETTERS = "abcdefghij"
WORDS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS), "ab", "cab", "dice", "##ed",
)  # fmt: skip
SHAPE = {
    "model_type": "bert", "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 3,
    "intermediate_size": 128, "max_position_embeddings": 40, "initializer_range": 0.3,
}  # fmt: skip
QUERIES = ("a", "cab", "bad", "dice", "diced", "", "zebra", "abcdefghij")
DOCS = ("a", "b", "ab", "cabbed", "dice", "fad", "", "x", "y", "abcdef", "jig", "DICE")


def parm(folder: Path, seed: int = 0, head: str = "deep", spread: float = 8.0, letters: str = "", **shape) -> Network:
    """A network whose weights lie on both sides of 0.1."""
    torch.manual_seed(seed)
    words = (*WORDS, *letters, *(f"##{c}" for c in letters))
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    encoder = new_encoder(SHAPE | {"vocab_size": len(words)} | shape)
    made = make("parm", encoder, ModelTokenizer(folder), head=head, max_query=8, max_doc=12).eval()
    made.outer.weight.data *= spread
    made.outer.bias.data -= 1.0
    return made


def saved(folder: Path, **settings) -> Path:
    save(parm(folder / "start", **settings), folder / "parm")
    return folder / "parm"


def scorer(network: Network, queries=QUERIES, docs=DOCS, **settings):
    """A scorer and the sequences of each term."""
    sides = TermSequences.of(network.query_ids(queries)), TermSequences.of(network.doc_ids(docs))
    return PairScorer(network, *sides, **settings), sides


def forward(network: Network, queries, docs) -> torch.Tensor:
    """The scores of aligned pairs of texts, by the network itself in one batch."""
    return network(tensors(network.arrays(network.query_ids(queries), network.doc_ids(docs))))


def by_the_network(network: Network, queries=QUERIES, docs=DOCS) -> np.ndarray:
    """The weights of all pairs, text by text through the network itself."""
    with torch.inference_mode():
        found = [[float(torch.sigmoid(forward(network, [q], [d]))) for d in docs] for q in queries]
    return np.array(found, np.float32)
