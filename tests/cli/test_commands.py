"""The commands as a user types them."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from refusals import one_line
from whyrank.data import open_collection, read_run
from whyrank.studies.files import load

SUBPROCESS = [sys.executable, "-m", "whyrank.cli.main"]
LEXICAL = ("--ranker", "bm25", "--ranker", "ql")


class TestSpeed:
    @pytest.mark.parametrize("command", [[sys.executable, "-c", "import whyrank"], [*SUBPROCESS, "--help"]])
    def test_start_up(self, command):
        def once() -> float:
            """Seconds of processor time, which other programs do not change much."""
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        assert min(once() for _ in range(5)) < 0.5

    def test_nothing_heavy_is_imported(self):
        code = "import sys, whyrank.cli.main; print([m for m in ('numba','pyarrow','scipy','torch','bm25s','nltk') if m in sys.modules])"
        found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert found.stdout.strip() == "[]"


class TestStudies:
    def test_json_has_all_fields(self, whyrank):
        code, out, _ = whyrank("audit", "matched/relevance|*", "--json", "--ranker", "bm25")
        found = json.loads(out)
        assert code == 0
        assert [f["study"] for f in found] == [
            f"matched/relevance|{c}" for c in ("length", "overlap", "sum-tf", "tf")
        ]
        fields = ["study", "ranker", "collection", "n", "positive", "neutral", "negative", "nonfinite", "score", "ci_low", "ci_high",
                  "p_value", "p_adjusted", "mean_diff", "median_diff", "delta", "n_queries", "fingerprint", "seed", "group", "seconds"]  # fmt: skip
        assert all(field in found[0] for field in fields)
        assert found[0]["delta"] > 0

    def test_published_counts(self, whyrank, data_folder):
        """The command that the README of the reproduction gives."""
        stop = data_folder / "stopwords" / "terrier.txt"
        code, out, _ = whyrank("audit", "matched/*", "--compat", "abnirml", "--collection", str(data_folder / "msmarco_dl19"),
                               "--analyzer", f"terrier(stopwords={stop})", "--ranker", "bm25", "--json")  # fmt: skip
        found = {f["study"]: f for f in json.loads(out)}
        assert code == 0
        assert found["matched/length|relevance"]["n"] == 515_401
        assert found["matched/overlap|sum-tf"]["n"] == 146_730
        assert (found["matched/tf|sum-tf"]["n"], found["matched/tf|sum-tf"]["score"]) == (0, None)
        assert sum(f["n"] for f in found.values()) == 2_305_954

    def test_table_states_delta_and_correction(self, whyrank):
        code, out, err = whyrank(
            "audit", "matched/length|tf", *LEXICAL, "--delta", "p75", "--correction", "bh", "--alpha", "0.01"
        )
        assert code == 0
        assert "delta: bm25" in out
        assert "run bm25 of sample" in out
        assert "p < 0.01 after correction (bh)" in out
        assert "1 study with" in err

    def test_given_delta(self, whyrank):
        _, out, _ = whyrank("audit", "matched/length|tf", *LEXICAL, "--delta", "0.25", "--json")
        assert {f["delta"] for f in json.loads(out)} == {0.25}

    def test_delta_from_another_collection(self, whyrank, tmp_path):
        make_folder(tmp_path / "tiny")
        asked = ("audit", "matched/length|relevance", *LEXICAL, "--collection", str(tmp_path / "tiny"))
        assert "(judged documents of tiny)" in whyrank(*asked)[1]
        assert "(run bm25 of sample)" in whyrank(*asked, "--delta-from", "sample")[1]

    def test_call_string_and_glob(self, whyrank):
        _, out, _ = whyrank(
            "audit", "matched/length|tf(tolerance=1)", "matched/length|tf", "-r", "bm25", "--tolerance", "0", "--json"
        )
        found = {f["study"]: f["n"] for f in json.loads(out)}
        assert list(found) == ["matched/length|tf(tolerance=1)", "matched/length|tf"]
        assert found["matched/length|tf(tolerance=1)"] > found["matched/length|tf"]

    def test_breakdown(self, whyrank):
        _, out, _ = whyrank("audit", "matched/length|tf", "--by", "relevance_group", "--ranker", "bm25", "--json")
        assert {f["group"] for f in json.loads(out)} > {None, "both relevant"}

    def test_sweep(self, whyrank, tmp_path):
        _, out, _ = whyrank(
            "audit", "matched/length|relevance", "--ranker", "bm25", "--sweep", "--out", str(tmp_path / "r")
        )
        assert "p99" in out
        rows = list(csv.DictReader((tmp_path / "r" / "sweep.csv").open()))
        assert len(rows) == 100
        assert float(rows[50]["delta"]) > float(rows[0]["delta"]) >= 0

    def test_sweep_of_several_rankers(self, whyrank, tmp_path):
        folder = tmp_path / "r"
        asked = ("audit", "matched/length|*", *LEXICAL, "--tolerance", "10%", "--sweep", "--out", str(folder))
        code, out, _ = whyrank(*asked)
        assert code == 0
        assert "stable from" in out
        picture = ElementTree.parse(folder / "sweep.svg").getroot()
        series = [e for e in picture.iter() if (e.get("class") or "").startswith("mark-line role-mark")]
        assert sum(map(len, series)) == 4 * 2, "four studies, two rankers"
        report = (folder / "report.html").read_text()
        assert report.count('aria-label="Scores of each study by percentile of δ of bm25, ql"') == 1
        assert report.count("The order of rankers is") == 4
        code, out, _ = whyrank(*asked, "--json")
        assert {f["ranker"] for f in json.loads(out)} == {"bm25", "ql"}, "a list of findings and nothing else"

    def test_group(self, whyrank, tmp_path):
        folder = tmp_path / "r"
        code, out, _ = whyrank("audit", "matched/length|*", "--tolerance", "10%", "--ranker", "bm25", "--ranker", "bm25(b=0.9)",
                               "--ranker", "ql", "--group", "bm25*", "--group", "*", "--out", str(folder))  # fmt: skip
        assert code == 0
        assert "100 sd" in out
        rows = list(csv.DictReader((folder / "stability.csv").open()))
        assert [(r["group"], r["rankers"]) for r in rows] == [("bm25*", "2")] * 5 + [("*", "3")] * 5
        found = {
            (f["study"], f["ranker"]): f["score"] for f in pq.read_table(folder / "findings.parquet").to_pylist()
        }
        scores = [found[rows[0]["study"], ranker] for ranker in ("bm25", "bm25(b=0.9)")]
        assert float(rows[0]["mean"]) == pytest.approx(statistics.mean(scores))
        assert float(rows[0]["deviation"]) == pytest.approx(statistics.stdev(scores))
        squares = [float(r["deviation"]) ** 2 for r in rows[:4]]
        assert rows[4]["study"] == "matched/*"
        assert float(rows[4]["deviation"]) == pytest.approx(math.sqrt(statistics.mean(squares)))
        assert f"{100 * float(rows[4]['deviation']):.2f}" in out
        assert "Stability over seeds" in (folder / "report.html").read_text()
        assert json.loads((folder / "settings.json").read_text())["settings"]["group"] == ["bm25*", "*"]

    @pytest.mark.parametrize(("pattern", "says"), [("bm52*", "bm52*"), ("q*", "one ranker only (ql)")])
    def test_a_wrong_group_is_found_before_anything_is_scored(self, whyrank, tmp_path, pattern, says, monkeypatch):
        monkeypatch.setattr("whyrank.scoring.Engine.score", lambda *_: pytest.fail("something was scored"))
        message = one_line(
            whyrank("audit", "matched/length|tf", *LEXICAL, "--group", pattern, "--out", str(tmp_path / "r"))
        )
        assert says in message
        assert list(tmp_path.iterdir()) == []

    def test_a_sweep_without_candidates_is_refused_at_once(self, whyrank, tmp_path):
        folder = make_folder(tmp_path / "c", qrels__txt="1 0 a 0\n")
        asked = ("audit", "matched/length|tf", *LEXICAL, "--collection", str(folder), "--delta", "0.1", "--sweep")
        assert "--delta-from" in one_line(whyrank(*asked, "--out", str(tmp_path / "r")))
        assert not (tmp_path / "r").exists()


class TestAudit:
    def test_result_folder(self, whyrank, tmp_path):
        out_folder = tmp_path / "result"
        formats = ("--format", "markdown", "--format", "latex")
        code, out, err = whyrank("audit", *LEXICAL, "--out", str(out_folder), *formats)
        assert code == 0
        assert "within 10%" in err
        assert f"{out_folder}/report.html" in err
        findings = pq.read_table(out_folder / "findings.parquet").to_pylist()
        families = {"matched", "edited", "transferred", "axiom", "bias"}
        assert {f["study"].partition("/")[0] for f in findings} == families
        assert {f["delta"] for f in findings if f["conclusion"]} == {0}
        assert min(f["delta"] for f in findings if not f["conclusion"]) > 0
        assert len(list((out_folder / "scores").glob("*.parquet"))) == len(findings)
        settings = json.loads((out_folder / "settings.json").read_text())["settings"]
        assert settings["seed"] == 0
        assert "lucene" in settings["rankers"]["bm25"]
        assert "<html" in (out_folder / "report.html").read_text()
        assert (out_folder / "tables" / "findings.tex").exists()
        assert "matched/length" in out
        probes, _, of_axioms = out.partition("  axiom ")
        assert "axiom/" not in probes
        assert "matched/" not in of_axioms
        assert ("delta: bm25" in probes, "delta: 0 (axioms)" in of_axioms) == (True, True)

    def test_every_study_of_the_demo_has_something_to_show(self, whyrank, tmp_path):
        _, out, _ = whyrank("audit", *LEXICAL, "--out", str(tmp_path / "r"), "--json")
        counts = {f["study"]: f["n"] for f in json.loads(out) if not f["conclusion"]}
        empty = {"matched/tf|sum-tf", "matched/sum-tf|tf"}
        assert {study for study, n in counts.items() if n == 0} == empty
        assert min(n for study, n in counts.items() if study not in empty) >= 30

    def test_a_foreign_folder_is_not_touched(self, whyrank, tmp_path):
        (tmp_path / "thesis").mkdir()
        (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
        assert "thesis" in one_line(whyrank("audit", "--out", str(tmp_path / "thesis")))
        assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


class TestContrasts:
    @pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
    def test_writes_what_the_study_asks(self, whyrank, tmp_path, suffix):
        path = tmp_path / f"c{suffix}"
        code, _, err = whyrank("contrasts", "matched/length|tf", "--out", str(path))
        found = load(path)
        assert code == 0
        assert f"{len(found):,} contrasts" in err
        assert found.fingerprint[:16] in err
        docs = open_collection("sample").docs
        row = found.labels["doc_ids"].values()[0]
        assert [docs[d] for d in row] == [found.docs[i] for i in found.doc[0]]

    def test_with_a_ranker(self, whyrank, tmp_path):
        path = tmp_path / "c.jsonl"
        whyrank("contrasts", "matched/length|tf", "--ranker", "bm25", "--delta", "0", "--out", str(path))
        row = json.loads(path.read_text().splitlines()[0])
        assert row["diff"] == pytest.approx(row["scores"][0] - row["scores"][1])
        assert row["effect"] == (row["diff"] > 0) - (row["diff"] < 0)
        assert list(row)[:4] == ["query_id", "doc_ids", "query", "docs"]

    def test_one_study_at_a_time(self, whyrank, tmp_path):
        assert "one study" in one_line(whyrank("contrasts", "matched/*", "--out", str(tmp_path / "c.jsonl")))


class TestRankAndEvaluate:
    def test_rank_then_evaluate(self, whyrank, tmp_path):
        run = tmp_path / "run.txt"
        assert whyrank("rank", "--out", str(run), "--depth", "10")[0] == 0
        assert max(map(len, read_run(run).values())) == 10
        code, out, _ = whyrank(
            "evaluate", "--run", str(run), "--run", "bm25", "--baseline", "bm25", "-m", "nDCG@10", "--json"
        )
        rows = {row["run"]: row for row in json.loads(out)}
        assert code == 0
        assert rows[str(run)]["mean"] == pytest.approx(rows["bm25"]["mean"]), "the bundled run is what rank gives"
        assert rows[str(run)]["difference"] == pytest.approx(0)

    def test_re_rank_candidates(self, whyrank, tmp_path):
        out = tmp_path / "ql.txt"
        whyrank("rank", "--ranker", "ql", "--candidates", "bm25", "--out", str(out))
        given, found = open_collection("sample").runs["bm25"], read_run(out)
        assert {q: set(docs) for q, docs in found.items()} == {q: set(docs) for q, docs in given.items()}

    def test_to_standard_output(self, whyrank):
        code, out, _ = whyrank("rank", "--depth", "2")
        assert code == 0
        assert out.splitlines()[0].split()[3] == "1"
        assert len(out.splitlines()) == 80

    def test_per_query_values(self, whyrank, tmp_path):
        whyrank("evaluate", "--out", str(tmp_path / "v.csv"), "-m", "RR@10")
        rows = list(csv.DictReader((tmp_path / "v.csv").open()))
        assert len(rows) == 40
        assert {row["measure"] for row in rows} == {"RR@10"}
        assert 0 < statistics.mean(float(row["value"]) for row in rows) < 1

    def test_query_ids_are_no_formulas_in_csv(self, whyrank, tmp_path):
        folder = make_folder(tmp_path / "c", queries__tsv="=1+1\tcats\n", qrels__txt="=1+1 0 a 1\n=1+1 0 b 0\n")
        (tmp_path / "@run.txt").write_text("=1+1 Q0 a 1 2.0 x\n")
        run, out = str(tmp_path / "@run.txt"), tmp_path / "v.csv"
        assert whyrank("evaluate", "--out", out, "-m", "RR@10", "-c", folder, "--run", run)[0] == 0
        [row] = csv.DictReader(out.open())
        assert (row["query_id"], float(row["value"])) == ("'=1+1", 1.0)

    def test_bm25_of_a_candidate_folder(self, whyrank, tmp_path, data_folder):
        """Frequencies of a folder of candidates are skewed: about .45 where the published run has .506."""
        run = tmp_path / "r.txt"
        whyrank(
            "rank",
            "--collection",
            str(data_folder / "msmarco_dl19"),
            "--candidates",
            "bm25.top100",
            "--out",
            str(run),
        )
        _, out, _ = whyrank(
            "evaluate",
            "--collection",
            str(data_folder / "msmarco_dl19"),
            "--run",
            str(run),
            "-m",
            "nDCG@10",
            "--json",
        )
        assert 0.42 < json.loads(out)[0]["mean"] < 0.48

    def test_tune(self, whyrank):
        code, out, err = whyrank("tune", "--grid", "k1=0.9,1.2", "--grid", "b=0.4", "--dev-share", "0.5", "--json")
        assert code == 0
        assert {t["ranker"] for t in json.loads(out)} == {"bm25(k1=0.9,b=0.4)", "bm25(k1=1.2,b=0.4)"}
        assert "best of 2 settings on 20 queries" in err

    def test_stats(self, whyrank, tmp_path):
        path = tmp_path / "s.parquet"
        assert whyrank("data", "stats", "--out", str(path))[0] == 0
        _, own, _ = whyrank("rank", "--depth", "3")
        _, saved, _ = whyrank("rank", "--depth", "3", "--stats", str(path))
        assert own == saved

    def test_delta(self, whyrank):
        _, out, _ = whyrank("delta", "--ranker", "bm25", "--json")
        row = json.loads(out)[0]
        assert row["delta"] == row["percentiles"]["50"]
        code, out, _ = whyrank("delta")
        assert code == 0
        assert "p99" in out


class TestList:
    def test_everything_has_a_line(self, whyrank):
        _, out, _ = whyrank("list", "--json")
        kinds = json.loads(out)
        assert {"probes", "axioms", "rankers", "analyzers", "collections", "characteristics"} <= set(kinds)
        assert all(line for rows in kinds.values() for line in rows.values())

    def test_one_kind(self, whyrank):
        _, out, _ = whyrank("list", "rankers")
        assert "bm25" in out
        assert "whitespace" not in out

    def test_of_one_thing_its_parameters(self, whyrank):
        _, out, _ = whyrank("list", "bm25", "axiom/TFC1", "matched/length|tf", "em", "--json")
        found = json.loads(out)
        assert found["ranker bm25"]["parameters"]["k1"]["default"] == "None"
        assert found["axiom axiom/TFC1"]["parameters"]["pairs"]["help"].startswith("`judged`, `top:K`")
        assert "tolerance" in found["probe matched/length|tf"]["parameters"]
        assert found["table learner em"]["parameters"]["iterations"]["default"] == "5"
        code, out, _ = whyrank("list", "bm25")
        assert code == 0
        assert "k1" in out


def make_folder(path: Path, **files: str) -> Path:
    content = {
        "corpus.jsonl": '{"id": "a", "text": "cats purr"}\n{"id": "b", "text": "cats and dogs"}\n',
        "queries.tsv": "1\tcats\n",
        "qrels.txt": "1 0 a 1\n1 0 b 1\n",
    } | {name.replace("__", "."): text for name, text in files.items()}
    path.mkdir(parents=True)
    for name, text in content.items():
        (path / name).write_text(text)
    return path


class TestWrongRequests:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["audit", "matched/lenght|tf"], "matched/length|tf"),
            (["audit", "matched/length|tf", "--ranker", "bm52"], "'bm25'"),
            (["audit", "matched/length|tf", "--ranker", "bm25(kl=1)"], "'k1'"),
            (["audit", "matched/length|tf", "--ranker", "bm25(k1=)"], "value is missing"),
            (["audit", "matched/length|tf", "--ranker", "bm25", "--ranker", "bm25"], "twice"),
            (["audit", "matched/length|tf", "-r", "bm25", "--analyzer", "lucen"], "'lucene'"),
            (["audit", "matched/length|tf", "-r", "bm25", "--analyzer", "terrier"], "WHYRANK_TERRIER_STOPWORDS"),
            (["audit", "matched/length|tf", "-r", "bm25", "--collection", "no/such/folder"], "no/such/folder"),
            (["audit", "matched/length|tf", "-r", "bm25", "--delta", "median"], "p50"),
            (["audit", "matched/length|tf", "-r", "bm25", "--correction", "bonferoni"], "'bonferroni'"),
            (
                ["audit", "matched/length|tf", "-r", "bm25", "--compat", "abnirm"],
                "'abnirml' (probes), 'camara-hauff' (axioms), 'relevance-thesaurus' (bias studies)",
            ),
            (["audit", "matched/*", "--compat", "camara-hauff"], "is for axioms"),
            (["audit", "TFC1(lenght=5)"], "'length'"),
            (["audit", "AND", "AND(compat=camara-hauff)"], "compat mode"),
            (["audit", "TFC1", "--candidates", "no.run"], "no.run"),
            (["audit", "TFC1", "--max-tokens", "many"], "--max-tokens"),
            (["audit", "matched/length|tf", "-r", "bm25", "--pairs", "top:5", "--candidates", "no.run"], "no.run"),
            (["audit", "matched/length|tf", "-r", "bm25", "--executor", "threads"], "serial"),
            (["audit", "matched/length|tf", "-r", "bm25", "--limit", "0"], "--limit"),
            (["audit", "matched/length|tf", "-r", "bm25", "--colection", "x"], "--collection"),
            (["audti"], "audit"),
            (["audit", "matched/length|tf", "-r", "bm25", "--format", "word", "--out", "x"], "latex"),
            (["evaluate", "-m", "nDGC"], "nDCG@10"),
            (["evaluate", "--run", "no.txt"], "no.txt"),
            (["rank", "--stats", "no.parquet"], "no.parquet"),
            (["contrasts", "matched/length|tf"], "--out"),
            (["contrasts", "matched/length|tf", "--out", "x.csv"], ".parquet"),
            (["data", "stats"], "--out"),
            (["tune", "--grid", "k1"], "--grid"),
            (["list", "ranker"], "'rankers'"),
            (["probe", "matched/*"], "probe"),
            (["audit", "matched/length|tf", "-r", "bm25", "--by", "relevance_grop"], "relevance_group"),
            (["audit", "matched/length|tf", "-r", "bm25", "-c", ""], "--collection is empty"),
            (["audit", "matched/length|tf", "-r", "bm25", "--stats", ""], "--stats is empty"),
            (["audit", "TFC1", "--format", "csv"], "--out"),
            (["audit", "matched/length|tf", "-r", "bm25(k1=abc)"], "k1 must be a number"),
            (["audit", "matched/length|tf", "--ranker", "ql(lam=1.0)"], "lam"),
            (["audit", "matched/length|tf", "-r", "bm25", "--pairs", "top:0"], "top:K"),
            (["evaluate", "-m", "nDCG@0"], "cutoff"),
            (["tune", "--ranker", "bm25", "--ranker", "ql"], "one --ranker"),
            (["tune", "--grid", "k1=0:1:0.0000001"], "steps"),
            (["rank", "--out", "."], "no ordinary file"),
        ],
    )
    def test_one_clear_line(self, whyrank, arguments, says, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert says in one_line(whyrank(*arguments))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("files", "says"),
        [
            ({"corpus__jsonl": '{"id": "a"}\n'}, "corpus.jsonl:1"),
            ({"corpus__jsonl": "{broken\n"}, "corpus.jsonl:1"),
            ({"corpus__jsonl": ""}, "corpus.jsonl"),
            ({"qrels__txt": "1 0 a high\n"}, "qrels.txt:1"),
            ({"queries__tsv": "1\tcats\n1\tdogs\n"}, "queries.tsv:2"),
        ],
    )
    def test_broken_files(self, whyrank, tmp_path, files, says):
        folder = make_folder(tmp_path / "c", **files)
        assert says in one_line(whyrank("audit", "--collection", str(folder)))

    def test_judgements_that_point_nowhere(self, whyrank, tmp_path):
        folder = make_folder(tmp_path / "c", qrels__txt="1 0 a 1\n1 0 b 0\n1 0 gone 1\n")
        code, _, err = whyrank("audit", "matched/length|relevance", *LEXICAL, "--collection", str(folder))
        assert code == 0
        assert "gone" in err
        assert "gone" in one_line(whyrank("audit", "--collection", str(folder), "--strict"))

    def test_a_ranker_that_fails_on_some_texts(self, whyrank, tmp_path):
        module = tmp_path / "mine.py"
        module.write_text("def f(queries, docs):\n    return [1.0 / (len(d) - 9) for d in docs]\n")
        folder = make_folder(tmp_path / "c")
        code, out, err = whyrank(
            "audit",
            "matched/length|relevance",
            "--collection",
            str(folder),
            "--ranker",
            f"python:{module}:f",
            "--json",
            "--delta",
            "0",
            "--analyzer",
            "whitespace",
        )
        assert code == 0
        assert json.loads(out)[0]["nonfinite"] == 1
        assert "ZeroDivisionError" in err
        assert "cats purr" in err

    def test_a_reason_is_one_line_that_steers_no_terminal(self, whyrank, tmp_path):
        (tmp_path / "mine.py").write_text(
            "def f(queries, docs):\n"
            "    if any('purr' in d for d in docs):\n"
            "        raise ValueError('two\\nlines and \\x1b[31m red')\n"
            "    return [1.0] * len(docs)\n"
        )
        folder = make_folder(tmp_path / "c", qrels__txt="1 0 a 1\n1 0 b 0\n")
        asked = ("edited/prepend-query", "--delta", "0", "--collection", folder)
        code, _, err = whyrank("audit", *asked, "-r", f"python:{tmp_path}/mine.py:f")
        assert code == 0
        assert "2 pairs have no finite score; the first: ValueError: two lines and \\u001b[31m red for query" in err
        assert err.count("\n") == 3  # with the note on few queries, and the last line

    @pytest.mark.parametrize("steering", ["\x1b]0;owned\x07\x1b[2J", "\x9b31m\x7f", "\u202egnp\u2066"])
    def test_ids_steer_no_terminal(self, whyrank, tmp_path, monkeypatch, steering):
        monkeypatch.chdir(tmp_path)
        bad = f"x{steering}y"
        texts = {f"{bad}{i}": f"cats {'purr ' * i}" for i in range(3)}
        lines = [json.dumps({"id": doc_id, "text": text}) for doc_id, text in texts.items()]
        folder = make_folder(
            tmp_path / "c",
            corpus__jsonl="\n".join(lines) + "\n",
            queries__tsv=f"{bad}\tcats purr\n",
            qrels__txt="".join(f"{bad} 0 {doc_id} {i % 2}\n" for i, doc_id in enumerate([*texts, f"{bad}gone"])),
        )
        Path("mine.py").write_text(f"def f(q, d):\n    raise ValueError({bad!r})\n")
        told = ["-c", folder, "-r", "bm25", "--delta", "0"]
        said = [
            whyrank("audit", "edited/prepend-query", "matched/length|relevance", "--by", "query_id", *told),
            whyrank("audit", "edited/prepend-query", "--by", "query_id", "--json", *told),
            whyrank("audit", "edited/prepend-query", "--strict", *told),
            whyrank("audit", "edited/prepend-query", "-c", folder, "-r", "python:mine.py:f"),
            whyrank("rank", "-c", folder, "-r", bad),
            whyrank("evaluate", "--run", bad, "-c", folder),
        ]
        shown = "".join(out + err for _, out, err in said)
        assert len({code for code, _, _ in said}) == 2
        assert f"x\\u{ord(steering[0]):04x}" in shown
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
        assert json.loads(said[1][1])[1]["group"] == bad

    def test_nothing_to_calibrate_on(self, whyrank, tmp_path):
        folder = make_folder(tmp_path / "c", qrels__txt="1 0 a 0\n")
        said = one_line(whyrank("audit", "matched/length|tf", *LEXICAL, "--collection", str(folder)))
        assert "no query has two texts" in said
        assert "whyrank rank" in said

    def test_a_ranker_without_a_finite_score(self, whyrank, tmp_path):
        (tmp_path / "mine.py").write_text(
            "def f(queries, docs):\n    return [float('nan')] * len(docs)\n"
            "def g(queries, docs):\n    raise OSError('weights.bin\\nis missing')\n"
        )
        said = one_line(whyrank("audit", "matched/length|tf", "-r", f"python:{tmp_path}/mine.py:f"))
        assert "no two finite scores for any query of run bm25 of sample (score is nan), so delta" in said
        tiny = str(make_folder(tmp_path / "c", qrels__txt="1 0 a 1\n1 0 b 0\n"))
        said = one_line(whyrank("audit", "matched/length|tf", "-r", f"python:{tmp_path}/mine.py:g", "-c", tiny))
        assert (
            "no two finite scores for any query of judged documents of c (OSError: weights.bin is missing), so"
            in said
        )

    def test_a_run_of_another_collection(self, whyrank, tmp_path):
        (tmp_path / "r.txt").write_text("other Q0 d001 1 2.0 x\n")
        assert "has no query of collection sample" in one_line(whyrank("evaluate", "--run", str(tmp_path / "r.txt")))
        (tmp_path / "r.txt").write_text("q01 Q0 d001 1 2.0 x\nq01 Q0 gone 2 1.0 x\n")
        code, _, err = whyrank("evaluate", "--run", str(tmp_path / "r.txt"))
        assert code == 0
        assert "gone" in err
        assert "39 judged queries missing" in err

    def test_a_ranker_that_prints_does_not_spoil_json(self, whyrank, tmp_path):
        (tmp_path / "mine.py").write_text(
            "print('at import')\ndef f(queries, docs):\n    print('x')\n    return [1.0] * len(docs)\n"
        )
        _, out, err = whyrank(
            "audit", "matched/length|tf", "-r", f"python:{tmp_path}/mine.py:f", "--json", "--delta", "0"
        )
        assert json.loads(out)[0]["score"] == 0
        assert "at import" in err

    def test_help_without_a_command(self, whyrank):
        code, out, _ = whyrank()
        assert code == 0
        assert out.startswith("Usage: whyrank")

    def test_a_two_megabyte_line(self, whyrank, tmp_path):
        long = json.dumps({"id": "c", "text": "word " * 400_000})
        folder = make_folder(
            tmp_path / "c",
            corpus__jsonl='{"id": "a", "text": "cats"}\n' + long + "\n",
            qrels__txt="1 0 a 1\n1 0 c 1\n",
        )
        code, out, _ = whyrank(
            "audit", "matched/length|relevance", "--collection", str(folder), "--json", "--ranker", "bm25"
        )
        assert code == 0
        assert json.loads(out)[0]["n"] == 1


def test_interrupted_run_goes_on(tmp_path):
    """Ctrl-C ends with one line; the same command then scores only what is left."""
    module, log = tmp_path / "slow.py", tmp_path / "log.txt"
    module.write_text(
        "import time\n"
        f"LOG = {str(log)!r}\n"
        "def f(queries, docs):\n"
        "    time.sleep(0.05)\n"
        "    with open(LOG, 'a') as file:\n"
        "        file.writelines(f'{hash((q, d))}\\n' for q, d in zip(queries, docs))\n"
        "    return [float(len(d)) for d in docs]\n"
    )
    environment = os.environ | {"WHYRANK_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": "0"}
    command = [
        *SUBPROCESS,
        "audit",
        "matched/length|relevance",
        "--ranker",
        f"python:{module}:f(batch_size=8)",
        "--json",
    ]
    first = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while (not log.exists() or log.read_text().count("\n") < 40) and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130
    assert err.strip().splitlines()[-1].startswith("whyrank: stopped")
    assert "Traceback" not in err
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(second.stdout)[0]["n"] > 0
    scored = log.read_text().split()
    assert len(scored) - len(set(scored)) <= 8, "at most one batch is scored again"


class TestGivenDelta:
    """A delta that is a number is not calibrated: nothing is scored but the texts of the studies."""

    SOURCE = (
        "def f(queries, docs):\n"
        "    with open('asked.txt', 'a') as notes:\n"
        "        notes.write('x' * len(docs))\n"
        "    return [float(len(d)) for d in docs]\n"
    )

    @pytest.fixture
    def asked(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "mine.py").write_text(self.SOURCE)
        return lambda: len((tmp_path / "asked.txt").read_text())

    def test_only_the_texts_of_the_studies(self, whyrank, asked):
        options = ("-r", "python:mine.py:f", "--limit", "5", "--store", "none", "--delta", "0.5", "--json")
        code, out, err = whyrank("audit", "matched/length|tf", *options)
        assert code == 0, err
        assert {f["delta"] for f in json.loads(out)} == {0.5}
        assert asked() <= 10

    def test_a_symmetric_study_has_no_chance(self, whyrank, asked):
        options = ("-r", "python:mine.py:f", "--limit", "5", "--store", "none", "--delta", "0.5", "--json")
        _, out, err = whyrank("audit", "transferred/paraphrase", *options)
        assert (asked() <= 10, json.loads(out)[0]["p_value"]) == (True, None)
        assert "no p-values for transferred/paraphrase: delta is given, so it is not calibrated" in err
        _, out, err = whyrank("audit", "transferred/paraphrase", *options, "--delta-from", "sample")
        assert json.loads(out)[0]["p_value"] is not None
        assert "no p-values" not in err
