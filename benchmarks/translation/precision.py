"""What half precision changes: Kendall's tau of a network's rankings against those in single precision, on a CPU.

    PYTHONPATH=src python benchmarks/translation/precision.py CARRIED NETWORK... [--questions 20]

The questions are the first of MedQuAD's test part in what `prepare.py` wrote, with all their candidates.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path

import numpy as np
import torch
from budgets import Pairs, scored
from scipy.stats import kendalltau

from whyrank.networks import load

KINDS = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def some(carried: Path, questions: int) -> tuple[Pairs, np.ndarray]:
    """Pairs of some questions, and the question of each."""
    with lzma.open(carried / "pairs.json.xz", "rt", encoding="utf-8") as file:
        content = json.load(file)
    rows = [row for row in content["rows"] if (row["target"], row["part"]) == ("medquad", "test")][:questions]
    query = np.repeat(np.arange(len(rows)), [len(row["texts"]) for row in rows])
    doc = np.concatenate([row["texts"] for row in rows])
    distinct, doc = np.unique(doc, return_inverse=True)
    texts = [content["texts"][i] for i in distinct]
    return Pairs([row["query"] for row in rows], texts, query, doc), query


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carried", type=Path)
    parser.add_argument("network", type=Path, nargs="+")
    parser.add_argument("--questions", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pairs, query = some(given.carried, given.questions)
    for folder in given.network:
        network = load(folder)
        single = scored(network, pairs, "cpu")
        parts = [np.flatnonzero(query == q) for q in np.unique(query)]
        for name, kind in KINDS.items():
            half = scored(network, pairs, "cpu", kind)
            taus = [kendalltau(single[rows], half[rows]).statistic for rows in parts]
            first = np.mean([single[rows].argmax() == half[rows].argmax() for rows in parts])
            print(
                f"{folder} {name}: tau least {min(taus):.4f}, mean {np.mean(taus):.4f}; the same first text {first:.0%}; "
                f"largest difference {np.abs(single - half).max():.5f}, scores from {single.min():.2f} to {single.max():.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
