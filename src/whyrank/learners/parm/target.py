"""The ranker that is explained, where it can be asked on the machine that trains: its scores and its alignments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from whyrank.core import Progress, WhyrankError
from whyrank.learners.parm.alignment import Reader
from whyrank.learners.parm.texts import Numbers
from whyrank.networks import (
    Network,
    Pieces,
    is_network,
    is_plain,
    load,
    load_encoder,
    new_encoder,
    read_config,
    tensors,
)
from whyrank.training import Packer, embed

BI, NETWORK, READER = "bi", "network", "reader"
_PAIRS = {"cpu": 64, "cuda": 4096}
_READS, _MARKS = 256, 2  # pieces that a bi-encoder reads where nobody says; [CLS] and [SEP] are among them


def target_scores(
    kind: str, folder: Path, queries: Sequence[str], docs: Sequence[str], doc: npt.NDArray[np.int32], device: str,
    reads: int | None = None,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """The target's score of each query and candidate, [queries, candidates]; a bi-encoder `reads` so many pieces."""
    if kind == BI:
        return _cosines(folder, queries, docs, doc, device, (reads or _READS) - _MARKS)
    if kind == NETWORK:
        return _network_scores(load(folder).to(device), queries, docs, doc, device)
    raise WhyrankError(f"a target of kind {kind!r} cannot be asked here; prepare the run with its scores")


def reader_of(folder: Path, max_query: int, max_doc: int) -> Reader:
    """The encoder of a target, or of any model folder, as one that aligns."""
    if is_network(folder):
        network = load(folder)
        return Reader(network.encoder, network.pieces, network.max_query, network.max_doc)
    encoder = load_encoder(folder)
    return Reader(encoder, Pieces(folder), max_query, min(max_doc, encoder.places - max_query - 3))


def attends(folder: Path) -> bool:
    """Whether a model is one of BERT's layers, whose attention can be read; its weights are not loaded."""
    from transformers import AutoConfig

    try:
        given = None if is_network(folder) else AutoConfig.from_pretrained(folder, trust_remote_code=False).to_dict()
        with torch.device("meta"):
            return is_plain(new_encoder(given or read_config(folder)["encoder"]).model)
    except Exception:  # transformers raises errors of many kinds; what loads the model as a ranker says more
        return False


def _cosines(
    folder: Path, queries: Sequence[str], docs: Sequence[str], doc: npt.NDArray[np.int32], device: str, most: int
) -> npt.NDArray[np.float32]:
    asked, told = (embed(str(folder), texts, most, 512, device) for texts in (queries, docs))
    found = np.empty(doc.shape, np.float32)
    for start in range(0, len(doc), _PAIRS["cuda"]):
        rows = slice(start, start + _PAIRS["cuda"])
        texts = told[torch.from_numpy(doc[rows].astype(np.int64)).to(device)]
        found[rows] = torch.einsum("nd,nkd->nk", asked[rows], texts).float().cpu().numpy()
    return found


def _network_scores(
    network: Network, queries: Sequence[str], docs: Sequence[str], doc: npt.NDArray[np.int32], device: str
) -> npt.NDArray[np.float32]:
    kind, network = device.split(":", maxsplit=1)[0], network.eval()
    asked, told = network.query_ids(queries), network.doc_ids(docs)
    query, flat = np.repeat(np.arange(len(doc)), doc.shape[1]), doc.ravel().astype(np.int64)
    order = np.argsort([len(asked[i]) + len(told[j]) for i, j in zip(query, flat, strict=True)], kind="stable")
    packer = Packer(asked, told, network.pieces.special, device) if kind == "cuda" and network.packs else None

    def read(rows: Numbers) -> torch.Tensor:
        if packer is not None:
            found: torch.Tensor = network(packer(query[rows], flat[rows]))
            return found
        arrays = network.arrays([asked[i] for i in query[rows]], [told[j] for j in flat[rows]])
        plain: torch.Tensor = network(tensors(arrays, device))
        return plain

    return _asked(read, order, kind).reshape(doc.shape)


def _asked(read: Callable[[Numbers], torch.Tensor], order: Numbers, kind: str) -> npt.NDArray[np.float32]:
    found, step = np.empty(len(order), np.float32), _PAIRS.get(kind, 64)
    half = torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda")
    with torch.inference_mode(), half, Progress("asking the target: pairs", len(order)) as progress:
        for start in range(0, len(order), step):
            rows = order[start : start + step]
            found[rows] = read(rows).float().cpu().numpy()
            progress.step(len(rows))
    return found
