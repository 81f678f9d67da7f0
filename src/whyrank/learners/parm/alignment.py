"""How the tokens of a query and of a text belong together: one block [query tokens, text tokens] for each pair.

`attention`: the mean over layers and heads of the attention weights between query tokens and text tokens, both ways.
`embeddings`: the products of the last hidden states of both, each read alone; for a bi-encoder that takes means these
are the shares of its score. Where the reader has another tokenizer than the network, words carry the values.
`occlusion`, for any ranker: value(a, w) = score("a", text) - score("a", text without all its w), for every word a of
the query and w of the text, as the network's tokens spell them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import Progress, WhyrankError
from whyrank.networks import (
    Encoder,
    Ids,
    ModelTokenizer,
    ParmNetwork,
    is_network,
    load,
    load_encoder,
    padded,
    pair_arrays,
    read_config,
    single_arrays,
    tensors,
)
from whyrank.training import NumberedTexts

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.scoring import Engine

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
INSIDE, OPENING = "##", ("Ġ", "▁")  # how tokenizers mark tokens inside words, or tokens that open words
_READ_TOGETHER = ("bert", "electra")  # model types that read a pair as [CLS] query [SEP] text [SEP]
_PAIRS = {"cpu": 32, "cuda": 256}  # that are read at a time
_TEXTS = {"cpu": 64, "cuda": 1024}
_WORD_TOKENS = 16  # of a word, so many tokens of another tokenizer at most


def continues_word(tokenizer: ModelTokenizer) -> Flags:
    """Of every token of a vocabulary: whether it continues a word."""
    names = tokenizer.spell(range(len(tokenizer)))
    if any(name.startswith(INSIDE) for name in names):
        return np.array([name.startswith(INSIDE) for name in names])
    if any(name.startswith(OPENING) for name in names):
        return np.array([not name.startswith(OPENING) for name in names])
    return np.zeros(len(names), np.bool_)


@dataclass(frozen=True, eq=False)
class TokenTexts:
    """Texts as a matrix of tokens."""

    ids: Numbers  # [texts, longest], 0 where a text is over
    sizes: Numbers  # tokens of each text
    opens: Flags  # whether a token is the first of a word; the first of a text always is

    @classmethod
    def of(cls, texts: Sequence[Ids], continues: Flags) -> TokenTexts:
        """The matrix of some texts; `continues` says which tokens continue words."""
        ids, sizes = padded(texts, 0), np.array([len(text) for text in texts], np.int64)
        opens = ~continues[ids] & (np.arange(ids.shape[1]) < sizes[:, None])
        opens[:, 0] = sizes > 0
        return cls(ids, sizes, opens)

    @cached_property
    def words(self) -> Numbers:
        """The number of the word that each token belongs to; the number of columns where a text is over."""
        found = np.cumsum(self.opens, axis=1) - 1
        return np.where(np.arange(self.ids.shape[1]) < self.sizes[:, None], found, self.ids.shape[1])

    @cached_property
    def word_counts(self) -> Numbers:
        """How many words each text has."""
        found: Numbers = self.opens.sum(axis=1)
        return found

    def spell(self, tokenizer: ModelTokenizer) -> list[list[str]]:
        """The words of each text, as their tokens spell them."""
        names = [
            name.removeprefix(INSIDE).lstrip("".join(OPENING)) for name in tokenizer.spell(range(len(tokenizer)))
        ]
        texts: list[list[str]] = []
        for row, size, opens in zip(self.ids.tolist(), self.sizes.tolist(), self.opens.tolist(), strict=True):
            words: list[str] = []
            for token, is_first in zip(row[:size], opens, strict=False):
                if is_first:
                    words.append(names[token])
                else:
                    words[-1] += names[token]
            texts.append(words)
        return texts


def token_texts(network: ParmNetwork, queries: Sequence[str], docs: Sequence[str]) -> tuple[TokenTexts, TokenTexts]:
    """The tokens of queries and texts, and where words begin in them."""
    continues = continues_word(network.tokenizer)
    return TokenTexts.of(network.query_ids(queries), continues), TokenTexts.of(network.doc_ids(docs), continues)


class ReaderTexts(NamedTuple):
    """Texts as the tokens of a reader, and the word of each; `words` is None where its tokens are the network's."""

    ids: list[Ids]
    words: Numbers | None  # [texts, longest]; the number of columns of `own` where a text is over
    own: TokenTexts


class AligningEncoder(NamedTuple):
    """An encoder that aligns, its tokenizer, and how many tokens of a query and of a text it reads."""

    encoder: Encoder
    tokenizer: ModelTokenizer
    max_query: int
    max_doc: int

    @classmethod
    def of(cls, folder: Path, max_query: int, max_doc: int) -> AligningEncoder:
        """The encoder of a network or of any model folder."""
        if is_network(folder):
            network = load(folder)
            return cls(network.encoder, network.tokenizer, network.max_query, network.max_doc)
        encoder = load_encoder(folder)
        return cls(encoder, ModelTokenizer(folder), max_query, min(max_doc, encoder.max_positions - max_query - 3))

    def texts(self, texts: TokenTexts, own: ModelTokenizer, longest: int) -> ReaderTexts:
        """Texts of the network's tokens as at most `longest` tokens of the reader."""
        if own.content == self.tokenizer.content:
            sizes = np.minimum(texts.sizes, longest).tolist()
            rows = [row[:size].astype(np.int32) for row, size in zip(texts.ids, sizes, strict=True)]
            return ReaderTexts(rows, None, texts)
        spelled, blank = texts.spell(own), texts.ids.shape[1]
        distinct = list(dict.fromkeys(word for words in spelled for word in words))
        spaced = any(name.startswith(OPENING) for name in self.tokenizer.spell(range(len(self.tokenizer))))
        read = self.tokenizer.ids([" " + word if spaced else word for word in distinct], _WORD_TOKENS)
        known = dict(zip(distinct, read, strict=True))
        ids, numbers = [], []
        for words in spelled:
            tokens = [known[word] for word in words]
            ids.append(np.concatenate([np.empty(0, np.int32), *tokens])[:longest].astype(np.int32))
            numbers.append(
                np.repeat(np.arange(len(tokens), dtype=np.int32), [len(each) for each in tokens])[:longest]
            )
        return ReaderTexts(ids, np.minimum(padded(numbers, blank), blank), texts)

    def attention(self, queries: ReaderTexts, docs: ReaderTexts, query: Numbers, doc: Numbers, device: str) -> Tensor:
        """Blocks of the pairs (query[i], doc[i]) from attention."""
        model = self.encoder.to(device).eval().model
        model.set_attn_implementation("eager")  # the others keep no attention weights

        def read(rows: Numbers) -> Tensor:
            query_tokens, doc_tokens = [queries.ids[i] for i in query[rows]], [docs.ids[i] for i in doc[rows]]
            batch = tensors(pair_arrays(query_tokens, doc_tokens, self.tokenizer.special), device)
            types = {"token_type_ids": batch["types"]} if self.encoder.typed else {}
            found = model(input_ids=batch["ids"], attention_mask=batch["mask"], output_attentions=True, **types)
            mean = torch.stack([layer.float().mean(dim=1) for layer in found.attentions]).mean(dim=0)
            return _between(mean, query_tokens, doc_tokens)

        sizes = np.array([len(queries.ids[i]) + len(docs.ids[j]) for i, j in zip(query, doc, strict=True)])
        return _blocks(read, queries, docs, query, doc, np.argsort(sizes, kind="stable"), device, "attention")

    def embeddings(
        self, queries: ReaderTexts, docs: ReaderTexts, query: Numbers, doc: Numbers, device: str
    ) -> Tensor:
        """Blocks of the pairs (query[i], doc[i]) from the products of hidden states."""
        query_states, doc_states = (self._states(texts.ids, device) for texts in (queries, docs))

        def read(rows: Numbers) -> Tensor:
            both = query_states[_on(query[rows], device)], doc_states[_on(doc[rows], device)]
            return torch.einsum("nad,njd->naj", *both).float()

        return _blocks(read, queries, docs, query, doc, np.arange(len(query)), device, "embeddings")

    def _states(self, texts: Sequence[Ids], device: str) -> Tensor:
        """The last hidden states of the tokens of each text: [texts, tokens, width], zero where a text is over."""
        kind = device.split(":", maxsplit=1)[0]
        encoder, most, size = self.encoder.to(device).eval(), max(1, *map(len, texts)), _TEXTS.get(kind, 64)
        kept_as = torch.float16 if kind == "cuda" else torch.float32
        found = torch.zeros(len(texts), most, encoder.width, device=device, dtype=kept_as)
        order = np.argsort([len(text) for text in texts], kind="stable")
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                batch = tensors(single_arrays([texts[i] for i in rows], self.tokenizer.special), device)
                states = (encoder.last(batch) * batch["mask"].unsqueeze(-1))[:, 1:]
                sizes = torch.tensor([len(texts[i]) for i in rows], device=device)
                real = torch.arange(states.shape[1], device=device) < sizes[:, None]
                kept = torch.where(real[..., None], states, 0.0)[:, :most]
                found[_on(rows, device), : kept.shape[1]] = kept.to(found.dtype)
        return found


def attends(folder: Path) -> bool:
    """Whether a cross-encoder has attention between query and text that can be read; its weights are not loaded."""
    from whyrank.rankers.neural import config_of

    config = read_config(folder)["encoder"] if is_network(folder) else config_of(folder)
    return config.get("model_type") in _READ_TOGETHER


def reader_blocks(
    folder: Path, method: str, network: ParmNetwork, texts: tuple[TokenTexts, TokenTexts],
    candidates: npt.NDArray[np.int32], device: str,
) -> Tensor:  # fmt: skip
    """Blocks of all queries and candidates by the `attention` or the `embeddings` of the model in a folder."""
    reader = AligningEncoder.of(folder, network.max_query, network.max_doc)
    queries = reader.texts(texts[0], network.tokenizer, reader.max_query)
    docs = reader.texts(texts[1], network.tokenizer, reader.max_doc)
    query, doc = np.repeat(np.arange(len(candidates)), candidates.shape[1]), candidates.reshape(-1).astype(np.int64)
    return (reader.attention if method == "attention" else reader.embeddings)(queries, docs, query, doc, device)


def _between(weights: Tensor, queries: Sequence[Ids], docs: Sequence[Ids]) -> Tensor:
    """The mean of the attention weights between query tokens and text tokens, both ways; 0 where there are none.

    In [CLS] query [SEP] text [SEP] the query begins at position 1 and the text two positions behind the query's end.
    """
    n, device = len(queries), weights.device
    sizes = [torch.tensor([len(row) for row in rows], device=device) for rows in (queries, docs)]
    rows, columns = (torch.arange(max(1, int(size.max())), device=device) for size in sizes)
    at_query = (1 + rows).expand(n, -1).clamp(max=weights.shape[1] - 1)[:, :, None]
    at_doc = (2 + sizes[0][:, None] + columns).clamp(max=weights.shape[1] - 1)[:, None]
    batch = torch.arange(n, device=device)[:, None, None]
    both = weights[batch, at_query, at_doc] + weights[batch, at_doc, at_query]
    real = (rows < sizes[0][:, None])[:, :, None] & (columns < sizes[1][:, None])[:, None]
    return torch.where(real, both / 2, 0.0)


def _blocks(
    read: Callable[[Numbers], Tensor], queries: ReaderTexts, docs: ReaderTexts, query: Numbers, doc: Numbers,
    order: Numbers, device: str, method: str,
) -> Tensor:  # fmt: skip
    """All blocks at the network's tokens: [pairs, query tokens, text tokens], in half precision on a GPU."""
    kind = device.split(":", maxsplit=1)[0]
    size, shape = _PAIRS.get(kind, 32), (len(query), queries.own.ids.shape[1], docs.own.ids.shape[1])
    found = torch.zeros(shape, device=device, dtype=torch.float16 if kind == "cuda" else torch.float32)
    half = torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda")
    with torch.inference_mode(), half, Progress(f"aligning by {method}: pairs", len(query)) as progress:
        for start in range(0, len(query), size):
            rows = order[start : start + size]
            block = read(rows)
            if queries.words is not None and docs.words is not None:
                words = queries.words[query[rows], : block.shape[1]], docs.words[doc[rows], : block.shape[2]]
                own = queries.own.words[query[rows]], docs.own.words[doc[rows]]
                block = _by_words(block, *(_on(each, device) for each in (*words, *own)))
            a, j = min(shape[1], block.shape[1]), min(shape[2], block.shape[2])
            found[_on(rows, device), :a, :j] = block[:, :a, :j].to(found.dtype)
            progress.step(len(rows))
    return found


def _by_words(block: Tensor, query_words: Tensor, doc_words: Tensor, at_query: Tensor, at_doc: Tensor) -> Tensor:
    """A block of the reader's tokens at the network's: a word of the text has the highest value of its tokens, a word
    of the query the mean, and all its tokens at the network get it.

    `query_words` and `doc_words` have the word of each of the reader's tokens, `at_query` and `at_doc` that of each
    of the network's.
    """
    n, most_query, most_doc = len(block), at_query.shape[1], at_doc.shape[1]
    found = block.new_full((n, block.shape[1], most_doc + 1), -torch.inf, dtype=torch.float32)
    found = found.scatter_reduce(2, doc_words[:, None].expand(block.shape), block.float(), "amax")
    found = torch.where(found.isfinite(), found, 0.0)
    blank = block.new_zeros((n, most_query + 1, most_doc + 1), dtype=torch.float32)
    found = blank.scatter_reduce(1, query_words[:, :, None].expand(found.shape), found, "mean", include_self=False)
    found[:, most_query], found[:, :, most_doc] = 0.0, 0.0
    found = found.gather(1, at_query[:, :, None].expand(n, most_query, most_doc + 1))
    return found.gather(2, at_doc[:, None].expand(n, most_query, most_doc))


def _on(array: npt.NDArray[Any], device: str | torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


class Occlusion(NamedTuple):
    """Alignments that were found by leaving words out: values of the words of query and text, pair after pair.

    `ends` holds 0 and the end of each pair in `values`, in the order of the matrix of candidates.
    """

    values: npt.NDArray[np.float32]
    ends: Numbers


def occlusion(
    target: Ranker, engine: Engine, tokenizer: ModelTokenizer, queries: TokenTexts, docs: TokenTexts,
    candidates: npt.NDArray[np.int32],
) -> Occlusion:  # fmt: skip
    """The alignments of all queries and candidates."""
    from whyrank.scoring import one_line

    query_words, doc_words = queries.spell(tokenizer), docs.spell(tokenizer)
    words, texts, rows = NumberedTexts(), NumberedTexts(), []
    for q, several in enumerate(candidates):
        for d in several.tolist():
            own = doc_words[d]
            without = {word: texts.number(" ".join(w for w in own if w != word)) for word in dict.fromkeys(own)}
            whole = texts.number(" ".join(own))
            rows.append((words.numbers(query_words[q]), np.array([whole, *(without[w] for w in own)], np.int32)))
    query = np.concatenate([np.repeat(a, len(t)) for a, t in rows])
    text = np.concatenate([np.tile(t, len(a)) for a, t in rows])
    scores = engine.score(target, list(words.found), list(texts.found), query, text)
    if scores.failures:
        failed = f"{len(scores.failures):,} shortened texts ({one_line(scores.failures[0].reason)})"
        raise WhyrankError(f"alignment: the target {target.name!r} has no finite score for {failed}; mend it")
    found, start = [], 0
    for a, t in rows:
        grid = scores.values[start : start + len(a) * len(t)].reshape(len(a), len(t))
        found.append((grid[:, :1] - grid[:, 1:]).astype(np.float32).ravel())
        start += grid.size
    ends = np.concatenate([[0], np.cumsum([len(values) for values in found])]).astype(np.int64)
    return Occlusion(np.concatenate(found), ends)


def occlusion_blocks(
    given: Occlusion, queries: TokenTexts, docs: TokenTexts, candidates: npt.NDArray[np.int32], device: str
) -> Tensor:
    """Blocks of all queries and candidates: a token has the value of its word."""
    query, doc = np.repeat(np.arange(len(candidates)), candidates.shape[1]), candidates.reshape(-1)
    found = np.zeros((len(query), queries.ids.shape[1], docs.ids.shape[1]), np.float32)
    for number, (q, d) in enumerate(zip(query.tolist(), doc.tolist(), strict=True)):
        rows, columns = queries.sizes[q], docs.sizes[d]
        words = given.values[given.ends[number] : given.ends[number + 1]]
        words = words.reshape(queries.word_counts[q], docs.word_counts[d])
        found[number, :rows, :columns] = words[queries.words[q, :rows, None], docs.words[d, None, :columns]]
    return torch.from_numpy(found).to(device)
