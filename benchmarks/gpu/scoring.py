"""Pairs per second of neural rankers on a GPU, beside sentence-transformers, tokenising included.

    WHYRANK_DATA=DATA PYTHONPATH=src python benchmarks/gpu/scoring.py --out scoring.json
    PYTHONPATH=src python benchmarks/gpu/scoring.py --device cpu --pairs 60 --peers 20 --shapes '2 x 128'

Random pairs of TREC DL 2019 (random words without WHYRANK_DATA), random weights. It needs torch, transformers,
sentence-transformers and numpy. For cross-encoders of two sizes: the scorer alone, the ranker through engine and store,
and the best of three batch sizes of `CrossEncoder.predict`; for bi-encoders distinct texts per second beside `encode`; one
rate for each other family; how far exact scores lie from those of the CPU, and fast ones from exact ones in order.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from neural_models import FAMILIES, peer, texts

from whyrank.rankers import open_ranker
from whyrank.rankers.neural.computing import quiet
from whyrank.rankers.neural.deviation import mean_tau
from whyrank.rankers.neural.passages import TextPairs
from whyrank.scoring import Engine, ScoreStore

LEAST = {
    "cross 6 x 384 fast": 75_000, "cross 6 x 384 exact": 15_000, "cross 12 x 768 fast": 15_500, "cross 12 x 768 exact": 2_500,
}  # fmt: skip


def seconds(work: Callable[[], Any], device: str, rounds: int = 3) -> float:
    """The least seconds of some rounds, after one that does not count."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found[1:])


class Bench:
    """Pairs, models in a folder, and the rows of the table."""

    def __init__(self, given: argparse.Namespace, root: Path) -> None:
        self.device, self.root, self.peers = given.device, root, given.peers
        self.queries, self.docs = texts()
        rng = np.random.default_rng(0)
        self.query, self.doc = (
            rng.integers(0, len(side), given.pairs).astype(np.int32) for side in (self.queries, self.docs)
        )
        self.asked = [self.queries[i] for i in self.query], [self.docs[i] for i in self.doc]
        self.rows: list[dict[str, Any]] = []

    def add(self, what: str, rate: float, **more: float) -> None:
        self.rows.append({"what": what, "per_second": rate, **more})
        shown = "  ".join(f"{name} {value:.4g}" for name, value in more.items())
        least = f"  (at least {LEAST[what]:,})" if what in LEAST else ""
        print(f"{what:<44} {rate:>12,.0f} /s{least}  {shown}", flush=True)

    def folder(self, family: str, shape: str) -> str:
        torch.manual_seed(0)
        return FAMILIES[family].make(self.root / f"{family} {shape}".replace(" ", "-"), shape)

    def ranker(self, family: str, folder: str, precision: str, device: str = "") -> Any:
        own = FAMILIES[family]
        options = {"device": device or self.device, "precision": precision, "backend": "torch", **dict(own.arguments)}
        return open_ranker(f"{own.ranker}:{folder}({','.join(f'{k}={v}' for k, v in options.items())})")

    def best_peer(self, family: str, folder: str, half: bool, queries: list[str], docs: list[str]) -> float:
        score = peer(family, folder, self.device, half)
        return min(seconds(lambda size=size: score(queries, docs, size), self.device, 1) for size in (32, 256, 1024))

    def cross(self, shape: str) -> None:
        folder, rates = self.folder("cross", shape), dict[str, float]()
        few = [side[: self.peers] for side in self.asked]
        for half in (False, True):
            spent = self.best_peer("cross", folder, half, *few)
            self.add(f"CrossEncoder.predict {shape} {'bf16' if half else 'fp32'}", len(few[0]) / spent)
        for precision in ("exact", "fast"):
            ranker = self.ranker("cross", folder, precision)
            scorer = ranker._scorer
            spent = seconds(lambda scorer=scorer: replace(scorer)(TextPairs.of(*self.asked)), self.device)
            rates[precision] = len(self.query) / spent
            self.add(f"cross {shape} {precision}", rates[precision])
            spent = seconds(lambda ranker=ranker: self.through_engine(ranker), self.device)
            whole = len(self.query) / spent
            self.add(f"cross {shape} {precision}, engine and store", whole, share=whole / rates[precision])
        exact, fast = (self.ranker("cross", folder, p).score(*few) for p in ("exact", "fast"))
        some = [side[:200] for side in few]
        apart = np.abs(exact[:200] - self.ranker("cross", folder, "exact", "cpu").score(*some)).max()
        print(f"  exact: largest difference to the CPU {apart:.1e}; fast: {np.abs(fast - exact).max():.3f} to exact")

    def through_engine(self, ranker: Any) -> None:
        scorer = ranker._scorer
        ranker.__dict__["_scorer"] = replace(scorer)  # which knows nothing yet
        with TemporaryDirectory() as place, ScoreStore(Path(place) / "scores.sqlite") as store:
            Engine(store).score(ranker, self.queries, self.docs, self.query, self.doc)

    def bi(self, shape: str) -> None:
        """Distinct texts of about 80 tokens."""
        folder, n = self.folder("bi", shape), len(self.query)
        words = " ".join(self.docs).split()
        docs = [" ".join(words[i * 61 : i * 61 + 61]) for i in range(min(n, len(words) // 61))]
        some = docs[: 4 * self.peers]
        theirs = len(some) / min(self.best_peer("bi", folder, half, [], some) for half in (False, True))
        self.add(f"SentenceTransformer.encode {shape}, best", theirs)
        for precision in ("exact", "fast"):
            scorer = self.ranker("bi", folder, precision)._scorer
            pairs = TextPairs.of([self.queries[0]] * len(docs), docs)
            rate = len(docs) / seconds(lambda scorer=scorer, pairs=pairs: replace(scorer)(pairs), self.device)
            self.add(f"bi {shape} {precision}", rate, times=rate / theirs)

    def other(self, family: str, shape: str) -> None:
        folder = self.folder(family, shape)
        some = [side[: self.peers] for side in self.asked]
        for precision in ("exact", "fast"):
            scorer = self.ranker(family, folder, precision)._scorer
            spent = seconds(lambda scorer=scorer: replace(scorer)(TextPairs.of(*some)), self.device, 1)
            self.add(f"{family} {shape} {precision}", len(some[0]) / spent)

    def order(self) -> None:
        """Kendall's tau of fast to exact scores with a trained model."""
        some = [side[: 4 * self.peers] for side in self.asked]
        exact, fast = (
            open_ranker(f"cross:bundled(device={self.device},precision={p})").score(*some) for p in ("exact", "fast")
        )
        tau = mean_tau(self.query[: len(fast)], fast, exact)
        self.rows.append({"what": "tau of cross:bundled", "tau": tau})
        print(
            f"cross:bundled, fast to exact: mean tau-b per query {tau}, largest difference {np.abs(fast - exact).max():.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--pairs", type=int, default=40_000)
    parser.add_argument("--peers", type=int, default=4000, help="pairs for sentence-transformers and other families")
    parser.add_argument("--shapes", default="6 x 384,12 x 768")
    parser.add_argument("--out", type=Path, default=Path("scoring.json"))
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if given.device.startswith("cuda") else "CPU"
    start = time.perf_counter()
    print(f"{name}, torch {torch.__version__}, {given.pairs:,} pairs", flush=True)
    with TemporaryDirectory() as place, quiet():
        bench, shapes = Bench(given, Path(place)), given.shapes.split(",")
        for shape in shapes:
            bench.cross(shape)
            bench.bi(shape)
        for family in ("sparse", "late", "t5", "causal", "vanilla"):
            bench.other(family, shapes[0])
        bench.order()
    found = {"device": name, "torch": torch.__version__, "pairs": given.pairs, "rows": bench.rows}
    given.out.write_text(json.dumps(found, indent=1))
    print(f"{given.out}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
