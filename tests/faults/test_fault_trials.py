"""Long commands that are killed, run twice at once or find the disk full give their result when they run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRIALS = int(os.environ.get("WHYRANK_FAULTS", "0"))
COMMANDS = ("audit", "probes", "axioms", "bias", "rank", "evaluate", "tune", "train", "em", "neural", "parm",
            "local-to-global", "build", "fidelity")  # fmt: skip
SHORT = {("kill", "probes"), ("kill", "em"), ("together", "rank"), ("full", "build")}  # a minute


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("fault", ["kill", "together", "full"])
def test_the_next_run_gives_the_same_result(fault, name, tmp_path):
    if not TRIALS and (fault, name) not in SHORT:
        pytest.skip("`make faults` runs these, as often as WHYRANK_FAULTS says")
    script, trials = Path(__file__).with_name("commands.py"), str(TRIALS or 2)
    done = subprocess.run([sys.executable, script, fault, tmp_path, "0", trials, name], capture_output=True, text=True,
                          check=False, env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    print(fault, name, f"{sum(row['equal'] for row in told)} of {len(told)} equal,",
          f"{sum(row.get('kills', 0) for row in told)} kills")  # fmt: skip
    assert not [row for row in told if not row["equal"] or row.get("wrong")]
