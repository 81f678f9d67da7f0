"""How far fast scores are from exact ones: measured on the first pairs, said once, kept, named in results."""

from __future__ import annotations

import json
import logging
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.neural import lines_of
from whyrank.rankers.neural.deviation import PAIRS as ENOUGH
from whyrank.rankers.neural.deviation import Deviation, Watch, mean_tau, recall, remember
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))


def tau_by_hand(a, b):
    """Tau-b from its definition: pairs in order less pairs out of order, over the root of those untied in each."""
    signs = [(np.sign(a[i] - a[j]), np.sign(b[i] - b[j])) for i, j in combinations(range(len(a)), 2)]
    below = sum(x != 0 for x, _ in signs) * sum(y != 0 for _, y in signs)
    return sum(x * y for x, y in signs) / below**0.5 if below else None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), max_size=25))
def test_tau_is_the_mean_over_queries(rows):
    query, found, expected = (np.array([row[i] for row in rows], float) for i in range(3))
    taus = [tau_by_hand(found[query == q], expected[query == q]) for q in np.unique(query)]
    known = [tau for tau in taus if tau is not None]
    given = mean_tau(query.astype(np.int32), found, expected)
    assert given == (pytest.approx(np.mean(known)) if known else None)


def lengths(pairs):
    return np.array([len(pairs.docs[code]) for code in pairs.doc], float)


def test_it_is_measured_on_the_first_pairs_after_the_run_and_said_once(caplog):
    asked = []
    watch = Watch("r: torch bf16", "r", lambda p: asked.append(p) or lengths(p) + 0.25, lambda: lengths)
    with caplog.at_level(logging.INFO):
        for start in range(0, 400, 40):
            docs = ["x" * (i + 1) for i in range(start, start + 40)]
            watch.add(["q"] * 40, docs)
            watch.add(["q"] * 40, docs)  # the same pairs again do not count
        assert not asked  # while others wait for scores
        assert watch.deviation == watch.deviation
    few, pairs = asked  # the first time is not taken
    assert len(few.query) < len(pairs.query)
    assert sorted(len(doc) for doc in pairs.docs) == list(range(1, ENOUGH + 1))
    assert watch.deviation[:3] == (ENOUGH, 1.0, 0.25)
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage() == watch.line
    assert watch.line.startswith("r: torch bf16, ")
    assert watch.line.endswith(" times as fast as torch fp32; Kendall tau 1.000 to fp32, largest difference .250 (on 256 pairs)")  # fmt: skip


def test_an_order_that_changes_is_a_warning(caplog):
    watch = Watch("r: torch bf16", "r", lambda p: -lengths(p), lambda: lengths)
    watch.add(["q"] * 3, ["a", "bb", "ccc"])
    with caplog.at_level(logging.WARNING):
        assert watch.deviation.tau == -1
    assert "Kendall tau -1.000 to fp32, largest difference 6.000 (on 3 pairs): less than 0.99" in caplog.text


def test_it_is_kept_for_runs_without_new_scores(monkeypatch):
    known = Deviation(200, 0.995, 0.01, 2.5)
    remember("r", known)
    assert recall("r") == known
    assert recall("s") is None
    watch = Watch("r: torch bf16", "r", lengths, lambda: lengths)
    assert watch.deviation == known
    watch.add(["q"] * 2, ["a", "bb"])
    assert watch.deviation == known  # which says more than two pairs do
    watch.add(["q"] * 300, ["x" * (i + 3) for i in range(300)])
    assert watch.deviation.pairs == ENOUGH
    assert recall("r").pairs == ENOUGH
    monkeypatch.setenv("WHYRANK_CACHE", "/proc/nowhere")
    remember("r", known)  # where nothing can be written, nothing is lost but the memory
    assert recall("r") is None


def test_a_kept_file_that_is_not_ours_is_no_deviation(tmp_path, monkeypatch):
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path))
    remember("r", Deviation(2, None, 0.0, 1.0))
    [file] = (tmp_path / "deviations").iterdir()
    for text in ("{", "[]", '{"pairs": 1}'):
        file.write_text(text)
        assert recall("r") is None


# With rankers


def half_ranker(models, kind="cross", **more):
    from whyrank.rankers.neural.computing import has_bfloat16

    if not has_bfloat16("cpu"):
        pytest.skip("needs bfloat16 arithmetic")
    arguments = ",".join(f"{name}={value}" for name, value in {"precision": "fast", "device": "cpu", **more}.items())
    return open_ranker(f"{kind}:{models.folder(kind)}({arguments})")


def test_an_exact_ranker_has_none(models):
    ranker = open_ranker(f"cross:{models.folder('cross')}")
    ranker.score(QUERIES, DOCS)
    assert ranker.deviation is None
    assert ranker.how_computed is None
    assert lines_of(ranker) == []


@pytest.mark.parametrize("kind", ["cross", "bi", "t5"])
def test_it_is_that_of_the_scores(models, kind):
    ranker = half_ranker(models, kind, backend="torch")
    found, expected = ranker.score(QUERIES, DOCS), open_ranker(f"{kind}:{models.folder(kind)}").score(QUERIES, DOCS)
    distinct = len(set(PAIRS))
    assert ranker.deviation.pairs == distinct < ENOUGH
    assert ranker.deviation.largest == pytest.approx(np.abs(found - expected).max(), rel=0.2, abs=1e-3)
    assert ranker.deviation.times is None  # for so few pairs
    assert ranker.how_computed.startswith(f"{ranker.name}: torch bf16, ")


def test_rankers_within_rankers(models):
    half_ranker(models)
    folder = models.folder("cross")
    of = [f"cross:{folder}(backend=torch)", f"bi:{models.folder('bi')}(precision=exact)"]
    ranker = open_ranker(f"fuse(of={of!r})", Setting(precision="fast"))
    assert [part.precision for part in ranker.parts] == ["fast", "exact"]
    ranker.score(QUERIES, DOCS)
    [line] = lines_of(ranker)
    assert line.startswith(f"cross:{folder}(precision=fast,backend=torch): torch bf16, ")


# The command line


def test_precision_is_for_all_rankers_that_have_one(models, whyrank, tmp_path):
    half_ranker(models)
    spec, out = f"cross:{models.folder('cross')}(backend=torch)", tmp_path / "out"
    asked = ["audit", "matched/relevance|length", "-r", "bm25", "-r", spec, "--precision", "fast", "--limit", "40"]
    for _ in range(2):  # the second time all scores come from the store
        code, _, errors = whyrank(*asked, "--out", out)
        name = spec.replace("backend", "precision=fast,backend")
        record = json.loads((out / "settings.json").read_text())
        assert list(record["settings"]["rankers"]) == ["bm25", name]
        assert " numbers=bf16 model=" in record["settings"]["rankers"][name]
        [note] = [note for note in record["notes"] if "fp32" in note]
        assert note.startswith(f"{name}: torch bf16, ")
        assert "Kendall tau" in note
        assert note in (out / "report.html").read_text()
        assert (code, errors.count(note)) == (0, 1)
