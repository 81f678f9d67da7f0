"""Checkpoints: all that is needed to go on as if nothing had happened, in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from whyrank.core import EMPTY, KEY, BadInput, check_seal, replacing, seal

_PROGRESS = "progress"
_ANEW = "remove it to start again from the beginning"


class Checkpoint(NamedTuple):
    """How far training was, and tensors that were kept besides."""

    progress: dict[str, Any]
    kept: dict[str, Tensor]


def save_checkpoint(
    path: Path, module: nn.Module, optimiser: torch.optim.Optimizer, progress: Mapping[str, Any],
    kept: Mapping[str, Tensor] | None = None,
) -> None:  # fmt: skip
    """Write weights, the optimiser's moments, the random generators' states, how far training is, other tensors."""
    found = {f"module.{name}": tensor for name, tensor in module.state_dict().items()}
    for i, (parameter, _) in enumerate(_parameters(optimiser)):
        found |= {f"optimiser.{i}.{name}": t for name, t in optimiser.state.get(parameter, {}).items()}
    found["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        found["random.cuda"] = torch.cuda.get_rng_state()
    found |= {f"kept.{name}": tensor for name, tensor in (kept or {}).items()}
    write_tensors(path, found, {_PROGRESS: json.dumps(progress)})


def load_checkpoint(path: Path, module: nn.Module, optimiser: torch.optim.Optimizer) -> Checkpoint | None:
    """Resume from a checkpoint; None where there is none."""
    if not path.exists():
        return None
    found, facts = read_tensors(path)

    def named(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): tensor for name, tensor in found.items() if name.startswith(prefix)}

    try:
        progress: dict[str, Any] = json.loads(facts[_PROGRESS])
        module.load_state_dict(named("module."))
        parameters = _parameters(optimiser)
        for name, tensor in named("optimiser.").items():
            number, _, key = name.partition(".")
            parameter, group = parameters[int(number)]
            on_cpu = key == "step" and not (group.get("fused") or group.get("capturable"))
            optimiser.state[parameter][key] = tensor if on_cpu else tensor.to(parameter.device)
        torch.set_rng_state(found["random.cpu"])
        if "random.cuda" in found and torch.cuda.is_available():
            torch.cuda.set_rng_state(found["random.cuda"])
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        raise _broken(path, error) from None
    return Checkpoint(progress, named("kept."))


def _parameters(optimiser: torch.optim.Optimizer) -> list[tuple[Tensor, dict[str, Any]]]:
    return [(p, group) for group in optimiser.param_groups for p in group["params"]]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: dict[str, str] | None = None) -> None:
    """Write tensors as a file that is never half-written."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as beside:
        beside.write_bytes(save(plain, {**(facts or {}), KEY: EMPTY}))
        seal(beside)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, and the facts beside them."""
    from safetensors import SafetensorError, safe_open

    check_seal(path, _ANEW)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> BadInput:
    reason = (str(error).splitlines() or ["empty"])[0]
    return BadInput(path, f"is a broken checkpoint ({reason})", _ANEW)
