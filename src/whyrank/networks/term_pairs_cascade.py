"""The cascade: a student proposes pairs, PaRM decides on them, and a fresh sample says how many were missed at most.

The cut of the student's score is chosen on one sample and certified on another. Where the certificate falls short of
the recall that was asked for, the cut is lowered, what is new is scored, and a new sample is drawn; the r-th
certificate spends half of the error probability of the one before, so that whichever is the last one holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from whyrank.core.errors import BadInput
from whyrank.core.files import replacing, write_text
from whyrank.core.protocols import Codes, Flags, Ints
from whyrank.core.seeds import generator
from whyrank.networks.term_pairs_recall import Certificate, Tally, certificate
from whyrank.networks.term_pairs_results import Entries, Results
from whyrank.networks.term_pairs_running import (
    STORED,
    Clock,
    How,
    Say,
    audits,
    blocks,
    facts,
    part_of,
    remaining,
    scored,
)
from whyrank.networks.term_pairs_scorer import PairScorer
from whyrank.networks.term_pairs_student import Exact, Student, term_states, train_student
from whyrank.networks.term_pairs_task import BROKEN, Task

SAMPLE = {"cpu": 20_000, "cuda": 4_000_000}
ROUNDS = 4
STATE, VECTORS = "cascade.json", "student.npz"
_MARGIN = 1e-3  # student scores that may be on either side of the cut, whatever the order of sums
_LOWER = 0.5  # by how much a cut that missed too much is lowered at least
_SHARE = 0.02  # of the pairs, proposed where the sample has none that belongs
_AT_ONCE, _WIDE = 4_000_000, 256  # pairs that are scored, and queries whose proposals are listed, at a time


class Terms(NamedTuple):
    """How many terms of each stratum have each query sequence, how many terms have each document sequence."""

    query_of: Codes
    doc_of: Codes
    stratum: Codes
    strata: int

    @classmethod
    def of(cls, task: Task) -> Terms:
        """Strata of query terms, which are in the order of their frequency: equally many terms in each."""
        size = len(task.queries.of_term)
        strata = min(task.settings.strata, size)
        stratum = (np.arange(size, dtype=np.int64) * strata // size).astype(np.int32)
        return cls(task.queries.of_term, task.docs.of_term, stratum, strata)

    def found(self, queries: Codes, docs: Codes) -> Ints:
        """How many pairs of terms stand behind pairs of sequences, by stratum."""
        each, size = np.bincount(self.doc_of)[docs], int(self.query_of.max()) + 1
        own = (self.query_of[self.stratum == s] for s in range(self.strata))
        return np.array([int(np.bincount(some, minlength=size)[queries] @ each) for some in own], np.int64)

    def pairs(self) -> Ints:
        """How many pairs of terms there are, by stratum."""
        return np.bincount(self.stratum, minlength=self.strata) * len(self.doc_of)


def run_cascade(task: Task, scorer: PairScorer, results: Results, how: How, say: Say) -> bool:
    """Propose, decide, certify; whether all is done."""
    clock = Clock("cascade", task.pairs, how.seconds, say)
    sample = task.settings.sample or SAMPLE[how.kind]

    def exact(queries: Any, docs: Any) -> Any:
        return scorer.pairs(np.asarray(queries), np.asarray(docs)).to(STORED[scorer.precision]).float().cpu().numpy()

    student, cuts = _begun(task, scorer, exact, results, sample, say)
    for round in range(ROUNDS):
        if round == len(cuts):
            pilot = _pilot(task, student, exact, sample)
            cuts.append(min([choose_cut(*pilot, task.settings.recall, round), *(cut - _LOWER for cut in cuts[-1:])]))
            _note(results, cuts)
        if not _decided(task, scorer, student, cuts, results, clock, how):
            say(f"time is up after {clock.elapsed:.0f} s; the same command goes on")
            return False
        proof = _certified(task, student, cuts[-1], exact, results.entries(), sample, round)
        say(told(proof, task.settings.level))
        if proof.recall >= task.settings.recall:
            break
    proposed = _proposed(student, cuts[-1])
    say(f"{proposed:,} of {task.pairs:,} pairs proposed and scored, {clock.elapsed:.1f} s")
    proved = proof.facts() | {"level": task.settings.level, "rounds": len(cuts)}
    found = facts(scorer, task, task.pairs, clock.elapsed)
    results.log(found | {"cuts": cuts, "proposed": proposed, "sample": sample, "certificate": proved})
    for name in (VECTORS, STATE):
        (results.folder / name).unlink(missing_ok=True)
    return True


def told(proof: Certificate, level: float) -> str:
    """A certificate in one line; `level` holds for all rounds together."""
    worst = min(bound.recall for bound in proof.strata)
    draws = f"{proof.whole.tally.missed:,} of {proof.whole.tally.drawn:,} draws missed"
    return f"recall >= {proof.recall:.4f} at {level:.0%} (worst stratum {worst:.4f}; {draws})"


def choose_cut(scores: Any, belongs: Flags, recall: float, round: int = 0) -> float:
    """The cut below which a sample has few pairs that belong: half of what may be missed, less in later rounds."""
    inside = np.sort(np.asarray(scores)[belongs])
    if not len(inside):
        return float(np.quantile(scores, max(0.0, 1 - _SHARE * 4**round)))
    allowed = int(len(inside) * (1 - recall) / 2 ** (round + 1))
    return float(inside[min(allowed, len(inside) - 1)]) - _MARGIN


def certify(
    terms: Terms, found: Entries, exact: Exact, threshold: float, sample: int, error: float,
    rng: np.random.Generator, proposed: Callable[[Any, Any], Flags] | None = None,
) -> Certificate:  # fmt: skip
    """Draw pairs of terms, each with the same chance, and bound the recall of what was found.

    A drawn pair is missed when it belongs (`exact` gives the threshold or more), is not among those found, and was
    not surely `proposed`: what was proposed and left out has been decided on.
    """
    asked, told_ = (rng.integers(len(side), size=sample) for side in (terms.query_of, terms.doc_of))
    query, doc = terms.query_of[asked].astype(np.int64), terms.doc_of[told_].astype(np.int64)
    known = np.sort(found.queries.astype(np.int64) << 32 | found.docs)
    missed = (exact(query, doc) >= threshold) & ~_among(query << 32 | doc, known)
    if proposed is not None:
        missed[missed] = ~proposed(query[missed], doc[missed])
    stratum = terms.stratum[asked]
    drawn, hits = (np.bincount(stratum[some], minlength=terms.strata) for some in (slice(None), missed))
    columns = (terms.pairs(), terms.found(found.queries, found.docs), drawn, hits)
    return certificate([Tally(*map(int, row)) for row in zip(*columns, strict=True)], error)


def _among(keys: Ints, known: Ints) -> Flags:
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    found: Flags = known[np.searchsorted(known, keys).clip(max=len(known) - 1)] == keys
    return found


def _begun(
    task: Task, scorer: PairScorer, exact: Exact, results: Results, sample: int, say: Say
) -> tuple[Student, list[float]]:
    """The student and the cuts so far; a stopped run goes on with its own."""
    file = results.folder / VECTORS
    if file.exists() and (results.folder / STATE).exists():
        return _kept(results.folder, scorer.device)
    results.clear()
    states = [term_states(scorer.network, side.sequences, scorer.device) for side in (task.queries, task.docs)]
    made = train_student((states[0], states[1]), exact, task.settings.threshold, sample, task.settings.seed)
    with replacing(file) as beside, open(beside, "wb") as out:
        np.savez(out, allow_pickle=False, **{name: part.cpu().numpy() for name, part in made._asdict().items()})
    _note(results, [])
    say(f"student of {2 * sample:,} pairs")
    return made, []


def _kept(folder: Path, device: str) -> tuple[Student, list[float]]:
    try:
        with np.load(folder / VECTORS, allow_pickle=False) as held:
            student = Student(*(torch.from_numpy(held[name]).to(device) for name in Student._fields))
        return student, [float(cut) for cut in json.loads((folder / STATE).read_text())["cuts"]]
    except BROKEN as error:
        what = f"holds a cascade that cannot go on ({type(error).__name__}: {error})"
        raise BadInput(folder, what, "remove it to start anew") from None


def _note(results: Results, cuts: list[float]) -> None:
    write_text(results.folder / STATE, json.dumps({"cuts": cuts}) + "\n")


def _pilot(task: Task, student: Student, exact: Exact, sample: int) -> tuple[Any, Flags]:
    """A sample of pairs to choose the cut on: the student's scores, and which pairs belong."""
    rng = generator(task.settings.seed, "cascade cut")
    sides = (task.queries.sequences, task.docs.sequences)
    query, doc = (rng.integers(len(side), size=sample) for side in sides)
    return student.pairs(query, doc).cpu().numpy(), exact(query, doc) >= task.settings.threshold


def _decided(
    task: Task, scorer: PairScorer, student: Student, cuts: list[float], results: Results, clock: Clock, how: How
) -> bool:
    """Score what is proposed between the last two cuts; whether all is scored."""
    round = len(cuts) - 1
    high = np.inf if round == 0 else cuts[-2]
    left = remaining(task, results.done(round))
    clock.progress.total = clock.progress.done + len(left) * len(task.docs.sequences)
    for block in blocks(left, _queries_at_once(task, student, cuts[-1], how)):
        if clock.over:
            return False
        query, doc = _proposals(student, block, cuts[-1], high)
        weights = scorer.pairs(query, doc).to(STORED[scorer.precision]).cpu()
        kept = (weights.float() >= task.settings.threshold).numpy()
        found = [(query[kept], doc[kept], weights.numpy()[kept])]
        results.add(part_of(round, block, found, *_slices(task, scorer, block, round)))
        clock.step(len(block) * len(task.docs.sequences))
    return True


def _queries_at_once(task: Task, student: Student, cut: float, how: How) -> int:
    """Queries of a block: so many that their proposals fill the device."""
    some = np.linspace(0, len(student.queries) - 1, 64).astype(np.int64)
    each = float((student.scores(some) >= cut).sum(1).float().mean())
    return max(1, int((how.block or _AT_ONCE if how.kind == "cuda" else 1 << 14) / max(each, 1.0)))


def _proposals(student: Student, queries: Codes, low: float, high: float) -> tuple[Any, Any]:
    """Pairs whose student score is from `low` up and below `high`."""
    found = []
    for some in blocks(queries, _WIDE):
        scores = student.scores(some)
        row, column = ((scores >= low) & (scores < high)).nonzero(as_tuple=True)
        found.append((some[row.cpu().numpy()], column.cpu().numpy()))
    query, doc = (np.concatenate(column) for column in zip(*found, strict=True))
    return query.astype(np.int32), doc.astype(np.int32)


def _proposed(student: Student, cut: float) -> int:
    """How many pairs lie above a cut."""
    every = np.arange(len(student.queries), dtype=np.int32)
    return sum(int((student.scores(some) >= cut).sum()) for some in blocks(every, _WIDE))


def _slices(task: Task, scorer: PairScorer, queries: Codes, round: int) -> tuple[Any, Any]:
    """Audited queries with all documents, in the first round."""
    audited = np.intersect1d(queries, audits(task)).astype(np.int32)
    if round or not len(audited):
        return None, None
    part = scored(task, scorer, audited)
    return part.audited, part.slices


def _certified(
    task: Task, student: Student, cut: float, exact: Exact, found: Entries, sample: int, round: int
) -> Certificate:
    def proposed(query: Any, doc: Any) -> Flags:
        return (student.pairs(query, doc) >= cut + _MARGIN).cpu().numpy()

    rng = generator(task.settings.seed, "certificate", str(round))
    error = (1 - task.settings.level) / 2 ** (round + 1)
    return certify(Terms.of(task), found, exact, task.settings.threshold, sample, error, rng, proposed)
