"""Queries that a text may answer, written by any sequence-to-sequence or causal language model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from whyrank.core.errors import MissingExtra, WhyrankError
from whyrank.core.seeds import seed_for

MAX_INPUT, MAX_NEW, TOP_K = 1024, 64, 10
_PROMPT = "{text}\n\nA search query that this passage answers:"


class Generator(NamedTuple):
    """A loaded model and its tokenizer."""

    tokenizer: Any
    model: Any


def generate(text: str, model: str, n: int, seed: int) -> list[str]:
    """Sample n queries (top-k 10, at most 64 tokens, as docTTTTTquery does), seeded by the text."""
    import torch

    made = load(model)
    encoder_decoder = made.model.config.is_encoder_decoder
    prompt = text if encoder_decoder else _PROMPT.format(text=text)
    inputs = made.tokenizer(prompt, return_tensors="pt", truncation=True, max_length=MAX_INPUT)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed_for(seed, "doc2query", text) % 2**63)
        found = made.model.generate(
            **inputs, do_sample=True, top_k=TOP_K, max_new_tokens=MAX_NEW, num_return_sequences=n
        )
    start = 0 if encoder_decoder else inputs["input_ids"].shape[1]
    decoded = made.tokenizer.batch_decode(found[:, start:], skip_special_tokens=True)
    return [line for text in decoded if (line := " ".join(text.split()))]


@lru_cache(maxsize=1)
def load(model: str) -> Generator:
    """Load a model by hub id or path, from safetensors only."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        raise MissingExtra("a model that writes queries", "models") from None
    try:
        config = transformers.AutoConfig.from_pretrained(model, trust_remote_code=False)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        loaded = kind.from_pretrained(model, trust_remote_code=False, use_safetensors=True).eval()
        return Generator(transformers.AutoTokenizer.from_pretrained(model, trust_remote_code=False), loaded)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise WhyrankError(
            f"model {model!r} cannot be loaded ({reason}); give a hub id or a folder with safetensors"
        ) from None
