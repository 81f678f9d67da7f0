"""Distillation from bi-encoders without labels: the teachers find candidates of each query, and score them.

Each epoch draws new candidates for every query: its source text, some of the teachers' best, some of their next best,
some of BM25's best, some at random; the target of a candidate is the teachers' weighted mean cosine.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from whyrank.core import Progress, WhyrankError, generator
from whyrank.networks import Ids, ModelTokenizer, load_encoder, single_arrays, tensors
from whyrank.training.data import Examples, Texts, TrainingSet
from whyrank.training.keywords import cut_queries

if TYPE_CHECKING:
    from whyrank.data import Collection

Numbers = npt.NDArray[np.int32]
BEST = 10  # texts of a query that count as the teachers' best
_BLOCK = 4096  # queries that are worked on at a time
_CELLS = 2**28  # BM25 scores that are held at a time
_QUERY, _TEXT = 64, 256  # tokens that the teachers read
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Distillation:
    """Queries without candidates yet: the teachers find these where the network is trained.

    Attributes:
        source: the text that each query belongs to.
        shares: the weight of each teacher.
        top: how many candidates are drawn from the teachers' first ten, their next ones, and at random.
        depth: how far their rankings go.
        lexical: how many are drawn from BM25's first sixty.
    """

    source: Numbers
    shares: Sequence[float]
    top: tuple[int, int, int] = (4, 4, 1)
    depth: int = 100
    lexical: int = 0

    def epoch(self, seed: int, epoch: int) -> Examples:
        """The queries with their own texts; candidates and targets are not known here."""
        n = len(self.source)
        return Examples(np.arange(n, dtype=np.int32), self.source[:, None], np.ones((n, 1), np.float32))

    def mined(self, data: TrainingSet, teachers: Sequence[Path], device: str, say: Callable[[str], None]) -> Mined:
        """The candidates, found by the teachers and by BM25."""
        vectors = [_vectors(str(teacher), data, device, say) for teacher in teachers]
        queries = joined([one for one, _ in vectors], self.shares)
        docs = joined([two for _, two in vectors])
        ranked = mined_top(queries, docs, self.depth)
        found = Mined(self.source, ranked, queries, docs, self.top, self._by_words(data, teachers[0], device))
        say(f"mined {ranked.shape[1]} candidates for each of {len(ranked):,} queries")
        return found

    def _by_words(self, data: TrainingSet, teacher: Path, device: str) -> tuple[Numbers, int] | None:
        if not self.lexical:
            return None
        tokenizer = ModelTokenizer(teacher)
        queries, docs = tokenizer.ids(data.queries, _QUERY), tokenizer.ids(data.docs, _TEXT)
        return lexical_top(queries, docs, len(tokenizer), device=device), self.lexical


def ready(data: TrainingSet, teachers: Sequence[Path], device: str, say: Callable[[str], None]) -> TrainingSet:
    """The same data with its candidates, where they are yet to be found."""
    if not isinstance(data.sampler, Distillation):
        return data
    return TrainingSet(data.queries, data.docs, data.sampler.mined(data, teachers, device, say))


def distillation_set(data: Mapping[str, Any], seed: int = 0) -> TrainingSet:
    """The queries and texts that the `data` of a recipe with `teachers` describes.

    The queries of `collection` that have a relevant text, with the first of these; and queries cut from the texts of
    the collections that `cut` names, so many per text. No query and no text of the collections `without` is among
    them.
    """
    from whyrank.data import open_collection

    kept, texts = _Kept.of(map(open_collection, _names(data.get("without", [])))), Texts()
    found: dict[str, int] = {}
    for query, text in _all_queries(data, texts, kept, seed):
        found.setdefault(query, text)
    if not found:
        raise WhyrankError("data: there is not one query to learn from; name collections, or cut more queries")
    chosen = list(found)[: data.get("limit")]
    source = np.array([found[query] for query in chosen], np.int32)
    shares = [float(share) for share in data["teachers"].values()]
    top = tuple(data.get("candidates", Distillation.top))
    made = Distillation(source, shares, top, data.get("depth", Distillation.depth), data.get("lexical", 0))
    return TrainingSet(chosen, list(texts.found), made)


def _all_queries(data: Mapping[str, Any], texts: Texts, kept: _Kept, seed: int) -> Iterator[tuple[str, int]]:
    from whyrank.data import open_collection

    asked, cut = _names(data.get("collection", [])), data.get("cut", {})
    for name in dict.fromkeys([*asked, *cut]):
        collection = open_collection(name)
        own = [text for text in map(_plain, collection.docs.values()) if kept.text(text)]
        numbers = texts.numbers(own)
        if name in asked:
            yield from _real(collection, texts, kept)
        for query, source in cut_queries(own, cut.get(name, 0), seed) if cut.get(name) else ():
            if kept.query(query):
                yield query, int(numbers[source])


def _real(collection: Collection, texts: Texts, kept: _Kept) -> Iterator[tuple[str, int]]:
    """The queries of a collection with the first text that is relevant to each."""
    for query_id, judged in collection.qrels.items():
        good = [d for d, grade in judged.items() if grade >= collection.grades.relevant and d in collection.docs]
        if not good or query_id not in collection.queries:
            continue
        query, text = _plain(collection.queries[query_id]), _plain(collection.docs[good[0]])
        if kept.query(query) and kept.text(text):
            yield query, texts.number(text)


@dataclass(frozen=True)
class _Kept:
    """Which queries and texts may be learned from: none that a collection held back has too."""

    queries: frozenset[str]
    texts: frozenset[str]

    @classmethod
    def of(cls, held_back: Iterator[Collection]) -> _Kept:
        several = list(held_back)
        queries = frozenset(_bare(query) for c in several for query in c.queries.values())
        return cls(queries, frozenset(_bare(text) for c in several for text in c.docs.values()))

    def query(self, text: str) -> bool:
        return _bare(text) not in self.queries

    def text(self, text: str) -> bool:
        return _bare(text) not in self.texts


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _bare(text: str) -> str:
    return " ".join(_WORDS.findall(text.lower()))


def _vectors(teacher: str, data: TrainingSet, device: str, say: Callable[[str], None]) -> tuple[Tensor, Tensor]:
    queries, docs = embed(teacher, data.queries, _QUERY, 1024, device), embed(teacher, data.docs, _TEXT, 512, device)
    say(f"teacher {Path(teacher).name}: {len(queries):,} queries and {len(docs):,} texts read")
    return (queries.half(), docs.half()) if device.startswith("cuda") else (queries, docs)


@dataclass(frozen=True, eq=False)
class Mined:
    """Candidates of every query from the teachers' rankings.

    Attributes:
        source: the text that each query belongs to.
        ranked: the teachers' best texts of each query, best first, [queries, depth].
        queries: the teachers' vectors of the queries, joined by `joined`.
        docs: those of the texts; the product of the two is the target.
        top: how many of the first ten, of the rest of `ranked`, and of all texts at random are drawn; fewer where
            there are fewer.
        lexical: BM25's best texts of each query, [queries, n], and how many of these are drawn.
    """

    source: Numbers
    ranked: Numbers
    queries: Tensor
    docs: Tensor
    top: tuple[int, int, int] = (3, 3, 3)
    lexical: tuple[Numbers, int] | None = None

    def epoch(self, seed: int, epoch: int) -> Examples:
        """One example per query: the source text first."""
        random = generator(seed, "mined", str(epoch))
        n, depth = self.ranked.shape
        best = min(BEST, depth)
        parts = [(self.ranked[:, :best], self.top[0]), (self.ranked[:, best:], self.top[1])]
        drawn = [_drawn(random, *part) for part in [*parts, *([self.lexical] if self.lexical else [])]]
        chance = random.integers(0, len(self.docs), (n, self.top[2]))
        doc = np.concatenate([self.source[:, None], *drawn, chance], axis=1).astype(np.int32)
        query = random.permutation(n).astype(np.int32)
        return Examples(query, doc[query], self._targets(query, doc[query]))

    def _targets(self, query: Any, doc: Any) -> npt.NDArray[np.float32]:
        found = np.empty(doc.shape, np.float32)
        for start in range(0, len(query), _BLOCK):
            rows = slice(start, start + _BLOCK)
            one, two = self.queries[self._on(query[rows])], self.docs[self._on(doc[rows])]
            found[rows] = torch.einsum("nd,nkd->nk", one, two).float().cpu().numpy()
        return found

    def _on(self, numbers: Any) -> Tensor:
        return torch.from_numpy(numbers.astype(np.int64)).to(self.docs.device)


def joined(vectors: Sequence[Tensor], shares: Sequence[float] | None = None) -> Tensor:
    """The teachers' vectors side by side, times their shares: one product then gives the weighted sum of cosines."""
    weights = shares or [1.0] * len(vectors)
    return torch.cat([part * weight for part, weight in zip(vectors, weights, strict=True)], dim=1)


def embed(source: str, texts: Sequence[str], most: int = 256, batch: int = 512, device: str = "cpu") -> Tensor:
    """Unit vectors of texts by a bi-encoder: the mean of the last hidden states, in half precision on a GPU."""
    encoder, tokenizer = load_encoder(source).to(device).eval(), ModelTokenizer(source)
    ids = tokenizer.ids(texts, most)
    order = np.argsort([len(row) for row in ids], kind="stable")
    found = torch.empty(len(texts), encoder.width, device=device)
    half = device.startswith("cuda")
    with torch.inference_mode(), torch.autocast(device.split(":", maxsplit=1)[0], torch.bfloat16, enabled=half):
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            sent = tensors(single_arrays([ids[i] for i in rows], tokenizer.special), device)
            states, mask = encoder.last(sent).float(), sent["mask"].unsqueeze(-1)
            means = functional.normalize((states * mask).sum(dim=1) / mask.sum(dim=1), dim=1)
            found[torch.from_numpy(rows).to(device)] = means
    return found


def mined_top(queries: Tensor, docs: Tensor, depth: int = 60) -> Numbers:
    """The best texts of each query by the product of vectors: [queries, depth], or as many as there are."""
    blocks, depth = [], min(depth, len(docs))
    for start in range(0, len(queries), _BLOCK):
        found = (queries[start : start + _BLOCK] @ docs.T).topk(depth, dim=1).indices
        blocks.append(found.int().cpu().numpy())
    return np.concatenate(blocks)


def _drawn(random: np.random.Generator, among: Numbers, size: int) -> Numbers:
    """For each row, `size` different ones of its numbers."""
    size, keys = min(size, among.shape[1]), random.random(among.shape, dtype=np.float32)
    if not size:
        return among[:, :0]
    places = np.argpartition(keys, size - 1, axis=1)[:, :size]
    return np.take_along_axis(among, places, axis=1)


# BM25 over token numbers on any device: the candidates that a re-ranker meets, for many queries at once.
#
# score(q, d) = sum over the distinct tokens t of q of idf(t) tf / (tf + k1 (1 - b + b |d| / avg)), with
# idf(t) = ln(1 + (N - n_t + .5) / (n_t + .5)).


def lexical_top(
    queries: Sequence[Ids], docs: Sequence[Ids], size: int, depth: int = 60, device: str = "cpu",
    k1: float = 0.9, b: float = 0.4,
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The best texts of each query by BM25 over tokens numbered below `size`: [queries, depth]."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*[Ss]parse")  # torch calls these matrices a beta and unchecked
        weights, blocks = _weighted(docs, size, device, k1, b), []
    block = max(1, _CELLS // max(size, len(docs)))
    with Progress("mining by BM25: queries", len(queries)) as progress:
        for start in range(0, len(queries), block):
            scores = weights @ _present(queries[start : start + block], size, device)
            found = scores.topk(min(depth, len(docs)), dim=0).indices.T
            blocks.append(found.int().cpu().numpy())
            progress.step(len(blocks[-1]))
    return np.concatenate(blocks)


def _weighted(docs: Sequence[Ids], size: int, device: str, k1: float, b: float) -> Tensor:
    """The weight of each token in each text, as a sparse matrix [texts, tokens]."""
    row, token, sizes = _flat(docs, device)
    counts = torch.sparse_coo_tensor(torch.stack([row, token]), torch.ones_like(row, dtype=torch.float32),
                                     (len(docs), size)).coalesce()  # fmt: skip
    (row, token), tf = counts.indices(), counts.values()
    having = torch.bincount(token, minlength=size).float()
    idf = torch.log1p((len(docs) - having + 0.5) / (having + 0.5))
    norm = k1 * (1 - b + b * sizes.float() / sizes.float().mean().clamp(min=1e-9))
    values = idf[token] * tf / (tf + norm[row])
    return torch.sparse_coo_tensor(counts.indices(), values, counts.shape, is_coalesced=True).to_sparse_csr()


def _present(queries: Sequence[Ids], size: int, device: str) -> Tensor:
    """One where a query has a token: [tokens, queries]."""
    row, token, _ = _flat(queries, device)
    found = torch.zeros(size, len(queries), device=device)
    found[token, row] = 1.0
    return found


def _flat(texts: Sequence[Ids], device: str) -> tuple[Tensor, Tensor, Tensor]:
    sizes = torch.tensor([len(text) for text in texts]).to(device)
    tokens = np.concatenate([np.empty(0, np.int32), *texts]).astype(np.int64)
    row = torch.repeat_interleave(torch.arange(len(texts), device=device), sizes)
    return row, torch.from_numpy(tokens).to(device), sizes
