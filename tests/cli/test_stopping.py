"""What the line after Ctrl-C says is true: what is kept, and whether the same command goes on."""

from __future__ import annotations

import sys

import pytest

from whyrank.cli import console
from whyrank.cli.main import main


@pytest.fixture
def stopped(tmp_path, monkeypatch, capsys):
    """Run a command that is stopped where some function is called; gives its last line."""
    monkeypatch.setattr(console, "_left", [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / "cache"))

    def run(place, *arguments):
        def stop(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(place, stop)
        monkeypatch.setattr(sys, "argv", ["whyrank", *arguments])
        with pytest.raises(SystemExit) as found:
            main()
        assert found.value.code == 130
        return capsys.readouterr().err.splitlines()[-1]

    return run


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "nothing is kept; --checkpoint FILE keeps each iteration, and then the same command goes on from there"),
        (("--checkpoint", "state"), "the last whole iteration is kept in state, and the same command goes on from there"),
    ],
)  # fmt: skip
def test_in_em(stopped, more, said):
    found = stopped("whyrank.learners.em.learner.EM.fit", "tables", "learn", "em", "--out", "t.parquet", *more)
    assert found == f"whyrank: stopped; {said}"


@pytest.mark.parametrize(
    ("store", "said"),
    [("s.sqlite", "scores that were stored are kept, and the same command goes on"), ("none", "nothing was kept")],
)
def test_while_scoring(stopped, store, said):
    asked = "rank", "-r", "ql", "--candidates", "bm25", "--out", "run.txt", "--store", store
    assert stopped("whyrank.scoring.ranking.rerank", *asked).startswith(f"whyrank: stopped; {said}")


def test_while_tuning_which_stores_nothing(stopped):
    found = stopped("whyrank.evaluation.tuning.Runner.run", "tune", "-r", "bm25", "--grid", "k1=0.9")
    assert found == "whyrank: stopped; nothing was kept so far"


def test_in_training(stopped):
    found = stopped("whyrank.training.trainer.Trainer.run", "train", "neural-model1", "--out", "network")
    assert found == "whyrank: stopped; checkpoints of the training are kept, and the same command goes on from there"
