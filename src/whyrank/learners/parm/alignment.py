"""How the tokens of a query and of a text belong together: one block [query tokens, text tokens] for each pair.

`attention`: the mean over layers and heads of the attention weights between query tokens and text tokens, both ways.
`embeddings`: the products of the last hidden states of both, each read alone; for a bi-encoder that takes means these
are the shares of its score. Where the reader has another tokenizer than the network, words carry the values.
`occlusion`, for any ranker: value(a, w) = score("a", text) - score("a", text without all its w), for every word a of
the query and w of the text, as the network's tokens spell them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import Progress, WhyrankError
from whyrank.learners.parm.texts import Numbers, Spelling, TokenTexts
from whyrank.networks import (
    Encoder,
    Ids,
    ModelTokenizer,
    is_network,
    load,
    load_encoder,
    pair_arrays,
    read_config,
    single_arrays,
    tensors,
)
from whyrank.rankers.neural import config_of
from whyrank.training import Texts

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.scoring import Engine

_READ_TOGETHER = ("bert", "electra")  # model types that read a pair as [CLS] query [SEP] text [SEP]
_PAIRS = {"cpu": 32, "cuda": 256}  # that are read at a time
_TEXTS = {"cpu": 64, "cuda": 1024}


class Reader(NamedTuple):
    """Who aligns: an encoder with its tokenizer, and how much of a query and of a text it reads."""

    encoder: Encoder
    tokenizer: ModelTokenizer
    max_query: int
    max_doc: int


class Side(NamedTuple):
    """Texts as the reader reads them; `words` is None where its tokens are those of the network."""

    ids: list[Ids]
    words: list[Numbers] | None
    own: TokenTexts


def reader_of(folder: Path, max_query: int, max_doc: int) -> Reader:
    """The encoder of a network or of any model folder as one that aligns."""
    if is_network(folder):
        network = load(folder)
        return Reader(network.encoder, network.tokenizer, network.max_query, network.max_doc)
    encoder = load_encoder(folder)
    return Reader(encoder, ModelTokenizer(folder), max_query, min(max_doc, encoder.max_positions - max_query - 3))


def attends(folder: Path) -> bool:
    """Whether a cross-encoder has attention between query and text that can be read; its weights are not loaded."""
    config = read_config(folder)["encoder"] if is_network(folder) else config_of(folder)
    return config.get("model_type") in _READ_TOGETHER


def side(texts: TokenTexts, own: ModelTokenizer, reader: Reader, most: int) -> Side:
    """Texts of the network's tokens for a reader."""
    if own.content == reader.tokenizer.content:
        return Side([row[: min(size, most)].astype(np.int32) for row, size in zip(
            texts.ids, texts.sizes.tolist(), strict=True)], None, texts)  # fmt: skip
    ids, words = Spelling(reader.tokenizer).read(texts.spelled(own), most)
    return Side(ids, words, texts)


def attention_blocks(reader: Reader, queries: Side, docs: Side, query: Numbers, doc: Numbers, device: str) -> Tensor:
    """Blocks of the pairs (query[i], doc[i]) from attention."""
    model = reader.encoder.to(device).eval().model
    model.set_attn_implementation("eager")  # the others keep no attention weights

    def read(rows: Numbers) -> Tensor:
        asked, told = [queries.ids[i] for i in query[rows]], [docs.ids[i] for i in doc[rows]]
        batch = tensors(pair_arrays(asked, told, reader.tokenizer.special), device)
        types = {"token_type_ids": batch["types"]} if reader.encoder.typed else {}
        found = model(input_ids=batch["ids"], attention_mask=batch["mask"], output_attentions=True, **types)
        mean = torch.stack([layer.float().mean(dim=1) for layer in found.attentions]).mean(dim=0)
        return _between(mean, asked, told)

    sizes = np.array([len(queries.ids[i]) + len(docs.ids[j]) for i, j in zip(query, doc, strict=True)])
    return _blocks(read, queries, docs, query, doc, np.argsort(sizes, kind="stable"), device, "attention")


def embedding_blocks(reader: Reader, queries: Side, docs: Side, query: Numbers, doc: Numbers, device: str) -> Tensor:
    """Blocks of the pairs (query[i], doc[i]) from the products of hidden states."""
    asked, told = (_states(reader, texts, device) for texts in (queries.ids, docs.ids))

    def read(rows: Numbers) -> Tensor:
        one, two = asked[_on(query[rows], device)], told[_on(doc[rows], device)]
        return torch.einsum("nad,njd->naj", one, two).float()

    return _blocks(read, queries, docs, query, doc, np.arange(len(query)), device, "embeddings")


def _between(weights: Tensor, asked: Sequence[Ids], told: Sequence[Ids]) -> Tensor:
    """The mean of the attention weights between query tokens and text tokens, both ways; 0 where there are none.

    In [CLS] query [SEP] text [SEP] the query begins at position 1 and the text two positions behind the query's end.
    """
    n, device = len(asked), weights.device
    sizes = [torch.tensor([len(row) for row in rows], device=device) for rows in (asked, told)]
    rows, columns = (torch.arange(max(1, int(size.max())), device=device) for size in sizes)
    at_query = (1 + rows).expand(n, -1).clamp(max=weights.shape[1] - 1)
    at_doc = (2 + sizes[0][:, None] + columns).clamp(max=weights.shape[1] - 1)
    batch = torch.arange(n, device=device)[:, None, None]
    there, back = (
        weights[batch, at_query[:, :, None], at_doc[:, None]],
        weights[batch, at_doc[:, None], at_query[:, :, None]],
    )
    real = (rows < sizes[0][:, None])[:, :, None] & (columns < sizes[1][:, None])[:, None]
    return torch.where(real, (there + back) / 2, 0.0)


def _blocks(
    read: Callable[[Numbers], Tensor], queries: Side, docs: Side, query: Numbers, doc: Numbers, order: Numbers,
    device: str, what: str,
) -> Tensor:  # fmt: skip
    """All blocks at the network's tokens: [pairs, query tokens, text tokens], in half precision on a GPU."""
    kind = device.split(":", maxsplit=1)[0]
    shape = (len(query), queries.own.ids.shape[1], docs.own.ids.shape[1])
    found = torch.zeros(shape, device=device, dtype=torch.float16 if kind == "cuda" else torch.float32)
    half = torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda")
    with torch.inference_mode(), half, Progress(f"aligning by {what}: pairs", len(query)) as progress:
        for start in range(0, len(query), _PAIRS.get(kind, 32)):
            rows = order[start : start + _PAIRS.get(kind, 32)]
            block = read(rows)
            if queries.words is not None and docs.words is not None:
                block = _carried(block, queries, docs, query[rows], doc[rows])
            a, j = min(shape[1], block.shape[1]), min(shape[2], block.shape[2])
            found[_on(rows, device), :a, :j] = block[:, :a, :j].to(found.dtype)
            progress.step(len(rows))
    return found


def _carried(block: Tensor, queries: Side, docs: Side, query: Numbers, doc: Numbers) -> Tensor:
    """A block of the reader's tokens at the network's: a word of the text has the highest value of its tokens, a word
    of the query the mean, and all its tokens at the network get it.
    """
    assert queries.words is not None
    assert docs.words is not None
    n, device = len(query), block.device
    most_query, most_doc = queries.own.ids.shape[1], docs.own.ids.shape[1]
    from_doc = _padded_words([docs.words[i] for i in doc], block.shape[2], most_doc, device)
    found = torch.full((n, block.shape[1], most_doc + 1), -torch.inf, device=device)
    found = found.scatter_reduce(2, from_doc[:, None].expand(block.shape), block.float(), "amax")
    found = torch.where(found.isfinite(), found, 0.0)
    from_query = _padded_words([queries.words[i] for i in query], block.shape[1], most_query, device)
    blank = torch.zeros((n, most_query + 1, most_doc + 1), device=device)
    found = blank.scatter_reduce(1, from_query[:, :, None].expand(found.shape), found, "mean", include_self=False)
    at_query = _on(queries.own.words[query], device)[:, :, None].expand(n, most_query, most_doc + 1)
    at_doc = _on(docs.own.words[doc], device)[:, None].expand(n, most_query, most_doc)
    found[:, most_query], found[:, :, most_doc] = 0.0, 0.0
    return found.gather(1, at_query).gather(2, at_doc)


def _padded_words(words: Sequence[Numbers], columns: int, blank: int, device: str | torch.device) -> Tensor:
    found = np.full((len(words), columns), blank, np.int64)
    for row, own in zip(found, words, strict=True):
        row[: len(own)] = np.minimum(own[:columns], blank)
    return _on(found, device)


def _states(reader: Reader, texts: Sequence[Ids], device: str) -> Tensor:
    """The last hidden states of the tokens of each text: [texts, tokens, width], zero where a text is over."""
    kind = device.split(":", maxsplit=1)[0]
    encoder, most = reader.encoder.to(device).eval(), max(1, *map(len, texts))
    found = torch.zeros(
        len(texts), most, encoder.width, device=device, dtype=torch.float16 if kind == "cuda" else torch.float32
    )
    order = np.argsort([len(text) for text in texts], kind="stable")
    half = torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda")
    with torch.inference_mode(), half:
        for start in range(0, len(order), _TEXTS.get(kind, 64)):
            rows = order[start : start + _TEXTS.get(kind, 64)]
            batch = tensors(single_arrays([texts[i] for i in rows], reader.tokenizer.special), device)
            states = (encoder.last(batch) * batch["mask"].unsqueeze(-1))[:, 1:]
            sizes = torch.tensor([len(texts[i]) for i in rows], device=device)
            real = torch.arange(states.shape[1], device=device) < sizes[:, None]
            kept = torch.where(real[..., None], states, 0.0)[:, :most]
            found[_on(rows, device), : kept.shape[1]] = kept.to(found.dtype)
    return found


def _on(array: npt.NDArray[Any], device: str | torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


class Occlusion(NamedTuple):
    """Alignments that were found by leaving words out: values of the words of query and text, pair after pair.

    `ends` holds 0 and the end of each pair in `values`, in the order of the table of candidates.
    """

    values: npt.NDArray[np.float32]
    ends: npt.NDArray[np.int64]


def occlusion(
    target: Ranker,
    engine: Engine,
    tokenizer: ModelTokenizer,
    queries: TokenTexts,
    docs: TokenTexts,
    doc: npt.NDArray[np.int32],
) -> Occlusion:
    """The alignments of all queries and candidates."""
    asked, told = queries.spelled(tokenizer), docs.spelled(tokenizer)
    words, texts, rows = Texts(), Texts(), []
    for q, several in enumerate(doc):
        for d in several.tolist():
            less = {word: " ".join(other for other in told[d] if other != word) for word in dict.fromkeys(told[d])}
            known = {word: texts.number(text) for word, text in less.items()}
            whole = texts.number(" ".join(told[d]))
            rows.append((words.numbers(asked[q]), np.array([whole, *(known[w] for w in told[d])], np.int32)))
    query = np.concatenate([np.repeat(a, len(t)) for a, t in rows])
    text = np.concatenate([np.tile(t, len(a)) for a, t in rows])
    scores = engine.score(target, list(words.found), list(texts.found), query, text)
    if scores.failures:
        from whyrank.scoring import one_line

        reason = one_line(scores.failures[0].reason)
        failed = f"{len(scores.failures):,} shortened texts ({reason})"
        raise WhyrankError(f"alignment: the target {target.name!r} has no finite score for {failed}; mend it")
    found, start = [], 0
    for a, t in rows:
        grid = scores.values[start : start + len(a) * len(t)].reshape(len(a), len(t))
        found.append((grid[:, :1] - grid[:, 1:]).astype(np.float32).ravel())
        start += grid.size
    ends = np.concatenate([[0], np.cumsum([len(values) for values in found])]).astype(np.int64)
    return Occlusion(np.concatenate(found), ends)


def occlusion_blocks(
    given: Occlusion, queries: TokenTexts, docs: TokenTexts, doc: npt.NDArray[np.int32], device: str
) -> Tensor:
    """Blocks of all queries and candidates: a token has the value of its word."""
    query, flat = np.repeat(np.arange(len(doc)), doc.shape[1]), doc.reshape(-1)
    found = np.zeros((len(query), queries.ids.shape[1], docs.ids.shape[1]), np.float32)
    asked, told = queries.words, docs.words
    for number, (q, d) in enumerate(zip(query.tolist(), flat.tolist(), strict=True)):
        rows, columns = queries.sizes[q], docs.sizes[d]
        size = int(queries.opens[q].sum()), int(docs.opens[d].sum())
        words = given.values[given.ends[number] : given.ends[number + 1]].reshape(size)
        found[number, :rows, :columns] = words[asked[q, :rows, None], told[d, None, :columns]]
    return torch.from_numpy(found).to(device)
