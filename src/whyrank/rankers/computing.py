"""Where and how a neural model computes: the device, the number format, and batches made one ahead."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ints

if TYPE_CHECKING:
    from torch import nn

T = TypeVar("T")
PRECISIONS = ("exact", "fast")
_HEAD = 2  # a linear layer with so few outputs gives scores
_MISSING = re.compile(r"^(\S+)\s*\|.*MISSING|newly initialized: \['([^']+)'", re.MULTILINE)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Computing:
    """A device, and whether matrix products are computed in bfloat16 there."""

    device: str
    half: bool = False

    @classmethod
    def of(cls, device: str | None, precision: str) -> Computing:
        """The device that is asked for (by default CUDA where there is one); bfloat16 where fast and in hardware."""
        name = _device(device)
        half = precision == "fast" and has_bfloat16(name)
        if precision == "fast" and not half:
            log.warning("%s has no bfloat16 arithmetic here: precision=fast computes in fp32", name)
        return cls(name, half)

    @property
    def format(self) -> str:
        """The number format of matrix products: fp32 or bf16."""
        return "bf16" if self.half else "fp32"

    @property
    def on_gpu(self) -> bool:
        """Whether this is a CUDA device."""
        return self.device.startswith("cuda")

    @property
    def tokens(self) -> int:
        """How many tokens go into one batch: on a CPU, what each core has near at hand."""
        if self.on_gpu:
            return 32_768
        import torch

        return min(1024 * torch.get_num_threads(), 16_384)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Compute without gradients, in this number format."""
        import torch

        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.autocast(self.device.partition(":")[0], torch.bfloat16, enabled=self.half))
            if self.on_gpu and not self.half:
                stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
            yield

    def placed(self, model: nn.Module) -> Any:
        """The model on the device, ready to score; layers that give the scores compute in fp32 in any case."""
        import torch
        from torch import nn

        model = model.to(self.device, torch.float32).eval().requires_grad_(False)
        heads = (m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features <= _HEAD)
        for head in heads if self.half else ():
            head.forward = _in_fp32(head.forward, self.device)  # type: ignore[method-assign]
        return model


def has_bfloat16(device: str) -> bool:
    """Whether a device multiplies bfloat16 matrices in hardware."""
    import torch

    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    able = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device == "cpu" and any(getattr(torch.cpu, name, bool)() for name in able)


def use_threads(threads: int | None) -> None:
    """Let torch use so many threads; by default its own choice, and one in a worker process among several."""
    import torch

    wanted = threads or (1 if parent_process() is not None else None)
    if wanted is not None:
        torch.set_num_threads(wanted)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made in a thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def by_length(lengths: Ints, tokens: int) -> Iterator[Ints]:
    """Rows in batches, the longest first, so that a batch as wide as its longest row has up to `tokens` cells."""
    order, start = np.argsort(-lengths, kind="stable"), 0
    while start < len(order):
        size = max(1, tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Load a model without progress bars and reports; give the names of weights that it was found to lack."""
    from transformers.utils import logging as messages

    package: Any = messages  # the package does not type these functions
    heard, logger, bars = _Heard(), logging.getLogger("transformers"), package.is_progress_bar_enabled()
    before = logger.handlers, logger.level, logger.propagate
    package.disable_progress_bar()
    logger.handlers, logger.propagate = [heard], False
    logger.setLevel(logging.WARNING)
    try:
        yield heard.missing
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])
        if bars:
            package.enable_progress_bar()


class _Heard(logging.Handler):
    """Listens for the report on weights that a file lacks: a model gets random numbers in their place."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        found = (name for row in _MISSING.findall(record.getMessage()) for name in row if name)
        self.missing += [name for name in found if "pooler" not in name]  # which no ranker reads unless it is trained


def _device(given: str | None) -> str:
    import torch

    if given is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=given)
    except Exception as error:  # torch raises errors of many kinds for a device that is not there
        reason = str(error).strip().splitlines()[0]
        raise WhyrankError(f"device {given!r} cannot be used ({reason}); give cpu, cuda or cuda:N") from None
    return str(given)


def _in_fp32(forward: Any, device: str) -> Any:
    def exact(states: Any) -> Any:
        import torch

        with torch.autocast(device.partition(":")[0], enabled=False):
            return forward(states.float())

    return exact
