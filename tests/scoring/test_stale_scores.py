"""Stored scores that a ranker no longer gives: other identities, a sample that is scored again, and scoring anew."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from counting_rankers import Misbehaving, Plain, grid, stored

from whyrank.rankers import open_ranker
from whyrank.scoring import Engine
from whyrank.scoring.engine import identity_of

ROWS = grid(3, 0, 20)


@dataclass
class Changing:
    """Its scores are `factor` times those of another, which its identity does not say."""

    factor: float = field(default=1.0, repr=False)
    scaled: bool = field(default=False, repr=False)
    calls: list = field(default_factory=list, repr=False)
    tie_tolerance: float = field(default=0.0, repr=False)
    name: str = "changing"

    def score(self, queries, docs):
        self.calls.append(len(docs))
        found = self.factor * Plain().score(queries, docs)
        return found / found.max() if self.scaled else found


def warnings_of(store, ranker, **arguments):
    lines: list[str] = []
    engine = Engine(store, warn=lines.append, **arguments)
    found = engine.score(ranker, *ROWS)
    for _ in range(3):
        engine.score(ranker, *ROWS)
    return lines, found


def test_a_ranker_that_gives_what_is_stored_is_asked_for_a_few_pairs_alone(store):
    assert warnings_of(store, Changing())[0] == []
    lines, found = warnings_of(store, again := Changing())
    assert (lines, found.scored, found.reused) == ([], 0, 60)
    assert again.calls == [1, 1, 1, 1]
    assert warnings_of(store, none := Changing(), checked=0)[0] == none.calls == []


def test_a_ranker_that_changed_gives_one_warning(store):
    warnings_of(store, Changing())
    lines, found = warnings_of(store, Changing(factor=-1.0))
    assert len(lines) == 1
    assert lines[0].startswith(
        "ranker 'changing' no longer gives the scores that are stored: 4 of 4 pairs that were scored again differ ("
    )
    assert lines[0].endswith(
        "replace the stored scores with --fresh, name the files that it reads in depends_on, and see that no score depends on its batch"
    )
    assert "\n" not in lines[0]
    assert found.values.tolist() == Engine().score(Plain(), *ROWS).values.tolist()  # and they are used


def test_rounding_is_no_change(store):
    warnings_of(store, Changing())
    assert warnings_of(store, Changing(factor=1 + 2e-5))[0] == []
    assert len(warnings_of(store, Changing(factor=1.01))[0]) == 1
    assert warnings_of(store, Changing(factor=1.01, tie_tolerance=10.0))[0] == []


def test_scores_that_are_kept_anew(store):
    warnings_of(store, Changing())
    lines, found = warnings_of(store, Changing(factor=2.0), fresh=True)
    assert (lines, found.scored, found.reused) == ([], 60, 0)
    lines, found = warnings_of(store, Changing(factor=2.0))
    assert (lines, found.reused) == ([], 60)
    assert stored(store, "other", "q0", ["d0"]) == {}


def test_a_ranker_that_cannot_be_checked_gives_a_warning_and_its_scores_are_used(store):
    Engine(store).score(Misbehaving("refuse", trigger="never"), *ROWS)
    broken = Misbehaving("refuse", trigger="")
    object.__setattr__(broken, "name", "misbehaving")
    store.add(identity_of(broken), *_known(store))
    lines, found = warnings_of(store, broken)
    assert lines == [
        "the stored scores of ranker 'misbehaving' were not checked: weights.bin: no such file; download it first"
    ]
    assert (found.scored, found.reused) == (0, 60)


def _known(store):
    from whyrank.scoring.pairs import unique_pairs

    pairs = unique_pairs(*ROWS)
    return pairs, np.arange(len(pairs.keys)), np.ones(len(pairs.keys))


def test_neither_a_ranker_of_ours_nor_a_service_is_asked_again(store, monkeypatch):
    ranker = open_ranker("bm25")
    Engine(store).score(ranker, *ROWS)
    calls = []
    monkeypatch.setattr(
        type(ranker), "score", lambda self, queries, docs: calls.append(len(docs)) or np.zeros(len(docs))
    )
    assert warnings_of(store, ranker)[0] == calls == []
    warnings_of(store, Changing())
    service = Changing()
    service.arithmetic = "a service's"
    assert warnings_of(store, service)[0] == service.calls == []


def test_the_version_joins_the_identity_of_what_we_compute(monkeypatch, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("def score(queries, docs):\n    return [1.0 for _ in docs]\n")
    specs = ("bm25", "fuse(of=['bm25','ql'])", f"python:{mine}:score", "http://localhost:1(version=1)")
    rankers = [open_ranker(spec) for spec in specs]
    before = [identity_of(ranker) for ranker in rankers]
    monkeypatch.setattr("whyrank.scoring.engine.__version__", "99.0")
    changed = [identity_of(ranker) != old for ranker, old in zip(rankers, before, strict=True)]
    assert changed == [True, True, False, False]


def test_any_ranker_may_name_its_files(store, tmp_path):
    ranker, weights = Changing(), tmp_path / "weights"
    ranker.depends_on = [weights]
    for content, counts in (("1", (60, 0)), ("1", (0, 60)), ("2", (60, 0)), ("1", (0, 60))):
        weights.write_text(content)
        found = Engine(store).score(ranker, *ROWS)
        assert (found.scored, found.reused) == counts
