"""Queries that a text may answer, written by any sequence-to-sequence or causal language model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from whyrank.core.errors import MissingExtra, WhyrankError
from whyrank.core.positions import positions_of
from whyrank.core.seeds import seed_for
from whyrank.core.silence import silent

MAX_INPUT, MAX_NEW, TOP_K = 1024, 64, 10


class Generator(NamedTuple):
    """A loaded model and its tokenizer."""

    tokenizer: Any
    model: Any

    def inputs(self, text: str) -> Any:
        """The tokens of a text that the model reads; of a causal model, with the question behind it."""
        if self.model.config.is_encoder_decoder:
            return self._tokens(text, min(MAX_INPUT, self.places))
        room = min(MAX_INPUT, self.places - MAX_NEW)
        cut = fitting(text, lambda part: self._tokens(_ask(part), max(room, 0) + 1)["input_ids"].shape[1] <= room)
        if cut is None:
            what = f"model {self.tokenizer.name_or_path!r} reads {self.places} tokens"
            raise WhyrankError(f"{what}, too few for a question and {MAX_NEW} tokens of answer; give a larger one")
        return self._tokens(_ask(cut), room)

    @property
    def places(self) -> int:
        """How many tokens the model reads, as far as it says so."""
        found = positions_of(self.model) or getattr(self.model.config, "max_position_embeddings", None) or 0
        return found if found > 0 else MAX_INPUT + MAX_NEW

    def _tokens(self, text: str, most: int) -> Any:
        return self.tokenizer(text, return_tensors="pt", truncation=True, max_length=most)


def generate(text: str, model: str, n: int, seed: int) -> list[str]:
    """Sample n queries (top-k 10, at most 64 tokens, as docTTTTTquery does), seeded by the text."""
    import torch

    made = load(model)
    inputs = made.inputs(text)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed_for(seed, "doc2query", text) % 2**63)
        found = made.model.generate(
            **inputs, do_sample=True, top_k=TOP_K, max_new_tokens=MAX_NEW, num_return_sequences=n
        )
    start = 0 if made.model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
    decoded = made.tokenizer.batch_decode(found[:, start:], skip_special_tokens=True)
    return [line for text in decoded if (line := " ".join(text.split()))]


def fitting(text: str, fits: Callable[[str], bool]) -> str | None:
    """A text, or as much of its beginning as fits; None where not even nothing does."""
    if fits(text):
        return text
    sizes = bisect_right(range(len(text)), False, key=lambda size: not fits(text[:size]))
    return text[: sizes - 1] if sizes else None


def _ask(text: str) -> str:
    return f"{text}\n\nA search query that this passage answers:"


@lru_cache(maxsize=1)
def load(model: str) -> Generator:
    """Load a model by hub id or path, from safetensors only; one that lacks weights is an error."""
    try:
        import torch  # noqa: F401
        import transformers
        from transformers.utils import logging as messages
    except ImportError:
        raise MissingExtra("a model that writes queries", "models") from None
    try:
        with silent(messages):
            return _loaded(model, transformers)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise WhyrankError(
            f"model {model!r} cannot be loaded ({reason}); give a hub id or a folder with safetensors"
        ) from None


def _loaded(model: str, package: Any) -> Generator:
    safe: dict[str, Any] = {"trust_remote_code": False}
    config = package.AutoConfig.from_pretrained(model, **safe)
    kind = package.AutoModelForSeq2SeqLM if config.is_encoder_decoder else package.AutoModelForCausalLM
    found, report = kind.from_pretrained(model, use_safetensors=True, output_loading_info=True, **safe)
    masked = [name for name in config.architectures or () if name.endswith("ForMaskedLM")]
    if wrong := masked or sorted(report["missing_keys"]):
        what = f"model {model!r} cannot write queries ({'it is a' if masked else 'it has no'} {wrong[0]})"
        raise WhyrankError(f"{what}; give a sequence-to-sequence or a causal language model")
    return Generator(package.AutoTokenizer.from_pretrained(model, **safe), found.eval())
