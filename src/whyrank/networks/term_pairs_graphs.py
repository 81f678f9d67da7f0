"""One shape of a computation, recorded once on a GPU and replayed: nothing is launched kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_pools: dict[str, tuple[Any, ...]] = {}


class Replayed:
    """A function of one [texts, length] array of rows as a CUDA graph; its result is overwritten by the next call."""

    def __init__(self, body: Callable[[Tensor], Tensor], shape: tuple[int, int], device: str) -> None:
        """Run it twice, then record it. All graphs of a device share their memory: they run one after another."""
        self._rows = torch.zeros(shape, dtype=torch.int32, device=device)
        self._graph = torch.cuda.CUDAGraph()
        beside: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            for _ in range(2):
                body(self._rows)
        torch.cuda.current_stream(device).wait_stream(beside)
        with torch.cuda.graph(self._graph, pool=_pool(device)):
            self._found = body(self._rows)

    def __call__(self, rows: Tensor) -> Tensor:
        """Replay it for other rows."""
        self._rows.copy_(rows)
        self._graph.replay()
        return self._found


def _pool(device: str) -> Any:
    """The memory of all graphs of a device: it lives as long as a graph uses it, so a small one always does."""
    if device not in _pools:
        handle, kept, one = torch.cuda.graph_pool_handle(), torch.cuda.CUDAGraph(), torch.zeros(1, device=device)
        with torch.cuda.graph(kept, pool=handle):
            one.add_(1)
        _pools[device] = handle, kept, one
    return _pools[device][0]
