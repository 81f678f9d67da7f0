"""Bi-encoders: queries and texts are embedded apart and compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from whyrank.core import BadInput, check_text, check_whole
from whyrank.rankers.neural.base import NeuralRanker
from whyrank.rankers.neural.readers import DenseReader, ModelKind, load_model
from whyrank.rankers.neural.scorer import Scorer
from whyrank.rankers.neural.tokens import check_length
from whyrank.rankers.neural.weights import architecture_of, config_of

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
_SCALES = {"euclidean": "minus distance", "manhattan": "minus distance"}
_KIND = ModelKind("SentenceTransformer", ("SentenceTransformer",))
_CROSS = "ForSequenceClassification"


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

    similarity: str | None = None
    query_prefix: str | None = None
    doc_prefix: str | None = None
    max_length: int | None = None

    registered: ClassVar[str] = "bi"
    converts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        super().__post_init__()
        if self.similarity is not None:
            self._check_choice("similarity", self.similarity, SIMILARITIES)
        for what, value in (("query_prefix", self.query_prefix), ("doc_prefix", self.doc_prefix)):
            check_text(f"bi: {what}", value)
        check_whole("bi: max_length", 512 if self.max_length is None else self.max_length, 3)

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
        if named.endswith(_CROSS) and not (folder / "modules.json").is_file():  # without its head, nothing to compare
            raise BadInput(folder, f"is a cross-encoder ({named}), not a bi-encoder", "write cross:PATH")
        model = load_model(folder, _KIND, self._computing)
        check_length(folder, model, self.max_length)
        if self.max_length is not None:
            model.max_seq_length = self.max_length
        if self.truncate == "last":
            model.tokenizer.truncation_side = "left"
        own_prompts = {"query": self.query_prefix, "document": self.doc_prefix}
        prompts = {**declared_prompts(model), **{side: p for side, p in own_prompts.items() if p is not None}}
        return Scorer(DenseReader(model, prompts, self._similarity), self._computing).by_backend(self.name)


def declared_prompts(model: Any) -> dict[str, str]:
    """What a model wants before queries and before texts: the first prompt for them that its configuration has."""
    prompts = getattr(model, "prompts", {})
    return {
        side: next((str(prompts[name]) for name in names if prompts.get(name)), "") for side, names in PROMPTS.items()
    }
