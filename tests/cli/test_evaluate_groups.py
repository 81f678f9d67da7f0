"""`whyrank evaluate --group` and `--hypotheses` as a user types them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from whyrank.data import open_collection, write_run


@pytest.fixture
def seeds(tmp_path):
    """Three runs of the sample that differ a little from its own, and one turned upside down."""
    given = open_collection("sample").runs["bm25"]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        write_run(
            tmp_path / f"s{seed}.txt", {q: {d: s + rng.normal() for d, s in r.items()} for q, r in given.items()}
        )
    write_run(tmp_path / "down.txt", {q: {d: -s for d, s in r.items()} for q, r in given.items()})
    return tmp_path


def test_as_a_user_types_it(whyrank, seeds):
    claims = seeds / "h.yaml"
    claims.write_text(f"seeds: S > {seeds / 'down.txt'}\nown: bm25 < {seeds / 'down.txt'}\n")
    code, out, err = whyrank(
        "evaluate", "--group", f"S={seeds}/s*.txt", "--hypotheses", claims, "-m", "nDCG@10", "--out", seeds / "v.csv"
    )
    assert code == 0, err
    assert [line.split()[-1] for line in out.splitlines() if line.split()[:1] in (["seeds"], ["own"])] == [
        "holds",
        "reversed",
    ]
    assert "sd: standard deviation" in out
    assert len((seeds / "v.csv").read_text().splitlines()) == 1 + 3 * 40
    _, text, _ = whyrank(
        "evaluate", "--group", f"S={seeds}/s*.txt", "--hypotheses", claims, "-m", "nDCG@10", "--json"
    )
    found = json.loads(text)
    assert {row["run"]: row["runs"] for row in found["runs"]} == {"bm25": 1, str(seeds / "down.txt"): 1, "S": 3}
    assert [each["verdict"] for each in found["hypotheses"]] == ["holds", "reversed"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--group", "S"], "--group 'S': write NAME=RUN"),
        (["--group", "S=bm25", "--group", "S=bm25"], "--group 'S=bm25'"),
        (["--group", "S=no.txt"], "no.txt"),
        (["--group", "S=bm25", "--by", "overlap"], "--group does not go with --by"),
        (["--hypotheses", "no.yaml"], "no.yaml: cannot be read"),
        (["--group", "S=bm25", "--baseline", "T"], "T"),
    ],
)
def test_one_clear_line(whyrank, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = whyrank("evaluate", *arguments)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[-1]
