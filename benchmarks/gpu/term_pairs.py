"""Pairs of terms per second by both implementations: networks of two sizes with random weights, 8 tokens a pair.

    python benchmarks/gpu/term_pairs.py --device cuda --out term_pairs.json
    python benchmarks/gpu/term_pairs.py --device cpu --sizes tiny

For each: pairs per second, the share of what a large matrix product reaches (by the operations of the plain model), and
how far weights lie from the network in single precision. It needs torch, transformers and numpy; the kernels need
triton, which comes with torch for GPUs.
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

from whyrank.learners.parm.pairs import PairScorer, PairTask, TermSequences, score_block
from whyrank.networks import ParmNetwork, new_encoder

SIZES = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "tiny": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 128},
}
TOKENS, QUERY, DOC = 30_522, 2, 3


class Marks:
    """What networks ask of a tokenizer here."""

    special = {"cls": 101, "sep": 102, "pad": 0, "mask": 103}  # noqa: RUF012


def network_of(size: str) -> ParmNetwork:
    """A network whose weights are random, wide enough that pairs differ."""
    torch.manual_seed(0)
    shape = {"model_type": "bert", "vocab_size": TOKENS, "initializer_range": 0.05, **SIZES[size]}
    made = ParmNetwork(new_encoder(shape), Marks(), max_query=16, max_doc=16).eval()  # type: ignore[arg-type]
    made.outer.weight.data *= 4
    return made


def sequences(n: int, length: int, rng: np.random.Generator) -> TermSequences:
    return TermSequences.of([row.astype(np.int32) for row in rng.integers(1000, TOKENS, (n, length))])


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
        self.sides = sequences(1000, QUERY, rng), sequences(20_000, DOC, rng)
        self.pairs = [torch.from_numpy(rng.integers(0, n, 20_000 if device.startswith("cuda") else 300)).to(device)
                      for n in (1000, 20_000)]  # fmt: skip
        self.exact = self.weights(PairScorer(self.network, *self.sides, device, "fp32", "torch"), *self.pairs)

    def weights(self, scorer: PairScorer, query: torch.Tensor, doc: torch.Tensor) -> torch.Tensor:
        """The weights of some pairs."""
        groups = scorer.queries.groups[QUERY], scorer.docs.groups[DOC]
        size = scorer.batch_size(*groups)
        with torch.inference_mode():
            batch = scorer.batch(*groups)
            return torch.cat([batch(query[i : i + size], doc[i : i + size]) for i in range(0, len(query), size)])

    def measured(self, implementation: str) -> dict[str, Any]:
        start = time.perf_counter()
        scorer = PairScorer(self.network, *self.sides, self.device, self.precision, implementation)
        apart = (self.weights(scorer, *self.pairs) - self.exact).abs()
        groups = scorer.queries.groups[QUERY], scorer.docs.groups[DOC]
        at = torch.arange(scorer.batch_size(*groups), device=self.device)
        with torch.inference_mode():
            batch = scorer.batch(*groups)
            batch(at * 7 % 1000, at % 20_000)
            ready = time.perf_counter() - start
            seconds = timed(lambda: batch(at * 7 % 1000, at % 20_000), self.device, self.least)
        return {"size": self.size, "implementation": implementation, "tokens": scorer.tokens, "first_seconds": round(ready, 1),
                "pairs_per_second": len(at) / seconds, "deviation_max": float(apart.max()),
                "deviation_mean": float(apart.mean()), "spread": float(self.exact.std())}  # fmt: skip


def shown(row: dict[str, Any], ceiling: float) -> str:
    share = row["pairs_per_second"] * operations(row["size"]) / ceiling
    far = f"max {row['deviation_max']:.4f} mean {row['deviation_mean']:.5f}"
    name = f"{row['size']:<7} {row['implementation']:<7}"
    return f"{name} {row['pairs_per_second']:>12,.0f} pairs/s {share:6.1%} {far} (ready in {row['first_seconds']} s)"


def through(size: Size, implementation: str, pairs: int) -> dict[str, Any]:
    """Whole blocks of terms of several lengths, from numbers to entries above a threshold."""
    rng = np.random.default_rng(1)
    lengths = rng.choice([1, 2, 3, 4, 5], size=20_000, p=[0.3, 0.3, 0.25, 0.1, 0.05])
    docs = TermSequences.of([row.astype(np.int32) for row in (rng.integers(1000, TOKENS, n) for n in lengths)])
    few = max(1, pairs // len(docs))
    queries = TermSequences.of([rng.integers(1000, TOKENS, 1 + i % 2).astype(np.int32) for i in range(few)])
    task = PairTask(queries, docs, float(size.exact.quantile(0.999)))
    scorer = PairScorer(size.network, queries, docs, size.device, size.precision, implementation)
    some = np.arange(len(queries), dtype=np.int32)
    score_block(task, scorer, some[: max(1, few // 10)])
    wait(size.device)
    start = time.perf_counter()
    block = score_block(task, scorer, some)
    seconds = time.perf_counter() - start
    mean = float(lengths.mean()) + float(np.mean([1 + i % 2 for i in range(few)])) + 3
    return {"implementation": implementation, "pairs": task.pairs, "seconds": seconds, "entries": len(block.docs),
            "mean_tokens": mean, "pairs_per_second": task.pairs / seconds}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="")
    parser.add_argument("--sizes", default="minilm,base")
    parser.add_argument("--least", type=float, default=0.6, help="seconds of each timing")
    parser.add_argument("--out", type=Path, default=Path("term_pairs.json"))
    given = parser.parse_args()
    on_gpu = given.device.startswith("cuda")
    precision = given.precision or ("bf16" if on_gpu else "fp32")
    name = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    ceiling = peak(given.device)
    print(
        f"{name}, torch {torch.__version__}, {precision}; a large product in bf16: {ceiling / 1e12:,.1f} TFLOP/s",
        flush=True,
    )
    rows, blocks = [], []
    for number in given.sizes.split(","):
        size = Size(number, given.device, precision, given.least)
        for implementation in ("torch", "triton") if on_gpu and precision == "bf16" else ("torch",):
            rows.append(size.measured(implementation))
            print(shown(rows[-1], ceiling), flush=True)
        block = through(size, implementation, int(rows[-1]["pairs_per_second"] * 8) or 1) | {"size": number}
        blocks.append(block)
        print(f"{number:<7} {implementation:<7} blocks of {block['mean_tokens']:.1f} tokens a pair on average: "
              f"{block['pairs_per_second']:,.0f} pairs/s, {block['pairs']:,} pairs to {block['entries']:,} entries", flush=True)  # fmt: skip
    found = {"device": name, "torch": torch.__version__, "precision": precision, "peak": ceiling,
             "tokens": QUERY + DOC + 3, "rows": rows, "blocks": blocks}  # fmt: skip
    given.out.write_text(json.dumps(found, indent=1))
    print(given.out)


if __name__ == "__main__":
    main()
