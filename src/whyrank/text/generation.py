"""Queries that a text may answer, written by any sequence-to-sequence or causal language model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import MissingExtra, WhyrankError, generator, silent

MAX_INPUT, MAX_NEW, TOP_K = 1024, 64, 10
_QUESTION = "\n\nA search query that this passage answers:"  # the prompt of a causal model, behind the text


def positions_of(model: Any) -> int | None:
    """Tokens that a model of torch has a vector of their position for; None where it needs none.

    What counts is the table, not what the configuration declares: models with relative or rotary positions declare a
    length and read more. Of several tables (an image's is one) the longest counts.
    """
    sizes = []
    for path, part in model.named_modules():
        name = path.rpartition(".")[2]
        if hasattr(part, "num_embeddings") and (name == "wpe" or ("position" in name and "relative" not in name)):
            # RoBERTa and its kin begin after the row of padding, BART and its kin at an offset
            padding = getattr(part, "padding_idx", None)
            unused = int(getattr(part, "offset", 0 if padding is None else padding + 1))
            sizes.append(int(part.num_embeddings) - unused)
    return max(sizes, default=None)


class Generator(NamedTuple):
    """A loaded model and its tokenizer."""

    tokenizer: Any
    model: Any

    def ids(self, text: str) -> list[int]:
        """The tokens of a text that the model reads; of a causal model, with the question behind it."""
        if self.model.config.is_encoder_decoder:
            return self._tokens(text, min(MAX_INPUT, self.positions))
        room = min(MAX_INPUT, self.positions - MAX_NEW)
        cut = longest_beginning(text, lambda part: len(self._tokens(part + _QUESTION, max(room, 0) + 1)) <= room)
        if cut is None:
            what = f"model {self.tokenizer.name_or_path!r} reads {self.positions} tokens"
            raise WhyrankError(f"{what}, too few for a question and {MAX_NEW} tokens of answer; give a larger one")
        return self._tokens(cut + _QUESTION, room)

    @property
    def positions(self) -> int:
        """How many tokens the model reads, as far as it says so."""
        found = positions_of(self.model) or getattr(self.model.config, "max_position_embeddings", None) or 0
        return found if found > 0 else MAX_INPUT + MAX_NEW

    @property
    def pad(self) -> int:
        """What fills up a row: padding, or where a tokenizer has none, the end of a text."""
        end = self.model.generation_config.eos_token_id
        end = end[0] if isinstance(end, list) else end
        return int(next(token for token in (self.tokenizer.pad_token_id, end, 0) if token is not None))

    def _tokens(self, text: str, most: int) -> list[int]:
        found: list[int] = self.tokenizer(text, truncation=True, max_length=most)["input_ids"]
        return found


def generate(texts: Sequence[str], model: str, n: int, seed: int, device: str | None = None) -> list[list[str]]:
    """Sample n queries of each text (top-k 10, at most 64 tokens, as docTTTTTquery does), all texts in one batch.

    Each text has random numbers of its own, from its words and the seed: what is written for it does not depend on
    the other texts, but for rounding. The device is CUDA by default, where there is one.
    """
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    made, texts = load(model), [text.encode("utf-8", "replace").decode() for text in texts]  # no lone surrogates
    made.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    rows, device = [made.ids(text) for text in texts], made.model.device
    width, causal = max(map(len, rows)), not made.model.config.is_encoder_decoder
    ids, mask = torch.full((len(rows), width), made.pad), torch.zeros((len(rows), width), dtype=torch.long)
    for i, row in enumerate(rows):  # what is written goes on behind a causal model's input, so that ends stand level
        at = slice(width - len(row), width) if causal else slice(len(row))
        ids[i, at], mask[i, at] = torch.tensor(row), 1
    drawn = np.concatenate([generator(seed, "doc2query", text).random((n, MAX_NEW)) for text in texts])
    with torch.inference_mode():
        once = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
        read: dict[str, Any] = {name: value.repeat_interleave(n, dim=0) for name, value in once.items()}
        if not causal:  # each text is read once, however many queries are written for it
            states: Any = made.model.get_encoder()(**once).last_hidden_state
            read["encoder_outputs"] = BaseModelOutput(states.repeat_interleave(n, dim=0))
        found = made.model.generate(
            **read, pad_token_id=made.pad, max_new_tokens=MAX_NEW, num_return_sequences=1, num_beams=1,
            do_sample=False, temperature=None, top_k=None, top_p=None,
            logits_processor=[_sampler(torch.from_numpy(drawn).to(device))],
        )  # fmt: skip
    lines = made.tokenizer.batch_decode(found[:, width if causal else 0 :].cpu(), skip_special_tokens=True)
    kept = [" ".join(line.split()) for line in lines]
    return [[line for line in kept[i * n : (i + 1) * n] if line] for i in range(len(texts))]


def _sampler(drawn: Any) -> Callable[[Any, Any], Any]:
    """Leaves one token of each row: the one of its top k that its own random number of the step, 0 to 1, falls on.

    The top k stand in the order of the vocabulary, not of their probabilities, which rounding can exchange.
    """
    steps = iter(drawn.unbind(1))

    def choose(_: Any, scores: Any) -> Any:
        ids = scores.topk(min(TOP_K, scores.shape[1])).indices.sort(dim=1).values
        ends = scores.gather(1, ids).double().softmax(dim=1).cumsum(dim=1)
        chosen = (ends <= next(steps)[:, None]).sum(dim=1, keepdim=True).clamp(max=ids.shape[1] - 1)
        return scores.new_full(scores.shape, -float("inf")).scatter(1, ids.gather(1, chosen), 0.0)

    return choose


def longest_beginning(text: str, fits: Callable[[str], bool]) -> str | None:
    """The text, or as much of its beginning as fits; None where not even the empty text does."""
    if fits(text):
        return text
    sizes = bisect_right(range(len(text)), False, key=lambda size: not fits(text[:size]))
    return text[: sizes - 1] if sizes else None


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
            safe: dict[str, Any] = {"trust_remote_code": False}
            config = transformers.AutoConfig.from_pretrained(model, **safe)
            causal, seq2seq = transformers.AutoModelForCausalLM, transformers.AutoModelForSeq2SeqLM
            kind: Any = seq2seq if config.is_encoder_decoder else causal
            found, report = kind.from_pretrained(model, use_safetensors=True, output_loading_info=True, **safe)
            masked = [name for name in config.architectures or () if name.endswith("ForMaskedLM")]
            if wrong := masked or sorted(report["missing_keys"]):
                what = f"model {model!r} cannot write queries ({'it is a' if masked else 'it has no'} {wrong[0]})"
                raise WhyrankError(f"{what}; give a sequence-to-sequence or a causal language model")
            return Generator(transformers.AutoTokenizer.from_pretrained(model, **safe), found.eval())
    except (OSError, ValueError) as error:
        what = f"model {model!r} cannot be loaded ({str(error).splitlines()[0]})"
        raise WhyrankError(f"{what}; give a hub id or a folder with safetensors") from None
