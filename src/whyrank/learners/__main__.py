"""`python -m whyrank.learners FOLDER --out OUT`: train from a prepared folder where only torch is installed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from whyrank.core import LOCK, WhyrankError, exclusive, printable


def main() -> int:
    """Train one network per seed."""
    parser = argparse.ArgumentParser(prog="python -m whyrank.learners", description=__doc__)
    parser.add_argument("folder", type=Path, help="what `whyrank train RECIPE --prepare FOLDER` wrote")
    parser.add_argument(
        "--out", type=Path, required=True, help="where the network is written; a folder each if several"
    )
    parser.add_argument("--seed", type=int, action="append", help="instead of the recipe's seeds; may be repeated")
    parser.add_argument("--device", default="", help="cpu or cuda; by default cuda where there is one")
    given = parser.parse_args()
    try:
        with exclusive(given.out / LOCK):
            _train(given.folder, given.out, given.seed or (), given.device)
    except (WhyrankError, OSError, ImportError) as error:
        print(printable(f"whyrank: {error}"), file=sys.stderr)
        return 2
    return 0


def _train(folder: Path, out: Path, seeds: Sequence[int], device: str) -> None:
    """Train whatever kind of run the folder holds."""
    from whyrank.learners.parm import is_parm, load_parm

    if is_parm(folder):
        from whyrank.learners.parm import train_parm

        train_parm(load_parm(folder), out, seeds, device)
        return
    from whyrank.training import load_prepared, train_seeds

    train_seeds(load_prepared(folder), out, seeds, device)


if __name__ == "__main__":
    sys.exit(main())
