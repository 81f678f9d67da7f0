"""Weights in eight bits: a matrix as whole numbers from -127 to 127 and one scale per row, a quarter of the size.

w[i, j] is stored as round(w[i, j] / s[i]) with s[i] = max_j |w[i, j]| / 127; everything that is no matrix stays as it
is, in half precision. Loading multiplies back, so that scoring does not know of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"
_LEVELS = 127.0


def quantised(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of a network with its matrices in eight bits."""
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if tensor.ndim == 2 and tensor.is_floating_point():
            scale = tensor.float().abs().amax(dim=1).clamp(min=1e-12) / _LEVELS
            found[name], found[name + SCALE] = torch.round(tensor.float() / scale[:, None]).to(torch.int8), scale
        else:
            found[name] = tensor.half() if tensor.is_floating_point() else tensor
    return found


def restored(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state that `quantised` was given, up to rounding, in single precision; any other state as it is."""
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in state:
            continue
        scale = state.get(name + SCALE)
        if scale is not None:
            found[name] = tensor.float() * scale.float()[:, None]
        else:
            found[name] = tensor.float() if tensor.is_floating_point() else tensor
    return found
