"""Documents on disk are the documents in memory: same mapping, less memory, never half built."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, WhyrankError, cache_folder
from whyrank.data import disk, texts_of
from whyrank.data.disk import DiskDocs, DiskPart
from whyrank.data.documents import memory_limit, read_corpus

anything = st.text(max_size=30)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
corpora = st.dictionaries(words, st.tuples(anything, anything), min_size=1, max_size=30)


def write(path: Path, rows: Mapping[str, tuple[str, str]]) -> Path:
    lines = [json.dumps({"id": i, "title": title, "text": text}) + "\n" for i, (title, text) in rows.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def numbered(n: int) -> dict[str, tuple[str, str]]:
    return {f"doc-{i}": (f"Title {i}" if i % 3 else "", f"text {i} " + "wörd " * (i % 7)) for i in range(n)}


def leftovers() -> list[Path]:
    folder = cache_folder() / "docs"
    return list(folder.iterdir()) if folder.exists() else []


@given(corpora, st.sampled_from([0, 100, 400]))
@settings(max_examples=50)
def test_disk_equals_memory(tmp_path_factory, rows, limit):
    path = write(tmp_path_factory.mktemp("corpus") / "corpus.jsonl", rows)
    memory = read_corpus(path, limit=2**30)
    kept = read_corpus(path, limit=limit)
    assert isinstance(memory.docs, dict)
    assert isinstance(kept.docs, DiskDocs) == (path.stat().st_size > limit)
    assert kept.docs == memory.docs
    assert list(kept.docs) == list(memory.docs) == list(rows)
    assert list(kept.docs.items()) == list(memory.docs.items())
    assert list(kept.docs.values()) == list(memory.docs.values())
    assert list(kept.titles.items()) == list(memory.titles.items())
    assert kept.notes == memory.notes


@pytest.fixture
def kept(tmp_path) -> DiskDocs:
    docs = read_corpus(write(tmp_path / "corpus.jsonl", numbered(2000)), limit=10_000).docs
    assert isinstance(docs, DiskDocs)
    return docs


def test_titles_and_many_texts_at_once(kept):
    titles = DiskPart(kept, kept.titled(), kept.title_at)
    assert len(titles) == sum(1 for i in range(2000) if i % 3)
    assert titles["doc-4"] == "Title 4"
    assert "doc-3" not in titles
    assert "nothing" not in titles
    assert next(iter(titles)) == "doc-1"
    wanted = ["doc-9", "doc-1", "doc-1500", "doc-9"]
    assert texts_of(kept, wanted) == [kept[each] for each in wanted] == texts_of(dict(kept), wanted)
    with pytest.raises(KeyError, match="nothing"):
        texts_of(kept, ["doc-1", "nothing"])
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert len(pickle.dumps(kept)) < 1000


def test_equal_hashes_of_different_ids_do_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "hash_of", lambda doc_id: len(doc_id) % 2)
    rows = numbered(50)
    docs = read_corpus(write(tmp_path / "c.jsonl", rows), limit=0).docs
    assert isinstance(docs, DiskDocs)
    assert [docs[i] for i in rows] == list(docs.values())
    assert "doc-50" not in docs


@pytest.mark.parametrize("limit", [0, 300, 2**30])
def test_duplicates_are_found_with_both_lines(tmp_path, limit):
    path = write(tmp_path / "c.jsonl", numbered(20))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, "", lines[7], lines[2]]) + "\n")
    with pytest.raises(BadInput, match=r"c\.jsonl:22: id 'doc-7' was already used in line 8"):
        read_corpus(path, limit=limit)
    assert leftovers() == []


def test_the_store_is_used_again_and_notes_with_it(tmp_path, monkeypatch):
    path = write(tmp_path / "c.jsonl", {"a": ("", ""), "b": ("", "text")})
    first = read_corpus(path, limit=0)
    assert first.notes == ["c.jsonl: documents with an empty text: 1 (a)"]
    monkeypatch.setattr("whyrank.data.documents.read_documents", lambda *_: pytest.fail("the corpus was read again"))
    again = read_corpus(path, limit=0)
    assert (again.docs, again.notes) == (first.docs, first.notes)


def test_a_changed_corpus_is_another_store(tmp_path):
    for text in ("old", "new"):
        path = write(tmp_path / "c.jsonl", {"a": ("", text)})
        os.utime(path, ns=(len(leftovers()),) * 2)
        assert read_corpus(path, limit=0).docs == {"a": text}


@pytest.mark.parametrize("name", ["texts", "ids", "order", "meta.json"])
def test_a_damaged_store_is_built_anew(tmp_path, name):
    path = write(tmp_path / "c.jsonl", numbered(20))
    folder = read_corpus(path, limit=0).docs.folder  # type: ignore[attr-defined]
    (folder / name).write_bytes((folder / name).read_bytes()[:-3])
    assert len(read_corpus(path, limit=0).docs) == 20
    assert [each.name for each in leftovers()] == [folder.name]


def test_an_error_while_building_leaves_nothing(tmp_path):
    path = write(tmp_path / "c.jsonl", numbered(20))
    with path.open("a") as file:
        file.write("broken\n")
    with pytest.raises(BadInput, match=r"c\.jsonl:21: malformed JSON"):
        read_corpus(path, limit=0)
    assert leftovers() == []


KILLED = """
import os, sys
from pathlib import Path
from whyrank.data import disk
from whyrank.data.documents import read_corpus
count, add = 0, disk.StoreWriter.add
def dying(self, *document):
    global count
    count += 1
    os._exit(9) if count == 15 else add(self, *document)
disk.StoreWriter.add = dying
read_corpus(Path(sys.argv[1]), limit=0)
"""


def test_a_killed_build_is_not_taken_for_whole_and_is_swept_by_the_next(tmp_path):
    path = write(tmp_path / "c.jsonl", numbered(20))
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == 9
    (left,) = leftovers()
    assert len(read_corpus(path, limit=0).docs) == 20
    assert leftovers() == [disk.store_folder(path)] != [left]


def test_processes_that_build_at_once_all_get_the_documents(tmp_path):
    path = write(tmp_path / "c.jsonl", numbered(3000))
    code = (
        "import sys; from pathlib import Path; from whyrank.data.documents import read_corpus\n"
        "docs = read_corpus(Path(sys.argv[1]), limit=0).docs; print(len(docs), docs['doc-7'])"
    )
    command = [sys.executable, "-c", code, str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert {process.communicate()[0] for process in running} == {"3000 Title 7 text 7 \n"}
    assert leftovers() == [disk.store_folder(path)]


def test_no_room_for_the_store_is_one_clear_line(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / "file"))
    path = write(tmp_path / "c.jsonl", numbered(2))
    with pytest.raises(WhyrankError, match=r"the documents cannot be kept in .*; set WHYRANK_CACHE to a folder"):
        read_corpus(path, limit=0)


@pytest.mark.parametrize(
    ("given_as", "limit"),
    [("", 2**30), ("123", 123), ("64K", 65536), ("2m", 2**21), ("3 GiB", 3 * 2**30), ("1T", 2**40), ("5kb", 5120)],
)
def test_the_limit_comes_from_the_environment(monkeypatch, given_as, limit):
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", given_as)
    assert memory_limit() == limit
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "lots")
    with pytest.raises(WhyrankError, match="'lots' is not a size"):
        memory_limit()


def test_compressed_corpora_are_measured_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"id": "%d", "text": "%s"}\n' % (i, b"x" * 1000) for i in range(100))))
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "50K")
    assert isinstance(read_corpus(path).docs, DiskDocs)
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "200K")
    assert isinstance(read_corpus(path).docs, dict)  # although the store is still there: the limit alone decides


MEASURED = r"""
import random, re, sys
from pathlib import Path
from whyrank.data.documents import read_corpus
def peak():  # not ru_maxrss, which a child inherits from the process that started it
    return re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]
docs = read_corpus(Path(sys.argv[1])).docs
built = peak()
for i in random.Random(0).sample(range(500_000), 2000):
    assert docs[f"doc-{i}"] == f"document {i} " + "some words of text " * (i % 40), i
assert len(docs) == 500_000 and "doc-500000" not in docs
print(type(docs).__name__, built, peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures memory as Linux tells it")
def test_half_a_million_documents_in_little_memory(tmp_path, monkeypatch):
    path = tmp_path / "corpus.jsonl"
    texts = (f"document {i} " + "some words of text " * (i % 40) for i in range(500_000))
    with path.open("w") as file:
        file.writelines(json.dumps({"id": f"doc-{i}", "text": text}) + "\n" for i, text in enumerate(texts))
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "4M")
    run = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
    kind, built, used = run.stdout.split()
    assert kind == "DiskDocs"
    assert path.stat().st_size > 200e6
    assert int(built) < 100_000
    assert int(used) < 400_000  # with pages of the texts that were looked up, which the system takes back at need
