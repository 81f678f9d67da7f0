"""Tiny models with random weights that generate text from eleven words."""

from __future__ import annotations

from pathlib import Path

WORDS = ["[PAD]", "</s>", "[UNK]", "what", "is", "a", "wall", "berlin", "when", "fell", "city"]
KINDS = ("seq2seq", "causal")


def generator(kind: str, folder: Path, positions: int = 1280) -> str:
    """Write a model of the kind with its tokenizer, and give the folder."""
    import torch

    torch.manual_seed(0)
    (_seq2seq() if kind == "seq2seq" else _causal(positions)).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return str(folder)


def _size() -> dict[str, int]:
    return {"vocab_size": len(WORDS), "pad_token_id": 0, "eos_token_id": 1}


def _seq2seq():
    from transformers import T5Config, T5ForConditionalGeneration

    shape = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(**shape, decoder_start_token_id=0, **_size()))


def _causal(positions: int):
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": positions}
    return GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=1, **_size()))


def _tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", eos_token="</s>", unk_token="[UNK]")
