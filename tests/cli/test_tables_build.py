"""`whyrank tables build` from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from refusals import one_line
from side_by_side import wait_for
from whyrank.core import exclusive
from whyrank.learners.parm import building
from whyrank.learners.parm.pairs import Results
from whyrank.tables import open_table

sys.path.append(str(Path(__file__).parents[1] / "networks"))
from pair_models import saved

torch.set_num_threads(1)
SMALL = ("--query-terms", "6", "--doc-terms", "40", "--device", "cpu")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    return tmp_path


def test_one_command_builds_table_and_slice(whyrank, place):
    code, out, err = whyrank(
        "tables", "build", "parm", "--out", "t.parquet", *SMALL, "--audit", "cab", "--threshold", "0.3"
    )
    assert (code, out) == (0, "")
    table, audit = open_table("t.parquet"), open_table("t.audit.parquet")
    assert len(table.query_terms) in (6, 7)
    assert len(table.doc_terms) == 40
    assert len(audit) == 40
    assert f"{len(table):,} entries of {7 * 40} pairs: t.parquet" in err
    assert "all weights of cab: t.audit.parquet" in err
    assert err.splitlines()[-1] == "rank with it: --ranker bm25t:t.parquet"
    assert table.facts["threshold"] == 0.3
    assert table.facts["collection"] == "sample"
    code, out, _ = whyrank("tables", "show", "t.audit.parquet", "cab")
    assert code == 0


def test_three_steps_give_the_same(whyrank, place):
    whyrank("tables", "build", "parm", "--out", "t.parquet", *SMALL)
    code, _, err = whyrank("tables", "build", "parm", "--prepare", "there", "--query-terms", "6", "--doc-terms", "40")
    assert code == 0
    assert "6 x 40 terms" in err
    assert " pieces on average: there" in err
    scored = subprocess.run(
        [sys.executable, "-m", "whyrank.learners.parm.pairs.main", "there", "--device", "cpu"],
        check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert "pairs/s" in scored.stdout
    code, _, err = whyrank("tables", "build", "--collect", "there", "--out", "u.parquet")
    assert code == 0, err
    assert open_table("u.parquet").digest == open_table("t.parquet").digest
    Path("there/results").rename("back")
    code, _, err = whyrank("tables", "build", "--collect", "there", "--results", "back", "--out", "v.parquet")
    assert code == 0, err
    assert open_table("v.parquet").digest == open_table("t.parquet").digest


def test_a_prepared_folder_says_how_much_comes_back(whyrank, place):
    sizes = ("--query-terms", "6", "--doc-terms", "40")
    code, _, err = whyrank(
        "tables", "build", "parm", "--prepare", "there", *sizes, "--queries-of", "sample", "--top", "3"
    )
    assert code == 0
    assert int(err.split()[0]) > 60
    assert json.loads(Path("there/task.json").read_text())["top"] == 3


def test_words_of_a_file_are_document_terms(whyrank, place):
    Path("words.txt").write_text("glaciera\n\nglacierb \n")
    code, _, err = whyrank("tables", "build", "parm", "--out", "t.tsv", *SMALL, "--doc-words", "words.txt")
    assert code == 0, err
    table = open_table("t.tsv")
    assert table.doc_terms[-2:] == ("glaciera", "glacierb")
    assert len(table.doc_terms) == 42
    assert table.facts["doc_words"] == 2


MANY = ("--query-terms", "12", "--doc-terms", "60", "--device", "cpu", "--cascade")


def cascade(whyrank, *options):
    """Build the table of a network that reads all letters by a cascade: what it says, and its facts."""
    saved(Path(), letters="klmnopqrstuvwxyz")
    code, _, err = whyrank("tables", "build", "parm", "--out", "t.tsv", *MANY, *options)
    assert code == 0, err
    return err, open_table("t.tsv").facts


def test_a_cascade_prints_its_certificate(whyrank, place):
    err, facts = cascade(whyrank, "--sample", "120", "--recall", "0.5")
    proof = facts["certificate"]
    assert facts["method"] == facts["scored"]["method"] == "cascade"
    expected = (
        f"recall of at least {proof['recall']:.4f} of the pairs that weigh 0.1 or more, with a probability of 95%"
    )
    assert expected in err.splitlines()
    assert proof["drawn"] == 120
    assert proof["found"] == len(open_table("t.tsv"))
    assert facts["self_pairs"] > 0


def test_a_certificate_is_not_that_of_audited_terms_whose_weights_are_all_there(whyrank, place):
    _, facts = cascade(whyrank, "--sample", "120", "--recall", "0.5", "--audit", "cab")
    audit = open_table("t.audit.tsv")
    assert facts["certificate"]["recall"] < 1
    assert "certificate" not in audit.facts
    assert audit.facts["pairs"] == len(audit) == len(audit.doc_terms)


def test_a_certificate_says_that_the_best_were_taken_after_it(whyrank, place):
    err, facts = cascade(whyrank, "--sample", "120", "--recall", "0.5", "--top", "2")
    assert f"{facts['certificate']['recall']:.4f} of the pairs that weigh 0.1 or more, before --top, with" in err


def test_a_recall_that_was_not_reached_is_said(whyrank, place):
    err, facts = cascade(whyrank, "--sample", "30", "--recall", "0.99")
    assert facts["certificate"]["recall"] < 0.99
    assert ", with a probability of 95%, not the 0.99 that was asked for\n" in err
    assert "note: the recall that is shown" in err


def test_a_cascade_over_few_pairs_scores_them_all(whyrank, place):
    err, facts = cascade(whyrank)
    assert "all pairs were scored, so none is missed" in err.splitlines()
    assert facts["scored"]["method"] == "exhaustive"
    assert facts["scored"]["scored"] == facts["scored"]["pairs"]


def test_time_that_is_up_goes_on(whyrank, place):
    code, _, err = whyrank("tables", "build", "parm", "--out", "t.tsv", *SMALL, "--seconds", "0")
    assert code == 0
    assert "goes on" in err
    assert not Path("t.tsv").exists()
    assert Path("t.tsv.blocks").is_dir()
    code, _, err = whyrank("tables", "build", "parm", "--out", "t.tsv", *SMALL)
    assert code == 0
    assert Path("t.tsv").exists()
    assert not Path("t.tsv.blocks").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--out", "t.tsv"], "needs a NETWORK"),
        (["parm"], "needs --out TABLE"),
        (["parm", "--out", "t.csv"], "is written as"),
        (["parm", "--out", "t.tsv", "--prepare", "p"], "needs --out TABLE, or --prepare"),
        (["parm", "--collect", "x", "--out", "t.tsv"], "needs a NETWORK, or --collect"),
        (["nothing", "--out", "t.tsv"], "config.json: cannot be read"),
        (["parm", "--out", "t.tsv", "--sample", "5"], "--sample is for --cascade"),
        (["parm", "--out", "t.tsv", "--audit", "the"], "drops it"),
        (["parm", "--out", "t.tsv", "--threshold", "2"], "threshold must be a number between 0 and 1"),
        (["parm", "--out", "t.tsv", "--way", "magic"], "unknown way"),
        (["parm", "--out", "t.tsv", "--precision", "int4"], "unknown precision"),
        (["parm", "--out", "t.tsv", "--device", "tpu"], "is not to be had here"),
        (["parm", "--prepare", "p", "--bits", "3"], "32 or 16 bits"),
        (["--collect", "parm", "--out", "t.tsv"], "is no prepared folder"),
        (["parm", "--out", "t.tsv", "--results", "r"], "--results is for --collect"),
        (["parm", "--out", "t.tsv", "-c", "nowhere"], "nowhere"),
        (["parm", "--out", "t.tsv", "--queries-of", "nowhere"], "nowhere"),
        (["parm", "--out", "t.tsv", "--doc-words", "nowhere"], "nowhere"),
        (["parm", "--out", "t.tsv", "--frame", "masked"], "unknown frame 'masked'"),
    ],
)  # fmt: skip
def test_wrong_requests_are_one_line(whyrank, place, options, expected):
    assert expected in one_line(whyrank("tables", "build", *options))
    assert not Path("t.tsv").exists()


def files_of(folder):
    return {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in Path(folder).rglob("*") if each.is_file()}


def test_the_same_task_is_not_written_again(whyrank, place, monkeypatch):
    """Killed at any moment of the second start, the blocks of the first are still there."""
    command = ("tables", "build", "parm", "--out", "t.tsv", *SMALL, "--block", "1")
    stop_after(monkeypatch)
    assert whyrank(*command)[0] == 130
    kept = files_of("t.tsv.blocks")
    assert any("block-" in each.name or "entries-" in each.name for each in kept)
    monkeypatch.setattr(building, "score_folder", lambda *_: False)
    assert whyrank(*command)[0] == 0
    assert files_of("t.tsv.blocks") == kept


@pytest.mark.parametrize("lost", [["task.json"], ["task.json", "terms.npz"], ["task.json", "tokenizer.json"]])
def test_a_folder_whose_writer_was_killed_goes_on(whyrank, place, monkeypatch, lost):
    command = ("tables", "build", "parm", "--out", "t.tsv", *SMALL, "--block", "1")
    assert whyrank("tables", "build", "parm", "--out", "whole.tsv", *SMALL)[0] == 0
    with monkeypatch.context() as patch:
        stop_after(patch)
        assert whyrank(*command)[0] == 130
    for name in lost:
        Path("t.tsv.blocks", name).unlink()
    Path("t.tsv.blocks/.task.json.x1.tmp").touch()
    code, _, err = whyrank(*command)
    assert code == 0, err
    assert open_table("t.tsv").digest == open_table("whole.tsv").digest


def stop_after(monkeypatch):
    """Stop a build once a block is kept."""
    real = Results.add

    def add(self, *args):
        real(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Results, "add", add)


def test_a_folder_with_other_things_is_left_alone(whyrank, place):
    Path("t.tsv.blocks").mkdir()
    Path("t.tsv.blocks/tokenizer.json").write_text("mine")
    code, _, err = whyrank("tables", "build", "parm", "--out", "t.tsv", *SMALL)
    assert code == 2
    assert "t.tsv.blocks: is a folder with other things in it; remove it or name a new one" in err
    assert Path("t.tsv.blocks/tokenizer.json").read_text() == "mine"


def test_a_second_build_of_the_same_table_is_refused(whyrank, place):
    with exclusive("t.tsv.blocks.lock"):
        code, out, err = whyrank("tables", "build", "parm", "--out", "t.tsv", *SMALL)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "t.tsv.blocks.lock: another process is at work on the same output; wait until it ends" in err
    assert not Path("t.tsv.blocks").exists()


def test_ctrl_c_keeps_blocks_and_says_one_line(place):
    """The blocks of a vocabulary of which one takes some seconds stay."""
    saved(place, letters="klmnopqrstuvwxyz")
    command = [
        sys.executable,
        "-m",
        "whyrank.cli.main",
        "tables",
        "build",
        "parm",
        "--out",
        "t.tsv",
        "--device",
        "cpu",
    ]
    command += ["--query-terms", "300", "--doc-terms", "500", "--analyzer", "whitespace", "--block", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: list(Path("t.tsv.blocks/results").glob("block-*.npz")), 60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1].startswith("whyrank: stopped; ")
    assert "Traceback" not in err
    kept = list(Path("t.tsv.blocks/results").glob("*.npz"))
    assert kept
    assert not Path("t.tsv").exists()
