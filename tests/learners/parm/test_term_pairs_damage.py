"""Prepared folders and results that were cut short, damaged or mixed up: one clear error, never a wrong table."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, WhyrankError
from whyrank.learners.parm import Build, build_table, collect_build, prepare_build
from whyrank.learners.parm.pairs import How, Settings, how_of, open_parm, score_folder

sys.path.append(str(Path(__file__).parent))
from pair_models import saved

torch.set_num_threads(1)
QUIET = lambda line: None  # noqa: E731
FILES = ("results/entries-000.npz", "results/run.json", "terms.npz", "task.json", "spelled.json.gz")


def asked(**settings) -> Build:
    return Build("parm", ["one"], "whitespace", audit=["cab"], settings=Settings(threshold=0.2, **settings))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that was prepared and scored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").mkdir()
    texts = ("cab bad cab dice", "bad fad a", "dice DICE jig")
    lines = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "one" / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "one" / "queries.tsv").write_text("q1\tjig of cab\n")
    saved(tmp_path)
    prepare_build(asked(), tmp_path / "there")
    score(tmp_path / "there")
    return tmp_path


def score(folder: Path, network: Path | None = None) -> bool:
    return score_folder(folder, folder / "results", network or folder / "network", How(), QUIET)


@pytest.mark.parametrize("name", FILES)
def test_an_empty_or_missing_file_is_named(place, name):
    (place / "there" / name).write_bytes(b"")
    with pytest.raises(BadInput, match=r"cannot be read|no finished results"):
        collect_build(place / "there")
    (place / "there" / name).unlink()
    with pytest.raises(
        BadInput, match=r"cannot be read|no finished results|no prepared folder|lacks the entries of 6 "
    ):
        collect_build(place / "there")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(FILES))
def test_damage_gives_the_same_table_or_an_error(place, data, name):
    whole = collect_build(place / "there").table.digest
    shutil.rmtree(place / "damaged", ignore_errors=True)
    shutil.copytree(place / "there", place / "damaged")
    file = place / "damaged" / name
    content = bytearray(file.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[at] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2]))])
    with suppress(WhyrankError):
        assert collect_build(place / "damaged").table.digest == whole


def test_results_of_which_a_file_is_missing_make_no_table(place):
    results = place / "there" / "results"
    whole = np.load(results / "entries-000.npz")
    first = int(whole["sizes"][0])
    part = {name: whole[name] for name in whole.files}
    part |= {"queries": part["queries"][1:], "sizes": part["sizes"][1:]}
    part |= {"docs": part["docs"][first:], "weights": part["weights"][first:]}
    np.savez(results / "entries-000.npz", **part)
    with pytest.raises(
        BadInput, match=r"results: lacks the entries of 1 of 6 distinct query terms; copy all of its files"
    ):
        collect_build(place / "there")
    np.savez(results / "entries-000.npz", **{**part, "weights": part["weights"][1:]})
    with pytest.raises(BadInput, match="its columns differ in length"):
        collect_build(place / "there")


def test_terms_of_another_folder_are_refused(place):
    with gzip.open(place / "there" / "spelled.json.gz", "rt") as file:
        held = json.load(file)
    with gzip.open(place / "there" / "spelled.json.gz", "wt") as file:
        json.dump(held | {"query": [column[:2] for column in held["query"]]}, file)
    with pytest.raises(BadInput, match=r"spelled.json.gz: has other terms than the rest"):
        collect_build(place / "there")


def test_numbers_outside_of_the_vocabulary_are_refused(place):
    task = json.loads((place / "there" / "task.json").read_text())
    del task["checksum"]
    (place / "there" / "task.json").write_text(json.dumps(task | {"audited": [7]}))
    with pytest.raises(BadInput, match="not below 7"):
        collect_build(place / "there")
    (place / "there" / "task.json").write_text(json.dumps(task))
    terms = dict(np.load(place / "there" / "terms.npz"))
    np.savez(place / "there" / "terms.npz", **terms | {"query_ends": terms["query_ends"][:-2]})
    with pytest.raises(BadInput, match="do not fit together"):
        score(place / "there")


@pytest.mark.parametrize(("name", "content"), [
    ("model.safetensors", b""), ("model.safetensors", b"x" * 100),
    ("config.json", b'{"kind": "whyrank network", "architecture": "parm"}'),
])  # fmt: skip
def test_a_damaged_network_is_named(place, name, content):
    (place / "parm" / name).write_bytes(content)
    with pytest.raises(BadInput, match=rf"{name}: is damaged.+; train or copy the network again"):
        open_parm(place / "parm")
    (place / "parm" / "checksums.json").unlink()  # as older versions left it
    with pytest.raises(BadInput, match=r"parm: holds no whole network \(.+; train or copy the network again"):
        open_parm(place / "parm")


def test_a_network_of_another_tokenizer_scores_nothing(place):
    shutil.rmtree(place / "there" / "results")
    (place / "other").mkdir()
    other = saved(place / "other", letters="klm")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["cab"], words["dice"] = words["dice"], words["cab"]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    (other / "checksums.json").unlink()
    with pytest.raises(BadInput, match="has another tokenizer than the one that cut the terms"):
        score(place / "there", other)
    prepare_build(asked(), place / "bare", copy=False)
    with pytest.raises(BadInput, match="has another tokenizer than the one that cut the terms"):
        score(place / "bare", other)
    assert not (place / "bare" / "results").exists()
    assert score(place / "bare", place / "parm")


def test_a_cascade_whose_student_is_damaged_does_not_go_on(place):
    build = asked(method="cascade", sample=5, recall=0.5)
    assert build_table(build, "t.tsv", How(seconds=0.0), say=QUIET) is None
    (place / "t.tsv.blocks" / "results" / "student.npz").write_bytes(b"")
    with pytest.raises(BadInput, match="holds a cascade that cannot go on"):
        build_table(build, "t.tsv", say=QUIET)


def test_what_was_never_scored_does_not_stand_in_the_way(place):
    with pytest.raises(WhyrankError, match="unknown precision"):
        build_table(asked(), "t.tsv", How(precision="fp8"), say=QUIET)
    assert build_table(asked(seed=1), "t.tsv", say=QUIET) is not None
    assert not (place / "t.tsv.blocks").exists()


def test_what_is_no_folder_of_results(place):
    (place / "file").write_text("")
    with pytest.raises(BadInput, match="file: is no folder to write to"):
        score_folder(place / "there", place / "file", place / "parm", How(), QUIET)


@pytest.mark.parametrize(("given", "expected"), [
    ({"device": "meta"}, "'meta' is not to be had here"), ({"device": "cpu", "seconds": -1.0}, "seconds must be"),
    ({"device": "cpu", "seconds": float("nan")}, "seconds must be"), ({"device": "cpu", "tokens": 0}, "tokens must be"),
])  # fmt: skip
def test_impossible_ways_to_score(given, expected):
    with pytest.raises(WhyrankError, match=expected):
        how_of(**{"precision": "", **given})
