"""IBM Model 1 by EM on generated bitext, beside eflomal, sil-thot and NLTK.

100,000 pairs, sources of Poisson(30) tokens, targets of Poisson(5), Zipf(1) over 50,000 types: about 15 million links.
The peers run in a virtual environment of their own (made on the first run) in another process; each gets the same two
text files and one thread. Seconds of processor time, child processes included; the wall clock stands beside. NLTK
runs on the first pairs only and is scaled by links. eflomal samples alignments and gives no table.

    python benchmarks/em.py                   the bars, the peers, and blocks at three sizes
    python benchmarks/em.py 1000000000 4G     one size in blocks: links, memory for them
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from whyrank.learners.em import Bitext, Growing, bitext_of, learn_em
from whyrank.learners.em.estimator import Estimator

HERE = Path(__file__).parent
PEER = HERE.parent / ".venv-aligners"
PACKAGES = ["eflomal==2.0.0", "sil-thot==3.5.3", "nltk==3.10.4"]
TYPES, PAIRS, ITERATIONS = 50_000, 100_000, 5
LINKS_PER_PAIR = 150
SIZES = (25_000_000, 50_000_000, 100_000_000)


def generated(pairs: int) -> Bitext:
    """Generated bitext, a hundred thousand pairs at a time; pairs with an empty side are left out."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1 / np.arange(1, TYPES + 1))
    sides = [(Growing(np.int32), Growing(np.int32), mean) for mean in (30, 5)]
    for start in range(0, pairs, 100_000):
        sizes = [rng.poisson(mean, min(100_000, pairs - start)) for *_, mean in sides]
        both = (sizes[0] > 0) & (sizes[1] > 0)
        for (ids, lengths, _), size in zip(sides, sizes, strict=True):
            ids.add(np.searchsorted(shares, rng.random(size[both].sum()) * shares[-1]))
            lengths.add(size[both])
    (source, source_sizes), (target, target_sizes) = ((ids.finish(), sizes.finish()) for ids, sizes, _ in sides)
    terms = [f"w{i}" for i in range(TYPES)]
    counts = [np.bincount(ids, minlength=TYPES) for ids in (source, target)]
    starts = [np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]) for sizes in (source_sizes, target_sizes)]
    return Bitext(
        source, starts[0], target, starts[1], terms, terms, *counts, np.arange(len(source_sizes), dtype=np.int32)
    )


def memory(fresh: bool = False) -> float:
    """Peak resident memory of this process in MiB, from now on if `fresh` (Linux)."""
    if fresh:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Clock:
    """Processor and wall seconds since it was made."""

    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def read(self) -> tuple[float, float]:
        return time.process_time() - self.cpu, time.perf_counter() - self.wall


def ids_to_table(bitext: Bitext) -> None:
    """Set-up and single iterations from token ids."""
    before, clock = memory(fresh=True), Clock()
    learner = Estimator(bitext, True, 1, 1 << 40, 0.0, 0)
    setup = clock.read()
    rounds = []
    for _ in range(ITERATIONS):
        clock = Clock()
        learner._pass(Silent(), update=True)
        learner.state.iteration += 1
        rounds.append(clock.read())
    cpu, wall = np.median(rounds, axis=0)
    links = bitext.links
    print(f"{len(bitext):,} pairs, {links:,} links")
    print(f"set-up: {setup[0]:.2f} s CPU, {setup[1]:.2f} s wall (bar 2 s)")
    print(f"iteration: {cpu:.3f} s CPU, {wall:.3f} s wall, {links / cpu / 1e6:.0f} million links/s (bar 0.25 s)")
    print(
        f"peak memory: {memory():.0f} MiB, of which {before:.0f} before the links; perplexity {learner.state.perplexities[-1]:.2f}"
    )


class Silent:
    def step(self, n: int) -> None:
        """Nothing to show."""


def write_texts(bitext: Bitext, folder: Path) -> tuple[Path, Path]:
    paths = folder / "source.txt", folder / "target.txt"
    for path, side in zip(paths, (0, 1), strict=True):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(" ".join(bitext.pair(i)[side]) + "\n" for i in range(len(bitext)))
    return paths


def ours(paths: tuple[Path, Path]) -> tuple[float, float]:
    clock = Clock()
    with open(paths[0], encoding="utf-8") as source, open(paths[1], encoding="utf-8") as target:
        bitext = bitext_of(zip(source, target, strict=True), "whitespace")
    table, _ = learn_em(bitext, iterations=ITERATIONS)
    found = clock.read()
    print(f"whyrank from text, {len(table):,} entries of 0.001 or more: {found[0]:.2f} s CPU, {found[1]:.2f} s wall")
    return found


def peers(paths: tuple[Path, Path]) -> dict[str, dict[str, float]]:
    python = PEER / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    found = {}
    for name in ("eflomal", "sil-thot", "nltk"):
        command = [str(python), str(HERE / "em_peer.py"), name, *map(str, paths), str(ITERATIONS)]
        found[name] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return found


def from_text(bitext: Bitext) -> None:
    with TemporaryDirectory() as folder:
        paths = write_texts(bitext, Path(folder))
        cpu, _ = ours(paths)
        for name, told in peers(paths).items():
            scale = bitext.links / told["links"]
            note = f" (on {told['links']:,} links, scaled)" if scale > 1.01 else ""
            print(
                f"{name}: {told['cpu'] * scale:.2f} s CPU, {told['wall'] * scale:.2f} s wall{note}: {told['cpu'] * scale / cpu:.2f} times ours"
            )


def in_blocks(links: int, limit: str) -> None:
    clock = Clock()
    bitext = generated(links // LINKS_PER_PAIR)
    made, clock = clock.read(), Clock()
    before = memory(fresh=True)
    table, perplexities = learn_em(bitext, iterations=ITERATIONS, memory=limit)
    cpu, wall = clock.read()
    print(
        f"{bitext.links:,} links, {limit} of them in memory: {cpu:.1f} s CPU, {wall:.1f} s wall for {ITERATIONS} iterations "
        f"and the table; peak memory {memory():.0f} MiB ({before:.0f} of them before the links; the bitext was made in {made[1]:.0f} s); "
        f"{len(table):,} entries, perplexity {perplexities[-1]:.2f}"
    )


def main() -> None:
    learn_em(bitext_of([("a b", "x")], "whitespace"))  # compiles, or loads what was compiled before
    if len(sys.argv) > 1:
        in_blocks(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "64M")
        return
    bitext = generated(PAIRS)
    ids_to_table(bitext)
    from_text(bitext)
    for size in SIZES:
        subprocess.run([sys.executable, __file__, str(size), "64M"], check=True)


if __name__ == "__main__":
    main()
