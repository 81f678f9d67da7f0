"""The logs of all networks that `elsewhere.py` brought back, one small file for each recipe.

    python benchmarks/translation/logged.py OUT... LOGS

LOGS/RECIPE.json has the recipe once, and for each seed the mean loss of every 25 steps, validations, time and device.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from whyrank.core import write_text

EVERY = 25
KEPT = ("validations", "best", "pairs", "seconds", "stopped", "device", "torch")


def found(outs: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Each log by recipe and seed (`RECIPE.SEED.json`), and what was said at its end (`RECIPE.SEED.txt`)."""
    for out in outs:
        with tarfile.open(out / "logs.tar.gz") as file:
            for member in file:
                if member.isfile():
                    yield Path(member.name).name, file.extractfile(member).read()


def short(log: dict[str, Any], told: str) -> dict[str, Any]:
    """One seed in few numbers."""
    steps = range(0, len(log["losses"]), EVERY)
    parts = [log["losses"][start : start + EVERY] for start in steps]
    losses = [round(sum(part) / len(part), 4) for part in parts]
    return {"losses": losses, **{key: log[key] for key in KEPT}, "told": told.splitlines()[-1] if told else ""}


def summaries(files: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """By recipe."""
    gathered: dict[str, dict[str, Any]] = {}
    for name in sorted(name for name in files if name.endswith(".json")):
        recipe, seed, _ = name.rsplit(".", 2)
        log, told = json.loads(files[name]), files.get(f"{recipe}.{seed}.txt", b"").decode()
        kept = gathered.setdefault(recipe, {"recipe": log["recipe"], "losses_mean_of": EVERY, "seeds": {}})
        kept["seeds"][seed] = short(log, told)
    return gathered


def lines(summary: dict[str, Any]) -> str:
    """JSON with one line for each seed."""
    head = {key: value for key, value in summary.items() if key != "seeds"}
    seeds = ",\n".join(f"  {json.dumps(seed)}: {json.dumps(log)}" for seed, log in summary["seeds"].items())
    return json.dumps(head)[:-1] + ', "seeds": {\n' + seeds + "\n}}\n"


def main() -> None:
    *outs, logs = map(Path, sys.argv[1:])
    for recipe, summary in summaries(dict(found(outs))).items():
        write_text(logs / f"{recipe}.json", lines(summary))


if __name__ == "__main__":
    main()
