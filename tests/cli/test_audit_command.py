"""`whyrank audit` for probes and axioms, as a user types it."""

from __future__ import annotations

import csv
import json
import re
from importlib.util import find_spec
from itertools import takewhile

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_collections import write_collection

from whyrank.cli import audit
from whyrank.cli.audit import AuditCommand
from whyrank.rankers import open_ranker
from whyrank.report import read_findings, read_settings
from whyrank.scoring import Engine, ScoreStore
from whyrank.studies import Catalogue
from whyrank.studies.axioms import axioms

LEXICAL = ("-r", "bm25", "-r", "ql")


@pytest.fixture
def findings(whyrank):
    """The findings of an audit, as JSON has them."""

    def run(*arguments):
        code, out, err = whyrank("audit", *arguments, "--json", "--store", "none")
        assert code == 0, err
        return json.loads(out)

    return run


class TestProbes:
    def test_published_counts(self, findings, data_folder):
        """The command that the README of the reproduction gives."""
        stop = data_folder / "stopwords" / "terrier.txt"
        given = ("-c", data_folder / "msmarco_dl19", "--analyzer", f"terrier(stopwords={stop})", "-r", "bm25")
        found = {f["study"]: f for f in findings("matched/*", "--compat", "abnirml", *given)}
        assert found["matched/length|relevance"]["n"] == 515_401
        assert found["matched/overlap|sum-tf"]["n"] == 146_730
        assert (found["matched/tf|sum-tf"]["n"], found["matched/tf|sum-tf"]["score"]) == (0, None)
        assert sum(f["n"] for f in found.values()) == 2_305_954

    def test_the_table_states_delta_and_correction(self, whyrank):
        level = ("--delta", "p75", "--correction", "bh", "--alpha", "0.01")
        code, out, err = whyrank("audit", "matched/length|tf", *LEXICAL, *level)
        assert code == 0
        for words in ("delta: bm25", "run bm25 of sample", "p < 0.01 after correction (bh)"):
            assert words in out
        assert "1 study with" in err

    def test_delta_from_another_collection(self, whyrank, folder):
        request = ("audit", "matched/length|relevance", *LEXICAL, "-c", folder)
        assert "(judged documents of tiny)" in whyrank(*request)[1]
        assert "(run bm25 of sample)" in whyrank(*request, "--delta-from", "sample")[1]

    def test_sweeps_and_groups_of_rankers(self, whyrank, tmp_path):
        rankers, out_folder = (*LEXICAL, "-r", "bm25(b=0.9)"), tmp_path / "r"
        given = ("--tolerance", "10%", "--sweep", "--group", "bm25*", "--group", "*", "--out", out_folder)
        code, out, _ = whyrank("audit", "matched/length|*", *rankers, *given)
        assert code == 0
        assert "stable from" in out
        points = list(csv.DictReader((out_folder / "sweep.csv").open()))
        assert len(points) == 4 * 3 * 100
        assert float(points[50]["delta"]) > float(points[0]["delta"]) >= 0
        report = (out_folder / "report.html").read_text()
        assert (
            report.count('aria-label="Scores of each study by percentile of the rank step of BM25, QL, BM25(b=0.9)"')
            == 1
        )
        assert report.count("The order of rankers is") == 4
        rows = list(csv.DictReader((out_folder / "stability.csv").open()))
        assert [(r["group"], r["rankers"]) for r in rows] == [("bm25*", "2")] * 5 + [("*", "3")] * 5
        assert f"{100 * float(rows[4]['deviation']):.2f}" in out
        assert "Stability over seeds" in report
        assert read_settings(out_folder)["settings"]["group"] == ["bm25*", "*"]

    def test_a_given_delta_is_not_calibrated(self, whyrank, ranker, tmp_path):
        """Nothing is scored but the texts of the studies, and a symmetric study has no chance to compare with."""
        notes = f"open({str(tmp_path / 'scored.txt')!r}, 'a').write('x' * len(docs))"
        given = ("-r", ranker("float(len(d))", notes), "--limit", "5", "--store", "none", "--delta", "0.5", "--json")
        code, out, err = whyrank("audit", "transferred/paraphrase", *given)
        assert code == 0, err
        assert [(f["delta"], f["p_value"]) for f in json.loads(out)] == [(0.5, None)]
        assert len((tmp_path / "scored.txt").read_text()) <= 10
        assert "no p-values for transferred/paraphrase: delta is given, so it is not calibrated" in err
        _, out, err = whyrank("audit", "transferred/paraphrase", *given, "--delta-from", "sample")
        assert json.loads(out)[0]["p_value"] is not None
        assert "no p-values" not in err


class TestTerminal:
    def test_headlines_come_first_and_tables_fit(self, whyrank, monkeypatch, ranker):
        """A narrow terminal gets fewer columns; no line is longer, no figure is broken, and no colour is needed."""
        given = ("matched/*", "TFC1", "LNC2", *LEXICAL, "-r", f"prod={ranker('float(len(d))')}", "--tolerance", "10%",
                 "--baseline", "bm25")  # fmt: skip
        whole = whyrank("audit", *given)[1]
        for name, value in {"COLUMNS": "80", "TTY_COMPATIBLE": "1", "NO_COLOR": "1"}.items():
            monkeypatch.setenv(name, value)
        code, out, err = whyrank("audit", *given)
        assert code == 0, err
        shown = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
        end = next(i for i, line in enumerate(shown) if not line.strip())
        said, lines = [line.rstrip() for line in shown[:end]], shown[end:]
        told = list(takewhile(str.strip, whole.splitlines()))
        assert " ".join(said) == " ".join(told), "sentences are broken between words"
        assert max(map(len, said)) <= 80
        assert re.fullmatch(r"[A-Z][a-z ]+\. .* (?:\d+%|\d rank steps).*\.", told[0])
        tables = [line for line in lines if line.startswith("  ")]
        assert tables
        assert max(map(len, tables)) <= 80
        scores = re.findall(r"[+-]\d\.\d{3}", whole)
        assert set(re.findall(r"[+-]\d\.\d{3}", "\n".join(tables))) <= set(scores)
        assert "prod" in out
        heads = [line.split() for line in lines if line.split()[:2] in (["study", "ranker"], ["axiom", "ranker"])]
        assert len(heads) == 2
        assert all("difference" in head and "chance" not in head for head in heads), "what was asked for is kept"
        assert not [line for line in lines if line.startswith("chance:")], "nor is it explained"
        assert sum(line.startswith("left out for want of room: ") for line in lines) == 2


class TestWholeAudit:
    @pytest.mark.slow
    def test_the_result_folder(self, whyrank, tmp_path):
        """Without names: every study of the demo has something to show, but for two that exclude each other."""
        out_folder = tmp_path / "result"
        formats = ("--format", "markdown", "--format", "latex")
        code, out, err = whyrank("audit", *LEXICAL, "--out", out_folder, *formats)
        assert code == 0
        assert "within 10%" in err
        assert f"{out_folder}/report.html" in err
        found = pq.read_table(out_folder / "findings.parquet").to_pylist()
        families = {"matched", "edited", "transferred", "axiom", "bias"}
        assert {f["study"].partition("/")[0] for f in found} == families
        assert {f["delta"] for f in found if f["conclusion"]} == {0}
        assert min(f["delta"] for f in found if not f["conclusion"]) > 0
        assert len(list((out_folder / "scores").glob("*.parquet"))) == len(found)
        settings = read_settings(out_folder)["settings"]
        assert settings["seed"] == 0
        assert "lucene" in settings["rankers"]["bm25"]
        assert "<html" in (out_folder / "report.html").read_text()
        assert (out_folder / "tables" / "findings.tex").exists()
        probes, _, of_axioms = out.partition("  axiom ")
        assert ("axiom/" in probes, "matched/" in of_axioms) == (False, False)
        assert ("delta: bm25" in probes, "delta: 0 (axioms)" in of_axioms) == (True, True)
        counts = {f["study"]: f["n"] for f in found if not f["conclusion"]}
        empty = {"matched/tf|sum-tf", "matched/sum-tf|tf"}
        assert {study for study, n in counts.items() if n == 0} == empty
        assert min(n for study, n in counts.items() if study not in empty) >= 30


class TestBundledRankers:
    """Which rankers are asked when none are named, with and without the packages of neural models."""

    TEXTS = {
        "d1": "Boil an egg for seven minutes. Then cool it in cold water.",
        "d2": "Egg, egg and egg again. Our shop sells only the egg.",
        "d3": "Seven minutes of boiling give a soft yolk. Ten give a firm one.",
    }
    QUERY = "how long to boil an egg"

    @pytest.fixture
    def kitchen(self, tmp_path, monkeypatch):
        """A collection of one query and three texts, and an audit of few studies, which need no parser."""
        monkeypatch.setattr("whyrank.studies.catalogue.probes_and_axioms", lambda: Catalogue(axioms))
        return write_collection(tmp_path / "k", self.TEXTS, {"q1": self.QUERY}, "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\n")

    @pytest.fixture
    def without(self, monkeypatch):
        """Make a package look as if it were not installed."""
        return lambda *names: monkeypatch.setattr(
            audit, "find_spec", lambda name: None if name in names else find_spec(name)
        )

    def test_the_neural_ranker_is_asked_all_that_the_others_are(self, whyrank, kitchen, tmp_path):
        pytest.importorskip("transformers")
        store = tmp_path / "s.sqlite"
        code, out, err = whyrank("audit", "-c", kitchen, "--out", tmp_path / "r", "--json", "--store", store)
        assert code == 0, err
        assert "whyrank[models]" not in err
        studies = {}
        for finding in json.loads(out):
            studies.setdefault(finding["ranker"], set()).add(finding["study"])
        assert list(studies) == ["bm25", "ql", "cross:bundled"]
        assert studies["bm25"] == studies["ql"] == studies["cross:bundled"]
        model = open_ranker("cross:bundled")
        texts, pairs = list(self.TEXTS.values()), (np.zeros(3, np.int32), np.arange(3, dtype=np.int32))
        with ScoreStore(store) as opened:
            kept = Engine(opened).score(model, [self.QUERY], texts, *pairs)
        assert (kept.scored, kept.reused) == (0, 3)
        assert kept.values.tolist() == pytest.approx(list(model.score([self.QUERY] * 3, texts)), abs=1e-5)

    def test_the_demo_has_a_thesaurus(self, whyrank, tmp_path, monkeypatch, without):
        """Its words, what stands out in it, and its ranker, in the report of an audit without options."""
        without("torch")
        monkeypatch.setattr("whyrank.studies.usual_studies", lambda collection: ["matched/length|tf"])
        code, _, err = whyrank("audit", "--limit", 5, "--out", tmp_path / "r", "--store", "none")
        assert code == 0, err
        page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
        assert "What bundled says about" in page
        assert "weights that stand out" in page
        assert "bm25t:bundled" in page

    def test_without_its_packages_the_audit_runs_and_one_note_says_how_to_get_it(
        self, whyrank, kitchen, tmp_path, without
    ):
        without("torch")
        code, out, err = whyrank("audit", "-c", kitchen, "--out", tmp_path / "r", "--json")
        assert (code, {finding["ranker"] for finding in json.loads(out)}) == (0, {"bm25", "ql"}), err
        assert "pip install 'whyrank[models]'" in err
        for package in ("transformers", "tokenizers", "safetensors"):
            without(package)
            request, [note] = AuditCommand(tolerance="0").with_defaults()
            assert (request.ranker, request.table) == (("bm25", "ql", "bm25t:bundled"), "bundled")
            assert f"needs {package}; " in note
        assert AuditCommand(ranker=("ql",), tolerance="0").with_defaults()[1] == []


class TestAxioms:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (["TFC1"], ["axiom/TFC1"]),
            (["TFC?"], ["axiom/TFC1", "axiom/TFC2", "axiom/TFC3"]),
            (["axiom/TFC[13]"], ["axiom/TFC1", "axiom/TFC3"]),
            (["*TFC1"], ["axiom/TFC1"]),
            (["axiom/TFC1(length=10%)", "M-AND"], ["axiom/TFC1(length=10%)", "axiom/M-AND"]),
            (["TFC1 & AND"], ["axiom/expression(of='TFC1 & AND')"]),
            (["and(of=('TFC1','AND'))"], ["axiom/and(of=('TFC1','AND'))"]),
        ],
    )
    def test_names_with_and_without_the_prefix(self, findings, folder, given, expected):
        found = findings(*given, "-r", "bm25", "-c", folder)
        assert list(dict.fromkeys(finding["study"] for finding in found)) == expected

    def test_figures_by_hand(self, whyrank, folder, ranker):
        """`a` beats `b` and `c`; the ranker scores `a` above `b` alone; grades say a > b and a < c."""
        rankers = ranker("float(d == 'cats cats') - 2 * (d == 'cats dogs')"), ranker("0.0", name="zero")
        studies = ("TFC1", "TFC1(conclusion=weak)", "-c", folder, "--analyzer", "whitespace")
        code, out, _ = whyrank("audit", *studies, "-r", rankers[0], "-r", rankers[1])
        assert code == 0
        rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in out.splitlines()]
        header = next(row for row in rows if row[:1] == ["axiom"])
        assert header == ["axiom", "ranker", "conclusion", "instances", "per query", "share", "95% interval", "chance",
                          "p adj.", "satisfied", "tied", "violated", "with relevant", "agrees"]  # fmt: skip
        figures = [dict(zip(header, row, strict=True)) for row in rows if row and row[0].startswith("TFC1")]
        names = ("conclusion", "share", "chance", "satisfied", "tied", "violated")
        assert [[row[name] for name in names] for row in figures] == [
            ["strict", "1.000", "0.500", "2", "0", "0"], ["strict", "0.000", "0.000", "0", "2", "0"],
            ["weak", "1.000", "0.500", "2", "0", "0"], ["weak", "1.000", "1.000", "0", "2", "0"],
        ]  # fmt: skip
        names = ("instances", "per query", "with relevant", "agrees")
        assert {tuple(row[name] for name in names) for row in figures} == {("2", "2.0", "2", "0.500 of 2")}
        assert ["delta: 0 (axioms)"] in rows

    def test_given_statistics_decide_what_is_rare(self, whyrank, findings, tmp_path):
        """`red` is common here and rare where the statistics come from; ranker and axioms use the same counts."""
        fill = "w0 w1 w2 w3 w4 w5"
        docs = {"a": f"red red blue {fill}", "b": f"red blue blue {fill}", "c": f"red {fill} x y"}
        docs |= {f"e{i}": "red" for i in range(9)}
        there = {f"f{i}": "blue" for i in range(9)} | {"g": "red"}
        for name, given in {"here": docs, "there": there}.items():
            qrels = "".join(f"1 0 {i} 0\n" for i in list(given)[:3])
            write_collection(tmp_path / name, given, {"1": "red blue"}, qrels)
        assert whyrank("data", "stats", "-c", tmp_path / "there", "--out", tmp_path / "s.parquet")[0] == 0
        for stats, winner in ((None, "b/a"), (tmp_path / "there", "a/b"), (tmp_path / "s.parquet", "a/b")):
            given = [] if stats is None else ["--stats", stats]
            studies = ("M-TDC", "TDC", "M-TDC(compat=camara-hauff)", "-c", tmp_path / "here", "-r", "bm25")
            found = findings(*studies, *given, "--by", "doc_ids")
            assert len(found) == 6
            assert {f["satisfied"] for f in found} == {1.0}
            assert {f["group"] for f in found} == {None, winner}

    def test_a_tie_tolerance_is_used_and_said_once(self, whyrank, folder, ranker):
        spec = ranker("0.001 * ('cats cats' in d)")
        with open(spec.split(":")[1], "a") as file:
            file.write("f.tie_tolerance = 0.01\n")
        given = ("-c", folder, "--analyzer", "whitespace", "-r", spec, "-r", "bm25")
        code, out, err = whyrank("audit", "TFC1", "LNC2", *given)
        assert code == 0
        note = f"note: {spec}: scores that differ by no more than 0.01 count as equal"
        assert err.splitlines().count(note) == 1
        assert f"delta: {spec} 0.01 (tie tolerance of the ranker), bm25 0 (axioms)" in out

    def test_options_become_arguments(self, whyrank, findings):
        [plain], [short], [whole] = (
            findings("TFC1", "-r", "bm25", "--max-tokens", given) for given in ("512", "10", "none")
        )
        assert [f["call"] for f in (plain, short, whole)] == [
            "axiom/TFC1", "axiom/TFC1(max_tokens=10)", "axiom/TFC1(max_tokens=None)",
        ]  # fmt: skip
        assert whole["n"] == plain["n"] != short["n"], "texts of the sample are short"
        [found] = findings("TFC1", "-r", "bm25", "--pairs", "all", "--candidates", "bm25")
        assert found["n"] > plain["n"]
        assert "candidates=bm25" in found["call"]
        _, out, err = whyrank("audit", "TFC1", "AND", "--compat", "camara-hauff", "-r", "bm25", "--json")
        assert [f["call"] for f in json.loads(out)] == ["axiom/TFC1(compat=camara-hauff)", "axiom/AND"]
        assert "no mode camara-hauff: axiom/AND" in err

    def test_only_the_contrasts_are_scored(self, whyrank, folder, ranker):
        spec = ranker("1.0", "import sys; sys.stderr.write(f'scored {len(docs)}\\n')")
        given = ("-c", folder, "-r", spec, "--analyzer", "whitespace", "--store", "none")
        _, _, err = whyrank("audit", "TFC1", *given)
        assert re.findall("scored .*", err) == ["scored 3"]
        assert whyrank("audit", "TFC1", *given, "--delta", "p50")[2].count("scored") == 2

    def test_without_judgements_a_run_takes_their_place(self, whyrank, folder):
        run = ("--candidates", folder / "run.txt")

        def found(*given):
            code, out, err = whyrank(
                "audit", "TFC1", "-r", "bm25", "--analyzer", "whitespace", "--json", "-c", folder, *given
            )
            assert code == 0, err
            return json.loads(out)[0], err

        judged, err = found(*run)
        assert (judged["n"], "so axioms and probes take" in err) == (2, False), "judgements come first"
        (folder / "qrels.txt").unlink()
        of_run, err = found(*run)
        assert (of_run["n"], of_run["with_relevant"]) == (1, None), "c is not in the run"
        assert "pairs=top:100" in of_run["call"]
        assert "tiny has no judgements, so axioms and probes take top:100" in err
        for pairs, n in (("judged", 0), ("top:2", 1)):
            chosen, err = found(*run, "--pairs", pairs)
            assert (chosen["n"], "so axioms and probes take" in err) == (n, False)
        retrieved, err = found()
        assert (retrieved["n"], "candidates=bm25" in retrieved["call"]) == (2, True), "BM25 finds c too"
        assert "so axioms and probes take top:100 of bm25" in err

    def test_the_folder_has_all_fields_and_the_delta_that_applied(self, whyrank, tmp_path):
        folder, studies = tmp_path / "r", ("TFC1", "LNC2", "TFC1 & AND")
        code, out, err = whyrank("audit", *studies, *LEXICAL, "--out", folder, "--json", "--by", "relevance_group")
        assert code == 0, err
        found = read_findings(folder)
        assert [f.as_dict() for f in found] == json.loads(out)
        scales = ("sum of term weights", "log probability")
        assert {(f.conclusion, f.scale) for f in found} == {(c, s) for c in ("strict", "weak") for s in scales}
        schema = pq.read_schema(folder / "findings.parquet")
        names = ("satisfied", "with_relevant", "decided", "agreement")
        assert [str(schema.field(name).type) for name in names] == ["double", "int64", "int64", "double"]
        record = read_settings(folder)
        assert record["thresholds"]["bm25"] == {
            "delta": 0.0, "source": "none needed, because only axioms are asked", "axioms": 0.0,
        }  # fmt: skip
        assert record["studies"][0]["conclusion"] == "strict"
        whyrank("audit", "TFC1", "-r", "bm25", "--out", folder, "--delta", "0.5")
        assert read_settings(folder)["thresholds"]["bm25"] == {"delta": 0.5, "source": "given", "axioms": 0.5}
