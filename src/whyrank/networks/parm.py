"""PaRM, the partial relevance model: a part of a query, down to one term, against a part of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from whyrank.core import Share, UnknownName, WhyrankError
from whyrank.networks.encoder import Encoder, stored_tensors
from whyrank.networks.network import JointNetwork, Network, is_network, load
from whyrank.networks.tokens import ModelTokenizer

if TYPE_CHECKING:
    from whyrank.networks.tokens import Ids

_POOLER = ("pooler.dense.weight", "pooler.dense.bias")


class ParmNetwork(JointNetwork):
    """logit = outer(relu(middle(tanh(inner(h))))) with h the last hidden state of [CLS] in [CLS] q [SEP] d [SEP].

    Over a causal encoder the last [SEP] stands for [CLS]. With `head="affine"` it is outer(h) alone, as the paper
    writes it. The logit is raw: the weight of a pair of terms in a table is its sigmoid. Kim, Rahimi and Allan,
    "Discovering biases in information retrieval models using relevance thesaurus as global explanation", EMNLP 2024.

    Attributes:
        head: deep, or affine as in the paper.
    """

    architecture: ClassVar[str] = "parm"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 221,
        dropout: Share = 0.1,
        head: Literal["deep", "affine"] = "deep",
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        width = encoder.width
        self.head, self.dropout = head, nn.Dropout(dropout)
        if head == "deep":
            self.inner, self.middle = nn.Linear(width, width), nn.Linear(width, width)
        self.outer = nn.Linear(width, 1)

    @classmethod
    def begin(
        cls, source: str | Path, layers: Sequence[int] | None = None, pooler: bool = False, **settings: Any
    ) -> Network:
        """A new network over a pre-trained encoder, or over that of another network that was trained here.

        With `pooler`, the inner layer of the head starts as the pooler of the pre-trained model.
        """
        if is_network(Path(source)):
            if pooler:
                raise WhyrankError(f"pooler: {source} is a network trained here, which has none; leave it out")
            if layers is not None:
                raise WhyrankError(f"layers {list(layers)}: the encoder of a network trained here is taken whole")
            other = load(source).train()
            return cls(other.encoder, other.tokenizer, **settings)
        made = super().begin(source, layers, **settings)
        if pooler:
            found = stored_tensors(source, _POOLER) or stored_tensors(source, [f"bert.{name}" for name in _POOLER])
            if not isinstance(made, cls) or made.head != "deep" or found is None:
                what = f"needs head=deep and a model with a pooler, as {source} may have"
                raise WhyrankError(f"pooler: {what}; leave it out")
            made.inner.weight.data.copy_(found[0])
            made.inner.bias.data.copy_(found[1])
        return made

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One raw logit per pair, in single precision."""
        first = self.encoder.pooled(batch, self.max_query + self.max_doc + 3)
        with torch.autocast(first.device.type, enabled=False):
            return self.logits(first.float())

    def logits(self, first: Tensor) -> Tensor:
        """The logits of last hidden states of [CLS]: [pairs, width] to [pairs]."""
        if self.head == "deep":
            first = torch.tanh(self.inner(self.dropout(first)))
            first = torch.relu(self.middle(first))
        found: Tensor = self.outer(self.dropout(first))
        return found.squeeze(1)


# What stands around a pair of terms when PaRM reads it: nothing, or [MASK]s as around the parts of phase 1.
#
# bare    [CLS] q [SEP] d [SEP]
# masks   [CLS] [MASK] q [MASK] [SEP] [MASK]*4 d [MASK]*24 [SEP]
# runs    [CLS] [MASK] q [MASK] [SEP] [MASK] d [MASK] [SEP]


class TermFrame(NamedTuple):
    """How many [MASK]s stand before and behind a query term and a document term."""

    query: tuple[int, int]
    doc: tuple[int, int]


BARE = "bare"
FRAMES: Mapping[str, TermFrame] = {
    BARE: TermFrame((0, 0), (0, 0)),
    "masks": TermFrame((1, 1), (4, 24)),
    "runs": TermFrame((1, 1), (1, 1)),
}


def frame_terms(
    queries: Sequence[Ids], docs: Sequence[Ids], network: Network, name: str
) -> tuple[Sequence[Ids], Sequence[Ids]]:
    """Query terms and document terms between the [MASK]s of a frame; an error where a pair is too long to be read."""
    if name not in FRAMES:
        raise UnknownName("frame", str(name), FRAMES)
    sides: list[Sequence[Ids]] = []
    for rows, masks in zip((queries, docs), FRAMES[name], strict=True):
        if not any(masks):
            sides.append(rows)
            continue
        before, behind = (np.full(n, network.tokenizer.special["mask"], np.int32) for n in masks)
        sides.append([np.concatenate([before, row, behind]) for row in rows])
    longest = 3 + sum(max((len(row) for row in side), default=0) for side in sides)
    if longest > (most := network.encoder.max_positions):
        raise WhyrankError(f"frame {name}: a pair of terms has {longest} tokens, and the encoder reads {most}")
    return sides[0], sides[1]
