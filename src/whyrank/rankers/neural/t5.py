"""monoT5: a sequence-to-sequence model that is asked whether a text is relevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whyrank.core import BadInput, check_text, check_whole
from whyrank.networks import Arrays, Ids, lengths_mask, padded
from whyrank.rankers.neural.base import NeuralRanker
from whyrank.rankers.neural.computing import Computing
from whyrank.rankers.neural.readers import PairReader
from whyrank.rankers.neural.scorer import Scorer, Side
from whyrank.rankers.neural.tokens import TokenisedTexts, check_length

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, repr=False)
class MonoT5(NeuralRanker):
    """A T5 that answers "Query: q Document: d Relevant:" with true or false; the score is log P(true).

    log P(true) = z_true - log(exp z_true + exp z_false), from the first step of the decoder. The text is cut so
    that the whole question fits. Nogueira, Jiang, Pradeep and Lin, "Document ranking with a pretrained
    sequence-to-sequence model", Findings of EMNLP 2020.

    Args:
        true: the token of the answer yes.
        false: the token of the answer no.
        max_length: tokens of the whole question.
    """

    true: str = "▁true"
    false: str = "▁false"
    max_length: int = 512

    registered: ClassVar[str] = "t5"
    scale: ClassVar[str] = "log probability"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        super().__post_init__()
        for what, value in (("true", self.true), ("false", self.false)):
            check_text(f"t5: {what}", value)
        check_whole("t5: max_length", self.max_length, 16)

    def _load(self, folder: Path) -> Scorer:
        return Scorer(QuestionReader(folder, self._computing, self), self._computing)


class QuestionReader(PairReader):
    """A sequence-to-sequence model as a reader of pairs."""

    def __init__(self, folder: Path, computing: Computing, options: MonoT5) -> None:
        """Load the model and its tokenizer."""
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        own = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **own)
        self.tokens, self.most = TokenisedTexts(tokenizer, options.truncate == "last"), options.max_length
        self.answers = [self.tokens.number(token) for token in (options.true, options.false)]
        for token, number in zip((options.true, options.false), self.answers, strict=True):
            if number is None:
                raise BadInput(folder, f"the tokenizer has no token {token!r}", "name one that it has")
        end = tokenizer.eos_token_id
        self.question = np.append(self.tokens.ids(["Relevant:"], self.most)[0], [] if end is None else [end])
        model = AutoModelForSeq2SeqLM.from_pretrained(str(folder), use_safetensors=True, **own)
        self.module = computing.placed(model)
        check_length(folder, self.module, self.most)

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Tokens of all that stands before the text."""
        return self.tokens.ids([f"Query: {text} Document:" for text in texts], self.most - len(self.question))

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Tokens of texts."""
        return self.tokens.ids(texts, self.most)

    def cut(self, query: Ids, doc: Ids) -> tuple[Ids, Ids]:
        """The text is cut so that the whole question fits."""
        return query, self.tokens.end(doc, self.most - len(query) - len(self.question))

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Whole questions."""
        rows = [np.concatenate([q, d, self.question]) for q, d in zip(queries, docs, strict=True)]
        ids = padded(rows, self.tokens.pad)
        return {"input_ids": ids, "attention_mask": lengths_mask(rows, ids.shape[1])}

    def __call__(self, batch: dict[str, Any], side: Side = "pair") -> Tensor:
        """Log probability of the answer yes against the answer no."""
        start = batch["input_ids"].new_full((len(batch["input_ids"]), 1), self.module.config.decoder_start_token_id)
        found: Tensor = self.module(**batch, decoder_input_ids=start, use_cache=False).logits[:, 0, self.answers]
        return found.float().log_softmax(1)[:, 0]
