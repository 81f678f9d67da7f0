"""The programs of benchmarks/translation that run on a machine with a GPU, here on a CPU with toy networks."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from training_models import ENCODER, SCHEDULE, toy_run, toy_sources, toy_texts
from whyrank.networks import load, new_encoder
from whyrank.networks.quantised import quantised
from whyrank.training import save_prepared

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "translation"
sys.path.append(str(PROGRAMS))

from budgets import CELLS, FEWER_CELLS, TOKENS, batches  # noqa: E402
from elsewhere import jobs_of  # noqa: E402

SMALL = {"architecture": "neural-model1", "tokenizer": "package:x", "settings": {"dims": 8, "widths": [4, 4, 4]}}
LARGE = {"architecture": "vanilla", "encoder": "package:x", "settings": {"max_query": 8, "max_doc": 6, "chunks": 2}}
RECIPES = {"neural-model1": SMALL | {"validation": {"collection": "toy"}}, "vanilla-short": LARGE}


def carried(folder: Path) -> Path:
    """What `prepare.py` writes, with toy texts."""
    save_prepared(folder / "prep", toy_run())
    for name in ("recipe.json.gz", "tokenizer.json"):
        (folder / "prep" / name).unlink()
    (folder / "encoder").mkdir()
    (folder / "encoder" / "tokenizer.json").write_bytes(toy_sources().tokenizer)
    model = new_encoder(ENCODER | {"vocab_size": 200}).model
    model.config.save_pretrained(folder / "encoder")
    save_file(
        quantised({k: t.contiguous() for k, t in model.state_dict().items()}), folder / "encoder/model.safetensors"
    )
    common = {"data": {"collection": "toy"}, "loss": "margin", "schedule": SCHEDULE | {"epochs": 1}, "seeds": [0, 1]}
    (folder / "recipes").mkdir()
    for name, recipe in RECIPES.items():
        with gzip.open(folder / "recipes" / f"{name}.json.gz", "wt") as file:
            json.dump(common | recipe, file)
    with lzma.open(folder / "pairs.json.xz", "wt") as file:
        json.dump({"rows": toy_rows(), "texts": toy_texts()[1]}, file)
    return folder


def toy_rows() -> list[dict]:
    queries, texts = toy_texts()
    parts = ["test"] * 3 + ["fusion"] * 2
    return [
        {
            "target": "toy",
            "part": part,
            "id": str(i),
            "query": queries[i],
            "docs": [],
            "texts": [i, (7 * i + 3) % len(texts)],
        }
        for i, part in enumerate(parts)
    ]


def run_all(folder: Path, place: Path) -> str:
    """Three runs in a process of their own: whole, again in the same folder, and elsewhere with a list of what is done."""
    code = (
        "import argparse, sys; from pathlib import Path; from elsewhere import run\n"
        "folder, place = map(Path, sys.argv[1:])\n"
        "for out, work, before, only in (('out', 'work', [], []), ('again', 'work', [], ['vanilla-short']),\n"
        "                                ('other', 'fresh', [place / 'list'], [])):\n"
        "    print(run(argparse.Namespace(folder=folder, out=place / out, work=place / work, at_once=2, seconds=90,\n"
        "                                 device='cpu', share=None, before=before, only=only)))\n"
    )
    line = [sys.executable, "-c", code, str(folder), str(place)]
    done = subprocess.run(line, cwd=PROGRAMS, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_networks_are_trained_asked_and_not_asked_twice(tmp_path):
    (tmp_path / "list").write_text("vanilla-short.0\nneural-model1.0\nneural-model1.1\n")
    told = run_all(carried(tmp_path / "carried"), tmp_path)
    out, keys = tmp_path / "out", {f"{name}.{seed}" for name in RECIPES for seed in (0, 1)}
    assert set((out / "finished.txt").read_text().split()) == keys
    assert {path.name for path in out.iterdir()} == {
        "scores-0.npz", "tables-0.tar", "tables-1.tar", "logs.tar.gz", "finished.txt",
    }  # fmt: skip
    with np.load(out / "scores-0.npz") as file:
        check_scores({key: file[key] for key in file.files}, next((tmp_path / "work").iterdir()))
    assert [line.split("] ")[1].split(",")[0] for line in told.splitlines() if "networks," in line] == [
        "4 networks", "0 networks", "1 networks",
    ]  # fmt: skip
    assert (tmp_path / "other" / "finished.txt").read_text() == "vanilla-short.1\n"


def check_scores(found: dict[str, np.ndarray], work: Path) -> None:
    """Each score is the network's own of that pair alone; only neural Model 1 is asked for the fusion part."""
    rows, texts = toy_rows(), toy_texts()[1]
    for key, scores in found.items():
        network = load(work / "networks" / key)
        pairs = [(row["query"], texts[i], row["part"]) for row in rows for i in row["texts"]]
        assert len(scores) == len(pairs)
        for score, (query, text, part) in zip(scores.tolist(), pairs, strict=True):
            if part == "fusion" and not key.startswith("neural-model1"):
                assert np.isnan(score)
            else:
                assert score == pytest.approx(network.score_texts([query], [text]).item(), abs=1e-4)
    assert not np.array_equal(found["vanilla-short.0"], found["vanilla-short.1"])


def test_what_matters_most_comes_first(tmp_path):
    names = ["cedr-drmm", "vanilla-full", "neural-model1", "vanilla-short", "bert-model1-short"]
    recipes = {name: SimpleNamespace(recipe=SimpleNamespace(seeds=[1, 0])) for name in names}
    found = [job.key for job in jobs_of(SimpleNamespace(work=tmp_path, recipes=recipes), [], [])]
    first = ["bert-model1-short", "neural-model1", "vanilla-short"]
    assert found == [
        *(f"{name}.{seed}" for seed in (0, 1) for name in first),
        "vanilla-full.0", "vanilla-full.1", "cedr-drmm.0", "cedr-drmm.1",
    ]  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, 32), st.integers(0, 600)), min_size=1, max_size=400),
    st.sampled_from([("vanilla", 200, 3), ("vanilla", 200, 1), ("neural-model1", 256, 1)]),
    st.sampled_from([1.0, 0.25, 0.01]),
)
def test_batches_hold_every_pair_once_and_stay_within_the_budget(sizes, kind, share):
    architecture, max_doc, chunks = kind
    network = SimpleNamespace(architecture=architecture, max_doc=max_doc, chunks=chunks)
    queries, docs = ([np.zeros(size) for size in side] for side in zip(*sizes, strict=True))
    docs = [doc[: max_doc * chunks] for doc in docs]
    found = list(batches(network, queries, docs, share))
    assert sorted(np.concatenate(found).tolist()) == list(range(len(sizes)))
    for rows in found:
        longest = max(len(queries[i]) for i in rows), max(len(docs[i]) for i in rows)
        parts = sum(max(1, -(-len(docs[i]) // max_doc)) for i in rows)
        tokens = parts * max(len(queries[i]) + min(len(docs[i]), max_doc) + 3 for i in rows)
        cells = len(rows) * longest[0] * longest[1]
        most = CELLS.get(architecture, FEWER_CELLS) * share
        assert len(rows) == 1 or (tokens <= TOKENS * share and cells <= most)


def told_by(story: str, folder: Path) -> dict:
    """What a crew of `crew_stories.py` tells."""
    line = [sys.executable, str(Path(__file__).with_name("crew_stories.py")), story, str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"said": done.stderr}


def test_a_job_that_fails_is_tried_again_and_no_other_suffers(tmp_path):
    found = told_by("tried_again", tmp_path)
    assert sorted(found["left"]) == ["dies", "raises"]
    assert {job for job, text in found["told"] if text == "well"} == {"a", "b", "dies once"}
    assert found["tried"]["raises"] == found["tried"]["dies"] == found["tries"]


def test_at_the_end_of_the_time_workers_are_asked_to_leave_and_do(tmp_path):
    found = told_by("asked_to_leave", tmp_path)
    assert found["told"] == [[0, "well"]]
    assert found["left"] == [1, 2, 3]
    assert found["seconds"] < 15
    assert sorted(found["ends"].values()) == [0, 0], found
    assert {file.name for file in tmp_path.iterdir()} == set(found["ends"]), found


def test_a_worker_that_is_asked_to_leave_before_it_is_ready_still_does(tmp_path):
    found = told_by("asked_at_once", tmp_path)
    assert set(found["ends"].values()) <= {0}, found
    assert {file.name for file in tmp_path.iterdir()} == set(found["ends"]), found


def test_no_job_begins_that_would_not_end_in_time(tmp_path):
    found = told_by("in_time", tmp_path)
    assert (found["done"], found["left"]) == (["a1", "a2"], ["a3"])
