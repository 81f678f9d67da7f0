"""The tables: Model 1 by EM over words and word pieces, from questions of the modelling parts and their answers."""

from __future__ import annotations

import time
from pathlib import Path

from targets import Target, merged

from whyrank.data import Collection
from whyrank.learners import table_learners


def learn_tables(found: dict[str, Target], units: dict[str, str], folder: Path) -> dict[str, dict[str, str]]:
    """Tables by source and unit; those that are there already are taken as they are."""
    medical = {name: found[name].modelling for name in ("medquad", "pubmedqa")}
    sources = {"medical": merged(medical)}
    sources |= {name: found[name].modelling for name in ("cranfield", "scifact")}
    return {
        name: {unit: table_of(source, name, unit, analyzer, folder) for unit, analyzer in units.items()}
        for name, source in sources.items()
    }


def table_of(source: Collection, name: str, unit: str, analyzer: str, folder: Path) -> str:
    path = folder / f"{name}-{unit}.arrow"
    if not path.exists():
        start = time.perf_counter()
        table = table_learners.create(f"em(analyzer={analyzer!r})").learn(source)
        table.save(str(path))
        facts = table.facts
        print(
            f"table {name} {unit}: {facts['pairs']:,} pairs, {facts['links']:,} links, {len(table):,} entries, "
            f"perplexity {facts['perplexities'][-1]:.1f}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    return str(path)
