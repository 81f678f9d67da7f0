"""Late interaction: one vector per token of query and text, matched token by token (ColBERT)."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import BadInput, Whole
from whyrank.networks.encoder import Encoder, stored_tensors
from whyrank.networks.network import Network
from whyrank.networks.separate import Encoded, SeparateNetwork
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, lengths_mask, padded

MARKERS = ("[unused0]", "[unused1]")
_PROJECTION = "linear.weight"  # as checkpoints of ColBERT call it


class LateNetwork(SeparateNetwork):
    """score = sum over the query's positions i of max over the text's positions j of v_i . v_j.

    v = P h / |P h|: the last hidden states, projected to `dim` numbers without a bias, at unit length. A query is
    [CLS] [Q] tokens [SEP], filled up with [MASK] to `max_query` + 3 positions, all of which are matched; the other
    positions do not attend to the [MASK]s unless `attend` is set. Without `augment` there are no [MASK]s, which are
    noise until trained. A text is [CLS] [D] tokens [SEP]; its punctuation is read but not matched, unless
    `punctuation` is set. [Q] and [D] are two unused tokens of the vocabulary.

    Khattab and Zaharia, "ColBERT: efficient and effective passage search via contextualized late interaction over
    BERT", SIGIR 2020; that masks are not attended to is what its released code does.

    Attributes:
        dim: numbers in the vector of a token.
        augment: fill queries up with [MASK].
        attend: let the other positions attend to the [MASK]s.
        punctuation: match the punctuation of texts too.
    """

    architecture: ClassVar[str] = "late"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 29, max_doc: int = 477, dim: Whole = 128,
        augment: bool = True, attend: bool = False, punctuation: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        self.dim, self.augment, self.attend, self.punctuation = dim, augment, attend, punctuation
        self.projection = nn.Linear(encoder.width, dim, bias=False)
        nn.init.orthogonal_(self.projection.weight)
        self._markers = tokenizer.numbers(MARKERS)  # of queries and of texts
        if len(self._markers) < len(MARKERS):
            lack = f"the tokenizer has no tokens {MARKERS[0]} and {MARKERS[1]} to mark queries and texts"
            raise BadInput(tokenizer.path, lack, "give a model with BERT's vocabulary")
        self._unmatched = [] if punctuation else tokenizer.numbers(list(string.punctuation))

    @classmethod
    def begin(cls, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
        """A new network over an encoder; the projection of a ColBERT checkpoint is taken over where it fits."""
        made = super().begin(source, layers, **settings)
        found = stored_tensors(source, [_PROJECTION])
        if found is not None and isinstance(made, cls) and found[0].shape == made.projection.weight.shape:
            made.projection.weight.data.copy_(found[0])
        return made

    def query_arrays(self, queries: Sequence[Ids]) -> Arrays:
        """[CLS] [Q] query [SEP] [MASK] ...; `mask` says what is attended to, `kept` what is matched."""
        if not self.augment:
            found = self._arrays(queries, self._markers[0], "pad")
            return found | {"kept": found["mask"]}
        found = self._arrays(queries, self._markers[0], "mask", self.max_query + 3)
        every = np.ones_like(found["mask"])
        return found | {"kept": every, "mask": every if self.attend else found["mask"]}

    def doc_arrays(self, docs: Sequence[Ids]) -> Arrays:
        """[CLS] [D] text [SEP]; `kept` says what is matched."""
        found = self._arrays(docs, self._markers[1], "pad")
        return found | {"kept": found["mask"] * ~np.isin(found["ids"], self._unmatched)}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """Unit vectors of all positions, and which of them are matched."""
        states: Tensor = self.projection(self.encoder.last(batch))
        return {"vectors": functional.normalize(states.float(), dim=2), "mask": batch["kept"].float()}

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The sum of the best matches, in single precision."""
        with torch.autocast(docs["vectors"].device.type, enabled=False):
            cosines = torch.bmm(queries["vectors"], docs["vectors"].transpose(1, 2))
        best = cosines.masked_fill(docs["mask"].unsqueeze(1) == 0, -torch.inf).amax(dim=2)
        return (best * queries["mask"]).sum(dim=1)

    def _arrays(self, texts: Sequence[Ids], marker: int, filler: str, width: int = 1) -> Arrays:
        special = self.tokenizer.special
        rows = [np.concatenate([[special["cls"], marker], text, [special["sep"]]]) for text in texts]
        ids = padded(rows, special[filler], width)
        return {"ids": ids, "types": np.zeros_like(ids), "mask": lengths_mask(rows, ids.shape[1])}
