"""The tokenizer of a model: tokens of single texts, and what the model wants around a pair of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import BadInput
from whyrank.networks import CHARACTERS_PER_TOKEN, Arrays, Ids, lengths_mask, padded
from whyrank.text import positions_of


class PairFrame(NamedTuple):
    """Special tokens before a query, between query and text and after the text, and the types of all five parts."""

    before: Ids
    between: Ids
    after: Ids
    types: tuple[int, ...]


class TokenisedTexts:
    """Texts as token numbers without special tokens, so that each text is tokenised once for all its pairs."""

    def __init__(self, tokenizer: Any, last: bool = False) -> None:
        """A copy of a tokenizer of transformers; with `last`, the last tokens of a long text are kept."""
        self.last = last
        own = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        self.pad = int(next(number for number in own if number is not None))
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise BadInput(tokenizer.name_or_path, "has no fast tokenizer", "add the tokenizer.json of the model")
        self._backend: Any = deepcopy(backend)
        self._backend.no_padding()
        self._backend.no_truncation()

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first (or last) `most` tokens of each text; of a very long one only what can matter is tokenised."""
        near = [self.end(text, most * CHARACTERS_PER_TOKEN) for text in texts]
        found = self._backend.encode_batch(near, add_special_tokens=False)
        return [np.array(self.end(encoding.ids, most), dtype=np.int32) for encoding in found]

    def number(self, token: str) -> int | None:
        """The number of a token; None where the vocabulary lacks it."""
        found: int | None = self._backend.token_to_id(token)
        return found

    @cached_property
    def frame(self) -> PairFrame:
        """What the tokenizer puts around a pair, seen on a pair of two letters."""
        pair = self._backend.encode("a", "b")
        parts = np.array([-1 if part is None else part for part in pair.sequence_ids])
        ids, types = np.array(pair.ids, np.int32), pair.type_ids
        first, second = np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)
        kinds = (0, first[0], first[-1] + 1, second[0], len(ids) - 1)
        between = ids[first[-1] + 1 : second[0]]
        return PairFrame(ids[: first[0]], between, ids[second[-1] + 1 :], tuple(int(types[i]) for i in kinds))

    def cut(self, query: Ids, doc: Ids, most: int) -> tuple[Ids, Ids]:
        """What of a pair is read in `most` tokens, special ones included."""
        before, between, after, _ = self.frame
        n, m = shares(len(query), len(doc), most - len(before) - len(between) - len(after))
        return self.end(query, n), self.end(doc, m)

    def pair_arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs as the tokenizer would frame them."""
        before, between, after, kinds = self.frame
        parts = [[before, q, between, d, after] for q, d in zip(queries, docs, strict=True)]
        rows = [np.concatenate(each) for each in parts]
        types = [np.repeat(np.array(kinds, np.int32), [len(part) for part in each]) for each in parts]
        ids = padded(rows, self.pad)
        mask = lengths_mask(rows, ids.shape[1])
        return {"input_ids": ids, "token_type_ids": padded(types, 0), "attention_mask": mask}

    def end(self, items: Any, most: int) -> Any:
        """The first items, or the last ones."""
        return items[max(len(items) - most, 0) :] if self.last else items[:most]


def shares(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two texts fits: the longer one is cut to what the shorter leaves, or both to half of the room."""
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (short, room - short) if first <= second else (room - short, short)


def check_length(folder: Path, model: Any, requested: int | None) -> None:
    """Raise an error where more tokens are to be read than the model has positions for."""
    positions = positions_of(model)
    if requested is not None and positions is not None and requested > positions:
        what = f"the model reads {positions} tokens at most, and max_length is {requested}"
        raise BadInput(folder, what, f"give max_length={positions} or less, and passages=max for long texts")
