"""The cascade: a student proposes pairs, PaRM decides on them, and a fresh sample says how many were missed at most.

The cut of the student's score is chosen on one sample and certified on another. Where the certificate falls short of
the recall that was asked for, the cut is lowered, what is new is scored, and a new sample is drawn; the r-th
certificate spends half of the error probability of the one before, so that whichever is the last one holds.

How large a certificate's sample is follows from what was found, before any of it is drawn. Where it would have to be
so large that scoring all pairs takes less, all are scored, and there is nothing to certify.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from whyrank.core import (
    BadInput,
    Codes,
    Flags,
    Ints,
    Progress,
    check_seal,
    generator,
    read_sealed_json,
    sealed_file,
    sealed_json,
    seed_for,
    write_text,
)
from whyrank.learners.parm.pairs.results import Entries, Results
from whyrank.learners.parm.pairs.running import (
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
from whyrank.learners.parm.pairs.scorer import PairScorer
from whyrank.learners.parm.pairs.task import BROKEN, Task
from whyrank.learners.parm.pairs.terms import Sequences, side_of
from whyrank.networks import Network

# A student of PaRM: a vector for each query term and for each document term, whose product says whom PaRM may tie.
#
# It starts from the mean of the encoder's states of a term by itself, is trained on PaRM's weights of pairs drawn at
# random and then of pairs that it would propose itself, and takes seconds on a GPU. It decides nothing: it proposes.

DIMS = 128
Exact = Callable[[Any, Any], Any]  # numbers of queries and of documents to weights
_HIDDEN, _RATE, _SHARP = 256, 2e-3, 2.0
_SIZES = {"cpu": (1024, 600), "cuda": (1 << 16, 600)}  # pairs of a step, steps of a round at most
_PASSES, _FEWEST = 30, 100  # over the pairs at most, and steps at least
_NEAR, _TERM_PAIRS_STUDENT_WIDE = (
    2000,
    512,
)  # documents that count as proposed in training; queries that are compared at a time


class Student(NamedTuple):
    """Vectors of queries and documents; the score of a pair is their product."""

    queries: Tensor
    docs: Tensor

    def scores(self, queries: Any) -> Tensor:
        """Of some queries with all documents."""
        found: Tensor = self.queries[torch.as_tensor(queries, device=self.queries.device).long()] @ self.docs.T
        return found

    def pairs(self, queries: Any, docs: Any) -> Tensor:
        """Of aligned pairs."""
        q, d = (torch.as_tensor(part, device=self.docs.device).long() for part in (queries, docs))
        return (self.queries[q] * self.docs[d]).sum(1)


class _Tower(nn.Module):
    """From a term's state to its vector, with two numbers besides: its own share of the score, and a one."""

    def __init__(self, width: int, dims: int, last: bool) -> None:
        super().__init__()
        self.plain, self.inner = nn.Linear(width, dims + 1), nn.Linear(width, _HIDDEN)
        self.outer, self.last = nn.Linear(_HIDDEN, dims + 1), last

    def forward(self, states: Tensor) -> Tensor:
        found = self.plain(states) + self.outer(torch.nn.functional.gelu(self.inner(states)))
        vector, own = found[:, :-1] * (found.shape[1] - 1) ** -0.25, found[:, -1:]
        one = torch.ones_like(own)
        return torch.cat([vector, one, own] if self.last else [vector, own, one], 1)


@torch.inference_mode()
def term_states(network: Network, sequences: Sequences, device: str, at_once: int = 1 << 14) -> Tensor:
    """The mean of the encoder's last states of [CLS] term [SEP], each number with mean 0 and deviation 1."""
    special, encoder = network.pieces.special, network.encoder.to(device)
    found = torch.zeros(len(sequences), network.encoder.width, device=device)
    for length, group in side_of(sequences).groups.items():
        for start in range(0, len(group.members), max(1, at_once // (length + 2))):
            members = group.members[start : start + max(1, at_once // (length + 2))]
            rows = np.stack([np.concatenate([[special["cls"]], sequences.row(m), [special["sep"]]]) for m in members])
            ids = torch.from_numpy(rows.astype(np.int64)).to(device)
            batch = {"ids": ids, "types": torch.zeros_like(ids), "mask": torch.ones_like(ids)}
            found[torch.from_numpy(members).to(device).long()] = encoder.last(batch).float().mean(1)
    return (found - found.mean(0)) / found.std(0, correction=0).clamp(min=1e-6)


def train_student(
    states: tuple[Tensor, Tensor], exact: Exact, threshold: float, sample: int, seed: int, dims: int = DIMS
) -> Student:
    """A student of `exact`, from `sample` random pairs and as many that it would itself propose after these."""
    queries, docs = states
    kind = "cuda" if queries.is_cuda else "cpu"
    rng = generator(seed, "student")
    with torch.random.fork_rng(devices=[queries.device] if queries.is_cuda else []):
        torch.manual_seed(seed_for(seed, "student"))
        towers = nn.ModuleList(_Tower(queries.shape[1], dims, last) for last in (False, True)).to(queries.device)
    seen = _Seen(*(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)))
    for round in range(2):
        pairs = (
            _random(len(queries), len(docs), sample, rng)
            if not round
            else _term_pairs_student_proposed(_made(towers, states), sample, rng)
        )
        seen = seen.with_more(*pairs, np.asarray(exact(*pairs), np.float32))
        _fit(towers, states, seen, threshold, rng, *_SIZES[kind])
    return _made(towers, states)


class _Seen(NamedTuple):
    """Pairs and their weights."""

    queries: Any
    docs: Any
    weights: Any

    def with_more(self, queries: Any, docs: Any, weights: Any) -> _Seen:
        more = (queries, docs, weights)
        return _Seen(*(np.concatenate(columns) for columns in zip(self, more, strict=True)))


def _random(queries: int, docs: int, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.integers(queries, size=n), rng.integers(docs, size=n)


def _term_pairs_student_proposed(student: Student, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Pairs of random queries with documents from the front of the student's ranking."""
    queries, docs = len(student.queries), len(student.docs)
    near, each = min(_NEAR, docs), max(1, n // queries)
    chosen = np.sort(rng.choice(queries, size=min(queries, n), replace=False))
    found = []
    for start in range(0, len(chosen), _TERM_PAIRS_STUDENT_WIDE):
        some = chosen[start : start + _TERM_PAIRS_STUDENT_WIDE]
        best = student.scores(some).topk(near, dim=1).indices.cpu().numpy()
        place = (rng.random((len(some), min(each, near))) ** 2 * near).astype(np.int64)  # more from the very front
        found.append((np.repeat(some, place.shape[1]), np.take_along_axis(best, place, 1).ravel()))
    query, doc = (np.concatenate(column) for column in zip(*found, strict=True))
    return query.astype(np.int64), doc.astype(np.int64)


def _fit(
    towers: nn.ModuleList, states: tuple[Tensor, Tensor], seen: _Seen, threshold: float, rng: np.random.Generator,
    batch: int, steps: int,
) -> None:  # fmt: skip
    """Cross-entropy with whether a weight is above the threshold, softly."""
    device = states[0].device
    query, doc = (torch.from_numpy(np.asarray(part, np.int64)).to(device) for part in (seen.queries, seen.docs))
    target = _targets(torch.from_numpy(seen.weights).to(device), threshold)
    size = min(batch, len(target))
    steps = min(steps, max(_FEWEST, _PASSES * len(target) // size))
    optimiser = torch.optim.AdamW(towers.parameters(), lr=_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    for _ in range(steps):
        at = torch.from_numpy(rng.integers(len(target), size=size)).to(device)
        score = (towers[0](states[0][query[at]]) * towers[1](states[1][doc[at]])).sum(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, target[at])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


def _targets(weights: Tensor, threshold: float) -> Tensor:
    edge = min(max(threshold, 1e-6), 1 - 1e-6)
    return torch.sigmoid(_SHARP * (torch.logit(weights, 1e-6) - math.log(edge / (1 - edge))))


@torch.inference_mode()
def _made(towers: nn.ModuleList, states: tuple[Tensor, Tensor]) -> Student:
    return Student(*(tower(part) for tower, part in zip(towers, states, strict=True)))


# How much of a table a cascade has found: a lower bound on its recall that holds with a stated probability.
#
# m pairs are drawn from all of them, each with the same chance, whatever the cascade did. h of them belong in the
# table
# and are not in it: h is binomial with m draws and the rate of what was missed. Its upper bound u after Clopper and
# Pearson ("The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 1934) gives
#
#     recall >= found / (found + u * pairs)
#
# Given how many of the draws fall into a stratum, the same holds within it. Half of the error probability is spent on
# all pairs together, the other half in equal shares on the strata, so that all bounds hold at once.

LEVEL = 0.95
_STEPS = 200  # of a bisection: far more than doubles can tell apart
_TERMS = 10_000  # of the continued fraction; it ends long before


class Tally(NamedTuple):
    """Of some pairs: how many there are, how many were found, drawn, and of those drawn missed."""

    pairs: int
    found: int
    drawn: int
    missed: int


class Bound(NamedTuple):
    """A tally and what follows from it."""

    tally: Tally
    missed_at_most: float
    recall: float


class Certificate(NamedTuple):
    """Lower bounds on recall that all hold at once with probability `level`."""

    level: float
    whole: Bound
    strata: list[Bound]

    @property
    def recall(self) -> float:
        """The bound over all pairs: the better of that of all draws and of what the strata add up to."""
        return max(self.whole.recall, _recall(self.whole.tally.found, sum(s.missed_at_most for s in self.strata)))

    def facts(self) -> dict[str, Any]:
        """The certificate as plain values."""
        if not self.strata:
            rule = "all pairs were scored"
            return {"recall": self.recall, "level": self.level, "rule": rule, "pairs": self.whole.tally.pairs}
        strata = [bound.tally._asdict() | {"recall": bound.recall} for bound in self.strata]
        rule = "Clopper-Pearson; half of the error on all pairs, half in equal shares on the strata"
        return {
            "recall": self.recall,
            "level": self.level,
            "rule": rule,
            **self.whole.tally._asdict(),
            "strata": strata,
        }


def certificate(strata: Sequence[Tally], error: float = 1 - LEVEL) -> Certificate:
    """The bounds that strata and all pairs together allow, all at once wrong with probability `error` at most."""
    whole = Tally(*(sum(column) for column in zip(*strata, strict=True)))
    bounds = [bound(tally, error / (2 * len(strata))) for tally in strata]
    return Certificate(1 - error, bound(whole, error / 2), bounds)


def everything(pairs: int) -> Certificate:
    """What there is to say where all pairs were scored: nothing was missed."""
    return Certificate(1.0, Bound(Tally(pairs, 0, 0, 0), 0.0, 1.0), [])


def needed(pairs: int, found: float, recall: float, error: float) -> int:
    """How many draws are enough for a recall with half of the error on all pairs; `pairs` where so few are not.

    Enough, if half of what may be missed is missed, and one standard deviation more of it is drawn than expected.
    """
    rate = found * (1 - recall) / recall / pairs
    low, high = 0, 1
    while high < pairs and not _prove(high, rate, error / 2):
        low, high = high, 2 * high
    while high - low > 1 + high // 100:  # per cent are near enough
        middle = (low + high) // 2
        low, high = (low, middle) if _prove(middle, rate, error / 2) else (middle, high)
    return min(high, pairs)


def _prove(drawn: int, rate: float, error: float) -> bool:
    expected = drawn * rate / 2
    hits = math.ceil(expected + math.sqrt(expected))
    return hits < drawn and incomplete_beta(hits + 1, drawn - hits, rate) >= 1 - error


def at_best(pairs: int, found: float, drawn: int, error: float) -> float:
    """The largest recall that so many draws can show, when none of them is missed."""
    return _recall(found, upper_rate(0, drawn, error / 2) * pairs)


def bound(tally: Tally, error: float) -> Bound:
    """The lower bound on recall from one tally."""
    missed = upper_rate(tally.missed, tally.drawn, error) * tally.pairs
    missed = min(missed, float(tally.pairs - tally.found))
    return Bound(tally, missed, _recall(tally.found, missed))


def upper_rate(hits: int, drawn: int, error: float) -> float:
    """Upper bound of a rate after Clopper and Pearson: a larger one makes so few hits less probable than `error`."""
    if hits >= drawn:
        return 1.0
    low, high = hits / drawn, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if incomplete_beta(hits + 1, drawn - hits, middle) < 1 - error:
            low = middle
        else:
            high = middle
    return high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, from the front (Lentz)."""
    c, d = 1.0, _inverse(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = _inverse(1 + term * d), 1 + term / c
            found *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return found


def _inverse(value: float) -> float:
    return 1 / (value if abs(value) > 1e-300 else 1e-300)


def _recall(found: float, missed: float) -> float:
    return found / (found + missed) if found else 0.0


# Draws of pairs of terms, and the certificate that follows from them: how much of a table was found at least.


class Terms(NamedTuple):
    """How many terms of each stratum have each query sequence, how many terms have each document sequence.

    `own` is the document sequence of each query term itself, or -1: a table does not tie a term to itself.
    """

    query_of: Codes
    doc_of: Codes
    stratum: Codes
    strata: int
    own: Codes

    @classmethod
    def of(cls, task: Task, mask: int) -> Terms:
        """Strata of query terms, which are in the order of their frequency: equally many terms in each."""
        size = len(task.queries.of_term)
        strata = min(task.settings.strata, size)
        stratum = (np.arange(size, dtype=np.int64) * strata // size).astype(np.int32)
        own = _own(task.queries.sequences, task.docs.sequences, mask)[task.queries.of_term]
        return cls(task.queries.of_term, task.docs.of_term, stratum, strata, own)

    def found(self, queries: Codes, docs: Codes) -> Ints:
        """How many pairs of two terms stand behind pairs of sequences, by stratum."""
        each, size = np.bincount(self.doc_of)[docs], int(self.query_of.max()) + 1
        some = (self.query_of[self.stratum == s] for s in range(self.strata))
        whole = np.array([int(np.bincount(part, minlength=size)[queries] @ each) for part in some], np.int64)
        itself = (self.own >= 0) & _among(_keys(self.query_of, self.own), np.sort(_keys(queries, docs)))
        return whole - np.bincount(self.stratum[itself], minlength=self.strata)

    def pairs(self) -> Ints:
        """How many pairs of terms there are, by stratum."""
        return np.bincount(self.stratum, minlength=self.strata) * len(self.doc_of)


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
    known = np.sort(_keys(found.queries, found.docs))
    missed = (exact(query, doc) >= threshold) & ~_among(_keys(query, doc), known)
    if proposed is not None:
        missed[missed] = ~proposed(query[missed], doc[missed])
    stratum = terms.stratum[asked]
    drawn, hits = (np.bincount(stratum[some], minlength=terms.strata) for some in (slice(None), missed))
    columns = (terms.pairs(), terms.found(found.queries, found.docs), drawn, hits)
    return certificate([Tally(*map(int, row)) for row in zip(*columns, strict=True)], error)


def _own(queries: Sequences, docs: Sequences, mask: int) -> Codes:
    """For each query sequence the document sequence of the same pieces, whatever [MASK]s stand around; else -1."""
    asked, told = ([row[row != mask] for row in side.rows()] for side in (queries, docs))
    longest = max(map(len, asked), default=0)  # a term may have lost its end on the query side
    numbers = {row[:longest].tobytes(): i for i, row in reversed(list(enumerate(told)))}
    return np.array([numbers.get(row.tobytes(), -1) for row in asked], np.int32)


def _keys(queries: Codes | Ints, docs: Codes | Ints) -> Ints:
    found: Ints = queries.astype(np.int64) << 32 | docs
    return found


def _among(keys: Ints, known: Ints) -> Flags:
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    found: Flags = known[np.searchsorted(known, keys).clip(max=len(known) - 1)] == keys
    return found


def told(proof: Certificate, level: float) -> str:
    """A certificate in one line; `level` holds for all rounds together."""
    if not proof.strata:
        return "all pairs are scored, so none is missed"
    worst = min(bound.recall for bound in proof.strata)
    draws = f"{proof.whole.tally.missed:,} of {proof.whole.tally.drawn:,} draws missed"
    return f"recall >= {proof.recall:.4f} at {level:.0%} (worst stratum {worst:.4f}; {draws})"


# Weights of pairs that were drawn for a sample: a large one is scored in parts, and a stop keeps them.

AT_ONCE = {"cpu": 1 << 14, "cuda": 4_000_000}  # pairs that are scored at a time
_FILES = "drawn.*.npy"


class Drawn:
    """Scores drawn pairs as they would be stored."""

    def __init__(self, scorer: PairScorer, results: Results, clock: Clock, at_once: int) -> None:
        """Samples of no more than `at_once` pairs are scored in one go."""
        self._scorer, self._results, self._clock, self._at_once = scorer, results, clock, at_once
        self._parts = 0

    def __call__(self, queries: Any, docs: Any) -> Any:
        """Weights of aligned pairs; `TimeIsUp` between two parts."""
        query, doc = np.asarray(queries), np.asarray(docs)
        return self._scored(query, doc) if len(query) <= self._at_once else self._in_parts(query, doc)

    def forget(self) -> None:
        """Remove what was kept: the step that needed it is done."""
        for file in self._results.folder.glob(_FILES):
            file.unlink()

    def _scored(self, query: Any, doc: Any) -> Any:
        kind = STORED[self._scorer.precision]
        return self._scorer.pairs(query, doc).to(kind).float().cpu().numpy()

    def _in_parts(self, query: Any, doc: Any) -> Any:
        file = self._file(query, doc)
        parts = [_term_pairs_drawing_kept(file)]
        first = len(parts[0])
        try:
            parts.extend(self._rest(query[first:], doc[first:]))
        finally:
            found = np.concatenate(parts)
            with sealed_file(file) as out:
                np.save(out, found, allow_pickle=False)
        return found

    def _rest(self, query: Any, doc: Any) -> Iterator[Any]:
        begun = self._clock.elapsed
        with Progress("sample", len(query), unit="pairs") as progress:
            for start in range(0, len(query), self._at_once):
                if self._parts:  # each run goes on by one at least, however short it is
                    self._clock.check()
                at = slice(start, start + self._at_once)
                yield self._scored(query[at], doc[at])
                self._parts += 1
                self._clock.lap()
                progress.step(len(query[at]))
                self._clock.tell(progress, self._clock.elapsed - begun)

    def _file(self, query: Any, doc: Any) -> Path:
        """Where the weights of these pairs by this network are kept."""
        head = hashlib.sha256(self._results.identity.encode())
        for side in (query, doc):
            head.update(np.ascontiguousarray(side, np.int64).tobytes())
        return self._results.folder / _FILES.replace("*", head.hexdigest()[:16])


def _term_pairs_drawing_kept(file: Path) -> Any:
    try:
        check_seal(file, "score the sample again")
        found = np.load(file, allow_pickle=False)
        return np.asarray(found, np.float32).reshape(-1)
    except (BadInput, *BROKEN):  # these pairs are scored again
        return np.empty(0, np.float32)


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
