"""Seconds to write, open and transform a generated term table, for each file format.

The table has ENTRIES entries (first argument; 20 million) of 100,000 query and 200,000 document terms.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.tables import TermTable, open_table

OPENED = """
import resource, sys, time
from pathlib import Path
import numpy, pyarrow.parquet, pyarrow.csv
from whyrank.tables import open_table
import whyrank.tables.files, whyrank.tables.tsv
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
before, start = resident(), time.perf_counter()
table = open_table(sys.argv[1])
print(f"{time.perf_counter() - start:.3f} {resident() - before:.1f}")
"""


def generated(entries: int, queries: int = 100_000, docs: int = 200_000) -> TermTable:
    """A table with about so many entries, in rows of equal size."""
    rng = np.random.default_rng(0)
    size = entries // queries
    columns = np.sort(rng.integers(0, docs - size, (queries, size)), axis=1) + np.arange(size)  # no column twice
    weights = rng.random(queries * size, dtype=np.float32)
    indptr = np.arange(queries + 1) * size
    names = [f"q{i}" for i in range(queries)], [f"d{i}" for i in range(docs)]
    return TermTable(*names, indptr, columns.ravel(), weights, {"learner": "generated"}, np.arange(docs))


def timed(what: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    found = work()
    print(f"{what:<28}{time.perf_counter() - start:8.2f} s", flush=True)
    return found


def main(entries: int) -> None:
    table = timed("made", lambda: generated(entries))
    print(f"{len(table):,} entries, {len(table.query_terms):,} x {len(table.doc_terms):,} terms")
    timed("digest", lambda: table.digest)
    timed("by document term", lambda: table.by_doc)
    timed("pruned, top 100 and 100", lambda: table.prune(0.01, top_query=100, top_doc=100))
    timed("renormalised", table.renormalised)
    timed("with self-translation", lambda: table.with_self(0.1))
    timed("difference with itself", lambda: table.difference(table))
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".parquet", ".arrow", ".tsv", ".tsv.gz"):
            path = Path(folder) / f"table{suffix}"
            timed(f"write {suffix}", lambda path=path: table.save(path))
            seconds, megabytes = subprocess.run(
                [sys.executable, "-c", OPENED, str(path)], check=True, capture_output=True, text=True
            ).stdout.split()
            size = path.stat().st_size / 1e6
            print(f"open {suffix:<23}{float(seconds):8.3f} s, {size:,.0f} MB on disk, {megabytes} MB more in memory")
            if suffix == ".arrow":
                mapped = open_table(path)
                timed("first look-up in it", lambda mapped=mapped: mapped.doc_terms_for("q77"))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000_000)
