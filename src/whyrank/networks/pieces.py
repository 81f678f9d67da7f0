"""Texts as numbers for networks: the pieces of a model's own tokenizer, without special tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import BadInput, MissingExtra

Ids = npt.NDArray[np.int32]
CHARACTERS_PER_PIECE = 24  # of a very long text, only so much is tokenised as can matter
_SPECIAL = {
    "cls": ("[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>", "</s>"),
    "sep": ("[SEP]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"),
    "pad": ("[PAD]", "<pad>", "<|end_of_text|>", "<|endoftext|>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
_REMEDY = "give a model folder with a tokenizer.json"


class Tokeniser(Protocol):
    """Turns texts into arrays of token numbers."""

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first `most` tokens of each text."""
        ...


class Pieces:
    """A fast tokenizer (tokenizer.json) as a `Tokeniser`, with the numbers of its special tokens."""

    def __init__(self, path: str | Path) -> None:
        """Read the tokenizer.json of a model folder."""
        self.path = Path(path)
        self.content = _content(self.path)
        self._tokenizer = _tokenizer(self.path, self.content)

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first `most` pieces of each text."""
        cut = [_valid(text[: most * CHARACTERS_PER_PIECE]) for text in texts]
        found = self._tokenizer.encode_batch(cut, add_special_tokens=False)
        return [np.array(encoding.ids[:most], dtype=np.int32) for encoding in found]

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @cached_property
    def special(self) -> dict[str, int]:
        """Numbers of the special tokens: cls, sep, pad and mask, or of what a tokenizer without these has instead."""
        found = {name: self.numbers(spellings) for name, spellings in _SPECIAL.items()}
        return _Special(self.path, {name: numbers[0] for name, numbers in found.items() if numbers})

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The pieces themselves."""
        return [str(self._tokenizer.id_to_token(int(i))) for i in ids]

    def numbers(self, tokens: Sequence[str]) -> list[int]:
        """Numbers of the given pieces; those that the vocabulary lacks are left out."""
        found = (self._tokenizer.token_to_id(token) for token in tokens)
        return [number for number in found if number is not None]


class _Special(dict[str, int]):
    """Special tokens; an error for one that a tokenizer lacks: [MASK] is needed by some networks only."""

    def __init__(self, path: Path, found: Mapping[str, int]) -> None:
        super().__init__(found)
        self._path = path

    def __missing__(self, name: str) -> int:
        raise BadInput(self._path, f"the tokenizer has no token {_SPECIAL[name][0]}", "give a BERT-like model")


def _content(path: Path) -> bytes:
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(
            file, f"cannot be read ({error.strerror})", "give a model folder with a tokenizer.json"
        ) from None


def _tokenizer(path: Path, content: bytes) -> Any:
    """The tokenizer, without the truncation and padding that its file may carry."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("a neural ranker", "models") from None
    try:
        return Tokenizer.from_str(json.dumps({**json.loads(content), "truncation": None, "padding": None}))
    except Exception as error:  # the package raises bare exceptions for anything wrong with the file
        raise BadInput(path, f"has no tokenizer that can be loaded ({error})", _REMEDY) from None


def _valid(text: str) -> str:
    """The text without half surrogate pairs, which the package refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
