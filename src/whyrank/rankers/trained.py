"""Networks that were trained here, each under the name of its architecture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from whyrank.core.errors import BadInput
from whyrank.rankers.computing import Computing
from whyrank.rankers.embedding import EmbeddingScorer, Models
from whyrank.rankers.joint import JointScorer
from whyrank.rankers.neural import NeuralRanker, Scorer
from whyrank.rankers.separate import SeparateScorer
from whyrank.rankers.similarities import SparseVectors, TokenVectors
from whyrank.rankers.weights import architecture_of


def network_reader(folder: Path, architecture: str, computing: Computing) -> Any:
    """Load a network that must be of some architecture."""
    from whyrank.networks import network

    own = architecture_of(folder)
    if own is None:
        raise BadInput(folder, "holds no network that was trained here", "give a folder that `whyrank train` wrote")
    if own != architecture:
        raise BadInput(folder, f"is a network of architecture {own}, not {architecture}", f"write {own}:PATH")
    return computing.placed(network.load(folder))


@dataclass(frozen=True, repr=False)
class TrainedRanker(NeuralRanker):
    """A network in a folder that `whyrank train` wrote."""

    truncations: ClassVar[tuple[str, ...]] = ("first",)
    tokens: ClassVar[int | None] = None

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        from whyrank.networks import networks

        return str(networks.factory(self.registered).scale)

    def _load(self, folder: Path) -> Scorer:
        from whyrank.networks.separate import SeparateNetwork

        network = network_reader(folder, self.registered, self._computing)
        if isinstance(network, SeparateNetwork):
            return SeparateScorer(network, self._computing, self.tokens)
        return JointScorer.of(self.name, network, self._computing, tokens=self.tokens)


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
    tokens: ClassVar[int | None] = 4096  # each token has a score for every word of the vocabulary


@dataclass(frozen=True, repr=False)
class EncodedRanker(TrainedRanker):
    """A network trained here, or a model of sentence-transformers of the same kind."""

    models: ClassVar[Models]
    own_scale: ClassVar[str]

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return self.own_scale if architecture_of(self._folder) is None else super().scale

    def _load(self, folder: Path) -> Scorer:
        if architecture_of(folder) is not None:
            return super()._load(folder)
        return EmbeddingScorer.of(folder, self.models, self._computing)


class Late(EncodedRanker):
    """Late interaction (ColBERT): a network trained here, or a ColBERT folder or id that holds safetensors.

    score = sum over query tokens of the highest similarity to a token of the text. Khattab and Zaharia,
    "ColBERT", SIGIR 2020.
    """

    registered: ClassVar[str] = "late"
    models: ClassVar[Models] = Models(
        "MultiVectorEncoder", TokenVectors, ("MultiVectorEncoder", "ColBERT"), "ColBERT"
    )
    own_scale: ClassVar[str] = "sum of similarities"


class Sparse(EncodedRanker):
    """Learned sparse vectors (SPLADE): a network trained here, or a SparseEncoder of sentence-transformers.

    score = sum over the vocabulary of the products of the two weights. Formal, Piwowarski and Clinchant, "SPLADE",
    SIGIR 2021.
    """

    registered: ClassVar[str] = "sparse"
    tokens: ClassVar[int | None] = 4096  # each token has a score for every word of the vocabulary
    models: ClassVar[Models] = Models("SparseEncoder", SparseVectors, ("SparseEncoder",), "ForMaskedLM")
    own_scale: ClassVar[str] = "dot"
