"""Texts as token numbers, each tokenised once, and batches of inputs that are put together on the device.

All texts lie end to end in one array on the device. A batch is made there by index arithmetic from where the texts of
each row begin in that array and how many of their tokens are read. Nothing is padded or joined in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyrank.core import BadInput, Ints
from whyrank.networks import CHARACTERS_PER_TOKEN, Ids

if TYPE_CHECKING:
    from torch import Tensor


NAMES = ("input_ids", "attention_mask", "token_type_ids")


class InputLayout(NamedTuple):
    """What a model reads: special tokens and texts in a row.

    Attributes:
        parts: token numbers, or the name of a text (`query`, `doc`).
        types: the type of each part.
        pad: the number that rows are filled up with.
        names: of the three inputs; without the last, the model knows no types.
    """

    parts: tuple[Ids | str, ...]
    types: tuple[int, ...]
    pad: int
    names: tuple[str, ...] = NAMES

    @property
    def special(self) -> int:
        """How many special tokens there are."""
        return sum(len(part) for part in self.parts if not isinstance(part, str))


class TokenRows:
    """The token numbers of texts, each text tokenised when it is first met; they outlive a call.

    A row is what a model reads of a text: texts that are the same tokens to it have the same row.

    Attributes:
        starts: where each row begins in `ids`.
        sizes: how many tokens each row has.
    """

    def __init__(self, tokenise: Callable[[Sequence[str]], list[Ids]]) -> None:
        self._tokenise = tokenise
        self.starts, self.sizes = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._buffer: Ids = np.zeros(1, np.int32)  # of which the first number belongs to no text
        self._used, self._sent = 1, 0
        self._by_text: dict[str, int] = {}
        self._by_tokens: dict[bytes, int] = {}
        self._on_device: Tensor | None = None

    def __len__(self) -> int:
        return self._used

    @property
    def ids(self) -> Ids:
        """The token numbers of all texts so far, end to end."""
        return self._buffer[: self._used]

    def of(self, texts: Sequence[str]) -> Ints:
        """The row of each of some distinct texts."""
        if new := [text for text in texts if text not in self._by_text]:
            found = self._tokenise(new)
            ends = self._used + np.cumsum([len(ids) for ids in found])
            if ends[-1] > len(self._buffer):  # twice as much room, so that what is there is seldom copied
                self._buffer = np.concatenate([self._buffer, np.zeros(int(ends[-1]), np.int32)])
            np.concatenate(found, out=self._buffer[self._used : ends[-1]])
            starts = np.append(self._used, ends[:-1])
            self._used = int(ends[-1])
            self._by_text |= zip(new, self.number(found, starts).tolist(), strict=True)
        return np.fromiter(map(self._by_text.__getitem__, texts), np.int64, len(texts))

    def number(self, tokens: Sequence[Ids], starts: Ints) -> Ints:
        """The rows of texts as tokens, which begin at `starts`."""
        before = len(self._by_tokens)
        numbers = (self._by_tokens.setdefault(each.tobytes(), len(self._by_tokens)) for each in tokens)
        rows, first, which = np.unique(
            np.fromiter(numbers, np.int64, len(tokens)), return_index=True, return_inverse=True
        )
        new = first[rows >= before]
        self.starts = np.append(self.starts, starts[new])
        self.sizes = np.append(self.sizes, [len(tokens[i]) for i in new.tolist()]).astype(np.int64, copy=False)
        return rows[which]

    def cut(self, rows: Ints, sizes: Ints, last: bool) -> Ints:
        """The rows of the first (or last) tokens of rows, of each so many."""
        short = np.flatnonzero(sizes < self.sizes[rows])
        if not len(short):
            return rows
        most = int(self.sizes.max()) + 1
        wanted, which = np.unique(rows[short] * most + sizes[short], return_inverse=True)
        row, size = np.divmod(wanted, most)
        starts = self.starts[row] + (self.sizes[row] - size if last else 0)
        bounds = zip(starts.tolist(), size.tolist(), strict=True)
        found = rows.copy()
        found[short] = self.number([self._buffer[start : start + n] for start, n in bounds], starts)[which]
        return found

    def lists(self, rows: Ints) -> list[Ids]:
        """The token numbers of each row."""
        bounds = zip(self.starts[rows].tolist(), self.sizes[rows].tolist(), strict=True)
        return [self._buffer[start : start + size] for start, size in bounds]

    def on(self, device: str) -> Tensor:
        """All token numbers on a device, to which those are sent that are new."""
        import torch

        if device == "cpu":
            return torch.from_numpy(self.ids)
        used = self._used  # read first and once: meanwhile a thread may add texts, in a larger buffer
        buffer = self._buffer
        if self._on_device is None or len(self._on_device) < used:
            self._on_device, self._sent = torch.empty(len(buffer), dtype=torch.int32, device=device), 0
        if self._sent < used:
            self._on_device[self._sent : used] = _send(buffer[self._sent : used], device)
            self._sent = used
        return self._on_device


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
        found = self._backend.encode_batch_fast(near, add_special_tokens=False)
        return [np.array(self.end(encoding.ids, most), dtype=np.int32) for encoding in found]

    def number(self, token: str) -> int | None:
        """The number of a token; None where the vocabulary lacks it."""
        found: int | None = self._backend.token_to_id(token)
        return found

    def layout(self, *texts: str, names: Sequence[str]) -> InputLayout:
        """What the tokenizer puts around one or two texts, seen on two letters; `names` are the model's inputs."""
        seen = self._backend.encode(*"ab"[: len(texts)])
        owner = np.array([-1 if part is None else part for part in seen.sequence_ids])
        parts, types, start = list[Ids | str](), list[int](), 0
        for number, text in enumerate(texts):
            at = int(np.flatnonzero(owner == number)[0])
            parts += [np.array(seen.ids[start:at], np.int32), text]
            types += [seen.type_ids[start], seen.type_ids[at]]
            start = int(np.flatnonzero(owner == number)[-1]) + 1
        parts.append(np.array(seen.ids[start:], np.int32))
        types.append(seen.type_ids[-1])
        return InputLayout(tuple(parts), tuple(types), self.pad, tuple(name for name in NAMES if name in names))

    def end(self, items: Any, most: int) -> Any:
        """The first items, or the last ones."""
        return items[max(len(items) - most, 0) :] if self.last else items[:most]


def fitting_sizes(first: Ints, second: Ints, room: int) -> tuple[Ints, Ints]:
    """How much of two texts fits: the longer one is cut to what the shorter leaves, or both to half of the room."""
    short = np.minimum(np.minimum(first, second), room // 2)
    fits, other = first + second <= room, room - short
    return (
        np.where(fits, first, np.where(first <= second, short, other)),
        np.where(fits, second, np.where(first <= second, other, short)),
    )


def lay_out(
    layout: InputLayout, texts: Mapping[str, tuple[TokenRows, Ints]], device: str, multiple: int = 1
) -> dict[str, Tensor]:
    """A batch of inputs as a model wants them, as wide as its longest row (or up to a multiple of some width)."""
    import torch

    taken = {name: np.stack([rows.starts[some], rows.sizes[some]]) for name, (rows, some) in texts.items()}
    sizes = np.sum([each[1] for each in taken.values()], axis=0) + layout.special
    width = -(-int(np.max(sizes)) // multiple) * multiple
    column, end = torch.arange(width, device=device)[None], torch.zeros((), dtype=torch.int64, device=device)
    ids, types = (torch.full((len(sizes), width), value, device=device) for value in (layout.pad, 0))
    for part, kind in zip(layout.parts, layout.types, strict=True):
        at = column - end
        if isinstance(part, str):
            flat = texts[part][0].on(device)
            start, size = _send(taken[part], device)[:, :, None]
        elif len(part):
            flat, start, size = _send(part, device), 0, len(part)
        else:
            continue
        inside = (at >= 0) & (at < size)
        ids = torch.where(inside, flat[(at + start).clamp_(0, len(flat) - 1)].long(), ids)
        if kind:
            types.masked_fill_(inside, kind)
        end = end + size
    mask = (column < end).long().expand_as(ids)
    return dict(zip(layout.names, (ids, mask, types), strict=False))


def _send(array: np.ndarray[Any, Any], device: str) -> Tensor:
    """An array on a device; nothing waits for it."""
    import torch

    found, pinned = torch.from_numpy(np.ascontiguousarray(array)), device.startswith("cuda")
    return (found.pin_memory() if pinned else found).to(device, non_blocking=pinned)
