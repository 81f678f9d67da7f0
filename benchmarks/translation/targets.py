"""What the experiment learns from and what it is measured on: collections, their parts, and where settings come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from whyrank.data import Collection, Grades, open_collection, split_collection

SEED = 0


@dataclass(frozen=True)
class Target:
    """A collection in parts: `fusion` for weights, `dev` for parameters, `test` for figures; other tables' source.

    `like` names the target whose parameters and weights are taken where there is nothing to tune on.
    """

    name: str
    measures: tuple[str, ...]
    test: Collection
    fusion: Collection | None = None
    dev: Collection | None = None
    modelling: Collection | None = None
    like: str = ""


def targets(data: Path) -> dict[str, Target]:
    """All of them, drawn with one seed; the parts of a target are disjoint sets of questions."""
    medquad = split_collection(opened(data, "medquad:train"), {"modelling": 0.85, "fusion": 0.15}, SEED)
    pubmedqa = split_collection(
        opened(data, "pubmedqa"), {"modelling": 0.5, "fusion": 0.15, "dev": 0.15, "test": 0.2}, SEED
    )
    cranfield = split_collection(
        opened(data, "cranfield"), {"modelling": 0.3, "fusion": 0.2, "dev": 0.15, "test": 0.35}, SEED
    )
    scifact = split_collection(opened(data, "scifact:train"), {"modelling": 0.6, "fusion": 0.25, "dev": 0.15}, SEED)
    found = [
        Target(
            "medquad", ("RR@10", "nDCG@10"), opened(data, "medquad:test"), medquad["fusion"],
            opened(data, "medquad:dev"), medquad["modelling"],
        ),
        Target("pubmedqa", ("RR@10", "nDCG@10"), *(pubmedqa[p] for p in ("test", "fusion", "dev", "modelling"))),
        Target("cranfield", ("RR@10", "nDCG@10"), *(cranfield[p] for p in ("test", "fusion", "dev", "modelling"))),
        Target(
            "scifact", ("RR@10", "nDCG@10"), opened(data, "scifact:test"),
            *(scifact[p] for p in ("fusion", "dev", "modelling")),
        ),
        Target("liveqa", ("RR(rel=2)@10", "nDCG@10"), from_zero(opened(data, "liveqa_med2017")), like="medquad"),
        Target("dl19", ("RR(rel=2)@10", "nDCG@10"), opened(data, "msmarco_dl19"), like="medquad"),
    ]  # fmt: skip
    return {target.name: target for target in found}


def opened(data: Path, name: str) -> Collection:
    """A collection of the data folder."""
    return open_collection(str(data / name))


def from_zero(collection: Collection) -> Collection:
    """With grades from 0 up instead of from 1 (1 means wrong in LiveQA)."""
    lowered = {q: {d: max(0, grade - 1) for d, grade in judged.items()} for q, judged in collection.qrels.items()}
    return replace(collection, qrels=lowered, grades=Grades(relevant=2))


def merged(parts: Mapping[str, Collection]) -> Collection:
    """Several collections as one to learn from; the ids get the name of their collection in front."""
    docs, queries, qrels = {}, {}, {}
    for name, part in parts.items():
        docs |= {f"{name}/{d}": text for d, text in part.docs.items()}
        queries |= {f"{name}/{q}": text for q, text in part.queries.items()}
        qrels |= {f"{name}/{q}": {f"{name}/{d}": g for d, g in rows.items()} for q, rows in part.qrels.items()}
    return Collection.of(docs, queries, qrels, name="+".join(parts))
