"""What callers may supply: any object with these methods fits; there is no base class to inherit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

if TYPE_CHECKING:
    from whyrank.contrasts import Contrasts
    from whyrank.data import Collection


@runtime_checkable
class Ranker(Protocol):
    """Maps (query text, document text) to a number; `repr` is its identity, hashes of weights and data included."""

    @property
    def name(self) -> str:
        """Short name for tables: the call string that the user wrote."""
        ...

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> npt.NDArray[Any]:
        """Score aligned pairs: one number per pair, higher is better."""
        ...


@runtime_checkable
class Study(Protocol):
    """Turns a collection into contrasts and says in words what a positive answer means."""

    @property
    def id(self) -> str:
        """The call string: parses back to an equal study."""
        ...

    @property
    def positive(self) -> str:
        """What an effect of +1 means, in words."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether the order of the two texts carries no meaning."""
        ...

    def contrasts(self, collection: Collection) -> Contrasts:
        """Every contrast of this study that the collection allows."""
        ...
