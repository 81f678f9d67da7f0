"""Networks that read query and text together, as one input: what they share."""

from __future__ import annotations

from collections.abc import Sequence

from whyrank.networks.batches import Arrays, packed_pairs, pair_arrays
from whyrank.networks.first import is_plain
from whyrank.networks.network import Network
from whyrank.networks.pieces import Ids


class JointNetwork(Network):
    """Reads [CLS] query [SEP] text [SEP], padded, or end to end where its encoder can."""

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs as one input each."""
        return pair_arrays(queries, docs, self.pieces.special)

    @property
    def packs(self) -> bool:
        """Whether it reads pairs that lie end to end."""
        return is_plain(self.encoder.model)

    def packed(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs end to end."""
        return packed_pairs(queries, docs, self.pieces.special)
