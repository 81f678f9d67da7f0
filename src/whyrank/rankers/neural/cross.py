"""Cross-encoders: one model reads query and text together and gives a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whyrank.core import BadInput, WhyrankError, check_whole
from whyrank.networks import Arrays, Ids, tensors
from whyrank.rankers.neural.base import NeuralRanker
from whyrank.rankers.neural.passages import TextPairs
from whyrank.rankers.neural.readers import ModelKind, ModelReader, NetworkPairs, PairReader, load_model
from whyrank.rankers.neural.scorer import Reader, Scorer, Side
from whyrank.rankers.neural.tokens import TokenisedTexts, check_length
from whyrank.rankers.neural.weights import architecture_of
from whyrank.text import positions_of

if TYPE_CHECKING:
    from torch import Tensor

ACTIVATIONS = ("none", "sigmoid")
_KIND = ModelKind("CrossEncoder", ("CrossEncoder",))
_EXAMPLES = [("what is ice", "Ice is water that froze."), ("snow " * 99, "White and cold.")]


@dataclass(frozen=True, repr=False)
class CrossEncoder(NeuralRanker):
    """A cross-encoder of sentence-transformers with one or two outputs, or a network trained here.

    These are sequence classification models, and causal language models that answer yes or no. The score of a model
    with one output is that output, whatever activation the model was saved with; with two it is the relevant one
    minus the other, the log odds of relevance: log p / (1 - p) = z_relevant - z_other; likewise of the two answers
    of a language model. `cross:bundled` is the model that comes with the package. Nogueira and Cho, "Passage
    re-ranking with BERT", arXiv 1901.04085.

    Args:
        output: with two outputs, which one says that the text is relevant; 1 by default.
        activation: `sigmoid` turns scores into probabilities, which tie where a model gives very large scores.
        max_length: tokens of query, text and special tokens together; by default what the model allows.
    """

    output: int | None = None
    activation: str = "none"
    max_length: int | None = None

    registered: ClassVar[str] = "cross"
    converts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        super().__post_init__()
        self._check_choice("activation", self.activation, ACTIVATIONS)
        check_whole("cross: output", 0 if self.output is None else self.output, 0)
        check_whole("cross: max_length", 512 if self.max_length is None else self.max_length, 8)

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return "probability" if self.activation == "sigmoid" else "logit"

    def _load(self, folder: Path) -> Scorer:
        sigmoid = self.activation == "sigmoid"
        if architecture_of(folder) is not None:
            from whyrank.rankers.neural.trained import load_network

            self._check_network()
            reader: Reader = NetworkPairs(load_network(folder, self.registered, self._computing))
            return Scorer(reader, self._computing, sigmoid=sigmoid).by_backend(self.name)
        reader = self._reader(folder)
        if isinstance(reader, TokenisedPairs):
            return Scorer(reader, self._computing, sigmoid=sigmoid).by_backend(self.name)
        computing = self._computing.by_torch
        model = computing.placed(reader.module).model
        if (answers := model.get_output_embeddings()) is not None:
            computing.in_fp32(answers)  # else the logits of yes and no would tie in bfloat16
        return Scorer(reader, computing, sigmoid=sigmoid)

    def _reader(self, folder: Path) -> Reader:
        """The model, with query and text tokenised apart where that gives what its own processor gives."""
        model = load_model(folder, _KIND, self._computing)
        check_length(folder, model, self.max_length)
        relevant = _relevant(folder, int(model.num_labels), self.output)
        declared = model.max_seq_length or 512
        most = self.max_length or min(declared if declared < 10**9 else 512, positions_of(model) or 10**9)
        model.max_seq_length = most
        tokenizer, last = model.tokenizer, self.truncate == "last"
        tokenizer.truncation_side = "left" if last else "right"
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        model.model.config.pad_token_id = tokenizer.pad_token_id
        whole = WholePairs(model, relevant)
        expected = whole.features(_EXAMPLES, "pair")
        if expected.get("modality") == "message":
            if last:
                raise WhyrankError(f"{self.name}: truncate=last is not for models with a chat template; leave it out")
            return whole
        apart = TokenisedPairs(model, relevant, TokenisedTexts(tokenizer, last), most)
        found = apart.prepare(TextPairs.of(*zip(*_EXAMPLES, strict=True)), "pair")(np.arange(2)).batch(range(2))
        if not all(np.array_equal(found[name], expected[name]) for name in found):
            return whole
        apart.read_first_position(lambda: apart(tensors(found, self._computing.device)))
        return apart

    def _check_network(self) -> None:
        """Refuse arguments that would do nothing: a network trained here knows its output and its lengths."""
        for name, default in (("output", None), ("max_length", None), ("truncate", "first")):
            if (value := getattr(self, name)) != default:
                raise WhyrankError(
                    f"ranker {self.name!r}: {name}={value} is not for a network trained here, which has one output "
                    f"and reads as many tokens as in training; leave {name} out (long texts: passages=max)"
                )


class WholePairs(ModelReader):
    """A cross-encoder whose own processor makes inputs of pairs: by a chat template, or with a prompt."""

    apart = False

    def __init__(self, model: Any, relevant: int | None) -> None:
        """Prompts are those that the model declares."""
        super().__init__(model, {"pair": (model.prompts or {}).get(model.default_prompt_name)})
        self.relevant = relevant

    def __call__(self, batch: dict[str, Any], side: Side = "pair") -> Tensor:
        """The output for relevance, less the other one where there are two."""
        found: Tensor = self.outputs(batch, side)["scores"].float()
        return found[:, 0] if self.relevant is None else found[:, self.relevant] - found[:, 1 - self.relevant]


class TokenisedPairs(PairReader):
    """A cross-encoder whose tokenizer puts special tokens around two texts and nothing else."""

    def __init__(self, model: Any, relevant: int | None, tokens: TokenisedTexts, most: int) -> None:
        """Pairs of up to `most` tokens."""
        self.module, self.tokens, self.most = model, tokens, most
        self._whole = WholePairs(model, relevant)
        self._types = "token_type_ids" in model.tokenizer.model_input_names

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as token numbers."""
        return self.tokens.ids(texts, self.most)

    doc_ids = query_ids

    def cut(self, query: Ids, doc: Ids) -> tuple[Ids, Ids]:
        """What is read of a pair."""
        return self.tokens.cut(query, doc, self.most)

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs as the tokenizer would frame them."""
        found = self.tokens.pair_arrays(queries, docs)
        return found if self._types else {name: found[name] for name in ("input_ids", "attention_mask")}

    def __call__(self, batch: dict[str, Any], side: Side = "pair") -> Tensor:
        """The output for relevance, less the other one where there are two."""
        return self._whole(batch)

    def read_first_position(self, outputs: Callable[[], Tensor]) -> None:
        """Leave out what the last layer computes for other positions than the first, where no output changes."""
        import torch

        from whyrank.networks import first_only

        with torch.inference_mode():
            expected = outputs()
            handle = first_only(self.module)
            try:
                same = handle is None or torch.allclose(outputs(), expected, rtol=1e-4, atol=1e-5)
            except (IndexError, RuntimeError):
                same = False
        if handle is not None and not same:
            handle.remove()


def _relevant(folder: Path, outputs: int, requested: int | None) -> int | None:
    """Which of two outputs is the relevant one; None where there is just one."""
    if outputs not in (1, 2) or (requested or 0) >= outputs:
        missing = "" if requested is None else f", so there is no output {requested}"
        what = f"the model has {outputs} outputs{missing}"
        raise BadInput(folder, what, "give a model with one or two outputs, and output=0 or output=1 of two")
    return None if outputs == 1 else (1 if requested is None else requested)
