"""The other side of `wmd.py`: gensim in an environment of its own. Reads a task as JSON, prints the outcome as JSON."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import ot  # noqa: F401  (imported before the clock starts)
from gensim.models import KeyedVectors
from gensim.utils import tokenize


def main() -> None:
    task = json.load(sys.stdin)
    matrix = np.load(task["vectors"])
    names = Path(task["vectors"]).with_suffix(".words.txt").read_text(encoding="utf-8").splitlines()
    vectors = KeyedVectors(matrix.shape[1])
    vectors.add_vectors(names, matrix)
    vectors.fill_norms()
    start, known = time.process_time(), {}
    found = []
    for pair in task["pairs"]:
        for text in pair:
            if text not in known:
                known[text] = list(tokenize(text, lowercase=True))
        found.append(vectors.wmdistance(known[pair[0]], known[pair[1]]))
    seconds = time.process_time() - start
    json.dump({"seconds": seconds, "distances": [d if math.isfinite(d) else None for d in found]}, sys.stdout)


if __name__ == "__main__":
    main()
