"""Start-up, rankers that fail or print, and texts and ids that try to steer the terminal."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from small_collections import write_collection

from refusals import one_line

HELP = [sys.executable, "-m", "whyrank", "--help"]


@pytest.mark.parametrize("command", [[sys.executable, "-c", "import whyrank"], HELP])
def test_start_up(command):
    def once() -> float:
        """Seconds of processor time, which other programs do not change much."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(once() for _ in range(5)) < 0.5


def test_nothing_heavy_is_imported():
    heavy = ("numba", "pyarrow", "scipy", "torch", "bm25s", "nltk")
    code = f"import sys, whyrank.cli.main; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_help_without_a_command(whyrank):
    for group in ([], ["tables"], ["tables", "learn"], ["data"]):
        code, out, _ = whyrank(*group)
        assert code == 0
        assert out.startswith(" ".join(["Usage: whyrank", *group]))


@pytest.fixture
def pets(tmp_path):
    texts = {"a": "cats purr", "b": "cats and dogs"}
    return write_collection(tmp_path / "c", texts, {"1": "cats"}, "1 0 a 1\n1 0 b 0\n")


def test_a_reason_is_one_line_that_steers_no_terminal(whyrank, pets, ranker):
    fails = "if any('purr' in d for d in docs): raise ValueError('two\\nlines and \\x1b[31m red')"
    given = ("edited/prepend-query", "--delta", "0", "-c", pets, "-r", ranker("1.0", fails))
    code, _, err = whyrank("audit", *given)
    assert code == 0
    assert "2 pairs have no finite score; the first: ValueError: two lines and \\u001b[31m red for query" in err
    assert err.count("\n") == 3  # with the note on few queries, and the last line


def test_rankers_without_a_finite_score(whyrank, pets, ranker, tmp_path):
    nans, fails = ranker("float('nan')"), ranker("1.0", "raise OSError('weights.bin\\nis missing')", "fails")
    said = one_line(whyrank("audit", "matched/length|tf", "-r", nans))
    assert "no two finite scores for any query of run bm25 of sample (score is nan), so delta" in said
    said = one_line(whyrank("audit", "matched/length|tf", "-r", fails, "-c", pets))
    assert "any query of judged documents of c (OSError: weights.bin is missing), so" in said
    code, out, err = whyrank("rank", "-r", nans, "--candidates", "bm25", "--out", tmp_path / "run", "--store", "none")
    assert (code, out, (tmp_path / "run").exists()) == (2, "", False)
    assert err.splitlines()[-1].endswith("no finite score for any document, so there is no run; mend the ranker")


def test_a_ranker_that_prints_does_not_spoil_json(whyrank, ranker):
    given = ("matched/length|tf", "-r", ranker("1.0", "print('x')"), "--json", "--delta", "0")
    _, out, err = whyrank("audit", *given)
    assert json.loads(out)[0]["score"] == 0
    assert "x\n" in err


@pytest.mark.parametrize("steering", ["\x1b]0;owned\x07\x1b[2J", "\x9b31m\x7f", "\u202egnp\u2066"])
def test_ids_steer_no_terminal(whyrank, tmp_path, monkeypatch, steering):
    monkeypatch.chdir(tmp_path)
    bad = f"x{steering}y"
    texts = {f"{bad}{i}": f"cats {'purr ' * i}" for i in range(3)}
    qrels = "".join(f"{bad} 0 {doc_id} {i % 2}\n" for i, doc_id in enumerate([*texts, f"{bad}gone"]))
    folder = write_collection(tmp_path / "c", texts, {bad: "cats purr"}, qrels)
    Path("mine.py").write_text(f"def f(q, d):\n    raise ValueError({bad!r})\n")
    given = ["-c", folder, "-r", "bm25", "--delta", "0"]
    said = [
        whyrank("audit", "edited/prepend-query", "matched/length|relevance", "--by", "query_id", *given),
        whyrank("audit", "edited/prepend-query", "--by", "query_id", "--json", *given),
        whyrank("audit", "edited/prepend-query", "--strict", *given),
        whyrank("audit", "edited/prepend-query", "-c", folder, "-r", "python:mine.py:f"),
        whyrank("rank", "-c", folder, "-r", bad),
        whyrank("evaluate", "--run", bad, "-c", folder),
    ]
    shown = "".join(out + err for _, out, err in said)
    assert len({code for code, _, _ in said}) == 2
    assert f"x\\u{ord(steering[0]):04x}" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert json.loads(said[1][1])[1]["group"] == bad


def test_texts_of_two_million_characters(whyrank, tmp_path):
    texts = {"a": "cats", "words": "word " * 400_000, "one": "x" * 2_000_000}
    folder = write_collection(tmp_path / "c", texts, {"1": "cats"}, "1 0 a 1\n1 0 words 1\n1 0 one 1\n")
    given = ("LNC2", "matched/length|relevance", "-c", folder, "--analyzer", "whitespace", "-r", "bm25", "--json")
    code, out, err = whyrank("audit", *given)
    assert code == 0, err
    found = {finding["study"]: finding for finding in json.loads(out)}
    assert found["matched/length|relevance"]["n"] >= 1
    assert "too long to be copied" in found["axiom/LNC2"]["dropped"]
