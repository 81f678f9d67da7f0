"""Re-ranking in stages: each ranker re-ranks the best of what the one before it gave."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np

from whyrank.core import Floats, Ranker, Whole, WhyrankError, check
from whyrank.rankers.base import Described
from whyrank.rankers.opening import Composite, Setting, open_rankers, specs

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Cascade(Described):
    """Re-ranking in stages: the first ranker orders all candidates, the next one the `depth` best of them anew.

    The rest follows in its old order. With three rankers or more, `depth` has a number for each after the first. A
    cascade orders lists, and the position of a text depends on the others: it makes runs (`whyrank rank`), but a
    single pair has no score. Study its run instead: `run:FILE`.

    Matveeva et al., "High accuracy retrieval with multiple nested ranker", SIGIR 2006; Wang et al., "A cascade
    ranking model for efficient ranked retrieval", SIGIR 2011.

    Attributes:
        of: call strings of two or more rankers, the first stage first.
        depth: how many texts each later ranker re-ranks: one number, or one for each.
    """

    of: Sequence[str] = field(hash=False)
    depth: int | Sequence[int] = field(default=100, hash=False)

    registered: ClassVar[str] = "cascade"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "of", specs("cascade", self.of))
        if isinstance(self.depth, list | tuple):
            object.__setattr__(self, "depth", list(self.depth))
        for depth in self.depth if isinstance(self.depth, list) else [self.depth]:
            check("cascade: depth", depth, Whole)
        if len(self.depths) != len(self.of) - 1:
            raise WhyrankError(f"cascade: give one depth for each of the {len(self.of) - 1} rankers after the first")
        if list(self.depths) != sorted(self.depths, reverse=True):
            raise WhyrankError(f"cascade: depths must not grow from stage to stage, as {self.depth!r} do")

    @property
    def depths(self) -> tuple[int, ...]:
        """How many texts each ranker after the first orders anew."""
        return (self.depth,) if isinstance(self.depth, int) else tuple(self.depth)

    def bind(self, setting: Setting) -> CascadeRanker:
        """Open all stages in the setting."""
        return CascadeRanker(self.name, open_rankers(self.of, setting), self.depths)


@dataclass(frozen=True, repr=False, eq=False)
class CascadeRanker(Composite):
    """The stages of a cascade, ready to order lists."""

    name: str
    parts: tuple[Ranker, ...]
    depths: tuple[int, ...]
    scale = "order only"

    def __repr__(self) -> str:
        return f"cascade depths={list(self.depths)} of={list(self.parts)!r}"

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Refuse: the position of a text depends on the others of its list."""
        if not len(docs):
            return np.zeros(0)
        raise WhyrankError(
            f"ranker {self.name!r} orders whole lists, so a single pair has no score; write its run with "
            "'whyrank rank --out FILE', and ask about the run: --ranker run:FILE"
        )


def stacked(top: Mapping[K, float], rest: Sequence[K]) -> dict[K, float]:
    """The scores of the best, and below them numbers for the rest in the given order."""
    lowest = min(top.values(), default=0.0)
    step = max(1.0, 1e-6 * abs(lowest))  # seen beside the lowest in float32 too, which trec_eval reads
    return {**top, **{each: lowest - step * rank for rank, each in enumerate(rest, 1)}}
