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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from whyrank.core import Progress, WhyrankError, generator
from whyrank.networks import Ids, ModelTokenizer, load_encoder, single_arrays, tensors
from whyrank.training.data import EpochExamples, NumberedTexts, TrainingSet
from whyrank.training.recipe import TaughtData

Numbers = npt.NDArray[np.int32]
BEST = 10  # texts of a query that count as the teachers' best
_BLOCK = 4096  # queries that are worked on at a time
_CELLS = 2**28  # BM25 scores that are held at a time
_QUERY_TOKENS, _TEXT_TOKENS = 64, 256  # tokens that the teachers read
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

    def epoch(self, seed: int, epoch: int) -> EpochExamples:
        """The queries with their own texts; candidates and targets are not known here."""
        n = len(self.source)
        return EpochExamples(np.arange(n, dtype=np.int32), self.source[:, None], np.ones((n, 1), np.float32))

    def mine(self, data: TrainingSet, teachers: Sequence[Path], device: str, say: Callable[[str], None]) -> Mined:
        """The candidates, found by the teachers and by BM25."""
        of_queries, of_docs = [], []
        for teacher, share in zip(teachers, self.shares, strict=True):
            queries = embed(str(teacher), data.queries, _QUERY_TOKENS, 1024, device)
            docs = embed(str(teacher), data.docs, _TEXT_TOKENS, 512, device)
            say(f"teacher {teacher.name}: {len(queries):,} queries and {len(docs):,} texts read")
            if device.startswith("cuda"):
                queries, docs = queries.half(), docs.half()
            of_queries.append(queries * share)
            of_docs.append(docs)
        queries, docs = torch.cat(of_queries, dim=1), torch.cat(of_docs, dim=1)
        ranked, by_words = top_by_vectors(queries, docs, self.depth), None
        if self.lexical:
            tokenizer = ModelTokenizer(teachers[0])
            texts = tokenizer.ids(data.queries, _QUERY_TOKENS), tokenizer.ids(data.docs, _TEXT_TOKENS)
            by_words = top_by_bm25(*texts, len(tokenizer), device=device), self.lexical
        say(f"mined {ranked.shape[1]} candidates for each of {len(ranked):,} queries")
        return Mined(self.source, ranked, queries, docs, self.top, by_words)


def with_candidates(
    data: TrainingSet, teachers: Sequence[Path], device: str, say: Callable[[str], None]
) -> TrainingSet:
    """Training data with its candidates, where they are yet to be found."""
    if not isinstance(data.sampler, Distillation):
        return data
    return TrainingSet(data.queries, data.docs, data.sampler.mine(data, teachers, device, say))


class SourcedQueries(NamedTuple):
    """Queries, texts, and the text that each query belongs to."""

    queries: Sequence[str]
    docs: Sequence[str]
    source: Numbers


def sourced_queries(
    collections: Sequence[str], cut: Mapping[str, int], without: Sequence[str], limit: int | None
) -> SourcedQueries:
    """The queries of collections that have a relevant text, with the first of these, and queries cut from texts.

    `cut` says from which collections, and how many per text. No query and no text of the collections `without` is
    among them.
    """
    from whyrank.data import open_collection

    texts, found = NumberedTexts(), dict[str, int]()
    held_back = [open_collection(name) for name in without]
    no_queries = {_bare(query) for collection in held_back for query in collection.queries.values()}
    no_texts = {_bare(text) for collection in held_back for text in collection.docs.values()}
    for name in dict.fromkeys([*collections, *cut]):
        collection = open_collection(name)
        own = [text for text in map(_plain, collection.docs.values()) if _bare(text) not in no_texts]
        numbers = texts.numbers(own)
        if name in collections:
            for query_id, judged in collection.qrels.items():
                least = collection.grades.relevant
                good = [d for d, grade in judged.items() if grade >= least and d in collection.docs]
                if good and query_id in collection.queries:
                    query, text = _plain(collection.queries[query_id]), _plain(collection.docs[good[0]])
                    if _bare(query) not in no_queries and _bare(text) not in no_texts:
                        found.setdefault(query, texts.number(text))
        for query, source in cut_queries(own, cut[name]) if name in cut else ():
            if _bare(query) not in no_queries:
                found.setdefault(query, int(numbers[source]))
    if not found:
        raise WhyrankError("data: there is not one query to learn from; name collections, or cut more queries")
    chosen = list(found)[:limit]
    return SourcedQueries(chosen, list(texts.found), np.array([found[query] for query in chosen], np.int32))


def distillation_set(data: Mapping[str, Any]) -> TrainingSet:
    """The queries and texts that the `data` of a recipe with `teachers` describes."""
    given = TaughtData(**data)
    found = sourced_queries(given.collection, given.cut, given.without, given.limit)
    best, next_best, chance = given.candidates
    shares = list(given.teachers.values())
    sampler = Distillation(found.source, shares, (best, next_best, chance), given.depth, given.lexical)
    return TrainingSet(found.queries, found.docs, sampler)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _bare(text: str) -> str:
    return " ".join(_WORDS.findall(text.lower()))


@dataclass(frozen=True, eq=False)
class Mined:
    """Candidates of every query from the teachers' rankings.

    Attributes:
        source: the text that each query belongs to.
        ranked: the teachers' best texts of each query, best first, [queries, depth].
        queries: the teachers' vectors of the queries side by side, times the teachers' shares.
        docs: those of the texts, unweighted; the product of the two is the target, the weighted sum of cosines.
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

    def epoch(self, seed: int, epoch: int) -> EpochExamples:
        """One example per query: the source text first."""
        random = generator(seed, "mined", str(epoch))
        n, depth = self.ranked.shape
        best = min(BEST, depth)
        parts = [(self.ranked[:, :best], self.top[0]), (self.ranked[:, best:], self.top[1])]
        drawn = [_draw(random, *part) for part in [*parts, *([self.lexical] if self.lexical else [])]]
        chance = random.integers(0, len(self.docs), (n, self.top[2]))
        doc = np.concatenate([self.source[:, None], *drawn, chance], axis=1).astype(np.int32)
        query = random.permutation(n).astype(np.int32)
        doc, target = doc[query], np.empty(doc.shape, np.float32)
        for start in range(0, n, _BLOCK):
            rows, device = slice(start, start + _BLOCK), self.docs.device
            some, texts = (torch.from_numpy(numbers[rows].astype(np.int64)).to(device) for numbers in (query, doc))
            products = torch.einsum("nd,nkd->nk", self.queries[some], self.docs[texts])
            target[rows] = products.float().cpu().numpy()
        return EpochExamples(query, doc, target)


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


def top_by_vectors(queries: Tensor, docs: Tensor, depth: int = 60) -> Numbers:
    """The best texts of each query by the product of vectors: [queries, depth], or as many as there are."""
    blocks, depth = [], min(depth, len(docs))
    for start in range(0, len(queries), _BLOCK):
        found = (queries[start : start + _BLOCK] @ docs.T).topk(depth, dim=1).indices
        blocks.append(found.int().cpu().numpy())
    return np.concatenate(blocks)


def _draw(random: np.random.Generator, among: Numbers, size: int) -> Numbers:
    """For each row, `size` different ones of its numbers."""
    size, keys = min(size, among.shape[1]), random.random(among.shape, dtype=np.float32)
    if not size:
        return among[:, :0]
    chosen = np.argpartition(keys, size - 1, axis=1)[:, :size]
    return np.take_along_axis(among, chosen, axis=1)


def top_by_bm25(
    queries: Sequence[Ids], docs: Sequence[Ids], size: int, depth: int = 60, device: str = "cpu",
    k1: float = 0.9, b: float = 0.4,
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The best texts of each query by BM25 over tokens numbered below `size`: [queries, depth], on any device.

    score(q, d) = sum over the distinct tokens t of q of idf(t) tf / (tf + k1 (1 - b + b |d| / avg)), with
    idf(t) = ln(1 + (N - n_t + .5) / (n_t + .5)).
    """
    row, token, sizes = _flat(docs, device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*[Ss]parse")  # torch calls these matrices a beta and unchecked
        ones = torch.ones_like(row, dtype=torch.float32)
        counts = torch.sparse_coo_tensor(torch.stack([row, token]), ones, (len(docs), size)).coalesce()
        (row, token), tf = counts.indices(), counts.values()
        having = torch.bincount(token, minlength=size).float()
        idf = torch.log1p((len(docs) - having + 0.5) / (having + 0.5))
        norm = k1 * (1 - b + b * sizes.float() / sizes.float().mean().clamp(min=1e-9))
        values = idf[token] * tf / (tf + norm[row])
        weights = torch.sparse_coo_tensor(counts.indices(), values, counts.shape, is_coalesced=True).to_sparse_csr()
    blocks, block = [], max(1, _CELLS // max(size, len(docs)))
    with Progress("mining by BM25: queries", len(queries)) as progress:
        for some in (queries[start : start + block] for start in range(0, len(queries), block)):
            row, token, _ = _flat(some, device)
            present = torch.zeros(size, len(some), device=device)
            present[token, row] = 1.0
            found = (weights @ present).topk(min(depth, len(docs)), dim=0).indices.T
            blocks.append(found.int().cpu().numpy())
            progress.step(len(blocks[-1]))
    return np.concatenate(blocks)


def _flat(texts: Sequence[Ids], device: str) -> tuple[Tensor, Tensor, Tensor]:
    """For each token of texts end to end its text and its number, and the sizes of the texts."""
    sizes = torch.tensor([len(text) for text in texts]).to(device)
    tokens = np.concatenate([np.empty(0, np.int32), *texts]).astype(np.int64)
    row = torch.repeat_interleave(torch.arange(len(texts), device=device), sizes)
    return row, torch.from_numpy(tokens).to(device), sizes


# Queries cut from texts, where a corpus has no real ones: runs of content words, as people type them; fragments of a
# sentence as they stand there; and the questions that a text itself asks. Some of the first two get the opening of a
# question.

OPENINGS = (
    "what is", "what is the", "what are", "what are the", "what does", "what causes", "what type of", "how to",
    "how do", "how does", "how many", "how much", "how long", "when is", "when was", "where is", "who is", "who was",
    "why is", "why do", "is", "are", "can", "does", "define", "definition of", "meaning of", "difference between",
    "types of", "cost of", "average", "best",
)  # fmt: skip
_FUNCTION_WORDS = """
a about also an and are as at be been being but by can could did do does for from had has have he her here his how i
if in into is it its may might must my no nor not of on or our shall she should so such than that the their then there
these they this those to was we were what when where which while who whom why will with would you your
"""
_ASKING_WORDS = "are can did do does how is should what when where which who why will"
FUNCTION_WORDS, _ASKING = frozenset(_FUNCTION_WORDS.split()), frozenset(_ASKING_WORDS.split())
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUERY_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_SHORTEST, _LONGEST = 3, 16  # words of a question
_SENTENCE_SIZE = 20  # characters that a sentence has at least
_OPENED = 0.35  # the share of cuts that get a question's opening


class KeywordQuery(NamedTuple):
    """A query and the number of the text that it was cut from."""

    text: str
    source: int


def cut_queries(texts: Sequence[str], per_text: int, seed: int = 0) -> list[KeywordQuery]:
    """Up to `per_text` cuts of each text, about a third of them with a question's opening, and its own questions.

    A query belongs to the first text that gives it. The same texts and seed give the same queries.
    """
    random = generator(seed, "keywords")
    found: dict[str, KeywordQuery] = {}
    for source, text in enumerate(texts):
        for query in _queries(text, per_text, random):
            found.setdefault(query, KeywordQuery(query, source))
    return list(found.values())


def _queries(text: str, per_text: int, random: np.random.Generator) -> Iterator[str]:
    sentences = [sentence for sentence in _SENTENCE.split(text) if len(sentence) > _SENTENCE_SIZE]
    for asked in (_QUERY_WORD.findall(s.lower()) for s in sentences if s.endswith("?")):  # from its question word on
        start = next((i for i, word in enumerate(asked) if word in _ASKING), len(asked))
        if _SHORTEST <= len(asked) - start <= _LONGEST:
            yield " ".join(asked[start:])
    for i in range(per_text if sentences else 0):
        words = [word.lower() for word in _QUERY_WORD.findall(sentences[random.integers(len(sentences))])]
        if i % 2:  # 2 to 6 consecutive content words
            cut = _run([word for word in words if word not in FUNCTION_WORDS], 2, 6, random)
        else:  # 2 to 9 consecutive words, without function words at either end
            run = _run(words, 2, 9, random).split()
            inside = [j for j, word in enumerate(run) if word not in FUNCTION_WORDS]
            cut = " ".join(run[inside[0] : inside[-1] + 1]) if len(inside) > 1 else ""
        if cut:
            yield f"{random.choice(OPENINGS)} {cut}" if random.random() < _OPENED else cut


def _run(words: Sequence[str], least: int, most: int, random: np.random.Generator) -> str:
    size = int(random.integers(least, most + 1))
    start = int(random.integers(0, max(1, len(words) - size + 1)))
    return " ".join(words[start : start + size]) if len(words) >= least else ""
