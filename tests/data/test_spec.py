"""What a user may write for a collection, and what he reads when he errs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.data import Collection, collections, open_collection


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a collection `mine`, as the current one."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "a", "text": "one"}\n')
    (folder / "queries.tsv").write_text("1\tfirst\n")
    (folder / "queries.dev.tsv").write_text("2\tdev\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("spec", [Path("mine"), "mine", "./mine", "~/mine", "folder:mine", "folder:~/mine"])
def test_paths_and_splits(here, spec):
    assert open_collection(spec).queries == {"1": "first"}
    assert open_collection(f"{spec}:dev").queries == {"2": "dev"}


def test_a_colon_inside_an_existing_path_is_no_split(here):
    (here / "mine").rename(here / "C:odd")
    assert open_collection("C:odd").queries == {"1": "first"}
    assert open_collection("C:odd:dev").queries == {"2": "dev"}
    (here / "C:odd").rename(here / "mine")
    (here / "mine:dev").mkdir()
    with pytest.raises(BadInput, match=r"mine:dev: the folder has no queries\.tsv"):
        open_collection("mine:dev")


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("mien", r"no folder 'mien' exists; did you mean the folder 'mine'"),
        ("sampel", r"did you mean 'sample'.* and no folder 'sampel' exists"),
        ("irsd:x", r"did you mean 'irds'.* and no folder 'irsd:x' exists"),
        ("zzz/qqq", r"\(known: beir, files, folder, irds, sample\) and no folder 'zzz/qqq' exists$"),
        ("", "needs a folder"),
        ("irds", "write irds:ID"),
        ("mine/corpus.jsonl", r"mine/corpus\.jsonl: a collection is a folder"),
        ("sample:x", "takes no resource"),
        ("folder:mine(split=dev)", "'split'"),
    ],
)
def test_mistakes(here, spec, what):
    (here / "data" / "sets").mkdir(parents=True)
    with pytest.raises(WhyrankError, match=what):
        open_collection(spec)


def test_registered_collections(here):
    @collections.register("toy")
    def toy(resource: str = "none", size: int = 1) -> Collection:
        return Collection.of({str(i): resource for i in range(size)}, {"1": "q"}, name="toy")

    @collections.register("wrong")
    def wrong() -> list[int]:
        return []

    try:
        assert open_collection("toy").docs == {"0": "none"}
        assert open_collection("toy:r(size=2)").docs == {"0": "r", "1": "r"}
        with pytest.raises(WhyrankError, match=r"collection 'wrong' is registered but gave list; tell its author"):
            open_collection("wrong")
    finally:
        collections.forget("toy")
        collections.forget("wrong")


def test_the_sample(here):
    (here / "sample").mkdir()
    collection = open_collection("sample", strict=True)
    assert isinstance(collection.runs, dict)
    assert set(collection.runs) == {"bm25"}
    assert collection.qrels
    assert collection.notes == []


def test_importing_brings_nothing_heavy():
    heavy = ["pydantic", "yaml", "ir_datasets", "scipy", "pyarrow", "numba"]
    code = f"import sys, whyrank.data; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
