"""Neural Model 1 as a ranker, context-free or over BERT, with its explanation piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from whyrank.core.errors import WhyrankError
from whyrank.core.explanations import Explanation
from whyrank.rankers.trained import TrainedRanker

if TYPE_CHECKING:
    from whyrank.networks.translating import Matrix


@dataclass(frozen=True, repr=False)
class TranslatingRanker(TrainedRanker):
    """A network whose score is a sum of logarithms of T(q|d) P(d|D), summed over the pieces d of the text."""

    explains: ClassVar[bool] = True

    def explain(self, query: str, text: str) -> Explanation:
        """The matrix behind the score of one text: T(q|d) P(d|D) for each piece of the query and of the text."""
        if self.passages != "truncate":
            raise WhyrankError(f"{self.name}: a matrix is of one text as a whole; explain with passages=truncate")
        network: Any = self._network
        found = self._matrix(network, query, text)
        cells = found.translations * found.shares
        score, zeros = float(self.score([query], [text])[0]), found.counts * 0
        return Explanation.log(
            found.query_pieces, found.doc_pieces, cells, score, zeros, found.counts, floor=network.layer.eps,
            notes=_cut(network, query, text),
        )  # fmt: skip

    def query_scale(self, query: str) -> float:
        """The number of distinct pieces that it reads of the query, by which `model1` divides the table of it."""
        return float(len(set(self._network.query_ids([query])[0].tolist())))

    @property
    def _network(self) -> Any:
        scorer: Any = self._scorer
        return scorer.network if hasattr(scorer, "network") else scorer.reader

    def _matrix(self, network: Any, query: str, text: str) -> Matrix:
        from whyrank.networks.translating import matrix

        computing = self._scorer.computing
        with computing.running():
            return matrix(network, query, text, computing.device)


def _cut(network: Any, query: str, text: str) -> list[str]:
    """A line for each of the two that is longer than what the network reads of it."""
    from whyrank.networks.pieces import CHARACTERS_PER_PIECE

    found, most = [], {"query": network.max_query, "text": network.max_doc * getattr(network, "chunks", 1)}
    for side, given in (("query", query), ("text", text)):
        pieces, characters = most[side], most[side] * CHARACTERS_PER_PIECE
        if len(network.pieces.ids([given], pieces + 1)[0]) > pieces:
            found.append(f"the {side} is cut: its first {pieces:,} pieces are read")
        elif given[characters:].strip():
            found.append(f"the {side} is cut: its first {characters:,} characters are read")
    return found


class NeuralModel1(TranslatingRanker):
    """Log probability of the query as a translation of the text, by a neural network over pieces without context.

    score = sum over the query's pieces q of ln(max(1e-8, sum over the text's pieces d of T(q|d) / |D|)). Boytsov and
    Kolter, "Exploring classic and neural lexical translation models for information retrieval", ECIR 2021.
    """

    registered: ClassVar[str] = "neural-model1"


class BertModel1(TranslatingRanker):
    """The same over the contextual vectors that BERT has of query and text (BERT-Model1)."""

    registered: ClassVar[str] = "bert-model1"
