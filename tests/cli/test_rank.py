"""`whyrank rank`, `delta`, `data stats` and `list`, and the options of all commands that score."""

from __future__ import annotations

import json

import pytest
import yaml
from small_collections import write_collection

from refusals import one_line
from whyrank.data import open_collection, ranking, read_run
from whyrank.studies.axioms import rerank
from whyrank.tables import TermTable


def test_re_rank_candidates(whyrank, tmp_path):
    whyrank("rank", "--ranker", "ql", "--candidates", "bm25", "--out", tmp_path / "ql.txt")
    given, found = open_collection("sample").runs["bm25"], read_run(tmp_path / "ql.txt")
    assert {q: set(docs) for q, docs in found.items()} == {q: set(docs) for q, docs in given.items()}


def test_to_standard_output_and_with_saved_statistics(whyrank, tmp_path):
    code, out, _ = whyrank("rank", "--depth", "2")
    assert code == 0
    assert out.splitlines()[0].split()[3] == "1"
    assert len(out.splitlines()) == 80
    assert whyrank("data", "stats", "--out", tmp_path / "s.parquet")[0] == 0
    assert whyrank("rank", "--depth", "2", "--stats", tmp_path / "s.parquet")[1] == out


def test_a_header_of_metadata(whyrank, tmp_path):
    given = ("rank", "-r", "ql", "--depth", "3")
    assert whyrank(*given, "--out", tmp_path / "plain.txt")[0] == 0
    assert whyrank(*given, "--metadata", "--out", tmp_path / "run.txt")[0] == 0
    header, _, lines = (tmp_path / "run.txt").read_text().partition("# ir_metadata.end\n")
    assert lines == (tmp_path / "plain.txt").read_text()
    assert read_run(tmp_path / "run.txt") == read_run(tmp_path / "plain.txt")
    first, *rest = header.splitlines()
    facts = yaml.safe_load("\n".join(line.removeprefix("# ") for line in rest))
    assert first == "# ir_metadata.start"
    assert {"platform", "research goal", "implementation", "method", "actor", "data"} < set(facts)
    assert (facts["tag"], facts["data"]["test collection"]["name"]) == ("ql", "sample")
    assert "whyrank rank" in facts["implementation"]["executable"]["cmd"]
    (tmp_path / "open.txt").write_text(header)
    assert "does not end" in one_line(whyrank("rank", "--candidates", tmp_path / "open.txt"))


def test_delta(whyrank):
    [row] = json.loads(whyrank("delta", "--ranker", "bm25", "--json")[1])
    assert row["delta"] == row["percentiles"]["50"]
    code, out, _ = whyrank("delta")
    assert (code, "p99" in out) == (0, True)


def test_list(whyrank):
    kinds = json.loads(whyrank("list", "--json")[1])
    assert {"probes", "axioms", "bias_studies", "bias_filters", "rankers", "analyzers", "collections"} <= set(kinds)
    assert all(line for rows in kinds.values() for line in rows.values())
    assert (
        kinds["axioms"]["axiom/TFC1"] == "Of two texts of about the same length, the one with more query terms wins."
    )
    _, out, _ = whyrank("list", "rankers")
    assert ("bm25" in out, "whitespace" in out) == (True, False)
    found = json.loads(whyrank("list", "bm25", "axiom/TFC1", "matched/length|tf", "em", "--json")[1])
    assert found["ranker bm25"]["parameters"]["k1"]["default"] == "None"
    assert found["axiom axiom/TFC1"]["parameters"]["pairs"]["help"].startswith("`judged`, `top:K`")
    assert "tolerance" in found["probe matched/length|tf"]["parameters"]
    assert found["table learner em"]["parameters"]["iterations"]["default"] == "5"
    assert "k1" in whyrank("list", "bm25")[1]


class TestAxioms:
    @pytest.fixture
    def order(self, whyrank, tmp_path):
        """The documents of one query in the order that the command gives them."""
        docs = {"a": "cats", "b": "cats and dogs", "c": "dogs", "d": "birds"}
        run = "".join(f"1 Q0 {d} {rank} {5 - rank} t\n" for rank, d in enumerate("dcab", 1))

        def run_command(axiom, *options, query="cats dogs"):
            path = write_collection(tmp_path / "c", docs, {"1": query}, run=run)
            code, out, err = whyrank("rank", "-c", path, "--axiom", axiom, "--candidates", path / "run.txt", *options)
            assert code == 0, err
            return [line.split()[2] for line in out.splitlines()]

        return run_command

    @pytest.mark.parametrize("method", ["kwiksort", "tournament"])
    def test_an_expression(self, order, method):
        assert order("M-AND | -ORIG", "--aggregation", method) == ["b", "a", "c", "d"]

    def test_depth_analyzer_and_max_tokens(self, order):
        assert order("-ORIG", "--depth", "2") == ["c", "d", "a", "b"]
        assert order("M-AND", query="CAT DOG")[0] == "b", "stems are found"
        assert order("M-AND", "--analyzer", "whitespace", query="CAT DOG")[0] == "d", "words are not"
        for given, first in (("3", "b"), ("none", "b"), ("2", "c")):  # after two words `b` has only `cats`
            assert order("M-AND", "--analyzer", "whitespace", "--max-tokens", given)[0] == first

    def test_the_same_as_from_python(self, whyrank, tmp_path):
        given = ("--axiom", "2*TFC1 - DIV", "--candidates", "bm25", "--seed", "5", "--out", tmp_path / "out.txt")
        code, _, err = whyrank("rank", *given)
        sample = open_collection("sample")
        found = read_run(tmp_path / "out.txt")
        assert code == 0
        assert found == rerank("2*TFC1 - DIV", sample, sample.runs["bm25"], seed=5)
        assert f"for 40 queries by 2*TFC1 - DIV: {tmp_path}" in err
        assert (tmp_path / "out.txt").read_text().splitlines()[0].endswith(" 2*TFC1_-_DIV")
        assert ranking(found["q01"])


class TestTables:
    """Rankers over term tables."""

    def test_queries_that_give_no_order_are_named(self, whyrank, tmp_path):
        docs = {"d1": "the cat sat", "d2": "a dog", "d3": "cat"}
        run = "".join(f"q{q} Q0 {d} {rank} {9 - rank} r\n" for q in (1, 2, 3) for rank, d in enumerate(docs, 1))
        queries = {"q1": "cat", "q2": "the of", "q3": "zebra"}
        path = write_collection(tmp_path / "c", docs, queries, run=run)
        TermTable.from_triples(["cat", "dog"], ["cat", "dog"], [0.9, 0.8], analyzer="lucene").save(path / "t.tsv")
        given = ("-c", path, "--candidates", path / "run.txt", "-o", path / "o.txt")
        code, _, err = whyrank("rank", "-r", f"model1:{path}/t.tsv(lam=0)", *given)
        assert code == 0
        assert "note: 2 queries (q2, q3): all of their documents have the same score" in err
        for ranker in ("bm25", "ql", f"model1:{path}/t.tsv"):
            code, out, err = whyrank("explain", "-r", ranker, "the of", "some text")
            assert (code, out) == (0, "")
            assert "note: the query has no word that this ranker reads" in err


class TestScoringOptions:
    SOURCE = """
from pathlib import Path

def score(queries, docs):
    state = Path("state.txt").read_text()
    return [float(len(doc) if state == "up" else -len(doc)) for doc in docs]
"""

    @pytest.fixture
    def ranked(self, tmp_path, monkeypatch, whyrank):
        """Rank three documents of two queries; gives what is said and the scores of the first query."""
        monkeypatch.chdir(tmp_path)
        sample = open_collection("sample")
        queries, docs = list(sample.queries)[:2], list(sample.docs)[:3]
        run = [f"{q} Q0 {d} {i} {-i} x\n" for q in queries for i, d in enumerate(docs)]
        (tmp_path / "run.txt").write_text("".join(run))
        (tmp_path / "mine.py").write_text(self.SOURCE)

        def call(state, *options):
            (tmp_path / "state.txt").write_text(state)
            given = ("-r", "python:mine.py:score", "--candidates", "run.txt", "--store", "s.sqlite")
            code, _, err = whyrank("rank", *given, "--out", "out.txt", *options)
            assert code == 0, err
            return err, read_run("out.txt")[queries[0]]

        return call, {d: len(sample.docs[d]) for d in docs}

    def test_stale_scores_are_named_and_scored_anew(self, ranked):
        call, lengths = ranked
        assert call("up") == (call("up")[0], lengths)
        err, stale = call("down")
        assert stale == lengths
        assert "warning: ranker 'python:mine.py:score' no longer gives the scores that are stored" in err
        err, anew = call("down", "--fresh")
        assert anew == {d: -length for d, length in lengths.items()}
        assert "no longer gives" not in err + call("down")[0]
