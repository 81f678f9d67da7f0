"""The cascade: a student proposes pairs, PaRM decides on them, and a fresh sample says how many were missed at most.

The cut of the student's score is chosen on one sample and certified on another. Where the certificate falls short of
the recall that was asked for, the cut is lowered, what is new is scored, and a new sample is drawn; the r-th
certificate spends half of the error probability of the one before, so that whichever is the last one holds.

How large a certificate's sample is follows from what was found, before any of it is drawn. Where it would have to be
so large that scoring all pairs takes less, all are scored, and there is nothing to certify.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from whyrank.core.checksums import check_seal, read_sealed_json, sealed_file, sealed_json
from whyrank.core.errors import BadInput
from whyrank.core.files import write_text
from whyrank.core.protocols import Codes, Flags
from whyrank.core.seeds import generator
from whyrank.networks.term_pairs_certifying import Terms, certify, told
from whyrank.networks.term_pairs_drawing import AT_ONCE, Drawn
from whyrank.networks.term_pairs_recall import Certificate, at_best, everything, needed
from whyrank.networks.term_pairs_results import Entries, Results
from whyrank.networks.term_pairs_running import (
    STORED,
    Clock,
    How,
    Say,
    TimeIsUp,
    audits,
    blocks,
    exhaustive,
    facts,
    part_of,
    remaining,
    scored,
    timed,
)
from whyrank.networks.term_pairs_scorer import PairScorer
from whyrank.networks.term_pairs_student import Student, term_states, train_student
from whyrank.networks.term_pairs_task import BROKEN, Task

SAMPLE = {"cpu": 20_000, "cuda": 4_000_000}
ROUNDS = 4
STATE, VECTORS = "cascade.json", "student.npz"
_MARGIN = 1e-3  # student scores that may be on either side of the cut, whatever the order of sums
_LOWER = 0.5  # by how much a cut that missed too much is lowered at least
_LOWEST = -1e30  # a cut below all scores
_SHARE = 0.02  # of the pairs, proposed where the sample has none that belongs
_SAMPLES = 4  # that a cascade draws at least: two for the student, for the cut, for the certificate
_ANEW = "remove it to start anew"
_WIDE = 256  # queries whose proposals are listed at a time


class _Run(NamedTuple):
    """What all steps of a cascade need."""

    task: Task
    scorer: PairScorer
    results: Results
    how: How
    say: Say
    clock: Clock
    exact: Drawn
    terms: Terms

    @property
    def sample(self) -> int:
        """Pairs of a sample, unless it takes more to show the recall."""
        return self.task.settings.sample or SAMPLE[self.how.kind]

    @property
    def pairs(self) -> int:
        """Pairs of terms."""
        return len(self.terms.query_of) * len(self.terms.doc_of)

    def error(self, round: int) -> float:
        """The error probability of a round's certificate."""
        return float((1 - self.task.settings.level) / 2 ** (round + 1))

    def size(self, found: float, round: int) -> int:
        """Pairs of a sample that can show the recall; a size that was asked for is kept."""
        if self.task.settings.sample:
            return self.sample
        return max(self.sample, needed(self.pairs, found, self.task.settings.recall, self.error(round)))


def run_cascade(task: Task, scorer: PairScorer, results: Results, how: How, say: Say) -> bool:
    """Propose, decide, certify; whether all is done."""
    _forget_another(results)
    clock = Clock("cascade", 0, how.seconds, say, results.seconds)
    exact = Drawn(scorer, results, clock, AT_ONCE[how.kind])
    terms = Terms.of(task, scorer.network.pieces.special["mask"])
    run = _Run(task, scorer, results, how, say, clock, exact, terms)
    with timed(results, clock):
        try:
            return _all(run) if _begins_with_all(run) else _cascade(run)
        except TimeIsUp:
            say(f"time is up after {clock.elapsed:.0f} s; the same command goes on")
            return False


def _forget_another(results: Results) -> None:
    """Remove the student and the cuts of another network or task, which was stopped before its first block."""
    try:
        theirs = read_sealed_json(results.folder / STATE, _ANEW)["identity"]
    except BROKEN:
        return
    for name in (VECTORS, STATE) if theirs != results.identity else ():
        (results.folder / name).unlink(missing_ok=True)


def _cascade(run: _Run) -> bool:
    student, cuts = _begun(run)
    pilot = cache(lambda: _pilot(run, student))
    if not cuts and pilot() is None:
        run.say(
            f"samples that show a recall of {run.task.settings.recall:g} cost more than all pairs: all are scored"
        )
        return _all(run)
    if not cuts:
        _cut(run, cuts, pilot())
    proof = _round(run, student, cuts)
    while proof is None or not _ends(run, proof, len(cuts)):
        _cut(run, cuts, pilot() if proof else None)
        proof = _round(run, student, cuts)
    _finish(run, student, cuts, proof)
    return True


def _cut(run: _Run, cuts: list[float], pilot: tuple[Any, Flags] | None) -> None:
    """Add the next cut: below all scores, where there is no sample to choose it on."""
    chosen = _LOWEST if pilot is None else choose_cut(*pilot, run.task.settings.recall, len(cuts))
    cuts.append(min([chosen, *(cut - _LOWER for cut in cuts[-1:])]))
    _note(run.results, cuts)
    run.exact.forget()


def _ends(run: _Run, proof: Certificate, rounds: int) -> bool:
    """Whether a certificate is the last one: it is enough, or no sample of this size can be enough."""
    asked, drawn = run.task.settings.recall, run.task.settings.sample
    if proof.recall >= asked or rounds >= ROUNDS:
        return True
    return drawn is not None and at_best(run.pairs, _likely(proof), drawn, run.error(rounds)) < asked


def _likely(proof: Certificate) -> float:
    """How many pairs belong: those found, and as many missed as the sample says."""
    pairs, found, drawn, missed = proof.whole.tally
    return found + pairs * missed / drawn


def _finish(run: _Run, student: Student, cuts: list[float], proof: Certificate) -> None:
    """Say and log how it went, and forget the student."""
    settings, proposed = run.task.settings, _proposed(student, cuts[-1])
    run.say(f"{proposed:,} of {run.task.pairs:,} pairs proposed and scored, {run.clock.spent:.1f} s")
    if proof.recall < settings.recall:
        run.say(_short(run, proof))
    level = {"level": settings.level} if proof.strata else {}
    proved = proof.facts() | level | {"asked": settings.recall, "rounds": len(cuts)}
    found = facts(run.scorer, run.task, "cascade", proposed, run.clock.spent)
    run.results.log(found | {"cuts": cuts, "proposed": proposed, "sample": run.sample, "certificate": proved})
    run.exact.forget()
    for name in (VECTORS, STATE):
        (run.results.folder / name).unlink(missing_ok=True)


def _short(run: _Run, proof: Certificate) -> str:
    """That a certificate shows less than was asked for, and what may help."""
    asked, drawn = run.task.settings.recall, run.task.settings.sample
    enough = needed(run.pairs, _likely(proof), asked, run.error(0))
    larger = drawn is not None and drawn < enough and _SAMPLES * enough < run.task.pairs
    remedy = f"take --sample {enough}" if larger else "leave out --cascade to score all pairs"
    return f"note: the recall that is shown, {proof.recall:.4f}, is below --recall {asked:g}; {remedy}"


def _begins_with_all(run: _Run) -> bool:
    """Whether all pairs are to be scored: a run before this one said so, or samples would be as many."""
    file = run.results.folder / STATE
    if file.exists():
        return _says_all(file)
    if run.task.pairs > _SAMPLES * run.sample:
        return False
    run.results.clear()
    run.say(f"the samples of a cascade have {_SAMPLES * run.sample:,} pairs, no fewer than there are: all are scored")
    return True


def _says_all(file: Path) -> bool:
    try:
        return bool(read_sealed_json(file, _ANEW)["all"])
    except BROKEN:
        return False


def _all(run: _Run) -> bool:
    """Score every pair: nothing is missed then, and nothing to certify."""
    file, seconds = run.results.folder / STATE, run.how.seconds
    _note(run.results, [], True)
    (run.results.folder / VECTORS).unlink(missing_ok=True)
    run.exact.forget()
    run.results.spend(run.clock.spent)
    how = run.how._replace(seconds=None if seconds is None else max(0.0, seconds - run.clock.elapsed))
    proved = everything(run.pairs).facts() | {"asked": run.task.settings.recall, "rounds": 1}
    done = exhaustive(run.task, run.scorer, run.results, how, run.say, {"certificate": proved})
    if done:
        file.unlink()
    return done


def choose_cut(scores: Any, belongs: Flags, recall: float, round: int = 0) -> float:
    """The cut below which a sample has few pairs that belong: half of what may be missed, less in later rounds."""
    inside = np.sort(np.asarray(scores)[belongs])
    if not len(inside):
        return float(np.quantile(scores, max(0.0, 1 - _SHARE * 4**round)))
    allowed = int(len(inside) * (1 - recall) / 2 ** (round + 1))
    return float(inside[min(allowed, len(inside) - 1)]) - _MARGIN


def _begun(run: _Run) -> tuple[Student, list[float]]:
    """The student and the cuts so far; a stopped run goes on with its own."""
    task, scorer, folder = run.task, run.scorer, run.results.folder
    file = folder / VECTORS
    if file.exists() and (folder / STATE).exists():
        return _kept(folder, scorer.device)
    run.results.clear()
    states = [term_states(scorer.network, side.sequences, scorer.device) for side in (task.queries, task.docs)]
    made = train_student((states[0], states[1]), run.exact, task.settings.threshold, run.sample, task.settings.seed)
    with sealed_file(file) as out:
        np.savez(out, allow_pickle=False, **{name: part.cpu().numpy() for name, part in made._asdict().items()})
    _note(run.results, [])
    run.exact.forget()
    run.say(f"student of {2 * run.sample:,} pairs")
    run.clock.begin()
    return made, []


def _kept(folder: Path, device: str) -> tuple[Student, list[float]]:
    try:
        check_seal(folder / VECTORS, _ANEW)
        with np.load(folder / VECTORS, allow_pickle=False) as held:
            student = Student(*(torch.from_numpy(held[name]).to(device) for name in Student._fields))
        return student, [float(cut) for cut in read_sealed_json(folder / STATE, _ANEW)["cuts"]]
    except BROKEN as error:
        what = f"holds a cascade that cannot go on ({type(error).__name__}: {error})"
        raise BadInput(folder, what, _ANEW) from None


def _note(results: Results, cuts: list[float], whole: bool = False) -> None:
    state = {"cuts": cuts, "all": whole, "identity": results.identity}
    write_text(results.folder / STATE, sealed_json(state))


def _pilot(run: _Run, student: Student) -> tuple[Any, Flags] | None:
    """A sample of pairs to choose the cut on: the student's scores, and which pairs belong.

    None where the samples that can show the recall cost more than scoring all pairs.
    """
    run.clock.check()
    scores, belongs = _drawn(run, student, run.sample)
    size = run.size(float(belongs.mean()) * run.pairs, 0)
    if size > run.sample and 2 * size > run.task.pairs:  # this one and that of the certificate
        return None
    if size > run.sample:
        run.say(f"samples of {size:,} pairs, so that a recall of {run.task.settings.recall:g} can be shown")
        more = _drawn(run, student, size - run.sample, "more")
        scores, belongs = (np.concatenate(both) for both in zip((scores, belongs), more, strict=True))
    run.clock.lap()
    return scores, belongs


def _drawn(run: _Run, student: Student, size: int, *more: str) -> tuple[Any, Flags]:
    rng = generator(run.task.settings.seed, "cascade cut", *more)
    sides = (run.task.queries.sequences, run.task.docs.sequences)
    query, doc = (rng.integers(len(side), size=size) for side in sides)
    some = blocks(np.arange(size, dtype=np.int32), AT_ONCE[run.how.kind])
    scores = np.concatenate([student.pairs(query[at], doc[at]).cpu().numpy() for at in some])
    return scores, run.exact(query, doc) >= run.task.settings.threshold


def _round(run: _Run, student: Student, cuts: list[float]) -> Certificate | None:
    """Decide on what the last cut proposes, and certify it; None where scoring the rest costs less than that."""
    _decide(run, student, cuts)
    run.clock.check()
    round, task = len(cuts) - 1, run.task
    if _is_all(run, student, cuts):
        proof = everything(run.pairs)
    else:
        found = run.results.entries()
        size = run.size(int(run.terms.found(found.queries, found.docs).sum()), round)
        if size > run.sample and 2 * size > task.pairs - _proposed(student, cuts[-1]):
            run.say(f"a sample of {size:,} pairs would be needed; the pairs that are left cost less: they are scored")
            return None
        proof = _certified(run, student, cuts[-1], found, size, round)
    run.say(told(proof, task.settings.level))
    return proof


def _is_all(run: _Run, student: Student, cuts: list[float]) -> bool:
    """Whether each pair has surely been proposed."""
    return cuts[-1] == _LOWEST or _proposed(student, cuts[-1] + _MARGIN) == run.task.pairs


def _decide(run: _Run, student: Student, cuts: list[float]) -> None:
    """Score what is proposed between the last two cuts, and what may be on either side of the upper one."""
    task, scorer, clock, round = run.task, run.scorer, run.clock, len(cuts) - 1
    high = np.inf if round == 0 else cuts[-2] + _MARGIN
    left, asked, before = remaining(task, run.results.done(round)), 0, clock.progress.done
    for block in blocks(left, _queries_at_once(student, cuts[-1], run.how)):
        clock.check()
        query, doc = _proposals(student, block, cuts[-1], high)
        weights = scorer.pairs(query, doc).to(STORED[scorer.precision]).cpu()
        kept = (weights.float() >= task.settings.threshold).numpy()
        found = [(query[kept], doc[kept], weights.numpy()[kept])]
        run.results.add(part_of(round, block, found, *_slices(task, scorer, block, round)), clock.spent)
        asked += len(block)
        clock.progress.total = before + (clock.progress.done + len(query) - before) * len(left) // asked
        clock.step(len(query))


def _queries_at_once(student: Student, cut: float, how: How) -> int:
    """Queries of a block: so many that their proposals fill the device."""
    some = np.linspace(0, len(student.queries) - 1, 64).astype(np.int64)
    each = float((student.scores(some) >= cut).sum(1).float().mean())
    return max(1, int((how.block or AT_ONCE[how.kind]) / max(each, 1.0)))


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


def _certified(run: _Run, student: Student, cut: float, found: Entries, size: int, round: int) -> Certificate:
    def proposed(query: Any, doc: Any) -> Flags:
        return (student.pairs(query, doc) >= cut + _MARGIN).cpu().numpy()

    settings, rng = run.task.settings, generator(run.task.settings.seed, "certificate", str(round))
    return certify(run.terms, found, run.exact, settings.threshold, size, run.error(round), rng, proposed)
