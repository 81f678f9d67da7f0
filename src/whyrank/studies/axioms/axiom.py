"""What all axioms share: from a condition on pairs of documents to preferences, instances and contrasts.

An axiom says when document `a` must beat document `b`, for arrays of documents at once:

    @axioms.register("axiom/SHORT")
    @dataclass(frozen=True, kw_only=True)
    class Short(Axiom):
        "Of two texts, the shorter one wins."

        name = "SHORT"
        favours = "the shorter text"

        def wins(self, view: View, a: Codes, b: Codes) -> Flags:
            return view.lengths[a] < view.lengths[b]

The rest follows from it here: preconditions are checked before, each unordered pair is an instance at most once, a
pair of which each document must beat the other is none, and one pair at a time is a view of the same computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from whyrank.core import Checked, Codes, Flags, Floats, Whole, WhyrankError, call_of, tolerance_of
from whyrank.data import Collection
from whyrank.studies.axioms.view import View, Views
from whyrank.studies.contrasts import Contrasts, TextIds
from whyrank.studies.pools import Pool, Pools, Source, assemble
from whyrank.studies.reading import Conclusions

Signs = npt.NDArray[np.int8]
BLOCK = 1 << 18  # pairs at a time
TOLERANCES = ("length", "idf", "margin")  # fields that are a number, or a share such as `10%`

# Preconditions: what both documents of a pair must meet before an axiom says anything about them.
#
# The runner checks them before it asks the axiom, so an axiom cannot forget or override its own. A new one is any
# function of a view and two arrays of document numbers that gives a flag per pair and does not mind their order.

Precondition = Callable[[View, Codes, Codes], Flags]


def allowance(what: str, tolerance: float | str, larger: npt.NDArray[Any]) -> Floats:
    """How far two values may lie apart, the larger of which is given: a number, or a share of it such as `10%`."""
    absolute, relative = tolerance_of(what, tolerance)
    return np.asarray(absolute + relative * larger, dtype=np.float64)


@dataclass(frozen=True)
class SimilarLength:
    """||D1| - |D2|| is at most `tolerance` tokens, or a share of the longer one such as `10%`."""

    tolerance: float | str

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        one, two = view.lengths[a], view.lengths[b]
        return np.asarray(np.abs(one - two) <= allowance("length", self.tolerance, np.maximum(one, two)))


@dataclass(frozen=True)
class QueryTerms:
    """Both documents have at least so many distinct query terms."""

    least: int = 1

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        enough = view.distinct >= self.least
        return np.asarray(enough[a] & enough[b])


@dataclass(frozen=True)
class LongQuery:
    """The query has at least so many distinct terms."""

    least: int = 2

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        return np.full(len(a), len(view.terms) >= self.least)


def same_total(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have equally many query-term occurrences."""
    return np.asarray(view.total[a] == view.total[b])


def similar_length(tolerance: float | str | None) -> tuple[Precondition, ...]:
    """The precondition on length, or none."""
    return () if tolerance is None else (SimilarLength(tolerance),)


@dataclass(frozen=True, kw_only=True)
class Axiom(Checked):
    """A condition under which one document must score higher than another (strict), or not lower (weak).

    Attributes:
        analyzer: counts words and query terms; any token unit, those of a WordPiece tokenizer included.
        pairs: `judged`, `top:K` of the run `candidates`, or `all` documents that are judged or retrieved.
        candidates: that run.
        stats: where document and collection frequencies come from: a file of `whyrank data stats`, or a collection;
            by default the collection at hand.
        max_tokens: texts are cut to so many tokens, for counting and for scoring; None leaves them whole.
        compat: `camara-hauff` repeats what the released code of "Diagnosing BERT with Retrieval Heuristics" does.
        conclusion: `strict` or `weak`, in place of the axiom's own.
        most: instances that are held at most; beyond it a sample of stated rate is drawn.
        seed: of that sample.
    """

    analyzer: str = "lucene"
    pairs: str = "judged"
    candidates: str | None = None
    stats: str | None = None
    max_tokens: Whole | None = 512
    compat: Literal["camara-hauff"] | None = None
    conclusion: Literal["strict", "weak"] | None = None
    most: Whole = 20_000_000
    seed: int = 0

    name: ClassVar[str]
    favours: ClassVar[str]
    compat_favours: ClassVar[str] = ""  # what the released code favours, where that is another text
    conditions: ClassVar[tuple[Precondition, ...]] = ()
    strict: ClassVar[bool] = True
    size: ClassVar[int] = 2
    symmetric: ClassVar[bool] = False
    not_filled: ClassVar[tuple[str, ...]] = ("compat",)  # those with a compat mode empty this
    both_orders: ClassVar[bool] = False  # under `compat`, a pair is an instance in both orders where both hold

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compat and "compat" in self.not_filled:
            raise WhyrankError(f"axiom {self.name} is none of the nine with a compat mode; leave compat out")
        for each in fields(self):
            given = getattr(self, each.name)
            if each.name in TOLERANCES and (given is not None or "None" not in str(each.type)):
                tolerance_of(each.name, given)

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, f"axiom/{self.name}")

    @property
    def positive(self) -> str:
        """What +1 means."""
        return f"prefers {self.favoured}"

    @property
    def favoured(self) -> str:
        """What must win, in words: `favours`, but for a published form that turns it round."""
        return (self.compat_favours if self.compat else "") or self.favours

    @property
    def concludes(self) -> str:
        """`strict` where the winner must score higher, `weak` where an equal score will do."""
        return self.conclusion or ("strict" if self.strict else "weak")

    @property
    def reading(self) -> Conclusions:
        """How its scores become a finding."""
        return Conclusions(conclusion=self.concludes)

    def preconditions(self) -> tuple[Precondition, ...]:
        """What both documents must meet before anything is said about them."""
        return self.conditions

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Whether document `a[i]` must beat document `b[i]`."""
        raise NotImplementedError(f"axiom {self.name} has no condition on pairs of documents")

    def preferences(self, view: View, a: Codes, b: Codes) -> Signs:
        """+1 where `a[i]` must beat `b[i]`, -1 where `b[i]` must beat `a[i]`, 0 where nothing follows or both do."""
        first, second = self._directions(view, a, b)
        return first.astype(np.int8) - second.astype(np.int8)

    def matrix(self, view: View) -> Signs:
        """The preferences between all documents of a view, antisymmetric."""
        found = np.zeros((len(view), len(view)), np.int8)
        for a, b in _pair_blocks(len(view)):
            found[a, b] = self.preferences(view, a, b)
        return found - found.T

    def preference(self, query: str, first: str, second: str, collection: Collection | None = None) -> int:
        """+1 where the first text must beat the second, -1 for the reverse, else 0; one cell of `preferences`.

        Frequencies are those of `stats`, else of `collection`, else of the two texts.
        """
        docs = {"first": first, "second": second}
        unranked = {self.candidates or "": {"query": dict[str, float]()}}  # no run has texts without ids
        made = Collection.of(docs, {"query": query}, {"query": dict.fromkeys(docs, 0)}, runs=unranked)
        [view] = Views(Pools(made, self._source("judged")), collection or made, self.stats)
        zero, one = np.zeros(1, np.int32), np.ones(1, np.int32)
        return int(self.preferences(view, zero, one)[0])

    def views(self, collection: Collection) -> Views:
        """The queries of a collection and their documents, shared by all axioms that count in the same way."""
        return Views.of(Pools.of(collection, self._source(self.pairs)), self.stats)

    def text_ids(self, collection: Collection) -> list[TextIds]:
        """Every document of every query that the axiom may say something about."""
        return Pools.of(collection, self._source(self.pairs)).text_ids

    def instances(self, view: View) -> Iterator[Codes]:
        """Blocks of instances: rows of document numbers, the winner first."""
        for a, b in _pair_blocks(len(view)):
            if self.compat and self.both_orders:
                first, second = self._directions(view, a, b)
            else:
                signs = self.preferences(view, a, b)
                first, second = signs > 0, signs < 0
            yield np.concatenate([np.column_stack([a[first], b[first]]), np.column_stack([b[second], a[second]])])

    def contrasts(self, collection: Any) -> Contrasts:
        """All instances of all queries; a sample of them where they are more than `most`."""
        views, sampler = self.views(collection), Sampler(self.most, self.seed)
        for view in views:
            for rows in self.instances(view):
                sampler.offer(view, rows)
        dropped = {**self.remarks(views), **sampler.drop_counts()}
        return assemble(views.pools, sampler.blocks(), self.size, dropped)

    def remarks(self, views: Views) -> Mapping[str, int]:
        """What could not be asked, by reason."""
        return {}

    def __and__(self, other: Axiom) -> Axiom:
        return _combine("both", self, other)

    def __or__(self, other: Axiom) -> Axiom:
        return _combine("either", self, other)

    def __neg__(self) -> Axiom:
        return _combine("reverse", self)

    def __add__(self, other: Axiom) -> Axiom:
        return _combine("plus", self, other)

    def __sub__(self, other: Axiom) -> Axiom:
        return _combine("plus", self, _combine("times", other, -1))

    def __mul__(self, weight: float) -> Axiom:
        return _combine("times", self, weight)

    __rmul__ = __mul__

    def _directions(self, view: View, a: Codes, b: Codes) -> tuple[Flags, Flags]:
        """For each pair that meets the preconditions, whether the first must win and whether the second must."""
        keep = np.ones(len(a), bool)
        for precondition in self.preconditions():
            keep[keep] = precondition(view, a[keep], b[keep])
        first, second = np.zeros(len(a), bool), np.zeros(len(a), bool)
        for found, one, two in ((first, a[keep], b[keep]), (second, b[keep], a[keep])):
            flags = np.asarray(self.wins(view, one, two))
            if flags.dtype != bool or flags.shape != one.shape:
                gives = f"{flags.dtype} of shape {flags.shape} for {len(one)} pairs"
                raise WhyrankError(
                    f"axiom/{self.name}: wins() gives {gives}; it must give True or False for each pair"
                )
            found[keep] = flags
        return first, second

    def _source(self, pairs: str) -> Source:
        return Source(pairs, self.candidates, self.analyzer, self.max_tokens)


@dataclass(frozen=True, kw_only=True)
class OfAnyLength(Axiom):
    """An axiom on texts of any length, unless similar length is required.

    Attributes:
        length: how far the lengths may differ: tokens, or a share of the longer text such as `10%`; `None`: any.
    """

    length: float | str | None = None

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length where it is required, and the conditions of the axiom."""
        return *similar_length(self.length), *self.conditions


@dataclass(frozen=True, kw_only=True)
class OfSimilarLength(OfAnyLength):
    """An axiom on texts of about the same length.

    Attributes:
        length: how far the lengths may differ: tokens, or a share of the longer text such as `10%`.
    """

    length: float | str = 10


def _combine(operation: str, *given: Any) -> Axiom:
    """Combine axioms by a function of the module of combinations, which are axioms themselves."""
    from whyrank.studies.axioms import algebra

    made: Axiom = getattr(algebra, operation)(*given)
    return made


def _pair_blocks(n: int) -> Iterator[tuple[Codes, Codes]]:
    """All pairs i < j of n documents, a block at a time."""
    rows = max(1, BLOCK // max(n, 1))
    for start in range(0, n, rows):
        i, j = np.meshgrid(np.arange(start, min(start + rows, n), dtype=np.int32), np.arange(n, dtype=np.int32))
        keep = i.T < j.T
        yield i.T[keep], j.T[keep]


# Instances in bounded memory: all of them, or beyond a limit a sample of stated seed and rate.


class Sampler:
    """Takes blocks of instances and holds at most `most` of them.

    Whether an instance is kept depends on a hash of the seed, the query and its documents alone: a hash below
    2**64 / 2**k keeps a share 2**-k. Each time the limit is passed, k (`halvings`) grows by one, so the sample does
    not depend on the order in which instances come.
    """

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.seed = most, seed
        self.found, self.held, self.halvings = 0, 0, 0
        self._blocks: list[tuple[View, Codes]] = []

    def offer(self, view: View, rows: Codes) -> None:
        """Take the instances of a block: rows of document numbers."""
        if not len(rows):
            return
        self.found += len(rows)
        kept = self._thin(view, rows)
        self._blocks.append((view, kept))
        self.held += len(kept)
        while self.held > self.most:
            self.halvings += 1
            self._blocks = [(view, self._thin(view, rows)) for view, rows in self._blocks]
            self.held = sum(len(rows) for _, rows in self._blocks)

    def blocks(self) -> list[tuple[Pool, Codes]]:
        """What is held, by pool."""
        return [(view.pool, rows) for view, rows in self._blocks]

    def drop_counts(self) -> dict[str, int]:
        """How many instances were not kept, and by which rule."""
        if not self.halvings:
            return {}
        return {f"not drawn (rate 1/{2**self.halvings}, seed {self.seed})": self.found - self.held}

    def _thin(self, view: View, rows: Codes) -> Codes:
        if not self.halvings:
            return rows
        keys = view.once(("keys", self.seed), lambda: self._keys(view))
        hashes = np.zeros(len(rows), np.uint64)
        for column in rows.T:  # the finaliser of splitmix64, over the documents in their order
            hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + keys[column]
            hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            hashes ^= hashes >> np.uint64(31)
        return rows[hashes < np.uint64(2 ** (64 - self.halvings))]

    def _keys(self, view: View) -> npt.NDArray[np.uint64]:
        """A hash per document of a view."""
        texts = ["\x1f".join((str(self.seed), view.pool.query_id, doc_id)) for doc_id in view.pool.doc_ids]
        digests = b"".join(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8] for text in texts)
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
