"""`python -m whyrank.networks.term_pairs FOLDER`: score a prepared task where only torch is installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.networks.network import Network, load, read_config
from whyrank.networks.term_pairs_results import Results
from whyrank.networks.term_pairs_running import How, Say, run
from whyrank.networks.term_pairs_task import NETWORK, RESULTS, load_task, network_digest

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
    return run(task, opened, Results(results, task.identity(own, how.precision), about), how, say)


def told_by(network: Path) -> dict[str, Any]:
    """What a network's folder tells about its training."""
    config = read_config(network)
    return {name: config[name] for name in config if name not in ("kind", "architecture", "settings", "encoder")}


def main() -> int:
    """Score a prepared task."""
    parser = argparse.ArgumentParser(prog="python -m whyrank.networks.term_pairs", description=__doc__)
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
        done = score_folder(given.folder, place, given.network or given.folder / NETWORK, how)
    except (WhyrankError, OSError) as error:
        print(f"whyrank: {error}", file=sys.stderr)
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

    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise WhyrankError(f"device {chosen!r} is not to be had here; give cpu, or cuda where there is one") from None
    return How(chosen, precision or ("bf16" if chosen.startswith("cuda") else "fp32"), way, seconds, tokens)


if __name__ == "__main__":
    sys.exit(main())
