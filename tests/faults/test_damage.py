"""A flipped bit or a cut end in any file that is read back: one clear line, or what it was; never anything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TRIALS = int(os.environ.get("WHYRANK_FAULTS", "10"))
KINDS = (
    "arrow", "parquet", "tsv.gz", "contrasts", "result", "bias", "statistics", "em", "network", "checkpoint", "blocks",
    "vectors", "documents", "trees", "weights",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_noticed(kind, tmp_path):
    command = [sys.executable, Path(__file__).with_name("damage.py"), kind, tmp_path, "0", str(TRIALS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    trials, came = lines[::2], [line["came"] for line in lines[1::2]]
    assert done.returncode == 0, (trials[-1:], done.stderr[-2000:])
    assert len(came) == TRIALS
    wrong = [(trial, what) for trial, what in zip(trials, came, strict=True) if what not in ("refused", "same")]
    print(kind, dict(Counter(came)))
    assert not wrong, wrong[:5]
