"""Cross-encoders, bi-encoders and monoT5: rankers over models of sentence-transformers and transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from whyrank.core import BadInput, Ints, Natural, Range, WhyrankError
from whyrank.networks import Ids
from whyrank.rankers.neural.base import NeuralRanker
from whyrank.rankers.neural.computing import Computing, in_fp32
from whyrank.rankers.neural.inputs import InputLayout, TokenisedTexts, fitting_sizes
from whyrank.rankers.neural.passages import TextPairs
from whyrank.rankers.neural.readers import (
    DenseReader,
    ModelKind,
    ModelReader,
    NetworkPairs,
    PairReader,
    check_length,
    declared_prompts,
    load_model,
    load_network,
)
from whyrank.rankers.neural.scorer import Reader, Scorer, Side
from whyrank.rankers.neural.weights import architecture_of, config_of
from whyrank.text import positions_of

if TYPE_CHECKING:
    from torch import Tensor

_SCALES = {"euclidean": "minus distance", "manhattan": "minus distance"}
_CROSS = ModelKind("CrossEncoder", ("CrossEncoder",))
_BI = ModelKind("SentenceTransformer", ("SentenceTransformer",))
_EXAMPLES = [("what is ice", "Ice is water that froze."), ("snow " * 99, "White and cold.")]


# Cross-encoders: one model reads query and text together and gives a score.


@dataclass(frozen=True, repr=False)
class CrossEncoder(NeuralRanker):
    """A cross-encoder of sentence-transformers with one or two outputs, or a network trained here.

    These are sequence classification models, and causal language models that answer yes or no. The score of a model
    with one output is that output, whatever activation the model was saved with. With two outputs it is the log odds
    of relevance: log p / (1 - p) = z_relevant - z_other; likewise of the two answers of a language model.
    `cross:bundled` is the model that comes with the package. Nogueira and Cho, "Passage re-ranking with BERT",
    arXiv 1901.04085.

    Args:
        output: with two outputs, which one says that the text is relevant; 1 by default.
        activation: `sigmoid` turns scores into probabilities, which tie where a model gives very large scores.
        max_length: tokens of query, text and special tokens together; by default what the model allows.
    """

    output: Natural | None = None
    activation: Literal["none", "sigmoid"] = "none"
    max_length: Annotated[int, Range(8)] | None = None

    registered: ClassVar[str] = "cross"
    converts: ClassVar[bool] = True

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return "probability" if self.activation == "sigmoid" else "logit"

    def _load(self, folder: Path) -> Scorer:
        sigmoid = self.activation == "sigmoid"
        if architecture_of(folder) is not None:
            self._check_network()
            reader: Reader = NetworkPairs(load_network(folder, self.registered, self._computing))
            return Scorer(reader, self._computing, sigmoid=sigmoid).by_backend(self.name)
        reader = self._reader(folder)
        if isinstance(reader, TokenisedPairs):
            return Scorer(reader, self._computing, sigmoid=sigmoid).by_backend(self.name)
        computing = self._computing.by_torch
        model = computing.place(reader.module).model
        if (answers := model.get_output_embeddings()) is not None:
            in_fp32(answers)  # else the logits of yes and no would tie in bfloat16
        return Scorer(reader, computing, sigmoid=sigmoid)

    def _reader(self, folder: Path) -> Reader:
        """The model, with query and text tokenised apart where that gives what its own processor gives."""
        model = load_model(folder, _CROSS, self._computing)
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
        pairs, two = TextPairs.of(*zip(*_EXAMPLES, strict=True)), np.arange(2)
        found = apart.prepare(pairs, "pair", Computing("cpu"), {})(two).batch(two)
        if not all(np.array_equal(found[name], expected[name]) for name in found):
            return whole
        own = {name: each.to(self._computing.device) for name, each in found.items()}
        apart.read_first_position(lambda: apart(own))
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
        self.module, self.tokens, self.most, self.last = model, tokens, most, tokens.last
        self.layout = tokens.layout("query", "doc", names=model.tokenizer.model_input_names)
        self._whole = WholePairs(model, relevant)

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as token numbers."""
        return self.tokens.ids(texts, self.most)

    doc_ids = query_ids

    def cut(self, query: Ints, doc: Ints) -> tuple[Ints, Ints]:
        """The longer text is cut to what the shorter leaves, or both to half of the room."""
        return fitting_sizes(query, doc, self.most - self.layout.special)

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


# Bi-encoders: queries and texts are embedded apart and compared.


@dataclass(frozen=True, repr=False)
class BiEncoder(NeuralRanker):
    """A bi-encoder of sentence-transformers: the similarity of one vector for the query and one for the text.

    Each distinct text is embedded once, and embeddings are kept in memory (up to 512 MiB) for later calls. Reimers
    and Gurevych, "Sentence-BERT", EMNLP 2019.

    Args:
        similarity: cosine, dot, euclidean or manhattan; by default what the model's configuration says, else cosine.
        query_prefix: put before queries; by default what the model's configuration says.
        doc_prefix: put before texts; likewise.
        max_length: tokens of a query or text; by default what the model's configuration says.
    """

    similarity: Literal["cosine", "dot", "euclidean", "manhattan"] | None = None
    query_prefix: str | None = None
    doc_prefix: str | None = None
    max_length: Annotated[int, Range(3)] | None = None

    registered: ClassVar[str] = "bi"
    converts: ClassVar[bool] = True

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return _SCALES.get(self._similarity, self._similarity)

    @cached_property
    def _similarity(self) -> str:
        declared = config_of(self._folder, "config_sentence_transformers.json").get("similarity_fn_name")
        return self.similarity or str(declared or "cosine")

    def _load(self, folder: Path) -> Scorer:
        if own := architecture_of(folder):
            raise BadInput(folder, f"is a network of architecture {own}, not a bi-encoder", f"write {own}:PATH")
        named = str((config_of(folder).get("architectures") or [""])[0])
        if (
            named.endswith("ForSequenceClassification") and not (folder / "modules.json").is_file()
        ):  # without its head, nothing to compare
            raise BadInput(folder, f"is a cross-encoder ({named}), not a bi-encoder", "write cross:PATH")
        model = load_model(folder, _BI, self._computing)
        check_length(folder, model, self.max_length)
        if self.max_length is not None:
            model.max_seq_length = self.max_length
        if self.truncate == "last":
            model.tokenizer.truncation_side = "left"
        own_prompts = {"query": self.query_prefix, "document": self.doc_prefix}
        prompts = {**declared_prompts(model), **{side: p for side, p in own_prompts.items() if p is not None}}
        return Scorer(DenseReader(model, prompts, self._similarity), self._computing).by_backend(self.name)


# monoT5: a sequence-to-sequence model answers whether a text is relevant.


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
    max_length: Annotated[int, Range(16)] = 512

    registered: ClassVar[str] = "t5"
    scale: ClassVar[str] = "log probability"

    def _load(self, folder: Path) -> Scorer:
        return Scorer(QuestionReader(folder, self._computing, self), self._computing)


class QuestionReader(PairReader):
    """A sequence-to-sequence model as a reader of pairs."""

    def __init__(self, folder: Path, computing: Computing, options: MonoT5) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        own = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **own)
        self.tokens, self.most = TokenisedTexts(tokenizer, options.truncate == "last"), options.max_length
        self.answers = [self.tokens.number(token) for token in (options.true, options.false)]
        for token, number in zip((options.true, options.false), self.answers, strict=True):
            if number is None:
                raise BadInput(folder, f"the tokenizer has no token {token!r}", "name one that it has")
        end = tokenizer.eos_token_id
        question = np.append(self.tokens.ids(["Relevant:"], self.most)[0], [] if end is None else [end])
        self.question = question.astype(np.int32)
        parts, names = ("query", "doc", self.question), ("input_ids", "attention_mask")
        self.layout, self.last = InputLayout(parts, (0, 0, 0), self.tokens.pad, names), self.tokens.last
        model = AutoModelForSeq2SeqLM.from_pretrained(str(folder), use_safetensors=True, **own)
        self.module = computing.place(model)
        check_length(folder, self.module, self.most)

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Tokens of all that stands before the text."""
        return self.tokens.ids([f"Query: {text} Document:" for text in texts], self.most - len(self.question))

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Tokens of texts."""
        return self.tokens.ids(texts, self.most)

    def cut(self, query: Ints, doc: Ints) -> tuple[Ints, Ints]:
        """The text is cut so that the whole question fits."""
        return query, np.clip(self.most - query - len(self.question), 0, doc)

    def __call__(self, batch: dict[str, Any], side: Side = "pair") -> Tensor:
        """Log probability of the answer yes against the answer no."""
        start = batch["input_ids"].new_full((len(batch["input_ids"]), 1), self.module.config.decoder_start_token_id)
        found: Tensor = self.module(**batch, decoder_input_ids=start, use_cache=False).logits[:, 0, self.answers]
        return found.float().log_softmax(1)[:, 0]
