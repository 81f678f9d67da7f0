"""Plugins without packaging: files that `--plugin` and `WHYRANK_PLUGINS` name."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PLUGIN = '''
from dataclasses import dataclass

from helper import FACTOR

from whyrank.core import call_of
from whyrank.learners import table_learners
from whyrank.rankers import rankers
from whyrank.studies import Contrasts, Pair
from whyrank.studies.probes import probes
from whyrank.tables import TermTable
from whyrank.text.edits import edits

print("imported")


@rankers.register("shorter")
@dataclass(frozen=True)
class Shorter:
    """Prefers short texts."""

    name: str = "shorter"

    def score(self, queries, docs):
        with open("scored.txt", "a") as notes:
            notes.write("x" * len(docs))
        return [-FACTOR * len(doc) for doc in docs]


@probes.register("mine/marked")
@dataclass(frozen=True)
class Marked:
    """Each judged text against itself with a mark at its end.

    Attributes:
        mark: what is put there.
    """

    mark: str = "!"
    positive = "prefers the text without a mark"
    symmetric = False

    @property
    def id(self):
        return call_of(self, "mine/marked")

    def contrasts(self, collection):
        judged = [(q, d) for q, grades in collection.qrels.items() for d in grades]
        texts = [(collection.queries[q], collection.docs[d]) for q, d in judged]
        return Contrasts.from_pairs(Pair(query, (text, text + self.mark), {}) for query, text in texts)


@edits.register("shout")
def shout(text, rng, *, mark="!"):
    """With a mark at its end"""
    return text + mark


@table_learners.register("one-entry")
@dataclass(frozen=True)
class OneEntry:
    """A table with one entry.

    Attributes:
        weight: of the entry.
    """

    weight: float = 1.0

    def learn(self, collection=None):
        return TermTable.from_triples(["a"], ["b"], [self.weight])
'''


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working folder with a plugin, and a file that it imports."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(PLUGIN)
    (tmp_path / "helper.py").write_text("FACTOR = 1.0\n")
    return tmp_path


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "whyrank.cli.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | variables, check=False, timeout=120
    )


def test_a_file_brings_rankers_studies_and_learners_to_every_command(home):
    shown = run("list", "mine/marked", "edited/shout", "--plugin", "my.py", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)["probe mine/marked"]
    assert found["parameters"] == {"mark": {"default": "!", "values": "text", "help": "what is put there."}}
    learnt = run("tables", "learn", "one-entry", "--plugin", "my.py", "--weight", "2", "--out", "t.tsv")
    assert learnt.returncode == 0, learnt.stderr
    assert "a\tb\t2" in (home / "t.tsv").read_text()
    twice = ("--plugin", "my.py", "--plugin", str(home / "sub" / ".." / "my.py"))
    asked = ("audit", "mine/*", "edited/shout", "-r", "shorter", "--delta", "0", "--limit", "20", "--json")
    answered = run(*asked, *twice, "--executor", "processes(workers=2)", "--out", "results", WHYRANK_PLUGINS="my.py")
    assert answered.returncode == 0, answered.stderr
    assert [(f["study"], f["ranker"], f["n"], f["score"]) for f in json.loads(answered.stdout)] == [
        ("mine/marked", "shorter", 20, 1.0), ("edited/shout", "shorter", 20, -1.0),
    ]  # fmt: skip
    assert "without a mark" in (home / "results" / "report.html").read_text()


def test_scores_are_kept_until_the_file_or_what_it_imports_changes(home):
    asked = ("audit", "mine/marked", "-r", "shorter", "-r", "fuse(of=['shorter','bm25'])", "--delta", "0", "--json")
    scored = []
    for factor in (1.0, 1.0, -1.0):
        (home / "helper.py").write_text(f"FACTOR = {factor}\n")
        (home / "scored.txt").write_text("")
        done = run(*asked, "--limit", "5", WHYRANK_PLUGINS="my.py")
        assert done.returncode == 0, done.stderr
        scored.append(((home / "scored.txt").stat().st_size, json.loads(done.stdout)[0]["score"]))
    (first, score), (again, same), (changed, other) = scored
    assert (score, same, other) == (1.0, 1.0, -1.0)
    assert again < 10 <= first == changed  # a few stored scores are checked


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("import whyrank\n\nnothing + 1\n", "my.py:3: this plugin cannot be imported (NameError: name 'nothing'"),
        ("x = 1\ndef f(:\n", "my.py:2: this plugin cannot be imported (SyntaxError"),
        ("import sys\nsys.exit('no')\n", "my.py:2: this plugin cannot be imported (SystemExit: no)"),
        ("from whyrank.rankers import rankers\nrankers.register('bm25')(len)\n", "my.py:2: "),
        (None, "my.py: there is no such plugin; give a file that ends in .py"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(whyrank, tmp_path, content, says):
    if content is not None:
        (tmp_path / "my.py").write_text(content)
    for _ in range(2):
        code, out, err = whyrank("list", "rankers", "--plugin", tmp_path / "my.py")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
