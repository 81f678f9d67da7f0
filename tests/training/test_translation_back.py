"""The programs of benchmarks/translation that read what came back from a GPU, with toy collections."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_models import toy_sources
from whyrank.data import Collection
from whyrank.networks import Pieces

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "translation"))

from back import Back, runs_of, scaled, systems
from indexed import Texts
from logged import found, lines, summaries
from longer import like, relevant, views
from targets import Target

WORDS = ["ice", "wall", "sun", "river", "stone", "salt", "moon", "tree"]
DOCS = {f"d{i}": f"{WORDS[i]} {WORDS[(i + 3) % 8]} {WORDS[(i * i) % 8]}" for i in range(8)}
BM25 = "bm25(k1=0.6,b=0.4)"


def part(name: str, first: int, right: int) -> Collection:
    """Four questions of two words, each with one relevant text."""
    queries = {f"{name}{i}": f"{WORDS[first + i]} {WORDS[i]}" for i in range(4)}
    return Collection.of(DOCS, queries, {q: {f"d{(right * i + 1) % 8}": 1} for i, q in enumerate(queries)}, name=name)


def toy_targets() -> list[Target]:
    """Two with a fusion part, which want other weights, and one that takes those of the first."""
    measures = ("RR@10", "nDCG@10")
    return [
        Target("one", measures, part("t", 0, 1), part("f", 1, 3)),
        Target("two", measures, part("u", 2, 2), part("g", 3, 5)),
        Target("last", measures, part("v", 4, 3), like="one"),
    ]


def toy_back(tmp_path: Path) -> Back:
    asked = [
        {"target": t.name, "part": name, "id": q, "docs": sorted(DOCS)}
        for t in toy_targets()
        for name in ("test", "fusion")
        if getattr(t, name)
        for q in getattr(t, name).queries
    ]
    scores = np.random.default_rng(3).normal(-5, 2, (3, 8 * len(asked))).astype(np.float32)
    scores[2][[row["part"] == "fusion" for row in asked for _ in row["docs"]]] = np.nan
    (tmp_path / "tokenizer.json").write_bytes(toy_sources().tokenizer)
    results = {t.name: {"parameters": {"bm25": BM25}} for t in toy_targets()}
    keys = ["neural-model1.0", "neural-model1.1", "vanilla-full.0"]
    return Back(asked, dict(zip(keys, scores, strict=True)), results, tmp_path, Pieces(tmp_path), {})


def test_a_target_without_fusion_part_has_the_weights_of_the_one_it_names(tmp_path):
    back = toy_back(tmp_path)
    for target in toy_targets():
        found, groups, collection = systems(back, target)
    assert groups["bm25+neural-model1"] == ["bm25+neural-model1.0", "bm25+neural-model1.1"]
    assert set(collection.queries) == {f"v{i}" for i in range(4)}
    lexical = Texts(target.test).scores(BM25, target.test.queries, found["neural-model1.1"])
    ours, other = (back.weights[name, "neural-model1.1"] for name in ("one", "two"))
    assert not np.allclose(ours, other)
    for q, docs in found["bm25+neural-model1.1"].items():
        for d, score in docs.items():
            assert score == pytest.approx(ours[0] * lexical[q][d] + ours[1] * found["neural-model1.1"][q][d])


def test_scores_are_the_networks_by_distinct_query_pieces(tmp_path):
    back = toy_back(tmp_path)
    plain = runs_of(back.rows, back.scores["neural-model1.0"], "one", "test")
    flat = back.scores["neural-model1.0"].reshape(-1, 8)
    assert list(plain["t1"].values()) == pytest.approx(flat[1].tolist())
    queries = {"t0": "ice ice wall", "t1": "", "t2": "sun", "t3": "sun moon " * 40}
    sizes = {q: len(set(back.pieces.ids([text], 32)[0].tolist())) for q, text in queries.items()}
    assert sizes["t0"] > 1
    for q, docs in scaled(plain, queries, back.pieces).items():
        assert docs == {d: pytest.approx(score / max(1, sizes[q])) for d, score in plain[q].items()}
    assert not runs_of(back.rows, back.scores["vanilla-full.0"], "one", "fusion")


SIZES = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=6)


@given(st.lists(SIZES, min_size=1, max_size=6))
def test_views_hold_the_questions_and_candidates_that_they_say(questions):
    lengths = {f"{q}.{d}": size for q, docs in enumerate(questions) for d, (size, _) in enumerate(docs)}
    run = {str(q): {f"{q}.{d}": float(d) for d in range(len(docs))} for q, docs in enumerate(questions)}
    qrels = {str(q): {f"{q}.{d}": int(yes) for d, (_, yes) in enumerate(docs)} for q, docs in enumerate(questions)}
    collection = replace(part("t", 0, 1), qrels=qrels)
    found = views(run, relevant(collection, run, 1), lengths, 3)
    right = [[size for size, yes in docs if yes] for docs in questions]
    assert found["all"] == run
    assert set(found["relevant longer"]) == {str(q) for q, sizes in enumerate(right) if sizes and min(sizes) > 3}
    assert set(found["relevant within"]) == {str(q) for q, sizes in enumerate(right) if sizes and max(sizes) <= 3}
    assert set(found["candidates longer"]) == {str(q) for q, sizes in enumerate(right) if max(sizes, default=0) > 3}
    for q, docs in like(run, found["candidates longer"]).items():
        assert docs == {d: score for d, score in run[q].items() if lengths[d] > 3}


def test_logs_are_summed_up_by_recipe(tmp_path):
    log = {"recipe": {"architecture": "vanilla"}, "losses": [1.0] * 25 + [0.5] * 10, "validations": [], "best": None,
           "pairs": 70, "seconds": 2.0, "stopped": "", "device": "GPU", "torch": "2"}  # fmt: skip
    files = {f"logs/vanilla-short.{seed}.json": json.dumps(log | {"seconds": seed}) for seed in (0, 1)}
    files["logs/vanilla-short.1.txt"] = "step 3\n35 steps in 1 s\n"
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as file:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            file.addfile(member, io.BytesIO(text.encode()))
    (recipe,) = (content := summaries(dict(found([tmp_path]))))
    read = json.loads(lines(content[recipe]))
    assert (recipe, read["recipe"], list(read["seeds"])) == ("vanilla-short", log["recipe"], ["0", "1"])
    assert read["seeds"]["1"]["losses"] == [1.0, 0.5]
    assert (read["seeds"]["1"]["seconds"], read["seeds"]["1"]["told"]) == (1, "35 steps in 1 s")
