"""Pairs of terms per second, for every way to score them: networks of two sizes with random weights, 8 pieces a pair.

    python benchmarks/term_pairs.py --device cuda --out term_pairs.json
    python benchmarks/term_pairs.py --device cpu --sizes tiny

For each way: pairs per second, the share of what a large matrix product reaches (by the operations of the plain model,
so that ways compare), and how far weights lie from the plain model in single precision. It needs torch and
transformers; the kernels need triton, which comes with torch for GPUs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whyrank.learners.parm.pairs import Settings, Task, distinct
from whyrank.learners.parm.pairs.operations import Tiles
from whyrank.learners.parm.pairs.running import scored
from whyrank.learners.parm.pairs.scorer import PairScorer
from whyrank.learners.parm.pairs.terms import Distinct, Sequences, side_of
from whyrank.networks import ParmNetwork, new_encoder

SIZES = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "tiny": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 128},
}
PIECES, QUERY, DOC = 30_522, 2, 3
WAYS = ("model", "eager", "graph", "triton", "gelu", "lt", "joined", "fused", "compile", "compile-broadcast")
TILES = {
    "triton": [Tiles(attend=(32, 4, 3)), Tiles(attend=(64, 4, 2)), Tiles(attend=(64, 8, 3)), Tiles(norm=(4, 4)), Tiles(norm=(16, 8))],
    "gelu": [Tiles(up=(128, 256, 64, 8, 3)), Tiles(up=(128, 256, 64, 8, 4)), Tiles(up=(256, 128, 64, 8, 3))],
    "fused": [Tiles(feed=(64, 64, 8, 1)), Tiles(feed=(64, 32, 16, 2)), Tiles(project=(64, 64, 8, 2))],
}  # fmt: skip


class Marks:
    """What networks ask of a tokenizer here."""

    special = {"cls": 101, "sep": 102, "pad": 0, "mask": 103}  # noqa: RUF012


def network_of(size: str) -> ParmNetwork:
    """A network whose weights are random, wide enough that pairs differ."""
    torch.manual_seed(0)
    shape = {"model_type": "bert", "vocab_size": PIECES, "initializer_range": 0.05, **SIZES[size]}
    made = ParmNetwork(new_encoder(shape), Marks(), max_query=16, max_doc=16).eval()  # type: ignore[arg-type]
    made.outer.weight.data *= 4
    return made


def sequences(n: int, length: int, rng: np.random.Generator) -> Sequences:
    return Sequences.of([row.astype(np.int32) for row in rng.integers(1000, PIECES, (n, length))])


def operations(size: str, pieces: int = QUERY + DOC + 3) -> float:
    """Operations of the plain model for one pair: all positions of all layers, and the head."""
    shape = SIZES[size]
    width, layers, inner = shape["hidden_size"], shape["num_hidden_layers"], shape["intermediate_size"]
    each = 2 * (4 * width * width + 2 * width * inner) + 4 * pieces * width
    return float(pieces * layers * each + 4 * width * width)


def peak(device: str) -> float:
    """Operations per second of a large product in bf16."""
    n = 8192 if device.startswith("cuda") else 1024
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = timed(lambda: a @ b, device, 0.3)
    return 2 * n**3 / seconds


def timed(work: Callable[[], Any], device: str, least: float) -> float:
    """Median seconds of a call, over rounds that take `least` seconds in all; of a CPU the seconds of its threads."""
    clock = time.perf_counter if device.startswith("cuda") else time.process_time
    work()
    wait(device)
    rounds, start = [], time.perf_counter()
    while time.perf_counter() - start < least or len(rounds) < 5:
        before = clock()
        work()
        wait(device)
        rounds.append(clock() - before)
    return float(np.median(rounds))


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


class Size:
    """All measurements of one size of network."""

    def __init__(self, size: str, device: str, precision: str, least: float) -> None:
        self.size, self.device, self.precision, self.least = size, device, precision, least
        rng = np.random.default_rng(0)
        self.network = network_of(size)
        self.sides = side_of(sequences(1000, QUERY, rng)), side_of(sequences(20_000, DOC, rng))
        self.asked = rng.integers(0, 1000, 20_000), rng.integers(0, 20_000, 20_000)
        few = 20_000 if device.startswith("cuda") else 300
        self.asked = tuple(part[:few] for part in self.asked)
        exact = PairScorer(self.network, *self.sides, device, "fp32", "eager")
        self.exact = exact.pairs(*self.asked)

    def measured(self, way: str, tokens: int | None, tiles: Tiles | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {"size": self.size, "way": way, "tokens": tokens, "tiles": tiles and repr(tiles)}
        start = time.perf_counter()
        try:
            scorer = PairScorer(self.network, *self.sides, self.device, self.precision, way, tokens, tiles)
            apart = (scorer.pairs(*self.asked) - self.exact).abs()
            run, query, doc = scorer.full_batch()
            with torch.inference_mode():
                found["first_seconds"] = round(time.perf_counter() - start, 1)
                seconds = timed(lambda: run(query, doc), self.device, self.least)
        except Exception as error:  # a way that fails is a result too
            return found | {"failed": f"{type(error).__name__}: {error}"[:300]}
        rate = len(query) / seconds
        far = {
            "deviation_max": float(apart.max()),
            "deviation_mean": float(apart.mean()),
            "spread": float(self.exact.std()),
        }
        return found | {"tokens": scorer.tokens, "pairs_per_second": rate, **far}


def shown(row: dict[str, Any], ceiling: float) -> str:
    name = f"{row['size']:<7} {row['way']:<18} {row['tokens'] or '':>7}"
    if "failed" in row:
        return f"{name} failed: {row['failed'][:110]}"
    share = row["pairs_per_second"] * operations(row["size"]) / ceiling
    more = f" {row['tiles']}" if row["tiles"] else ""
    far = f"max {row['deviation_max']:.4f} mean {row['deviation_mean']:.5f}"
    return f"{name} {row['pairs_per_second']:>12,.0f} pairs/s {share:6.1%} {far} (ready in {row['first_seconds']} s){more}"


def through(size: Size, way: str, pairs: int) -> dict[str, Any]:
    """Whole blocks of terms of several lengths, from numbers to entries above a threshold."""
    rng = np.random.default_rng(1)
    lengths = rng.choice([1, 2, 3, 4, 5], size=20_000, p=[0.3, 0.3, 0.25, 0.1, 0.05])
    docs = distinct([row.astype(np.int32) for row in (rng.integers(1000, PIECES, n) for n in lengths)])
    few = max(1, pairs // len(docs.sequences))
    queries = distinct([rng.integers(1000, PIECES, 1 + i % 2).astype(np.int32) for i in range(few)])
    task = Task(queries, docs, Settings(threshold=float(size.exact.quantile(0.999))))
    scorer = PairScorer(size.network, *map(_side, (queries, docs)), size.device, size.precision, way)
    some = np.arange(len(queries.sequences), dtype=np.int32)
    scored(task, scorer, some[: max(1, few // 10)])
    wait(size.device)
    start = time.perf_counter()
    part = scored(task, scorer, some)
    seconds = time.perf_counter() - start
    mean = float(lengths.mean()) + float(np.mean([1 + i % 2 for i in range(few)])) + 3
    return {"way": way, "pairs": task.pairs, "seconds": seconds, "entries": len(part.docs), "mean_pieces": mean,
            "pairs_per_second": task.pairs / seconds}  # fmt: skip


def _side(found: Distinct) -> Any:
    return side_of(found.sequences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="")
    parser.add_argument("--sizes", default="minilm,base")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--least", type=float, default=0.6, help="seconds of each timing")
    parser.add_argument("--seconds", type=float, default=230, help="no new measurement after so long")
    parser.add_argument("--sweep", action="store_true", help="also other sizes of batches and tiles")
    parser.add_argument("--out", type=Path, default=Path("term_pairs.json"))
    given = parser.parse_args()
    start, on_gpu = time.perf_counter(), given.device.startswith("cuda")
    precision = given.precision or ("bf16" if on_gpu else "fp32")
    name = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    ceiling, rows, blocks = peak(given.device), [], []
    print(
        f"{name}, torch {torch.__version__}, {precision}; a large product in bf16: {ceiling / 1e12:,.1f} TFLOP/s",
        flush=True,
    )

    def add(size: Size, way: str, tokens: int | None = None, tiles: Tiles | None = None) -> float:
        if time.perf_counter() - start > given.seconds:
            return 0.0
        rows.append(size.measured(way, tokens, tiles))
        print(shown(rows[-1], ceiling), flush=True)
        given.out.write_text(json.dumps({"device": name, "torch": torch.__version__, "precision": precision, "peak": ceiling,
                                         "pieces": QUERY + DOC + 3, "rows": rows, "blocks": blocks}, indent=1))  # fmt: skip
        return float(rows[-1].get("pairs_per_second", 0.0))

    for number in given.sizes.split(","):
        size = Size(number, given.device, precision, given.least)
        ways = [way for way in given.ways.split(",") if on_gpu or way in ("model", "eager")]
        rates = {way: add(size, way) for way in ways}
        best = max(rates, key=lambda way: rates[way])
        if given.sweep:
            for tokens in (1 << 14, 1 << 15, 1 << 16, 1 << 18) if on_gpu else (1 << 10, 1 << 14):
                add(size, best, tokens)
            for way, tiles in TILES.items():
                for some in tiles if way in rates and on_gpu else ():
                    add(size, way, None, some)
        if time.perf_counter() - start < given.seconds:
            block = through(size, best, int(rates[best] * 8) or 1) | {"size": number}
            blocks.append(block)
            print(f"{number:<7} {best:<18} blocks of {block['mean_pieces']:.1f} pieces a pair on average: "
                  f"{block['pairs_per_second']:,.0f} pairs/s, {block['pairs']:,} pairs to {block['entries']:,} entries", flush=True)  # fmt: skip
    given.out.write_text(json.dumps(json.loads(given.out.read_text()) | {"blocks": blocks}, indent=1))
    print(f"{time.perf_counter() - start:.0f} s in all; {given.out}")


if __name__ == "__main__":
    main()
