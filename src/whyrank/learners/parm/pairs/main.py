"""`python -m whyrank.learners.parm.pairs.main FOLDER`: score a prepared task where only torch is installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core import LOCK, BadInput, WhyrankError, check_number, check_whole, exclusive, printable
from whyrank.learners.parm.pairs.results import Results
from whyrank.learners.parm.pairs.running import How, Say, run
from whyrank.learners.parm.pairs.task import NETWORK, RESULTS, Task, load_task, network_digest
from whyrank.networks import TOKENS, Network, Pieces, load, read_config

ARCHITECTURE = "parm"


def open_parm(folder: Path) -> Network:
    """Load a network that scores pairs of terms; an error for one of another architecture."""
    own = read_config(folder).get("architecture")
    if own != ARCHITECTURE:
        raise BadInput(folder, f"is a network of architecture {own}, not {ARCHITECTURE}", "give a parm network")
    return load(folder)


def score_folder(folder: Path, results: Path, network: Path, how: How, say: Say = print) -> bool:
    """Score what is left of a prepared task; whether all is done."""
    task, own = load_task(folder), network_digest(network)
    about = {"network": own, "trained": told_by(network)}
    opened = open_parm(network)
    _check_fits(task, opened, network, folder)
    return run(task, opened, Results(results, task.identity(own, how.precision), about), how, say)


def _check_fits(task: Task, opened: Network, network: Path, folder: Path) -> None:
    """Raise an error unless the terms of a task were cut by the tokenizer of a network, and it can read them."""
    sides = [side.sequences for side in (task.queries, task.docs)]
    used = np.unique(np.concatenate([side.pieces for side in sides])).tolist()
    ours = next((file for file in (folder / NETWORK / TOKENS, folder / TOKENS) if file.exists()), network)
    if max(used, default=0) >= len(opened.pieces) or Pieces(ours).spell(used) != opened.pieces.spell(used):
        raise BadInput(network, "has another tokenizer than the one that cut the terms", "give one with the same")
    longest = 3 + sum(int(np.diff(side.ends).max(initial=0)) for side in sides)
    if longest > opened.encoder.places:
        what = f"reads {opened.encoder.places} pieces, and the longest pair of terms has {longest}"
        raise BadInput(network, what, "make the folder again with this network")


def told_by(network: Path) -> dict[str, Any]:
    """What a network's folder tells about its training."""
    config = read_config(network)
    return {name: config[name] for name in config if name not in ("kind", "architecture", "settings", "encoder")}


def main() -> int:
    """Score a prepared task."""
    parser = argparse.ArgumentParser(prog="python -m whyrank.learners.parm.pairs.main", description=__doc__)
    parser.add_argument("folder", type=Path, help="what `whyrank tables build NETWORK --prepare FOLDER` wrote")
    parser.add_argument("--network", type=Path, help="a parm network; by default the one in the folder")
    parser.add_argument("--results", type=Path, help="where entries are written; by default FOLDER/results")
    parser.add_argument("--device", default="", help="cpu or cuda; by default cuda where there is one")
    parser.add_argument("--precision", default="", help="fp32 or bf16; by default bf16 on a GPU")
    parser.add_argument("--way", default="auto", help="how pairs are scored; auto takes the fastest")
    parser.add_argument("--seconds", type=float, help="end after so long; the same command goes on")
    parser.add_argument("--tokens", type=int, help="pieces of a batch")
    given = parser.parse_args()
    try:
        how = how_of(given.device, given.precision, given.way, given.seconds, given.tokens)
        place = given.results or given.folder / RESULTS
        with exclusive(f"{place}{LOCK}"):
            done = score_folder(given.folder, place, given.network or given.folder / NETWORK, how)
    except (WhyrankError, OSError) as error:
        print(printable(f"whyrank: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("whyrank: stopped; blocks that are scored are kept, and the same command goes on", file=sys.stderr)
        return 130
    print(f"{'done' if done else 'not done yet'}: {place}")
    return 0


def how_of(
    device: str, precision: str, way: str = "auto", seconds: float | None = None, tokens: int | None = None
) -> How:
    """What was asked for, with the defaults of this machine."""
    import torch

    if seconds is not None:
        check_number("seconds", seconds, 0)
    if tokens is not None:
        check_whole("tokens", tokens, 1)
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        kind = torch.zeros(1, device=chosen).device.type
    except (RuntimeError, AssertionError, NotImplementedError):
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise WhyrankError(f"device {chosen!r} is not to be had here; give cpu, or cuda where there is one")
    return How(chosen, precision or ("bf16" if chosen.startswith("cuda") else "fp32"), way, seconds, tokens)


if __name__ == "__main__":
    sys.exit(main())
