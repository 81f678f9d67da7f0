"""`whyrank tables learn em` from the command line."""

from __future__ import annotations

import json

import pytest

from refusals import one_line
from whyrank.core import exclusive
from whyrank.data import open_collection
from whyrank.learners.em import learn_em, make_bitext
from whyrank.tables import open_table


def test_the_last_line_has_perplexities_entries_and_path(whyrank, tmp_path):
    out = tmp_path / "table.parquet"
    code, printed, said = whyrank("tables", "learn", "em", "--out", out, "--held-out", "0.1", "--seed", "4")
    expected = learn_em(make_bitext(open_collection("sample"), "lucene", seed=4), held_out=0.1, seed=4)
    table = open_table(out)
    assert (code, printed) == (0, "")
    assert table.digest == expected.table.digest
    last = said.splitlines()[-1]
    assert last.endswith(f"; {len(table):,} entries: {out}")
    assert f"{expected.perplexities[-1]:.4g}, held out" in last
    assert table.facts["analyzer"] == "lucene"
    assert table.facts["collection"] == "sample"


def test_all_settings_arrive(whyrank, tmp_path):
    out = tmp_path / "table.tsv"
    options = (
        "--iterations 2 --ratio 3 --fertility 4 --no-symmetrise --sample 0.5 --threshold 0.1 --threads 2 --seed 7"
    )
    options += " --memory 100K --relevant 1 --no-null --top 500 --most 900 --stop 0.001 --analyzer whitespace --check"
    code, _, said = whyrank("tables", "learn", "em", "--out", out, *options.split())
    assert code == 0, said
    assert "double precision differs by" in said
    bitext = make_bitext(
        open_collection("sample"), "whitespace", ratio=3.0, fertility=4.0, symmetrise=False, sample=0.5, seed=7, relevant=1,
        most=900,
    )  # fmt: skip
    expected = learn_em(bitext, iterations=2, null=False, threshold=0.1, top=500).table
    found = open_table(out)
    assert [tuple(e)[:2] for e in found.rows()] == [tuple(e)[:2] for e in expected.rows()]


def test_going_on_from_a_checkpoint(whyrank, tmp_path):
    out, state = tmp_path / "table.parquet", tmp_path / "state"
    whyrank("tables", "learn", "em", "--out", out, "--iterations", "2", "--checkpoint", state)
    whyrank("tables", "learn", "em", "--out", out, "--iterations", "4", "--checkpoint", state)
    expected = learn_em(make_bitext(open_collection("sample"), "lucene"), iterations=4)
    assert open_table(out).digest == expected.table.digest


def test_the_last_line_says_which_iteration_is_kept(whyrank, tmp_path):
    options = ["--held-out", "0.3", "--stop", "0", "--iterations", "20"]
    code, _, said = whyrank("tables", "learn", "em", "--out", tmp_path / "t.tsv", *options)
    assert code == 0, said
    facts = open_table(tmp_path / "t.tsv").facts
    held = facts["held_out_perplexities"]
    assert held[facts["iterations"]] == min(held) < held[-1]
    assert f"; kept: iteration {facts['iterations']}, the best held out; " in said.splitlines()[-1]


@pytest.mark.parametrize(("count", "said"), [(1, "1 query has no word"), (2, "2 queries have no word")])
def test_queries_without_words_are_counted_in_english(whyrank, tmp_path, count, said):
    folder = tmp_path / "own"
    folder.mkdir()
    queries = ["ice melts", *["the of"] * count]
    (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "ice and snow"}\n')
    lines = [json.dumps({"_id": f"q{i}", "text": text}) for i, text in enumerate(queries)]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    (folder / "qrels").mkdir()
    judged = [f"q{i}\td\t1" for i in range(len(queries))]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    code, _, told = whyrank("tables", "learn", "em", "-c", folder, "--out", tmp_path / "t.tsv")
    assert code == 0, told
    assert f"note: {said} under this analyzer and {'is' if count == 1 else 'are'} left out\n" in told


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--out", "table.csv"], "a term table is written as"),
        (["--out", "t.tsv", "--memory", "much"], "is no size"),
        (["--out", "t.tsv", "--collection", "unjudged"], "has no judgements"),
        (["--out", "t.tsv", "--collection", "wordless"], "has a word under lucene"),
        (["--out", "t.tsv", "--sample", "0"], "the bitext of sample is empty"),
        (["--out", "t.tsv", "--relevant", "9"], "no text of grade 9 or more"),
        (["--out", "t.tsv", "--checkpoint", "corpus.jsonl"], "no checkpoint of EM"),
    ],
)
def test_wrong_input_is_one_line(whyrank, tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("unjudged", "wordless"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.jsonl").write_text('{"id": "d", "text": "some words"}\n')
        (tmp_path / name / "queries.tsv").write_text("q\tthe of\n")
    (tmp_path / "wordless" / "qrels.txt").write_text("q 0 d 1\n")
    (tmp_path / "corpus.jsonl").write_text('{"id": "d", "text": "some words"}\n')
    code, printed, said = whyrank("tables", "learn", "em", *options)
    assert (code, printed) == (2, "")
    assert expected in said.splitlines()[-1]
    assert not (tmp_path / "t.tsv").exists()


def test_help_where_no_learner_is_named(whyrank):
    code, printed, _ = whyrank("tables", "learn")
    assert code == 0
    assert "em" in printed


def test_a_second_learner_with_the_same_checkpoint_is_refused(whyrank, tmp_path):
    state = tmp_path / "state"
    with exclusive(f"{state}.lock"):
        said = one_line(whyrank("tables", "learn", "em", "--out", tmp_path / "t.tsv", "--checkpoint", state))
    assert "state.lock: another process is at work on the same output; wait until it ends" in said
    assert whyrank("tables", "learn", "em", "--out", tmp_path / "t.tsv", "--checkpoint", state)[0] == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["state", "t.tsv"]
