"""Bi-encoders: queries and texts are embedded apart and compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from whyrank.core import BadInput, check_text, check_whole
from whyrank.rankers.neural.base import NeuralRanker, Scorer
from whyrank.rankers.neural.embedding import SIMILARITIES, DenseVectors, EmbeddingScorer, Models
from whyrank.rankers.neural.tokens import check_length
from whyrank.rankers.neural.weights import architecture_of, config_of

_SCALES = {"euclidean": "minus distance", "manhattan": "minus distance"}
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

    def _vectors(self, model: Any) -> DenseVectors:
        return DenseVectors(model, self._similarity)

    def _load(self, folder: Path) -> Scorer:
        if own := architecture_of(folder):
            raise BadInput(folder, f"is a network of architecture {own}, not a bi-encoder", f"write {own}:PATH")
        _check_head(folder)
        models = Models("SentenceTransformer", self._vectors, ("SentenceTransformer",), "")
        prompts = {"query": self.query_prefix, "document": self.doc_prefix}
        scorer = EmbeddingScorer.of(folder, models, self._computing, **prompts)
        check_length(folder, scorer.model, self.max_length)
        if self.max_length is not None:
            scorer.model.max_seq_length = self.max_length
        if self.truncate == "last":
            scorer.model.tokenizer.truncation_side = "left"
        return scorer.taken_over(self.name)


def _check_head(folder: Path) -> None:
    """Refuse a cross-encoder: without its head, what is left was never meant to be compared."""
    named = str((config_of(folder).get("architectures") or [""])[0])
    if named.endswith(_CROSS) and not (folder / "modules.json").is_file():
        raise BadInput(folder, f"is a cross-encoder ({named}), not a bi-encoder", "write cross:PATH")
