"""Where and how a neural model computes: the device, the number format, who computes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from whyrank.core import WhyrankError, in_worker, worker_number

if TYPE_CHECKING:
    from torch import nn

Precision = Literal["exact", "fast"]
Backend = Literal["auto", "torch", "openvino", "onnx"]
HEAD = 2  # a linear layer with so few outputs gives scores
_PACKAGES = {"openvino": ("openvino",), "onnx": ("onnxruntime", "onnx")}
_QUICKEST = {True: ("openvino",), False: ("openvino", "onnx")}  # before torch, with bfloat16 arithmetic and without
_TOKENS = 1024  # of a batch that one thread computes
_KEPT_BYTES = 512 * 2**20  # of encodings
_WHOLE_MASKS = "sdpa with whole masks"
_COPIES = 3  # of the widest states that a layer holds at a time
_MISSING = re.compile(r"^(\S+)\s*\|.*MISSING|newly initialized: \['([^']+)'", re.MULTILINE)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Computing:
    """A device, whether matrix products are computed in bfloat16 there, and the back end that computes them."""

    device: str
    half: bool = False
    backend: str = "torch"

    @classmethod
    def of(cls, device: str | None, precision: str, backend: str = "torch") -> Computing:
        """The requested device (by default CUDA where there is one); bfloat16 where fast and in hardware.

        Of the back ends, `auto` takes torch for what is exact, and on a CPU the quickest that is installed for what
        is fast: it is a fixed order, so that the same call has the same identity tomorrow.
        """
        if backend in _PACKAGES and device not in (None, "cpu"):
            what = f"backend={backend} computes on the CPU, not on {device}"
            raise WhyrankError(f"{what}; leave out the device or the back end")
        name = "cpu" if backend in _PACKAGES else _device(device)
        fast, half = precision == "fast", precision == "fast" and has_bfloat16(name)
        if fast and not half:
            log.warning("%s has no bfloat16 arithmetic here: precision=fast computes in fp32", name)
        if backend == "auto":
            able = [each for each in _QUICKEST[half] if fast and name == "cpu" and is_installed(each)]
            backend = next(iter(able), "torch")
        return cls(name, half and backend != "onnx", backend)

    @property
    def format(self) -> str:
        """The number format of matrix products: fp32 or bf16."""
        return "bf16" if self.half else "fp32"

    @property
    def is_exact(self) -> bool:
        """Whether torch computes in fp32."""
        return not self.half and self.backend == "torch"

    @property
    def by_torch(self) -> Computing:
        """Torch in the same number format."""
        return Computing(self.device, self.half)

    def __str__(self) -> str:
        """What identities say of it."""
        return f"numbers={self.format}" + ("" if self.backend == "torch" else f" backend={self.backend}")

    @property
    def on_gpu(self) -> bool:
        """Whether this is a CUDA device."""
        return self.device.startswith("cuda")

    @property
    def tokens(self) -> int:
        """How many tokens go into one batch: on a CPU, what each core has near at hand."""
        if self.on_gpu:
            return 131_072
        if self.backend != "torch":  # which computes as many batches at a time as there are threads
            return _TOKENS
        import torch

        return min(_TOKENS * torch.get_num_threads(), 16_384)

    @property
    def chunk(self) -> int:
        """How many inputs are tokenised at a time, and sorted by their number of tokens."""
        return 16_384 if self.on_gpu else 1024

    @property
    def texts(self) -> int:
        """How many texts are encoded before they are compared."""
        return 65_536 if self.on_gpu else 4096

    @property
    def kept(self) -> int:
        """Bytes of encodings that outlive a call."""
        return max(_KEPT_BYTES, self._free() // 4)

    def fitting(self, module: nn.Module | None) -> int:
        """How many tokens of a batch fit into half of a GPU's free memory, or 1.5 GiB, by the widths of layers."""
        from torch import nn

        layers = [layer for layer in (module.modules() if module else ()) if isinstance(layer, nn.Linear)]
        widths = (
            max((getattr(layer, name) for layer in layers), default=1) for name in ("in_features", "out_features")
        )
        return (self._free() // 2 if self.on_gpu else 3 * _KEPT_BYTES) // (_COPIES * 4 * sum(widths)) + 1

    def _free(self) -> int:
        """Bytes that are free on a GPU."""
        import torch

        if not self.on_gpu:
            return 0
        held = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0]) + held

    @property
    def multiple(self) -> int:
        """What the width of a batch is a multiple of: matrix products on a GPU want multiples of 8."""
        return 8 if self.on_gpu else 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Compute without gradients; on a GPU, products of fp32 matrices are fp32 whatever was set before."""
        import torch

        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                yield
        finally:
            torch.set_float32_matmul_precision(before)

    def place(self, model: nn.Module) -> Any:
        """The model on the device, ready to score, its transformer in bfloat16 where that is the number format.

        Layers that give the scores, and all that comes after the transformer, compute in fp32 in any case.
        """
        import torch
        from torch import nn
        from transformers import PreTrainedModel

        model = model.to(self.device, torch.float32).eval().requires_grad_(False)
        found: list[Any] = [layer for layer in model.modules() if isinstance(layer, PreTrainedModel)]
        inner = {id(part) for each in found for part in each.modules() if part is not each}
        transformers = [each for each in found if id(each) not in inner]
        if self.on_gpu:
            for each in transformers:
                ignore_mask_values(each)
        if self.half and self.backend == "torch":
            for each in transformers:
                each.to(torch.bfloat16).register_forward_hook(_to_fp32)
            for layer in model.modules():
                if isinstance(layer, nn.Linear) and (layer.out_features <= HEAD or id(layer) not in inner):
                    in_fp32(layer)
        return model


def ignore_mask_values(model: Any) -> None:
    """Let a transformer give every mask to the attention of torch as it is.

    Otherwise it leaves out a mask in which nothing is masked, and waits for the GPU before each batch to see that.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def whole_mask(*args: Any, **options: Any) -> Any:
        return sdpa_mask(*args, **options | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})

    if model.config._attn_implementation == "sdpa":
        interfaces: tuple[tuple[Any, Any], ...] = (
            (AttentionInterface, sdpa_attention_forward),
            (AttentionMaskInterface, whole_mask),
        )
        for interface, function in interfaces:
            interface.register(_WHOLE_MASKS, function)
        model.set_attn_implementation(_WHOLE_MASKS)


def in_fp32(layer: Any) -> None:
    """Let a linear layer compute in fp32 whatever the number format of its input and its weights is."""
    from torch.nn import functional

    def exact(states: Any) -> Any:
        bias = None if layer.bias is None else layer.bias.float()
        return functional.linear(states.float(), layer.weight.float(), bias)

    layer.forward = exact


def _to_fp32(model: Any, given: Any, output: Any) -> Any:
    """What a transformer gives, in fp32: tensors, also those within tuples and named outputs."""
    if isinstance(output, tuple):
        return tuple(_to_fp32(model, given, each) for each in output)
    if isinstance(output, Mapping):
        for name, value in list(output.items()):
            output[name] = _to_fp32(model, given, value)  # type: ignore[index]
        return output
    is_number = getattr(output, "is_floating_point", bool)()
    return output.float() if is_number else output


def has_bfloat16(device: str) -> bool:
    """Whether a device multiplies bfloat16 matrices in hardware."""
    import torch

    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    able = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device == "cpu" and any(getattr(torch.cpu, name, bool)() for name in able)


def is_installed(backend: str) -> bool:
    """Whether the packages of a back end are there; torch is taken for granted."""
    return all(find_spec(package) is not None for package in _PACKAGES.get(backend, ()))


def use_threads(threads: int | None) -> None:
    """Let torch use so many threads; by default its own choice, and one in a worker process among several."""
    import torch

    wanted = threads or (1 if in_worker() else None)
    if wanted is not None:
        torch.set_num_threads(wanted)


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
        if not torch.cuda.is_available():
            return "cpu"
        number = worker_number()
        return "cuda" if number is None else f"cuda:{number % torch.cuda.device_count()}"
    try:
        torch.empty(0, device=given)
    except Exception as error:  # torch raises errors of many kinds for a device that is not there
        reason = str(error).strip().splitlines()[0]
        raise WhyrankError(f"device {given!r} cannot be used ({reason}); give cpu, cuda or cuda:N") from None
    return str(given)
