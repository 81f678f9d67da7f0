from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest
from counting_rankers import Plain, grid, stored, true_score
from hypothesis import given, settings
from hypothesis import strategies as st

from side_by_side import in_threads
from whyrank.core import WhyrankError
from whyrank.scoring import Engine, Failure, ScoreStore
from whyrank.scoring.pairs import digest, unique_pairs

ODD = ["", "\0", "a\0", "\ud800", "\ud800\udc00", "\U00010000", "y" * 2_000_000]


def put(store, identity, scores, failures=()):
    """Add {(query, doc): score} in one commit."""
    queries, docs = [q for q, _ in scores], [d for _, d in scores]
    codes = np.arange(len(scores), dtype=np.int32)
    pairs = unique_pairs(queries, docs, codes, codes)
    rows = np.arange(len(pairs.keys))
    wanted = zip(pairs.query_texts(rows), pairs.doc_texts(rows), strict=True)
    store.add(identity, pairs, rows, np.array([scores[pair] for pair in wanted], float), failures)


PAIRS = st.tuples(st.sampled_from(["q1", "q2", "", "\ud800"]), st.text("ab\0\udc00", max_size=2))
COMMITS = st.lists(
    st.tuples(st.sampled_from(["r1", "r2"]), st.dictionaries(PAIRS, st.floats(allow_nan=False), max_size=8)),
    max_size=6,
)


@given(COMMITS)
@settings(max_examples=40, deadline=None)
def test_a_store_is_a_dictionary_whose_first_value_stays(tmp_path_factory, commits):
    model: dict = {}
    with ScoreStore(tmp_path_factory.mktemp("store") / "s.sqlite") as store:
        for identity, scores in commits:
            put(store, identity, scores)
            for pair, value in scores.items():
                model.setdefault((identity, *pair), value)
        for identity in ("r1", "r2"):
            for query in ("q1", "q2", "", "\ud800"):
                known = {d: v for (r, q, d), v in model.items() if (r, q) == (identity, query)}
                assert stored(store, identity, query, [*known, "never", "seen"]) == known


def test_many_queries_are_found_across_the_chunks_of_a_look_up(store):
    scores = {(f"q{i}", f"d{j}"): true_score(f"q{i}", f"d{j}") for i in range(600) for j in range(i % 4)}
    put(store, "r", scores)
    put(store, "r", {(f"q{i}", "more"): float(i) for i in range(0, 600, 2)})
    asked = [(f"q{i}", d) for i in range(700) for d in ("d0", "d1", "d2", "d3", "more")]
    codes = np.arange(len(asked), dtype=np.int32)
    pairs = unique_pairs([q for q, _ in asked], [d for _, d in asked], codes, codes)
    values, known = (found[pairs.inverse] for found in store.find("r", pairs))
    expected = scores | {(f"q{i}", "more"): float(i) for i in range(0, 600, 2)}
    assert {pair for pair, k in zip(asked, known, strict=True) if k} == set(expected)
    assert {pair: v for pair, v, k in zip(asked, values.tolist(), known, strict=True) if k} == expected
    assert np.isnan(values[~known]).all()


def test_odd_texts_and_non_finite_scores_come_back(store):
    put(store, "r", {(q, d): true_score(q, d) for q in ODD for d in ODD})
    for query in ODD:
        assert stored(store, "r", query, ODD) == {d: true_score(query, d) for d in ODD}
    put(store, "s", {("q", "nan"): np.nan, ("q", "inf"): np.inf, ("q", "-inf"): -np.inf})
    found = stored(store, "s", "q", ["nan", "inf", "-inf", "other"])
    assert set(found) == {"nan", "inf", "-inf"}
    assert np.isnan(found["nan"])
    assert (found["inf"], found["-inf"]) == (np.inf, -np.inf)


def test_there_is_one_row_per_ranker_and_query(store):
    for i in range(30):
        put(store, "r", {("q", f"d{i}"): float(i), ("p", f"d{i}"): 1.0})
    rows = sqlite3.connect(store.path).execute("SELECT query, docs, scores FROM scores").fetchall()
    assert {query for query, _, _ in rows} == {digest("q"), digest("p")}
    assert [(len(docs), len(scores)) for _, docs, scores in rows] == [(480, 240)] * 2
    docs, scores = next((docs, scores) for query, docs, scores in rows if query == digest("q"))
    expected = {digest(f"d{i}"): float(i) for i in range(30)}
    assert dict(zip([docs[i : i + 16] for i in range(0, 480, 16)], np.frombuffer(scores), strict=True)) == expected


def test_the_file_is_safe_against_power_loss(store):
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA busy_timeout").fetchone()[0] >= 60_000


def test_failures_are_on_record_with_their_latest_reason_and_are_no_scores(store):
    odd = Failure("q\ud800", "d\0" + "x" * 1000, "ValueError: \udc00")
    put(store, "r", {("q", "fine"): 1.0}, [odd, Failure("q", "d", "ValueError: old")])
    put(store, "r", {}, [Failure("q", "d", "KeyError: new")])
    assert stored(store, "r", "q", ["d", "fine"]) == {"fine": 1.0}
    rows = sqlite3.connect(store.path).execute("SELECT query_digest, doc_digest, reason FROM failures").fetchall()
    reasons = {("q", "d"): "KeyError: new", (odd.query, odd.doc): "ValueError: \\udc00"}
    assert {row[:2]: row[2] for row in rows} == {(digest(q), digest(d)): said for (q, d), said in reasons.items()}


def test_a_commit_that_fails_leaves_nothing_behind(store):
    def failures():
        yield Failure("q", "d", "ValueError")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put(store, "r", {("q", "d"): 1.0}, failures())
    assert stored(store, "r", "q", ["d"]) == {}
    assert sqlite3.connect(store.path).execute("SELECT count(*) FROM failures").fetchone() == (0,)
    put(store, "r", {("q", "d"): 2.0})
    assert stored(store, "r", "q", ["d"]) == {"d": 2.0}


def test_many_may_make_the_store_at_once(tmp_path):
    def work(n):
        with ScoreStore(tmp_path / "new.sqlite") as store:
            put(store, "r", {("q", str(n)): float(n)})

    assert in_threads(work, 8) == []
    with ScoreStore(tmp_path / "new.sqlite") as store:
        assert stored(store, "r", "q", map(str, range(8))) == {str(n): float(n) for n in range(8)}


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look at " * 100)
    with pytest.raises(WhyrankError, match=r"notes\.txt: not a score store.*delete it or pass another path"):
        ScoreStore(path)
    assert path.read_text().startswith("not a database")


def damaged_store(tmp_path):
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        put(store, "r", {(f"q{i}", f"d{j}"): 1.0 for i in range(50) for j in range(50)})
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def test_a_damaged_row_is_reported(tmp_path):
    path = damaged_store(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE scores SET scores = x'00'")
    connection.commit()
    connection.close()
    with (
        ScoreStore(path) as store,
        pytest.raises(
            WhyrankError, match="damaged; score the ranker anew with --fresh, or delete it or pass another path"
        ),
    ):
        stored(store, "r", "q1", ["d1"])
    with ScoreStore(path) as store:
        store.forget("r")
        assert stored(store, "r", "q1", ["d1"]) == {}


def as_nobody(work):
    """What a child that may not write says, where we are root and may write everything."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            said = work()
        except BaseException as error:
            said = repr(error)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def folder():
    """A folder that others may look into."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        yield Path(made)
        os.chmod(made, 0o755)


def look(path, last=3):
    def work():
        rows = grid(2, 0, last)
        found = Engine(ScoreStore(path)).score(Plain(), *rows)
        assert found.values.tolist() == Engine().score(Plain(), *rows).values.tolist()
        return f"reused {found.reused}"

    return work


@pytest.mark.parametrize("name", ["scores.sqlite", "odd #%? name.sqlite"])
def test_a_complete_store_that_cannot_be_written_is_read(folder, name):
    with ScoreStore(folder / name) as store:
        Engine(store).score(Plain(), *grid(2, 0, 3))
    os.chmod(folder / name, 0o444)
    os.chmod(folder, 0o555)
    assert as_nobody(look(folder / name)) == "reused 6"
    assert "cannot be written, and lacks 2 scores of ranker 'plain'; copy it to a folder" in as_nobody(
        look(folder / name, 4)
    )
