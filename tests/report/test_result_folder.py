from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from report_samples import (
    NASTY,
    ToyStudy,
    curve,
    empty,
    findings,
    marks,
    overlap_rows,
    toy_answer,
    toy_contrasts,
    written,
)

from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.evaluation import Spread
from whyrank.report import open_audit, read_findings, read_scores, read_settings, read_texts
from whyrank.report.folder import check_result, swap_folder
from whyrank.scoring import Failure
from whyrank.studies import Calibration, Contrasts, Pair, Threshold
from whyrank.tables import TermTable


def csv_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open()))


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_result_folder_is_complete(tmp_path):
    folder = written(tmp_path / "new" / "out", toy_answer())
    found = set(files(folder))
    scores = {name for name in found if name.startswith("scores/")}
    assert len(scores) == 1
    assert found - scores == {
        "findings.parquet", "findings.csv", "texts.parquet", "settings.json", "report.html",
    }  # fmt: skip
    assert os.listdir(tmp_path / "new") == ["out"]
    formats = {"formats": ["markdown", "latex"], "correction": "bh"}
    folder = written(tmp_path / "new" / "out", toy_answer(), settings=formats)
    assert sorted(os.listdir(folder / "tables")) == ["findings.md", "findings.tex"]
    assert "Benjamini" in (folder / "tables" / "findings.tex").read_text()


def test_the_overlap_split_is_written_as_figures_and_as_a_picture(tmp_path):
    folder = written(tmp_path / "out", toy_answer(), overlap=overlap_rows())
    rows = csv_rows(folder / "overlap.csv")
    names = "run measure queries group share_low share_high n mean ci_low ci_high baseline"
    assert " ".join(list(rows[0])[:11]) == names
    assert (rows[0]["run"], rows[0]["group"], rows[0]["n"], float(rows[0]["mean"])) == ("bm25", "1", "4", 0.2)
    assert (rows[5]["queries"], rows[5]["mean"]) == ("retrieved", "")
    assert len(marks((folder / "overlap.svg").read_text(encoding="utf-8"), "line")) == 4
    assert "Effectiveness by overlap" in (folder / "report.html").read_text(encoding="utf-8")
    assert not {"overlap.csv", "overlap.svg"} & set(files(written(folder, toy_answer(), overlap=[])))


def test_an_opened_folder_gives_the_report_that_is_in_it(tmp_path):
    answers = [toy_answer(ranker=ranker) for ranker in ("bm25", "ql")]
    swept = [point for ranker in ("bm25", "ql") for point in curve("matched/length|tf", ranker, 0.5, None, -0.25)]
    spreads = [
        Spread("*", "matched/length|tf", 1, 2, 0.1, 0.2, -0.1, 0.3),
        Spread("*", "=x", 1, 2, None, 1 / 3, 0, 1),
    ]
    folder = written(tmp_path / "out", *answers, sweep=swept, spreads=spreads, overlap=overlap_rows())
    found = open_audit(folder)
    assert (found.sweep, found.spreads, found.overlap) == (swept, spreads, overlap_rows())
    found.report(tmp_path / "again.html")
    page = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert page == (folder / "report.html").read_text(encoding="utf-8")
    for section in ("sweeps", "overlap", "stability"):
        assert f'id="{section}"' in page
    (folder / "sweep.csv").write_text("study,ranker\n1,2\n")
    with pytest.raises(BadInput, match=r"sweep\.csv"):
        open_audit(folder)


@settings(max_examples=10)
@given(findings)
def test_findings_come_back(tmp_path_factory, rows):
    assert read_findings(written(tmp_path_factory.mktemp("folder") / "out", rows=rows)) == rows


def test_scores_name_texts_by_index(tmp_path):
    contrasts = toy_contrasts()
    answer = toy_answer(contrasts=contrasts, scores=[[2, 1], [1, 1.25], [math.nan, 1], [math.inf, 0]])
    folder = written(tmp_path / "out", answer)
    texts, rows = read_texts(folder), read_scores(folder, "matched/length|tf", "bm25").to_pylist()
    for i, row in enumerate(rows):
        assert texts[row["query"]] == contrasts.queries[contrasts.query[i]]
        assert [texts[d] for d in row["docs"]] == [contrasts.docs[d] for d in contrasts.doc[i]]
        assert (row["query_id"], row["doc_ids"]) == (f"q{i // 2}", [f"a{i}", f"b{i}"])
        assert (row["grade"], row["group"]) == (i, "odd" if i % 2 else "even")
    assert [row["diff"] for row in rows] == [1.0, -0.25, None, None]
    assert [row["effect"] for row in rows] == [1, 0, 0, 0]
    assert [row["finite"] for row in rows] == [True, True, False, False]
    assert [row["scores"] for row in rows[:2]] == [[2.0, 1.0], [1.0, 1.25]]
    assert rows[3]["scores"] == [math.inf, 0.0]


def test_texts_are_held_once_for_all_studies_and_rankers(tmp_path):
    contrasts = toy_contrasts()
    answers = [toy_answer(ToyStudy(s), r, contrasts) for s in ("x/a", "x/b") for r in ("bm25", "ql")]
    folder = written(tmp_path / "out", *answers)
    texts = read_texts(folder)
    assert sorted(texts) == sorted({*contrasts.queries, *contrasts.docs})
    assert len(list((folder / "scores").iterdir())) == 4


def test_studies_without_labels_or_contrasts_are_written(tmp_path):
    bare = Contrasts.from_pairs([Pair("q", ("a", "b"))])
    nothing = Contrasts.from_pairs([])
    answers = [
        toy_answer(ToyStudy("x/bare"), contrasts=bare),
        toy_answer(ToyStudy("x/nothing"), contrasts=nothing, scores=np.empty((0, 2))),
        toy_answer(
            ToyStudy("x/three"), contrasts=Contrasts.from_pairs([Pair("q", ("a", "b", "c"))]), scores=[[1, 2, 4]]
        ),
    ]
    folder = written(tmp_path / "out", *answers)
    assert read_scores(folder, "x/bare", "bm25").num_rows == 1
    assert read_scores(folder, "x/nothing", "bm25").num_rows == 0
    assert read_scores(folder, "x/three", "bm25")["diff"].to_pylist() == [-1.0]
    assert [f.n for f in read_findings(folder)] == [1, 0, 1]


def test_labels_cannot_hide_our_columns(tmp_path):
    contrasts = Contrasts.from_pairs([Pair("q", ("a", "b"), {"diff": 7, "query": "x"})])
    table = read_scores(written(tmp_path / "out", toy_answer(contrasts=contrasts)), "matched/length|tf", "bm25")
    assert table["label_diff"].to_pylist() == [7]
    assert table["diff"].to_pylist() == [1.0]
    assert table["label_query"].to_pylist() == ["x"]


def test_half_characters_in_texts_and_labels_are_written(tmp_path):
    contrasts = Contrasts.from_pairs(
        [Pair("q\ud800", ("a\udfff", "b"), {"query_id": "\ud800", "doc_ids": ("x", "\ud801")})]
    )
    folder = written(tmp_path / "out", toy_answer(contrasts=contrasts, failures=(Failure("\ud800", "b", "r"),)))
    assert read_texts(folder) == ["q?", "a?", "b"]
    assert read_scores(folder, "matched/length|tf", "bm25")["query_id"].to_pylist() == ["?"]
    assert read_settings(folder)["failures"]["count"] == 1


def test_settings_are_recorded(tmp_path):
    calibration = Calibration(np.array([0.1, 0.2, 0.4]), "run bm25 of toy")
    folder = written(
        tmp_path / "out",
        toy_answer(),
        settings={"alpha": 0.01, "out": Path("x"), "seed": np.int64(3), "odd": math.nan},
        thresholds={"bm25": Threshold(0.2, calibration), "ql": Threshold(0.5)},
        notes=["note " + NASTY],
    )
    record = read_settings(folder)
    assert record["settings"] == {"alpha": 0.01, "out": "x", "seed": 3, "odd": None}
    assert record["thresholds"]["bm25"]["source"] == "run bm25 of toy"
    assert record["thresholds"]["bm25"]["percentiles"]["p50"] == 0.2
    assert record["thresholds"]["ql"] == {"delta": 0.5, "source": "given"}
    assert record["notes"] == ["note " + NASTY]
    study = {"name": "matched/length|tf", "call": "matched/length|tf"}
    assert record["studies"] == [study | {"positive": ToyStudy().positive, "symmetric": False}]
    names = {"whyrank", "python", "numpy", "scipy", "numba", "pyarrow", "ir-measures", "platform"}
    assert set(record["versions"]) == names
    assert record["created"][:2] == "20"


def test_failures_are_counted_and_the_first_kept(tmp_path):
    failures = tuple(Failure(f"query {i}", "word " * 500, "ValueError: no") for i in range(70))
    answers = [toy_answer(ranker=r, failures=failures) for r in ("bm25", "ql")]
    kept = read_settings(written(tmp_path / "out", *answers))["failures"]
    assert (kept["count"], len(kept["first"])) == (140, 100)
    assert kept["first"][0]["reason"] == "ValueError: no"
    assert all(len(row["doc"]) <= 201 for row in kept["first"])


def test_a_new_result_replaces_the_old_one_as_a_whole(tmp_path):
    table = TermTable.from_triples(["car"], ["auto"], [0.5])
    path = written(tmp_path / "out", toy_answer(ranker="old"), settings={"formats": ["latex"]}, table=table)
    assert (path / "table.html").exists()
    written(path, toy_answer(ranker="new"))
    assert [f.ranker for f in read_findings(path)] == ["new"]
    assert len(list((path / "scores").iterdir())) == 1
    assert not (path / "tables").exists()
    assert not (path / "table.html").exists()
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_result(tmp_path, monkeypatch, error):
    path = written(tmp_path / "out", toy_answer())
    before = files(path)

    def fail(*_):
        raise error

    monkeypatch.setattr("whyrank.report.audit.render", fail)
    with pytest.raises(error):
        written(path, toy_answer(ranker="ql"))
    assert files(path) == before
    assert os.listdir(tmp_path) == ["out"]


def test_a_failing_rename_puts_the_old_result_back(tmp_path, monkeypatch):
    path = written(tmp_path / "out", toy_answer())
    before, rename = files(path), Path.rename

    def refuse(self, target):
        if self.suffix == ".tmp":
            raise OSError("disk is gone")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="gone"):
        written(path, toy_answer(ranker="new"))
    assert files(path) == before
    assert os.listdir(tmp_path) == ["out"]


KILLED = """
import os, sys
from pathlib import Path
sys.path[:0] = {folders!r}
from report_samples import toy_answer, written
rename, seen = Path.rename, []

def dies(self, target):
    seen.append(rename(self, target))
    os._exit(9) if len(seen) == {after} else None

Path.rename = dies
written(Path({path!r}), toy_answer(ranker="new"))
"""


def killed_in_the_swap(path: Path, after: int) -> None:
    """Write a result with a process that ends at once after so many renames."""
    code = KILLED.format(folders=[str(Path(__file__).parent)], path=str(path), after=after)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9


@pytest.mark.slow
def test_what_a_killed_process_left_hidden_is_put_back(tmp_path):
    """By whoever opens the result, and by the next run."""
    name = "a name of a result that is much longer than forty characters"
    path = written(tmp_path / name, toy_answer(ranker="old"))
    before = files(path)
    killed_in_the_swap(path, after=1)
    assert not path.exists()
    assert [f.ranker for f in read_findings(path)] == ["old"]
    assert files(path) == before
    killed_in_the_swap(path, after=1)
    with pytest.raises(ValueError, match="stopped"), swap_folder(path):
        raise ValueError("stopped")
    assert os.listdir(tmp_path) == [name]
    assert files(path) == before
    killed_in_the_swap(path, after=2)
    assert [f.ranker for f in read_findings(path)] == ["new"]
    written(path, toy_answer(ranker="newer"))
    assert os.listdir(tmp_path) == [name]


def foreign(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("mine")


def similar(path: Path) -> None:
    path.mkdir()
    (path / "settings.json").write_text('{"kind": "something else"}')


def shared(path: Path) -> None:
    written(path, rows=[])
    (path / "notes.txt").write_text("mine")


@pytest.mark.parametrize(
    ("made", "named", "formats", "error", "word"),
    [
        (None, "out", ["latecks"], UnknownName, "latex"),
        (foreign, "out", [], BadInput, "out: is not empty"),
        (similar, "out", [], BadInput, "out: is not empty"),
        (shared, "out", [], BadInput, r"notes\.txt"),
        (lambda path: path.write_text("x"), "out", [], BadInput, "is a file"),
        (None, ".", [], WhyrankError, "current folder"),
        (None, "..", [], WhyrankError, "current folder"),
    ],
)
def test_places_that_are_refused_stay_as_they_are(tmp_path, monkeypatch, made, named, formats, error, word):
    monkeypatch.chdir(tmp_path)
    if made:
        made(tmp_path / "out")
    before = files(tmp_path)
    with pytest.raises(error, match=word):
        check_result(named, formats)
    assert files(tmp_path) == before


def damaged(folder: Path) -> None:
    (folder / "findings.parquet").write_bytes(b"PAR1 broken")


def exchanged(folder: Path) -> None:
    (folder / "texts.parquet").rename(folder / "findings.parquet")


@pytest.mark.parametrize(
    ("happens", "read", "word"),
    [
        (shutil.rmtree, read_findings, "is not a folder"),
        (lambda folder: (folder / "settings.json").unlink(), read_settings, "not a result folder"),
        (None, lambda folder: read_scores(folder, "matched/length|tf", "bm52"), r"did you mean 'matched/length\|tf by bm25'"),
        (damaged, read_findings, r"findings\.parquet: cannot be read"),
        (exchanged, read_findings, "does not hold findings"),
        (exchanged, read_texts, r"texts\.parquet"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, happens, read, word):
    folder = written(tmp_path / "out", toy_answer())
    if happens:
        happens(folder)
    with pytest.raises(BadInput, match=word):
        read(folder)


def test_a_folder_that_fills_up_meanwhile_is_refused(tmp_path):
    with pytest.raises(WhyrankError, match="is not empty"), swap_folder(tmp_path / "out"):  # noqa: PT012
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("years of work")
    assert files(tmp_path) == {"out/thesis.txt": b"years of work"}


def test_links_modes_and_odd_names(tmp_path, monkeypatch):
    """A link keeps pointing at the result, an empty folder is filled, and results are ordinary folders."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "real", toy_answer(ranker="old"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    written(tmp_path / "link", toy_answer(ranker="new"))
    assert (tmp_path / "link").is_symlink()
    assert read_findings(tmp_path / "real")[0].ranker == "new"
    for name in ("plain", "wikiqa:dev"):
        (tmp_path / name).mkdir()
    assert read_findings(written(Path("wikiqa:dev"), rows=[empty()])) == [empty()]
    assert (tmp_path / "wikiqa:dev").stat().st_mode == (tmp_path / "plain").stat().st_mode
