"""All matched studies on TREC DL 2019: the whole way from files to findings, and enumeration against a plain loop."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Plan, Pools, Source, answers
from whyrank.studies.probes import probes
from whyrank.studies.probes.characteristics import measure
from whyrank.studies.probes.matched import Tolerance, match


def whole(data: Path, analyzer: str) -> None:
    start = time.perf_counter()
    collection = open_collection(str(data / "msmarco_dl19"))
    ranker = open_ranker("bm25", Setting(collection, analyzer))
    studies = {name: probes.create(name, analyzer=analyzer) for name in probes.match("matched/*")}
    found = [
        finding for answer in answers(Plan(collection, studies, [ranker], Engine())) for finding in answer.findings
    ]
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(studies)} studies, {sum(f.n for f in found):,} contrasts, from files to findings: {seconds:.1f} s, peak {peak:,.0f} MiB"
    )


def plain(controls: list[list[float]], variables: list[list[float]]) -> int:
    """Matched pairs counted by a plain loop over all pairs of documents."""
    found = []
    for i in range(len(controls)):
        for j in range(i + 1, len(controls)):
            if controls[i] != controls[j]:
                continue
            a, b = variables[i], variables[j]
            if a != b and all(x >= y for x, y in zip(a, b, strict=True)):
                found.append((i, j))
            elif a != b and all(x <= y for x, y in zip(a, b, strict=True)):
                found.append((j, i))
    return len(found)


def enumeration(data: Path, analyzer: str) -> None:
    pools = list(Pools.of(open_collection(str(data / "msmarco_dl19")), Source(analyzer=analyzer)))
    names = [name.removeprefix("matched/").split("|") for name in probes.match("matched/*")]
    work = [(measure(control, pool), measure(variable, pool)) for variable, control in names for pool in pools]
    lists = [(control.tolist(), variable.tolist()) for control, variable in work]
    match(*work[0], Tolerance())  # compiled before it is timed
    start = time.perf_counter()
    ours = sum(len(match(control, variable, Tolerance())) for control, variable in work)
    middle = time.perf_counter()
    theirs = sum(plain(control, variable) for control, variable in lists)
    end = time.perf_counter()
    assert ours == theirs
    ratio = (end - middle) / (middle - start)
    print(
        f"enumeration of {ours:,} pairs: {middle - start:.3f} s, plain Python loop {end - middle:.1f} s, ratio {ratio:.0f}"
    )


def main() -> None:
    if not os.environ.get("WHYRANK_DATA"):
        sys.exit("set WHYRANK_DATA to a folder with msmarco_dl19 and stopwords to run this benchmark")
    data = Path(os.environ["WHYRANK_DATA"])
    analyzer = f"terrier(stopwords={data / 'stopwords' / 'terrier.txt'})"
    whole(data, analyzer)
    enumeration(data, analyzer)


if __name__ == "__main__":
    main()
