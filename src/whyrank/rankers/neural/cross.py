"""Cross-encoders: one model reads query and text together and gives a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whyrank.core import BadInput, Floats, WhyrankError, check_whole
from whyrank.networks import Arrays, Ids
from whyrank.rankers.neural.base import NeuralRanker, Scorer
from whyrank.rankers.neural.computing import Computing
from whyrank.rankers.neural.joint import JointScorer, first_only
from whyrank.rankers.neural.tokens import Tokens, check_length
from whyrank.rankers.neural.weights import architecture_of

if TYPE_CHECKING:
    from torch import Tensor

ACTIVATIONS = ("none", "sigmoid")
_FIRST = tuple(f"{name}ForSequenceClassification" for name in ("Bert", "Roberta", "XLMRoberta", "Electra"))


@dataclass(frozen=True, repr=False)
class CrossEncoder(NeuralRanker):
    """A cross-encoder: any sequence classification model with one or two outputs, or a network trained here.

    The score of a model with one output is that output, untouched; with two it is the relevant one minus the
    other, the log odds of relevance: log p / (1 - p) = z_relevant - z_other. `cross:bundled` is the model that
    comes with the package. Nogueira and Cho, "Passage re-ranking with BERT", arXiv 1901.04085.

    Args:
        output: with two outputs, which one says that the text is relevant; 1 by default.
        activation: `sigmoid` turns scores into probabilities, which tie where a model is very sure.
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
        activation = sigmoid if self.activation == "sigmoid" else None
        if architecture_of(folder) is None:
            reader: Any = ClassifierReader(folder, self._computing, self)
        else:
            from whyrank.rankers.neural.trained import network_reader

            self._check_network()
            reader = network_reader(folder, self.registered, self._computing)
            first_only(reader)
        return JointScorer.of(self.name, reader, self._computing, activation)

    def _check_network(self) -> None:
        """Refuse arguments that would do nothing: a network trained here knows its output and its lengths."""
        idle = {"output": self.output is not None, "max_length": self.max_length is not None}
        for name in (name for name, given in (idle | {"truncate": self.truncate != "first"}).items() if given):
            raise WhyrankError(
                f"ranker {self.name!r}: {name}={getattr(self, name)} is not for a network trained here, which has "
                f"one output and reads as many pieces as in training; leave {name} out (long texts: passages=max)"
            )


def sigmoid(scores: Floats) -> Floats:
    """Probabilities from logits: 1 / (1 + exp(-z))."""
    from scipy.special import expit

    return np.asarray(expit(scores))


class ClassifierReader:
    """A sequence classification model as a reader of pairs."""

    def __init__(self, folder: Path, computing: Computing, options: CrossEncoder) -> None:
        """Load the model and its tokenizer."""
        self.tokens = Tokens(folder, options.truncate == "last")
        model = _classifier(folder)
        check_length(folder, model, options.max_length)
        self.most = options.max_length or self.tokens.places(model.config)
        self.typed = "token_type_ids" in self.tokens.tokenizer.model_input_names
        self.relevant = _relevant(folder, int(model.config.num_labels), options.output)
        model.config.pad_token_id = self.tokens.pad
        self.model = computing.placed(model)
        if type(model).__name__ in _FIRST:
            first_only(model)

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Pieces of queries."""
        return self.tokens.ids(texts, self.most)

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Pieces of texts."""
        return self.tokens.ids(texts, self.most)

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs as the tokenizer would frame them."""
        return self.tokens.pair_arrays(queries, docs, self.most)

    def __call__(self, batch: dict[str, Any]) -> Tensor:
        """The output for relevance, less the other one where there are two."""
        types = {"token_type_ids": batch["types"]} if self.typed else {}
        found: Tensor = self.model(input_ids=batch["ids"], attention_mask=batch["mask"], **types).logits.float()
        return found[:, 0] if self.relevant is None else found[:, self.relevant] - found[:, 1 - self.relevant]


def _classifier(folder: Path) -> Any:
    from transformers import AutoModelForSequenceClassification

    model, report = AutoModelForSequenceClassification.from_pretrained(
        str(folder), use_safetensors=True, local_files_only=True, trust_remote_code=False, output_loading_info=True
    )
    if missing := sorted(report["missing_keys"]):
        what = f"has no trained classification head (no {missing[0]})"
        raise BadInput(folder, what, "give a cross-encoder; bi:PATH takes bi-encoders")
    return model


def _relevant(folder: Path, outputs: int, asked: int | None) -> int | None:
    """Which of two outputs is the relevant one; None where there is just one."""
    if outputs not in (1, 2) or (asked or 0) >= outputs:
        what = f"the model has {outputs} outputs" + ("" if asked is None else f", so there is no output {asked}")
        raise BadInput(folder, what, "give a model with one or two outputs, and output=0 or output=1 of two")
    return None if outputs == 1 else (1 if asked is None else asked)
