"""Texts of tokens as matrices on a device, with the words that their tokens make up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.networks import Ids, ModelTokenizer, ParmNetwork, padded

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
INSIDE, OPENING = "##", ("Ġ", "▁")  # how tokenizers mark tokens inside words, or tokens that open words


def continuing(tokenizer: ModelTokenizer) -> Flags:
    """Of every token of a vocabulary: whether it continues a word."""
    names = tokenizer.spell(range(len(tokenizer)))
    if any(name.startswith(INSIDE) for name in names):
        return np.array([name.startswith(INSIDE) for name in names])
    if any(name.startswith(OPENING) for name in names):
        return np.array([not name.startswith(OPENING) for name in names])
    return np.zeros(len(names), np.bool_)


class TokenTexts(NamedTuple):
    """Texts as a matrix of tokens.

    Attributes:
        ids: [texts, longest], 0 where a text is over.
        sizes: tokens of each text.
        opens: whether a token is the first of a word; the first of a text always is.
    """

    ids: Numbers
    sizes: Numbers
    opens: Flags

    @classmethod
    def of(cls, texts: Sequence[Ids], inside: Flags) -> TokenTexts:
        """The matrix of some texts; `inside` says which tokens continue words."""
        ids, sizes = padded(texts, 0), np.array([len(text) for text in texts], np.int64)
        opens = ~inside[ids] & (np.arange(ids.shape[1]) < sizes[:, None])
        opens[:, 0] = sizes > 0
        return cls(ids, sizes, opens)

    @property
    def words(self) -> Numbers:
        """The number of the word that each token belongs to; the number of columns where a text is over."""
        found = np.cumsum(self.opens, axis=1) - 1
        return np.where(np.arange(self.ids.shape[1]) < self.sizes[:, None], found, self.ids.shape[1])

    def spelled(self, tokenizer: ModelTokenizer) -> list[list[str]]:
        """The words of each text, as their tokens spell them."""
        names = np.array([name.removeprefix(INSIDE).lstrip("".join(OPENING)) for name in tokenizer.spell(
            range(len(tokenizer)))], dtype=object)  # fmt: skip
        return [_joined(names[row[:size]].tolist(), opens[:size].tolist())
                for row, size, opens in zip(self.ids, self.sizes.tolist(), self.opens, strict=True)]  # fmt: skip

    def on(self, device: str) -> Placed:
        """The same as tensors on a device."""
        return Placed(*(torch.from_numpy(np.ascontiguousarray(array)).to(device)
                        for array in (self.ids, self.sizes, self.words, self.opens.sum(axis=1))))  # fmt: skip


def token_texts(network: ParmNetwork, queries: Sequence[str], docs: Sequence[str]) -> tuple[TokenTexts, TokenTexts]:
    """The tokens of queries and texts, and where words begin in them."""
    inside = continuing(network.tokenizer)
    return TokenTexts.of(network.query_ids(queries), inside), TokenTexts.of(network.doc_ids(docs), inside)


class Placed(NamedTuple):
    """`TokenTexts` on a device: tokens, sizes, the word of each token, and how many words a text has."""

    ids: Tensor
    sizes: Tensor
    words: Tensor
    counts: Tensor


class Spelling:
    """Words of one tokenizer as tokens of another, each distinct word read once."""

    def __init__(self, tokenizer: ModelTokenizer, most: int = 16) -> None:
        """Take the other tokenizer; of a word, `most` tokens are read."""
        self.tokenizer, self.most = tokenizer, most

    def read(self, texts: Sequence[Sequence[str]], longest: int) -> tuple[list[Ids], list[Numbers]]:
        """The tokens of each text, and the word that each belongs to; at most `longest` tokens."""
        distinct = list(dict.fromkeys(word for words in texts for word in words))
        prefix = " " if self._spaced else ""
        known = dict(zip(distinct, self.tokenizer.ids([prefix + word for word in distinct], self.most), strict=True))
        found, places = [], []
        for words in texts:
            parts = [known[word] for word in words]
            number = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int64)
            found.append(np.concatenate([np.empty(0, np.int32), *parts])[:longest].astype(np.int32))
            places.append(number[:longest])
        return found, places

    @cached_property
    def _spaced(self) -> bool:
        return any(name.startswith(OPENING) for name in self.tokenizer.spell(range(len(self.tokenizer))))


def _joined(tokenizer: Sequence[str], opens: Sequence[bool]) -> list[str]:
    words: list[str] = []
    for piece, opening in zip(tokenizer, opens, strict=True):
        if opening:
            words.append(piece)
        else:
            words[-1] += piece
    return words
