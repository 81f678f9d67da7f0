"""Faults: files with a flipped bit or a cut end, and commands that are killed, run twice at once or find the disk full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TRIALS = int(os.environ.get("WHYRANK_FAULTS", "10"))
COMMAND_TRIALS = int(os.environ.get("WHYRANK_FAULTS", "0"))
KINDS = (
    "result", "bias", "statistics", "em", "network", "checkpoint", "blocks",
    "vectors", "documents", "weights",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_noticed(kind, tmp_path):
    """A flipped bit or a cut end gives one clear line, or what it was; never anything else."""
    command = [sys.executable, Path(__file__).with_name("damage.py"), kind, tmp_path, "0", str(TRIALS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    trials, came = lines[::2], [line["came"] for line in lines[1::2]]
    assert done.returncode == 0, (trials[-1:], done.stderr[-2000:])
    assert len(came) == TRIALS
    wrong = [(trial, what) for trial, what in zip(trials, came, strict=True) if what not in ("refused", "same")]
    print(kind, dict(Counter(came)))
    assert not wrong, wrong[:5]


COMMANDS = ("audit", "probes", "axioms", "bias", "rank", "evaluate", "tune", "train", "em", "neural", "parm",
            "local-to-global", "build", "fidelity")  # fmt: skip
SHORT = {("kill", "probes"), ("kill", "em"), ("together", "rank"), ("full", "build")}  # a minute


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("fault", ["kill", "together", "full"])
def test_the_next_run_gives_the_same_result(fault, name, tmp_path):
    """Long commands that were killed, run twice at once or found the disk full."""
    if not COMMAND_TRIALS and (fault, name) not in SHORT:
        pytest.skip("`make faults` runs these, as often as WHYRANK_FAULTS says")
    script, trials = Path(__file__).with_name("commands.py"), str(COMMAND_TRIALS or 2)
    done = subprocess.run([sys.executable, script, fault, tmp_path, "0", trials, name], capture_output=True, text=True,
                          check=False, env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    print(fault, name, f"{sum(row['equal'] for row in rows)} of {len(rows)} equal,",
          f"{sum(row.get('kills', 0) for row in rows)} kills")  # fmt: skip
    assert not [row for row in rows if not row["equal"] or row.get("wrong")]
