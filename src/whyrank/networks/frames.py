"""What stands around a pair of terms when PaRM reads it: nothing, or [MASK]s as around the parts that phase 1 knows.

bare    [CLS] q [SEP] d [SEP]
masks   [CLS] [MASK] q [MASK] [SEP] [MASK]*4 d [MASK]*24 [SEP]
runs    [CLS] [MASK] q [MASK] [SEP] [MASK] d [MASK] [SEP]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyrank.core.errors import UnknownName, WhyrankError

if TYPE_CHECKING:  # recipes are read without torch
    from whyrank.networks.network import Network
    from whyrank.networks.pieces import Ids


class Frame(NamedTuple):
    """How many [MASK]s stand before and behind a query term and a document term."""

    query: tuple[int, int]
    doc: tuple[int, int]


BARE = "bare"
FRAMES: Mapping[str, Frame] = {
    BARE: Frame((0, 0), (0, 0)),
    "masks": Frame((1, 1), (4, 24)),
    "runs": Frame((1, 1), (1, 1)),
}


def frame_of(name: str) -> Frame:
    """A frame by name."""
    if name not in FRAMES:
        raise UnknownName("frame", str(name), FRAMES)
    return FRAMES[name]


def around(rows: Sequence[Ids], masks: tuple[int, int], mask: int) -> Sequence[Ids]:
    """The pieces of terms between so many [MASK]s."""
    if masks == (0, 0):
        return rows
    before, behind = (np.full(n, mask, np.int32) for n in masks)
    return [np.concatenate([before, row, behind]) for row in rows]


def framed(rows: Sequence[Ids], network: Network, name: str) -> tuple[Sequence[Ids], Sequence[Ids]]:
    """The pieces of terms as query terms and as document terms of a network; an error where these are too long."""
    frame, mask = frame_of(name), network.pieces.special["mask"]
    sides = around(rows, frame.query, mask), around(rows, frame.doc, mask)
    longest = 3 + sum(max((len(row) for row in side), default=0) for side in sides)
    if longest > network.encoder.places:
        raise WhyrankError(
            f"frame {name}: a pair of terms has {longest} pieces, and the encoder reads {network.encoder.places}"
        )
    return sides
