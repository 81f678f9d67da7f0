from __future__ import annotations

from dataclasses import replace

import pytest

from whyrank.core import BadInput, Layout, writing

NOTES = Layout("box of notes", 0x6E6F7465, 3, ("CREATE TABLE notes (text TEXT)",), "take another box")


def test_a_file_is_made_once_and_opened_again(tmp_path):
    first = NOTES.connect(tmp_path / "deep" / "notes")
    with writing(first):
        first.execute("INSERT INTO notes VALUES ('kept')")
    first.close()
    assert NOTES.connect(tmp_path / "deep" / "notes").execute("SELECT text FROM notes").fetchall() == [("kept",)]


@pytest.mark.parametrize(
    ("other", "what", "remedy"),
    [
        (replace(NOTES, application=1, what="box of coins"), "not a box of notes but another", "take another box"),
        (
            replace(NOTES, version=4),
            "a box of notes of version 4, where 3 is needed",
            "delete it or take another box",
        ),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, other, what, remedy):
    other.connect(tmp_path / "notes").close()
    with pytest.raises(BadInput, match=what) as caught:
        NOTES.connect(tmp_path / "notes")
    assert caught.value.remedy == remedy


def test_a_transaction_is_kept_whole_or_not_at_all(tmp_path):
    connection = NOTES.connect(tmp_path / "notes")

    def rows():
        yield ("lost",)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), writing(connection):
        connection.executemany("INSERT INTO notes VALUES (?)", rows())
    assert connection.execute("SELECT * FROM notes").fetchall() == []


def test_what_cannot_be_opened_is_reported_with_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "notes"):
        with pytest.raises(BadInput, match=r"the box of notes cannot be used .*or take another box"):
            NOTES.connect(path)
