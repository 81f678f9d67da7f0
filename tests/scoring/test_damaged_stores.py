"""Flipped bits and cut files: a store gives what was put into it, or one line that names the file."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest
from counting_rankers import Plain, grid, true_score

from whyrank.core import WhyrankError
from whyrank.rankers.doc2query import ExpansionStore
from whyrank.scoring import Engine, Failure, ScoreStore
from whyrank.scoring.engine import identity_of
from whyrank.text.annotation.annotator import Annotation, AnnotationStore, Span

TRIALS, LOG_TRIALS = 200, 30
TEXTS = [f"text number {i}" for i in range(60)]


def annotation(text: str) -> Annotation:
    span = (Span(0, 1),)
    return Annotation(text, (0,), (len(text),), (text[::-1],), ("NOUN",), (True,), span, span, ())


class Scores:
    """A score store of two rankers, with failures."""

    def fill(self, path):
        store = ScoreStore(path)
        for ranker in (Plain(), Plain("other")):
            Engine(store, batch_size=7).score(ranker, *grid(6, 0, 50))
        store.add(identity_of(Plain()), *nothing(), [Failure(f"q{i}", "bad", "ValueError: bad") for i in range(20)])
        return store

    def look(self, path):
        """What a run gets: nothing but true scores, whatever it must ask again."""
        queries, docs, query, doc = rows = grid(6, 0, 50)
        with ScoreStore(path) as store:
            found = Engine(store).score(Plain(), *rows)
            wanted = [true_score(queries[q], docs[d]) for q, d in zip(query, doc, strict=True)]
            assert found.values.tolist() == wanted


class Annotations:
    def fill(self, path):
        store = AnnotationStore(path)
        store.add("pipeline", map(annotation, TEXTS))
        store.add("another", [annotation(text[:7]) for text in TEXTS])
        return store

    def look(self, path):
        """Whether rows were given up, which are made again."""
        store = AnnotationStore(path)
        try:
            known = store.find("pipeline", TEXTS)
            assert all(found == annotation(text) for text, found in known.items())
            store.add("pipeline", map(annotation, TEXTS))
            assert len(store.find("pipeline", TEXTS)) == len(TEXTS)
            return len(known) < len(TEXTS)
        finally:
            store.close()


class Expansions:
    def fill(self, path):
        store = ExpansionStore(path)
        for text in TEXTS:
            store.keep("maker", [(text, [text.upper(), text[::-1]])])
        return store

    def look(self, path):
        store = ExpansionStore(path)
        try:
            assert all(found == [text.upper(), text[::-1]] for text, found in store.find("maker", TEXTS).items())
            store.keep("maker", [("one more", ["query"])])
        finally:
            store.close()


def nothing():
    from whyrank.scoring.pairs import unique_pairs

    none = np.zeros(0, np.int32)
    return unique_pairs([], [], none, none), np.zeros(0, np.int64), np.zeros(0)


def damage(path, rng: random.Random) -> None:
    """Flip one bit, or cut the file somewhere."""
    content = bytearray(path.read_bytes())
    if rng.random() < 0.2:
        del content[rng.randrange(len(content)) :]
    else:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize("kind", [Scores, Annotations, Expansions])
@pytest.mark.parametrize("checkpointed", [True, False], ids=["in the file", "in the log"])
def test_a_flip_or_a_cut_never_changes_what_is_read(tmp_path, kind, checkpointed):
    whole, log, path = (tmp_path / name for name in ("whole", "whole-wal", "damaged.sqlite"))
    store = kind().fill(whole)
    if checkpointed:
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(whole, tmp_path / "copy")
    shutil.copy(log, tmp_path / "copy-wal")
    store.close()
    errors: list[str] = []
    given_up = 0
    for seed in range(TRIALS if checkpointed else LOG_TRIALS):
        rng = random.Random(seed)
        shutil.copy(tmp_path / "copy", path)
        shutil.copy(tmp_path / "copy-wal", f"{path}-wal")
        (tmp_path / "damaged.sqlite-shm").unlink(missing_ok=True)
        damage(path if checkpointed else tmp_path / "damaged.sqlite-wal", rng)
        try:
            given_up += bool(kind().look(path))
        except WhyrankError as error:
            errors.append(str(error))
    assert all(str(path) in line and "\n" not in line for line in errors)
    assert len(errors) + given_up > TRIALS // 4 or not checkpointed
