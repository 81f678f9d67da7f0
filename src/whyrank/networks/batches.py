"""Batches: texts of different lengths as padded tensors, put together in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.networks.pieces import Ids

Arrays = dict[str, npt.NDArray[Any]]
TYPES = ("ids", "types", "mask")


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


def pair_arrays(queries: Sequence[Ids], docs: Sequence[Ids], special: Mapping[str, int], multiple: int = 1) -> Arrays:
    """[CLS] query [SEP] text [SEP], with type 0 up to the first [SEP] and type 1 after it."""
    cls, sep = [special["cls"]], [special["sep"]]
    rows = [np.concatenate([cls, q, sep, d, sep]) for q, d in zip(queries, docs, strict=True)]
    ids = padded(rows, special["pad"], multiple)
    mask = lengths_mask(rows, ids.shape[1])
    first = np.array([len(q) + 2 for q in queries])[:, None]
    return {"ids": ids, "types": (np.arange(ids.shape[1]) >= first) * mask, "mask": mask}


def packed_pairs(queries: Sequence[Ids], docs: Sequence[Ids], special: Mapping[str, int]) -> Arrays:
    """[CLS] query [SEP] text [SEP] of all pairs end to end: `ids`, `types`, `places` in a pair, `ends` of pairs."""
    cls, sep = np.array([special["cls"]]), np.array([special["sep"]])
    parts = [part for q, d in zip(queries, docs, strict=True) for part in (cls, q, sep, d, sep)]
    first = np.array([len(q) + 2 for q in queries], np.int64)
    sizes = first + 1 + np.array([len(d) for d in docs], np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    types = (places >= np.repeat(first, sizes)).astype(np.int64)
    return {"ids": np.concatenate(parts).astype(np.int64), "types": types, "places": places, "ends": ends}


def single_arrays(texts: Sequence[Ids], special: Mapping[str, int], multiple: int = 1) -> Arrays:
    """[CLS] text [SEP]."""
    rows = [np.concatenate([[special["cls"]], text, [special["sep"]]]) for text in texts]
    ids = padded(rows, special["pad"], multiple)
    mask = lengths_mask(rows, ids.shape[1])
    return {"ids": ids, "types": np.zeros_like(ids), "mask": mask}


def tensors(arrays: Arrays, device: Any = "cpu") -> dict[str, Any]:
    """The same as torch tensors on a device."""
    import torch

    pinned = str(device).startswith("cuda")
    found = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    return {name: (t.pin_memory() if pinned else t).to(device, non_blocking=pinned) for name, t in found.items()}
