"""Alignments that were found by leaving words out, at the pieces of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.training.parm_texts import PieceTexts

if TYPE_CHECKING:
    from whyrank.training.parm_prepared import Occlusion


def occlusion_blocks(
    given: Occlusion, queries: PieceTexts, docs: PieceTexts, doc: npt.NDArray[np.int32], device: str
) -> Tensor:
    """Blocks of all queries and candidates: a piece has the value of its word."""
    query, flat = np.repeat(np.arange(len(doc)), doc.shape[1]), doc.reshape(-1)
    found = np.zeros((len(query), queries.ids.shape[1], docs.ids.shape[1]), np.float32)
    asked, told = queries.words, docs.words
    for number, (q, d) in enumerate(zip(query.tolist(), flat.tolist(), strict=True)):
        rows, columns = queries.sizes[q], docs.sizes[d]
        size = int(queries.opens[q].sum()), int(docs.opens[d].sum())
        words = given.values[given.ends[number] : given.ends[number + 1]].reshape(size)
        found[number, :rows, :columns] = words[asked[q, :rows, None], told[d, None, :columns]]
    return torch.from_numpy(found).to(device)
