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
    found |= {f"optimiser.{i}.{name}": t for i, state in _moments(optimiser) for name, t in state.items()}
    found |= {f"random.{name}": state for name, state in _random_states().items()}
    found |= {f"kept.{name}": tensor for name, tensor in (kept or {}).items()}
    write_tensors(path, found, {_PROGRESS: json.dumps(progress)})


def load_checkpoint(path: Path, module: nn.Module, optimiser: torch.optim.Optimizer) -> Checkpoint | None:
    """Take up a checkpoint; None where there is none."""
    if not path.exists():
        return None
    found, facts = read_tensors(path)
    try:
        progress: dict[str, Any] = json.loads(facts[_PROGRESS])
        module.load_state_dict(_named(found, "module."))
        _restore(optimiser, _named(found, "optimiser."))
        _set_random_states(_named(found, "random."))
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        raise _broken(path, error) from None
    return Checkpoint(progress, _named(found, "kept."))


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


def _moments(optimiser: torch.optim.Optimizer) -> list[tuple[int, dict[str, Tensor]]]:
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    return [(i, optimiser.state[p]) for i, p in enumerate(parameters) if p in optimiser.state]


def _restore(optimiser: torch.optim.Optimizer, found: Mapping[str, Tensor]) -> None:
    places = [(p, group) for group in optimiser.param_groups for p in group["params"]]
    for name, tensor in found.items():
        number, _, key = name.partition(".")
        parameter, group = places[int(number)]
        stays = key == "step" and not (group.get("fused") or group.get("capturable"))
        optimiser.state[parameter][key] = tensor if stays else tensor.to(parameter.device)


def _named(found: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in found.items() if name.startswith(prefix)}


def _random_states() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})


def _set_random_states(states: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
