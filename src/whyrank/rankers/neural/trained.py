"""Networks that were trained here, each under the name of its architecture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from whyrank.core import WhyrankError
from whyrank.rankers.neural.base import NeuralRanker
from whyrank.rankers.neural.readers import (
    LateReader,
    ModelKind,
    ModelReader,
    NetworkPairs,
    NetworkTexts,
    SparseReader,
    declared_prompts,
    load_model,
    load_network,
)
from whyrank.rankers.neural.scorer import Scorer
from whyrank.rankers.neural.weights import architecture_of

if TYPE_CHECKING:
    from whyrank.rankers.lexical import ScoreMatrix


@dataclass(frozen=True, repr=False)
class TrainedRanker(NeuralRanker):
    """A network in a folder that `whyrank train` wrote."""

    truncate: Literal["first"] = "first"

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        from whyrank.networks import networks

        return str(networks.factory(self.registered).scale)

    def _load(self, folder: Path) -> Scorer:
        from whyrank.networks import SeparateNetwork

        network = load_network(folder, self.registered, self._computing)
        reader = NetworkTexts(network) if isinstance(network, SeparateNetwork) else NetworkPairs(network)
        return Scorer(reader, self._computing).by_backend(self.name)


class Vanilla(TrainedRanker):
    """BERT with one linear layer over the first position of query and text."""

    registered: ClassVar[str] = "vanilla"
    converts: ClassVar[bool] = True


class CedrKnrm(TrainedRanker):
    """KNRM over the similarities of contextual vectors of every layer, and the first position (CEDR)."""

    registered: ClassVar[str] = "cedr-knrm"


class CedrDrmm(TrainedRanker):
    """DRMM over the similarities of contextual vectors of every layer, and the first position (CEDR)."""

    registered: ClassVar[str] = "cedr-drmm"


class CedrPacrr(TrainedRanker):
    """PACRR over the similarities of contextual vectors of every layer, and the first position (CEDR)."""

    registered: ClassVar[str] = "cedr-pacrr"


class Knrm(TrainedRanker):
    """Kernels over the similarities of word vectors (KNRM)."""

    registered: ClassVar[str] = "knrm"


class ConvKnrm(TrainedRanker):
    """Kernels over the similarities of vectors of n-grams (Conv-KNRM)."""

    registered: ClassVar[str] = "conv-knrm"


class Epic(TrainedRanker):
    """Importance of query terms and expansion of texts over the vocabulary (EPIC)."""

    registered: ClassVar[str] = "epic"


@dataclass(frozen=True, repr=False)
class EncodedRanker(TrainedRanker):
    """A network trained here, or a model of sentence-transformers of the same kind."""

    kind: ClassVar[ModelKind]
    reader: ClassVar[type[ModelReader]]
    own_scale: ClassVar[str]

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return self.own_scale if architecture_of(self._folder) is None else super().scale

    def _load(self, folder: Path) -> Scorer:
        if architecture_of(folder) is not None:
            return super()._load(folder)
        model = load_model(folder, self.kind, self._computing)
        return Scorer(self.reader(model, declared_prompts(model)), self._computing)


class Late(EncodedRanker):
    """Late interaction (ColBERT): a network trained here, or a ColBERT folder or id that holds safetensors.

    score = sum over query tokens of the highest similarity to a token of the text. Khattab and Zaharia,
    "ColBERT", SIGIR 2020.
    """

    registered: ClassVar[str] = "late"
    kind: ClassVar[ModelKind] = ModelKind("MultiVectorEncoder", ("MultiVectorEncoder", "ColBERT"), ("ColBERT",))
    reader: ClassVar[type[ModelReader]] = LateReader
    own_scale: ClassVar[str] = "sum of similarities"


class Sparse(EncodedRanker):
    """Learned sparse vectors (SPLADE): a network trained here, or a SparseEncoder of sentence-transformers.

    score = sum over the vocabulary of the products of the two weights. Formal, Piwowarski and Clinchant, "SPLADE",
    SIGIR 2021.
    """

    registered: ClassVar[str] = "sparse"
    kind: ClassVar[ModelKind] = ModelKind("SparseEncoder", ("SparseEncoder",), ("ForMaskedLM",))
    reader: ClassVar[type[ModelReader]] = SparseReader
    own_scale: ClassVar[str] = "dot"


class Parm(TrainedRanker):
    """The partial relevance model behind a relevance thesaurus, trained by `whyrank tables learn parm`.

    Its logit for a query and a text as they are, which it was not trained on: good to look at, not to rank by. With a
    term on either side, the sigmoid of it is their weight in the table.
    """

    registered: ClassVar[str] = "parm"


@dataclass(frozen=True, repr=False)
class TranslatingRanker(TrainedRanker):
    """A network whose score is a sum of logarithms of T(q|d) P(d|D), summed over the tokens d of the text."""

    explains: ClassVar[bool] = True

    def explain(self, query: str, text: str) -> ScoreMatrix:
        """The matrix behind the score of one text: T(q|d) P(d|D) for each token of the query and of the text."""
        from whyrank.networks import matrix
        from whyrank.rankers.lexical import ScoreMatrix

        if self.passages != "truncate":
            raise WhyrankError(f"{self.name}: a matrix is of one text as a whole; explain with passages=truncate")
        network: Any = self._network
        with self._scorer.computing.running():
            found = matrix(network, query, text, self._scorer.computing.device)
        cells = found.translations * found.shares
        score, zeros = float(self.score([query], [text])[0]), found.counts * 0
        return ScoreMatrix.log(
            found.query_tokens, found.doc_tokens, cells, score, zeros, found.counts, floor=network.layer.eps,
            notes=_cut(network, query, text),
        )  # fmt: skip

    def query_scale(self, query: str) -> float:
        """The number of distinct tokens that it reads of the query, by which `model1` divides the table of it."""
        return float(len(set(self._network.query_ids([query])[0].tolist())))

    @property
    def _network(self) -> Any:
        reader: Any = self._scorer.reader
        return reader.network


def _cut(network: Any, query: str, text: str) -> list[str]:
    """A line for each of the two that is longer than what the network reads of it."""
    from whyrank.networks import CHARACTERS_PER_TOKEN

    found, most = [], {"query": network.max_query, "text": network.max_doc * getattr(network, "chunks", 1)}
    for side, given in (("query", query), ("text", text)):
        tokens, characters = most[side], most[side] * CHARACTERS_PER_TOKEN
        if len(network.tokenizer.ids([given], tokens + 1)[0]) > tokens:
            found.append(f"the {side} is cut: its first {tokens:,} tokens are read")
        elif given[characters:].strip():
            found.append(f"the {side} is cut: its first {characters:,} characters are read")
    return found


class NeuralModel1(TranslatingRanker):
    """Log probability of the query as a translation of the text, by a neural network over tokens without context.

    score = sum over the query's tokens q of ln(max(1e-8, sum over the text's tokens d of T(q|d) / |D|)). Boytsov and
    Kolter, "Exploring classic and neural lexical translation models for information retrieval", ECIR 2021.
    """

    registered: ClassVar[str] = "neural-model1"


class BertModel1(TranslatingRanker):
    """Neural Model 1 over the contextual vectors that BERT has of query and text (BERT-Model1)."""

    registered: ClassVar[str] = "bert-model1"
