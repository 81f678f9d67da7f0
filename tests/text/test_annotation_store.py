from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from side_by_side import in_threads
from whyrank.core import WhyrankError, digest
from whyrank.text.annotation.annotations import Annotation, AnnotationStore, Missing, Span

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


def one_token(text: str, lemma: str = "lemma") -> Annotation:
    span = (Span(0, 1),)
    return Annotation(text, (0,), (len(text),), (lemma,), ("NOUN",), (True,), span, span, (Span(0, 1, "PERSON"),))


WALL = Annotation(
    text="The  old walls stood.",
    starts=(0, 4, 5, 9, 15, 20),
    ends=(3, 5, 8, 14, 20, 21),
    lemmas=("the", " ", "old", "wall", "stand", "."),
    pos=("DET", "SPACE", "ADJ", "NOUN", "VERB", "PUNCT"),
    stops=(True, False, False, False, False, False),
    sentences=(Span(0, 6),),
    chunks=(Span(0, 4),),
    entities=(),
)
BARE = replace(WALL, pos=Missing("parts of speech", "p"), chunks=Missing("noun chunks", "p"))


@pytest.fixture
def store(tmp_path):
    opened = AnnotationStore(tmp_path / "annotations.sqlite")
    yield opened
    opened.close()


def test_an_annotation_knows_its_tokens_and_spans():
    assert WALL.tokens == ["The", " ", "old", "walls", "stood", "."]
    assert len(WALL) == 6
    assert WALL.words_of(WALL.chunks[0]) == "The  old walls"
    assert WALL.words_of(Span(2, 2)) == ""


def test_an_annotation_can_be_said_of_another_text():
    moved = WALL.moved("The   old walls stood .", [0, 4, 6, 10, 16, 22], [3, 5, 9, 15, 21, 23])
    assert moved.tokens == WALL.tokens
    assert moved.words_of(moved.chunks[0]) == "The   old walls"
    assert replace(moved, text=WALL.text, starts=WALL.starts, ends=WALL.ends) == WALL
    assert hash(moved) != hash(WALL)


@pytest.mark.parametrize("look", [len, list, bool, lambda found: found[0], lambda found: "x" in found])
def test_looking_at_what_is_missing_is_an_error(look):
    with pytest.raises(WhyrankError, match=r"the pipeline p gives no noun chunks; use one with all components"):
        look(BARE.chunks)


@pytest.mark.parametrize("annotation", [WALL, BARE, one_token("x"), one_token("\ud83d\ude00", "\ud83d\ude00")])
def test_an_annotation_comes_back_from_its_bytes(store, annotation):
    value = store.encoded(annotation)
    assert store.decoded(annotation.text, value, "p") == annotation
    assert annotation.text not in zlib.decompress(value).decode()


def test_the_bytes_are_plain_json(store):
    content = json.loads(zlib.decompress(store.encoded(WALL)))
    assert content["lemmas"] == ["the", None, None, "wall", "stand", None]
    assert content["chunks"] == [[0, 4]]


@given(st.lists(ANY_TEXT, max_size=6), st.lists(ANY_TEXT, max_size=6))
@settings(max_examples=40, deadline=None)
def test_a_store_gives_back_what_was_added_and_nothing_else(tmp_path_factory, texts, others):
    store = AnnotationStore(tmp_path_factory.mktemp("store") / "a.sqlite")
    store.add("p", [one_token(text) for text in texts])
    assert store.find("p", [*others, *texts]) == {text: one_token(text) for text in texts}
    assert store.find("q", texts) == {}
    store.close()


def test_the_first_annotation_of_a_text_stays(store):
    store.add("p", [one_token("x", "first")])
    store.add("p", [one_token("x", "second"), one_token("y", "new")])
    assert store.find("p", ["x", "y"]) == {"x": one_token("x", "first"), "y": one_token("y", "new")}


def test_many_texts_are_found_across_the_chunks_of_a_look_up(store):
    texts = [f"text {i}" for i in range(1700)]
    store.add("p", [one_token(text) for text in texts[::2]])
    assert list(store.find("p", texts)) != []
    assert store.find("p", texts) == {text: one_token(text) for text in texts[::2]}


def test_another_format_is_never_read(store, monkeypatch):
    store.add("p", [one_token("x")])
    monkeypatch.setattr("whyrank.text.annotation.annotations.FORMAT", 2)
    assert store.find("p", ["x"]) == {}
    store.add("p", [one_token("x", "newer")])
    assert store.find("p", ["x"]) == {"x": one_token("x", "newer")}
    monkeypatch.undo()
    assert store.find("p", ["x"]) == {"x": one_token("x")}


def test_a_commit_that_fails_leaves_nothing_behind(store):
    bad = replace(one_token("y"), lemmas=())
    with pytest.raises(ValueError, match="zip"):
        store.add("p", [one_token("x"), bad])
    assert store.find("p", ["x", "y"]) == {}


def test_the_file_is_safe_against_power_loss(store):
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA busy_timeout").fetchone()[0] >= 60_000


def test_many_may_make_the_store_at_once(tmp_path):
    def work(n):
        AnnotationStore(tmp_path / "new.sqlite").add("p", [one_token(str(n))])

    assert in_threads(work, 8) == []
    assert len(AnnotationStore(tmp_path / "new.sqlite").find("p", list(map(str, range(8))))) == 8


WRITER = """
import sys, time
from pathlib import Path
sys.path[:0] = sys.argv[1].split("|")
from test_annotation_store import AnnotationStore, one_token
path, go, name = Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
while not go.exists():
    time.sleep(0.001)
store = AnnotationStore(path)
for i in range(60):
    store.add("p", [one_token(f"{name} {i}"), one_token(f"both {i}", name)])
"""


def test_two_processes_may_write_at_once(tmp_path):
    path, go = tmp_path / "annotations.sqlite", tmp_path / "go"
    here = Path(__file__)
    places = f"{here.parent}|{here.parents[1]}|{here.parents[2] / 'src'}"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, places, path, go, name]) for name in ("one", "two")]
    go.touch()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    store = AnnotationStore(path)
    for name in ("one", "two"):
        texts = [f"{name} {i}" for i in range(60)]
        assert store.find("p", texts) == {text: one_token(text) for text in texts}
    shared = store.find("p", [f"both {i}" for i in range(60)])
    assert len(shared) == 60
    assert {annotation.lemmas for annotation in shared.values()} <= {("one",), ("two",)}


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "annotations.sqlite"
    path.write_text("not a database, but long enough to look at " * 100)
    with pytest.raises(
        WhyrankError, match=r"annotations\.sqlite: not a cache of annotations.*delete it or name another"
    ):
        AnnotationStore(path)
    assert path.read_text().startswith("not a database")


def test_another_programs_database_is_refused(tmp_path):
    path = tmp_path / "annotations.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(WhyrankError, match=r"annotations\.sqlite: not a cache of annotations but another program's"):
        AnnotationStore(path)


def change(path, statement, *values):
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("value", [b"", b"\xff" * 40, zlib.compress(b"[]"), zlib.compress(b"{"), "a text", 7])
def test_a_damaged_row_is_given_up_and_may_be_added_again(store, value):
    store.add("p", [one_token("x"), one_token("y")])
    store.add("q", [one_token("x")])
    change(store.path, "UPDATE annotations SET annotation = ? WHERE text = ? AND pipeline = 1", value, digest("x"))
    for _ in range(2):
        assert store.find("p", ["y", "x"]) == {"y": one_token("y")}
    store.add("p", [one_token("x", "again")])
    assert store.find("p", ["x"]) == {"x": one_token("x", "again")}
    assert store.find("q", ["x"]) == {"x": one_token("x")}


def test_a_damaged_file_is_reported(tmp_path):
    path = tmp_path / "annotations.sqlite"
    store = AnnotationStore(path)
    store.add("p", [one_token(f"text {i}") for i in range(500)])
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(WhyrankError, match=r"annotations\.sqlite: .*delete it or name another folder"):
        AnnotationStore(path).find("p", ["text 1"])
