"""Texts as token numbers, and batches of them as padded arrays, put together in numpy."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, MissingExtra

Ids = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[Any]]
CHARACTERS_PER_TOKEN = 24  # of a very long text, only so much is tokenised as can matter
_SPECIAL = {
    "cls": ("[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>", "</s>"),
    "sep": ("[SEP]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"),
    "pad": ("[PAD]", "<pad>", "<|end_of_text|>", "<|endoftext|>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
_REMEDY = "give a model folder with a tokenizer.json"
_WORDS = "whyrank words"  # the kind of a tokenizer.json that is a list of words
_WORD = re.compile(r"[^\W_]+")


class ModelTokenizer:
    """The tokens of a model's own tokenizer (tokenizer.json), without special tokens, and the numbers of these."""

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        """Read the tokenizer.json of a model folder, unless its `content` is given."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtra("a neural ranker", "models") from None
        self.path = Path(path)
        file = self.path / "tokenizer.json" if self.path.is_dir() else self.path
        try:
            self.content = file.read_bytes() if content is None else content
        except OSError as error:
            raise BadInput(file, f"cannot be read ({error.strerror})", _REMEDY) from None
        try:  # without the truncation and padding that the file may carry
            plain = {**json.loads(self.content), "truncation": None, "padding": None}
            self._tokenizer: Any = Tokenizer.from_str(json.dumps(plain))
        except Exception as error:  # the package raises bare exceptions for anything wrong with the file
            raise BadInput(self.path, f"has no tokenizer that can be loaded ({error})", _REMEDY) from None

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first `most` tokens of each text."""
        cut = (text[: most * CHARACTERS_PER_TOKEN] for text in texts)
        valid = [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in cut]
        found = self._tokenizer.encode_batch_fast(
            valid, add_special_tokens=False
        )  # which refuses half surrogate pairs
        return [np.array(encoding.ids[:most], dtype=np.int32) for encoding in found]

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @cached_property
    def special(self) -> dict[str, int]:
        """Numbers of the special tokens: cls, sep, pad and mask, or of what a tokenizer without these has instead."""
        found = {name: self.numbers(spellings) for name, spellings in _SPECIAL.items()}
        return _Special(self.path, {name: numbers[0] for name, numbers in found.items() if numbers})

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The tokens themselves."""
        return [str(self._tokenizer.id_to_token(int(i))) for i in ids]

    def numbers(self, tokens: Sequence[str]) -> list[int]:
        """Numbers of the given tokens; those that the vocabulary lacks are left out."""
        found = (self._tokenizer.token_to_id(token) for token in tokens)
        return [number for number in found if number is not None]


class _Special(dict[str, int]):
    """Numbers of special tokens; an error for one that a tokenizer lacks: [MASK] is needed by some networks only."""

    def __init__(self, path: Path, found: Mapping[str, int]) -> None:
        super().__init__(found)
        self._path = path

    def __missing__(self, name: str) -> int:
        raise BadInput(self._path, f"the tokenizer has no token {_SPECIAL[name][0]}", "give a BERT-like model")


class Words(ModelTokenizer):
    """Whole words as tokens, for networks without a transformer: lower-case runs of letters and digits.

    Number 0 is padding, known word i has i + 1, and an unknown one falls into one of `buckets` after them by its
    CRC-32: two different unknown words rarely share a number, and an unknown word of the query still matches itself
    in a text. Without buckets, unknown words are left out.
    """

    def __init__(self, words: Sequence[str], buckets: int = 1000) -> None:
        """Number a list of words; of a word that occurs twice the first counts."""
        self.path, self.words, self.buckets = Path(), tuple(words), buckets
        self._known = {word: i + 1 for i, word in reversed(list(enumerate(self.words)))}
        found = {"kind": _WORDS, "buckets": buckets, "words": self.words}
        self.content = json.dumps(found, separators=(",", ":")).encode() + b"\n"

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first `most` words of each text."""
        return [np.fromiter(islice(self._numbers(text), most), dtype=np.int32) for text in texts]

    def __len__(self) -> int:
        return 1 + len(self.words) + self.buckets

    @cached_property
    def special(self) -> dict[str, int]:
        """The number of padding; there are no other special tokens."""
        return {"pad": 0}

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The words themselves; a bucket as its number in brackets."""
        named = ("[PAD]", *self.words)
        return [named[i] if i < len(named) else f"[{i - len(named)}]" for i in map(int, ids)]

    def numbers(self, tokens: Sequence[str]) -> list[int]:
        """Numbers of the given words; unknown ones are left out."""
        return [self._known[token] for token in tokens if token in self._known]

    def _numbers(self, text: str) -> Iterator[int]:
        for word in map(re.Match.group, _WORD.finditer(text.lower())):
            if (number := self._known.get(word)) is not None:
                yield number
            elif self.buckets:
                yield 1 + len(self.words) + zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.buckets


def open_tokenizer(folder: Path) -> ModelTokenizer:
    """The tokenizer of a network's folder: words where its tokenizer.json is a list of them."""
    found = json.loads((folder / "tokenizer.json").read_bytes())
    return Words(found["words"], found["buckets"]) if found.get("kind") == _WORDS else ModelTokenizer(folder)


def padded(rows: Sequence[Ids], pad: int, multiple: int = 1) -> npt.NDArray[np.int64]:
    """The rows as one matrix, filled up with `pad` to the longest one (or to a multiple of some number)."""
    width = max((len(row) for row in rows), default=0)
    width = max(-(-width // multiple) * multiple, 1)
    found = np.full((len(rows), width), pad, np.int64)
    found[lengths_mask(rows, width).astype(bool)] = np.concatenate(rows) if rows else []
    return found


def lengths_mask(rows: Sequence[Ids], width: int) -> npt.NDArray[np.int64]:
    """One where a row has a token, zero where it was filled up."""
    sizes = np.array([len(row) for row in rows])
    return (np.arange(width) < sizes[:, None]).astype(np.int64)


def pair_arrays(queries: Sequence[Ids], docs: Sequence[Ids], special: Mapping[str, int]) -> Arrays:
    """[CLS] query [SEP] text [SEP], with type 0 up to the first [SEP] and type 1 after it."""
    cls, sep = [special["cls"]], [special["sep"]]
    rows = [np.concatenate([cls, q, sep, d, sep]) for q, d in zip(queries, docs, strict=True)]
    ids = padded(rows, special["pad"])
    mask = lengths_mask(rows, ids.shape[1])
    first = np.array([len(q) + 2 for q in queries])[:, None]
    return {"ids": ids, "types": (np.arange(ids.shape[1]) >= first) * mask, "mask": mask}


def single_arrays(texts: Sequence[Ids], special: Mapping[str, int]) -> Arrays:
    """[CLS] text [SEP]."""
    rows = [np.concatenate([[special["cls"]], text, [special["sep"]]]) for text in texts]
    ids = padded(rows, special["pad"])
    mask = lengths_mask(rows, ids.shape[1])
    return {"ids": ids, "types": np.zeros_like(ids), "mask": mask}


def tensors(arrays: Arrays, device: Any = "cpu") -> dict[str, Any]:
    """Arrays as torch tensors on a device."""
    import torch

    pinned = str(device).startswith("cuda")
    found = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    return {name: (t.pin_memory() if pinned else t).to(device, non_blocking=pinned) for name, t in found.items()}
