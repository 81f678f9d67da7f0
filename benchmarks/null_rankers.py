"""Rankers that know nothing: how often an audit finds something in them that is not there.

Each ranker scores by a hash of the text alone, or of query and text, with a seed. No study has a true effect for them,
but for paraphrases, whose scores a hash does tell apart. Prints the share of raw p-values below .05 by family of
studies, and how many audits have a finding that is significant after Holm's correction:

    python benchmarks/null_rankers.py sample --seeds 40
    python benchmarks/null_rankers.py $WHYRANK_DATA/cranfield --seeds 40

With --differences, rankers are compared two by two on the same contrasts, and it prints how often a difference has a raw
p-value below .05 and how often its interval leaves out zero, the true difference; of bias studies also those of values:

    python benchmarks/null_rankers.py sample --seeds 800 --differences
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

import whyrank
from whyrank.core import adjust
from whyrank.data import open_collection
from whyrank.scoring import Engine
from whyrank.studies import (
    Difference,
    Plan,
    Request,
    Side,
    answers,
    choose_studies,
    difference_of,
    given_thresholds,
    value_differences,
)

STUDIES = ["matched/*", "edited/*", "axiom/*", "transferred/*", "bias/*"]
LEFT_OUT = "transferred/paraphrase"


@dataclass(frozen=True)
class Hash:
    """A score from 0 to 1 that depends on the text, or on query and text, and on nothing else."""

    seed: int
    of_query: bool
    batch_size = 4096

    @property
    def name(self) -> str:
        return f"{'query and text' if self.of_query else 'text'} {self.seed}"

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> np.ndarray:
        key = self.seed.to_bytes(4, "little")
        texts = [f"{q}\t{d}" if self.of_query else d for q, d in zip(queries, docs, strict=True)]
        digests = b"".join(blake2b(text.encode(), digest_size=8, key=key).digest() for text in texts)
        return np.frombuffer(digests, np.uint64) / 2.0**64


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("collection")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--studies", nargs="*", default=STUDIES)
    parser.add_argument("--differences", action="store_true")
    asked = parser.parse_args()
    collection = open_collection(asked.collection)
    for of_query in (False, True):
        rankers = [Hash(seed, of_query) for seed in range(asked.seeds)]
        kind = "query and text" if of_query else "text"
        if asked.differences:
            differences(kind, rankers, collection, asked.studies)
        else:
            report(kind, whyrank.audit(rankers, collection, asked.studies, correction="none").findings)


def differences(kind: str, rankers: Sequence[Hash], collection: whyrank.Collection, studies: Sequence[str]) -> None:
    request = Request(studies=studies, collection=lambda: collection, rankers=lambda _: rankers, engine=Engine())
    chosen = choose_studies(request).studies
    plan = Plan(collection, chosen, rankers, request.engine, given_thresholds("0.25", rankers), draws=99)
    found: dict[str, list[Difference]] = defaultdict(list)
    given = answers(plan)
    for answer, other in zip(given, given, strict=True):  # two by two
        sides = [Side(each.findings[0], each.contrasts, each.reading) for each in (answer, other)]
        found[answer.name].append(difference_of(*sides, draws=999))
        found[f"{answer.name}, values"] += value_differences(*sides, draws=999)
    for study, some in found.items():
        tested = [each for each in some if each.difference_p is not None]
        if tested:
            level = np.mean([each.difference_p < 0.05 for each in tested])
            missed = np.mean([not each.difference_low <= 0 <= each.difference_high for each in tested])
            counted = f"{level:.1%} of {len(tested):,} p-values below .05"
            print(f"hash of {kind}: {study}: {counted}, {missed:.1%} of intervals leave out 0", flush=True)


def report(kind: str, findings: Sequence[whyrank.Finding]) -> None:
    raw: dict[str, list[float]] = defaultdict(list)
    audits: dict[str, dict[bool, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for f in findings:
        if f.p_value is not None and f.study != LEFT_OUT:
            family = f.study.partition("/")[0]
            raw[family].append(f.p_value)
            audits[f.ranker][family == "bias"].append((f.study, f.p_value))
    for family, p in raw.items():
        print(f"hash of {kind}: {family}: {np.mean(np.array(p) < 0.05):.2%} of {len(p):,} raw p-values below .05")
    everything = np.concatenate(list(raw.values()))
    print(f"hash of {kind}: all: {np.mean(everything < 0.05):.2%} of {len(everything):,}")
    wrong, found = Counter(), 0
    for tables in audits.values():
        hits = [
            study
            for rows in tables.values()
            for (study, _), p in zip(rows, adjust([p for _, p in rows], "holm"), strict=True)
            if p < 0.05
        ]
        wrong.update(hits)
        found += bool(hits)
    print(f"hash of {kind}: {found} of {len(audits)} audits have a significant finding: {dict(wrong)}", flush=True)


if __name__ == "__main__":
    main()
