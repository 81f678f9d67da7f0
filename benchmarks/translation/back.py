"""Runs, means over seeds and the six claims, from the scores that `elsewhere.py` brought back.

    WHYRANK_DATA=FOLDER python benchmarks/translation/back.py WORK CARRIED OUT... [--exports FOLDER]

Several OUT are those of several runs. WORK holds the runs of `main.py` and gets `networks.json`. Networks over BERT
re-rank by themselves; neural Model 1 is fused with BM25, with weights from the fusion part for each seed, and so are the
tables of its networks (`export.SEED.arrow` in the folder of `--exports`). Only questions and candidates that
were scored there count, for all systems.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from indexed import Run, Texts, added, pool_of
from targets import Target, targets

from whyrank.data import Collection, read_run
from whyrank.evaluation import Effectiveness, Hypothesis, Tested, evaluate, judge
from whyrank.evaluation.effectiveness import measure_of
from whyrank.evaluation.fusion import DEPTH as WEIGHED
from whyrank.evaluation.fusion.ascent import fit
from whyrank.evaluation.fusion.objectives import objective_of, ties_ascend
from whyrank.networks import Pieces

FUSED = "neural-model1"
QUERY = 32  # pieces of a question that a network reads
CLAIMS = {
    "words": "bm25+model1-words > bm25+words",
    "pieces": "bm25+model1-pieces > bm25+pieces",
    "neural": "bm25+neural-model1 > bm25+model1-pieces",
    "export": "bm25+neural-model1 > bm25+export",
    "contextual": "bert-model1-full > vanilla-full",
    "length": "bert-model1-full > bert-model1-short",
}


@dataclass(frozen=True, eq=False)
class Back:
    """What came back, and what stayed here."""

    rows: list[dict]
    scores: Mapping[str, np.ndarray]  # by recipe and seed
    results: Mapping[str, dict]  # of `main.py`
    runs: Path
    pieces: Pieces
    exports: Mapping[str, str]  # tables by seed
    weights: dict[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)  # by target and system

    def run(self, key: str, target: str, part: str) -> Run:
        return runs_of(self.rows, self.scores[key], target, part)

    def bm25(self, target: Target) -> str:
        return self.results[target.name]["parameters"]["bm25"]


def opened_back(
    work: Path, carried: Path, outs: Sequence[Path], exports: Path | None = None
) -> tuple[Back, list[str]]:
    """Everything from its files, and the texts that the rows number."""
    with lzma.open(carried / "pairs.json.xz", "rt", encoding="utf-8") as file:
        pairs = json.load(file)
    tables = {path.name.split(".")[1]: str(path) for path in exports.glob("export.*.arrow")} if exports else {}
    results = json.loads((work / "results.json").read_text())
    pieces = Pieces(carried / "encoder")
    return Back(pairs["rows"], scores_of(outs), results, work / "runs", pieces, tables), pairs["texts"]


def scores_of(outs: Sequence[Path]) -> dict[str, np.ndarray]:
    """All arrays of all files, by recipe and seed."""
    found = {}
    for path in sorted(path for out in outs for path in out.glob("scores-*.npz")):
        with np.load(path, allow_pickle=False) as file:
            found |= {name: file[name] for name in file.files}
    return found


def runs_of(rows: list[dict], scores: np.ndarray, target: str, part: str) -> Run:
    """The run of one network for one part of a target; empty where it was not asked."""
    ends = np.cumsum([len(row["docs"]) for row in rows])
    parts = np.split(scores.astype(np.float64), ends[:-1])
    return {
        row["id"]: dict(zip(row["docs"], values.tolist(), strict=True))
        for row, values in zip(rows, parts, strict=True)
        if (row["target"], row["part"]) == (target, part) and not np.isnan(values).any()
    }


def scaled(run: Run, queries: Mapping[str, str], pieces: Pieces) -> Run:
    """Log scores by the number of distinct query pieces, as `model1` has them."""
    read = dict(zip(run, pieces.ids([queries[q] for q in run], QUERY), strict=True))
    return {q: {d: score / max(1, len(np.unique(read[q]))) for d, score in docs.items()} for q, docs in run.items()}


def only(collection: Collection, run: Run) -> Collection:
    """The collection with the questions of a run."""
    queries = {q: text for q, text in collection.queries.items() if q in run}
    return replace(collection, queries=queries, qrels={q: v for q, v in collection.qrels.items() if q in run})


def cut_to(run: Run, like: Run) -> Run:
    """The same questions and candidates as another run has."""
    return {q: {d: run[q][d] for d in docs if d in run[q]} for q, docs in like.items() if q in run}


def weights_of(back: Back, target: Target, texts: Texts, key: str, fusion: Run) -> tuple[float, ...]:
    """From the fusion part; those of another target where there is none."""
    place = (target.like or target.name, key)
    if not target.like:
        measure, part = measure_of(target.measures[0]), only(target.fusion, fusion)
        lexical = texts.scores(back.bm25(target), part.queries, fusion)
        pool = pool_of([lexical, fusion], WEIGHED, ties_ascend(measure))
        back.weights[place] = fit(pool.matrix, objective_of(measure, part, pool)).weights
    return back.weights[place]


def with_bm25(back: Back, target: Target, texts: Texts, key: str, parts: Mapping[str, Run]) -> dict[str, Run]:
    """A translation model alone and beside BM25."""
    weights = weights_of(back, target, texts, key, parts["fusion"])
    lexical = texts.scores(back.bm25(target), target.test.queries, parts["test"])
    return {key: parts["test"], f"bm25+{key}": added([lexical, parts["test"]], weights)}


def translated(back: Back, target: Target, texts: Texts, seed: str) -> dict[str, Run]:
    """The network of a seed and its table, if there is one."""
    asked = {"test": target.test, "fusion": target.fusion}
    found = {part: back.run(f"{FUSED}.{seed}", target.name, part) for part in asked}
    parts = {part: scaled(run, asked[part].queries, back.pieces) if run else {} for part, run in found.items()}
    runs = with_bm25(back, target, texts, f"{FUSED}.{seed}", parts)
    if seed in back.exports:
        ask = f"model1:{back.exports[seed]}"
        told = {part: texts.scores(ask, asked[part].queries, run) if run else {} for part, run in found.items()}
        runs |= with_bm25(back, target, texts, f"export.{seed}", told)
    return runs


def trained(back: Back, target: Target, texts: Texts) -> Iterator[tuple[str, Run]]:
    """The runs of all networks, by system and seed."""
    for key in back.scores:
        name, _, seed = key.rpartition(".")
        if name == FUSED:
            yield from translated(back, target, texts, seed).items()
        else:
            yield key, back.run(key, target.name, "test")


def systems(back: Back, target: Target) -> tuple[dict[str, Run], dict[str, list[str]], Collection]:
    """Runs and groups of seeds, all over the same candidates."""
    found, groups = dict(trained(back, target, Texts(target.test))), {}
    for key in found:
        groups.setdefault(key.rpartition(".")[0], []).append(key)
    like = next(iter(found.values()))
    for path in sorted(back.runs.glob(f"{target.name}.*.txt")):
        name = path.name.removeprefix(f"{target.name}.").removesuffix(".txt")
        if name not in groups:
            found[name] = cut_to(read_run(path), like)
    return found, groups, only(target.test, like)


def judged(rows: Sequence[Effectiveness], claims: Mapping[str, str]) -> list[Tested]:
    """The claims about systems that are there."""
    named, found = {row.run for row in rows}, [Hypothesis(key, *claim.split(" > ")) for key, claim in claims.items()]
    return judge(rows, [claim for claim in found if {claim.better, claim.worse} <= named])


def shown(row: Effectiveness) -> str:
    spread = "" if row.deviation is None else f"sd {row.deviation:.4f} over {row.runs}"
    tested = "" if row.difference is None else f"{row.difference:+.4f} p adjusted {row.p_adjusted:.4f}"
    return f"{row.measure:13} {row.run:28} {row.mean:.4f} {tested} {spread}"


def claimed(each: Tested) -> str:
    interval = f"[{each.ci_low:+.4f}, {each.ci_high:+.4f}]"
    tested = f"{each.difference:+.4f} {interval} p adjusted {each.p_adjusted:.4f} {each.verdict(0.05)}"
    return f"{each.measure:13} {each.hypothesis:24} {each.mean:.4f} {each.other:.4f} {tested}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("work", "carried"):
        parser.add_argument(name, type=Path)
    parser.add_argument("outs", type=Path, nargs="+")
    parser.add_argument("--exports", type=Path, help="a folder with export.SEED.arrow")
    given = parser.parse_args()
    (back, _), kept = opened_back(given.work, given.carried, given.outs, given.exports), {}
    for name, target in targets(Path(os.environ["WHYRANK_DATA"])).items():
        found, groups, part = systems(back, target)
        rows = evaluate(part, found, target.measures, "bm25", groups=groups)
        claims = judged(rows, CLAIMS)
        print("\n".join(f"{name:10} {line}" for line in [*map(shown, rows), *map(claimed, claims)]), flush=True)
        means = [{k: v for k, v in vars(row).items() if k != "per_query"} for row in rows]
        kept[name] = {"rows": means, "claims": [vars(claim) for claim in claims]}
    kept["weights"] = {" ".join(key): weights for key, weights in back.weights.items()}
    (given.work / "networks.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
