"""Axioms in `whyrank audit` and the other commands, as a user types them."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from refusals import one_line
from whyrank.cli import show
from whyrank.report import read_findings, read_settings
from whyrank.studies import Finding, Threshold
from whyrank.studies.axioms.counts import TFC1
from whyrank.studies.files import load

LEXICAL = ("-r", "bm25", "-r", "ql")
TINY = {
    "corpus.jsonl": "".join(
        json.dumps({"id": i, "text": text}) + "\n"
        for i, text in {"a": "cats cats", "b": "cats dogs", "c": "cats cows", "d": "pigs"}.items()
    ),
    "queries.tsv": "1\tcats\n2\tpigs\n",
    "qrels.txt": "1 0 a 1\n1 0 b 0\n1 0 c 2\n",
    "run.txt": "1 Q0 a 1 3.0 x\n1 Q0 b 2 2.0 x\n1 Q0 d 3 1.0 x\n",
}


@pytest.fixture
def tiny(tmp_path):
    """A collection: of the documents of query 1, `a` has more query terms than `b` and `c`."""

    def make(*without: str) -> str:
        folder = tmp_path / "tiny"
        folder.mkdir()
        for name, text in TINY.items():
            if name not in without:
                (folder / name).write_text(text)
        return str(folder)

    return make


def test_given_statistics_decide_what_is_rare(whyrank, tmp_path):
    """`red` is common here and rare where the statistics come from; the ranker and the axioms use the same counts."""
    fill = [f"w{i}" for i in range(6)]
    texts = {"a": ["red", "red", "blue", *fill], "b": ["red", "blue", "blue", *fill], "c": ["red", *fill, "x", "y"]}
    docs = {i: " ".join(words) for i, words in texts.items()} | {f"e{i}": "red" for i in range(9)}
    there = {f"f{i}": "blue" for i in range(9)} | {"g": "red"}
    for name, given in {"here": docs, "there": there}.items():
        (tmp_path / name).mkdir()
        lines = [json.dumps({"id": i, "text": text}) + "\n" for i, text in given.items()]
        (tmp_path / name / "corpus.jsonl").write_text("".join(lines))
        (tmp_path / name / "queries.tsv").write_text("1\tred blue\n")
        (tmp_path / name / "qrels.txt").write_text("".join(f"1 0 {i} 0\n" for i in list(given)[:3]))
    assert (
        whyrank("data", "stats", "--collection", str(tmp_path / "there"), "--out", str(tmp_path / "s.parquet"))[0]
        == 0
    )
    for stats, winner in ((None, "b/a"), (tmp_path / "there", "a/b"), (tmp_path / "s.parquet", "a/b")):
        given = [] if stats is None else ["--stats", str(stats)]
        asked = ("audit", "M-TDC", "TDC", "M-TDC(compat=camara-hauff)", "-c", str(tmp_path / "here"), "-r", "bm25")
        code, out, err = whyrank(*asked, *given, "--by", "doc_ids", "--store", "none", "--json")
        assert code == 0, err
        findings = json.loads(out)
        assert len(findings) == 6
        assert {f["satisfied"] for f in findings} == {1.0}
        assert {f["group"] for f in findings} == {None, winner}


def studies(out: str) -> list[str]:
    return list(dict.fromkeys(finding["study"] for finding in json.loads(out)))


class TestNames:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (["TFC1"], ["axiom/TFC1"]),
            (["axiom/TFC1"], ["axiom/TFC1"]),
            (["TFC?"], ["axiom/TFC1", "axiom/TFC2", "axiom/TFC3"]),
            (["axiom/TFC[13]"], ["axiom/TFC1", "axiom/TFC3"]),
            (["*TFC1"], ["axiom/TFC1"]),
            (["TFC1(length=5)"], ["axiom/TFC1(length=5)"]),
            (["axiom/TFC1(length=10%)", "M-AND"], ["axiom/TFC1(length=10%)", "axiom/M-AND"]),
            (["TFC1 & AND"], ["axiom/expression(of='TFC1 & AND')"]),
            (["and(of=('TFC1','AND'))"], ["axiom/and(of=('TFC1','AND'))"]),
        ],
    )
    def test_with_and_without_the_prefix(self, whyrank, given, expected):
        code, out, err = whyrank("audit", *given, "--json", "-r", "bm25", "--store", "none")
        assert code == 0, err
        assert studies(out) == expected


class TestTable:
    def test_figures_by_hand(self, whyrank, tiny):
        """`a` beats `b` and `c`; the ranker scores `a` above `b` alone; grades say a > b and a < c."""
        folder = tiny()
        module = f"{folder}/mine.py"
        with open(module, "w") as file:
            file.write(
                "def f(queries, docs):\n    return [float(d == 'cats cats') - 2 * (d == 'cats dogs') for d in docs]\n"
            )
            file.write("def g(queries, docs):\n    return [0.0 for d in docs]\n")
        asked = ("audit", "TFC1", "TFC1(conclusion=weak)", "-c", folder, "--analyzer", "whitespace")
        code, out, _ = whyrank(*asked, "-r", f"python:{module}:f", "-r", f"python:{module}:g")
        assert code == 0
        rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in out.splitlines()]
        header = next(row for row in rows if row[:1] == ["axiom"])
        assert header == ["axiom", "ranker", "conclusion", "instances", "per query", "share", "95% interval", "chance", "p adj.",
                          "satisfied", "tied", "violated", "with relevant", "agrees"]  # fmt: skip
        figures = [dict(zip(header, row, strict=True)) for row in rows if row[0:1] and row[0].startswith("TFC1")]
        shown = [
            [row[name] for name in ("conclusion", "share", "chance", "satisfied", "tied", "violated")]
            for row in figures
        ]
        assert shown == [
            ["strict", "1.000", "0.500", "2", "0", "0"],
            ["strict", "0.000", "0.000", "0", "2", "0"],
            ["weak", "1.000", "0.500", "2", "0", "0"],
            ["weak", "1.000", "1.000", "0", "2", "0"],
        ]
        assert {(row["instances"], row["per query"], row["with relevant"], row["agrees"]) for row in figures} == {
            ("2", "2.0", "2", "0.500 of 2")
        }
        assert ["delta: 0 (axioms)"] in rows

    FINDING = Finding(
        study="axiom/LNC1", ranker="bm25", collection="toy", n=6912, positive=60, neutral=10, negative=30, nonfinite=2,
        score=0.3, ci_low=0.2, ci_high=0.4, p_value=0.001, p_adjusted=0.01, mean_diff=0.5, median_diff=0.25, delta=0.0,
        n_queries=20, fingerprint="ab", seed=0, conclusion="weak", satisfied=0.7, satisfied_low=0.6, satisfied_high=0.8,
        chance=0.55, with_relevant=1234, decided=1000, agreement=0.25,
    )  # fmt: skip

    def test_a_finding(self, capsys):
        show.findings([self.FINDING], {"bm25": Threshold(0.4)}, 0.05, "holm")
        out = capsys.readouterr().out
        assert "0.700*" in out
        assert "[0.600, 0.800]" in out
        assert "345.6" in out
        assert "0.250 of 1,000" in out
        assert "delta: 0 (axioms)" in out
        assert "2 contrasts without a finite score" in out

    def test_instances_without_a_score(self, capsys):
        scored = replace(self.FINDING, study="axiom/DIV", nonfinite=0)
        show.findings([self.FINDING, scored], {}, 0.05, "holm")
        out = capsys.readouterr().out
        header, *rows = [
            line.split("  ") for line in out.splitlines() if line.strip().startswith(("axiom", "LNC1", "DIV"))
        ]
        names = [name.strip() for name in header if name.strip()]
        figures = [dict(zip(names, [cell.strip() for cell in row if cell.strip()], strict=True)) for row in rows]
        assert [(row["violated"], row["unscored"], row["with relevant"]) for row in figures] == [
            ("30", "2", "1,234"), ("30", "0", "1,234")
        ]  # fmt: skip
        assert "unscored: instances without a finite score; they count in instances, per query" in out
        show.findings([scored], {}, 0.05, "holm")
        assert "unscored" not in capsys.readouterr().out

    def test_a_run_that_lacks_documents(self, whyrank, tiny):
        """Of the instances a > b and a > c, the run scores one."""
        folder = tiny()
        asked = ("audit", "TFC1", "-c", folder, "--analyzer", "whitespace", "-r", f"run:{folder}/run.txt")
        code, out, err = whyrank(*asked)
        assert code == 0, err
        header, row = [line.split() for line in out.splitlines() if line.strip().startswith(("axiom ", "TFC1"))]
        assert "unscored" in header
        assert row[2:5] == ["strict", "2", "2.0"]
        assert row[-7:] == ["0", "0", "1", "2", "0.500", "of", "2"]

    def test_nothing_found(self, capsys):
        undefined = (
            "satisfied",
            "satisfied_low",
            "satisfied_high",
            "chance",
            "p_adjusted",
            "with_relevant",
            "agreement",
        )
        show.findings([replace(self.FINDING, n=0, n_queries=0, **dict.fromkeys(undefined))], {}, 0.05, "holm")
        row = next(line for line in capsys.readouterr().out.splitlines() if "LNC1" in line)
        assert row.count("–") == 7

    def test_two_tables(self, capsys):
        probe = replace(self.FINDING, study="matched/length|tf", conclusion="", delta=0.4)
        show.findings([probe, self.FINDING], {"bm25": Threshold(0.4)}, 0.05, "holm")
        first, _, second = capsys.readouterr().out.partition("  axiom ")
        assert ("matched/length|tf" in first, "LNC1" in first) == (True, False)
        assert ("matched/length|tf" in second, "LNC1" in second) == (False, True)
        assert "delta: bm25 0.4 (given)" in first
        assert "delta: 0 (axioms)" in second

    def test_a_delta_that_was_asked_for(self, whyrank):
        _, out, _ = whyrank("audit", "TFC1", *LEXICAL, "--delta", "0.5")
        assert "delta: bm25 0.5 (given), ql 0.5 (given)" in out
        _, out, _ = whyrank("audit", "TFC1", *LEXICAL, "--delta", "p50")
        assert "(run bm25 of sample)" in out

    def test_expressions_are_shown_as_they_are_written(self, whyrank):
        _, out, _ = whyrank("audit", "(TFC1 & AND) | DIV", "-r", "bm25")
        assert "  (TFC1 & AND) | DIV " in out


class TestOptions:
    def test_groups(self, whyrank):
        _, out, _ = whyrank("audit", "TFC1", "--by", "relevance_group", "-r", "bm25", "--json")
        whole, *parts = json.loads(out)
        assert whole["group"] is None
        for name in ("n", "positive", "with_relevant", "decided"):
            assert sum(part[name] for part in parts) == whole[name]
        assert {part["group"]: part["agreement"] for part in parts}["both non-relevant"] is None

    def test_max_tokens(self, whyrank):
        counts = {}
        for given in ("512", "10", "none"):
            _, out, _ = whyrank("audit", "TFC1", "-r", "bm25", "--json", "--max-tokens", given)
            counts[given] = json.loads(out)[0]["n"], json.loads(out)[0]["call"]
        assert counts["512"][1] == "axiom/TFC1"
        assert counts["none"] == (counts["512"][0], "axiom/TFC1(max_tokens=None)"), "texts of the sample are short"
        assert counts["10"][1] == "axiom/TFC1(max_tokens=10)"
        assert counts["10"][0] != counts["512"][0]

    def test_compat_is_for_the_nine(self, whyrank):
        _, out, err = whyrank("audit", "TFC1", "AND", "--compat", "camara-hauff", "-r", "bm25", "--json")
        assert [f["call"] for f in json.loads(out)] == ["axiom/TFC1(compat=camara-hauff)", "axiom/AND"]
        assert "no mode camara-hauff: axiom/AND" in err

    def test_all_documents(self, whyrank):
        _, judged, _ = whyrank("audit", "TFC1", "-r", "bm25", "--json")
        _, found, _ = whyrank("audit", "TFC1", "-r", "bm25", "--json", "--pairs", "all", "--candidates", "bm25")
        assert json.loads(found)[0]["n"] > json.loads(judged)[0]["n"]
        assert "candidates=bm25" in json.loads(found)[0]["call"]

    def test_a_sweep_calibrates(self, whyrank):
        _, out, _ = whyrank("audit", "TFC1", *LEXICAL, "--sweep")
        assert "p99" in out
        assert "delta: 0 (axioms)" in out

    def test_only_the_contrasts_are_scored(self, whyrank, tiny):
        folder = tiny()
        with open(f"{folder}/mine.py", "w") as file:
            file.write(
                "import sys\ndef f(queries, docs):\n    sys.stderr.write(f'asked {len(docs)}\\n')\n    return [1.0] * len(docs)\n"
            )
        asked = ("-c", folder, "-r", f"python:{folder}/mine.py:f", "--analyzer", "whitespace", "--store", "none")
        _, _, err = whyrank("audit", "TFC1", *asked)
        assert err.count("asked") == 1
        assert "asked 3" in err
        _, _, err = whyrank("audit", "TFC1", *asked, "--delta", "p50")
        assert err.count("asked") == 2


class TestWithoutJudgements:
    ASKED = ("audit", "TFC1", "-r", "bm25", "--analyzer", "whitespace", "--json")

    def test_a_run_takes_their_place(self, whyrank, tiny):
        folder = tiny("qrels.txt")
        _, out, err = whyrank(*self.ASKED, "-c", folder, "--candidates", f"{folder}/run.txt")
        [found] = json.loads(out)
        assert (found["n"], found["with_relevant"]) == (1, None), "c is not in the run"
        assert "pairs=top:100" in found["call"]
        assert "tiny has no judgements, so axioms pair top:100" in err

    def test_no_run_either(self, whyrank, tiny):
        folder = tiny("qrels.txt")
        _, out, err = whyrank(*self.ASKED, "-c", folder)
        assert (json.loads(out)[0]["n"], json.loads(out)[0]["satisfied"]) == (0, None)
        assert "neither judgements nor a run" in err
        assert "--candidates" in err

    def test_unless_pairs_are_asked_for(self, whyrank, tiny):
        folder = tiny("qrels.txt")
        for pairs, n in (("judged", 0), ("top:2", 1)):
            _, out, err = whyrank(*self.ASKED, "-c", folder, "--candidates", f"{folder}/run.txt", "--pairs", pairs)
            assert json.loads(out)[0]["n"] == n
            assert "so axioms pair" not in err

    def test_judgements_come_first(self, whyrank, tiny):
        folder = tiny()
        _, out, err = whyrank(*self.ASKED, "-c", folder, "--candidates", f"{folder}/run.txt")
        assert json.loads(out)[0]["n"] == 2
        assert "so axioms pair" not in err

    def test_probes_stay_as_they_are(self, whyrank, tiny):
        folder = tiny("qrels.txt")
        asked = ("contrasts", "matched/length|tf", "-c", folder, "--candidates", f"{folder}/run.txt")
        _, _, err = whyrank(*asked, "--out", f"{folder}/c.jsonl")
        assert "0 contrasts" in err
        assert "so axioms pair" not in err


class TestResults:
    def test_the_folder_has_all_fields(self, whyrank, tmp_path):
        folder = tmp_path / "r"
        code, out, err = whyrank(
            "audit", "TFC1", "LNC2", "TFC1 & AND", *LEXICAL, "--out", str(folder), "--json", "--by", "relevance_group"
        )
        assert code == 0, err
        found = read_findings(folder)
        assert [f.as_dict() for f in found] == json.loads(out)
        assert {(f.conclusion, f.scale) for f in found} == {
            (conclusion, scale)
            for conclusion in ("strict", "weak")
            for scale in ("sum of term weights", "log probability")
        }
        table = pq.read_table(folder / "findings.parquet")
        kinds = {
            name: str(table.schema.field(name).type)
            for name in ("satisfied", "with_relevant", "decided", "agreement")
        }
        assert kinds == {"satisfied": "double", "with_relevant": "int64", "decided": "int64", "agreement": "double"}

    def test_the_record_says_which_delta_applied(self, whyrank, tmp_path):
        asked = ("audit", "TFC1", "-r", "bm25", "--out", str(tmp_path / "r"))
        whyrank(*asked)
        record = read_settings(tmp_path / "r")
        assert record["thresholds"]["bm25"] == {
            "delta": 0.0, "source": "none needed, because only axioms are asked", "axioms": 0.0
        }  # fmt: skip
        assert record["studies"][0]["conclusion"] == "strict"
        whyrank(*asked, "--delta", "0.5")
        given = read_settings(tmp_path / "r")["thresholds"]["bm25"]
        assert given == {"delta": 0.5, "source": "given", "axioms": 0.5}


class TestOtherCommands:
    def test_contrasts(self, whyrank, tmp_path):
        code, _, err = whyrank("contrasts", "axiom/TFC1", "--out", str(tmp_path / "x.parquet"))
        found = load(tmp_path / "x.parquet")
        assert code == 0, err
        assert f"{len(found):,} contrasts of axiom/TFC1" in err

    @pytest.mark.parametrize(
        ("given", "full", "n"),
        [
            ("TFC1", "axiom/TFC1", 2),
            ("TFC1(length=0)", "axiom/TFC1(length=0)", 2),
            ("TFC1 & -DIV", "axiom/expression(of='TFC1 & -DIV')", 2),
            ("TFC1 & DIV", "axiom/expression(of='TFC1 & DIV')", 0),
            ("2*TFC1 | axiom/DIV", "axiom/expression(of='2*TFC1 | axiom/DIV')", 2),
            ("TFC[1]", "axiom/TFC1", 2),
            ("matched/length|tf", "matched/length|tf", 0),
            ("*/length|tf", "matched/length|tf", 0),
            ("matched/length|tf(tolerance=1)", "matched/length|tf(tolerance=1)", 0),
        ],
    )
    def test_contrasts_by_short_names_and_expressions(self, whyrank, tiny, given, full, n):
        folder = tiny()
        out = f"{folder}/x.parquet"
        code, _, err = whyrank("contrasts", given, "-c", folder, "--analyzer", "whitespace", "--out", out)
        assert code == 0, err
        assert f"{n} contrast{'s' * (n != 1)} of {given}" in err
        assert json.loads(pq.read_schema(out).metadata[b"whyrank.contrasts"])["study"] == full

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ("TCF1", "'axiom/TFC1'"),
            ("matched/lenght|tf", "'matched/length|tf'"),
            ("edited/no_stop", "'edited/"),
            ("matched/*", "one study at a time"),
            ("axiom/TFC?(length=0)", "TFC?"),
            ("TFC1 &", "no expression"),
            ("TFC1 & (DIV", "not closed"),
            ("", "no expression"),
        ],
    )
    def test_contrasts_of_what_is_not_there(self, whyrank, tmp_path, given, says):
        code, out, err = whyrank("contrasts", given, "--out", str(tmp_path / "x.parquet"))
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert says in err
        assert list(tmp_path.iterdir()) == []

    def test_contrasts_need_a_file_before_anything_is_read(self, whyrank, tmp_path):
        asked = ("contrasts", "TFC1", "-c", "no/such")
        assert "--out" in one_line(whyrank(*asked))
        assert "ending in .jsonl or .parquet" in one_line(whyrank(*asked, "--out", tmp_path / "x.csv"))

    def test_contrasts_with_a_ranker(self, whyrank, tmp_path):
        whyrank("contrasts", "axiom/TFC1", "--out", str(tmp_path / "x.jsonl"), "-r", "bm25")
        rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
        assert all(row["effect"] == (row["diff"] > 0) - (row["diff"] < 0) for row in rows), "delta is zero"

    def test_list(self, whyrank):
        _, out, _ = whyrank("list", "axioms", "--json")
        lines = json.loads(out)["axioms"]
        assert lines["axiom/TFC1"] == "Of two texts of about the same length, the one with more query terms wins."
        assert all(line.endswith(".") for line in lines.values())


class TestWrongRequests:
    FILES = {"empty.txt": "", "unknown.run": "9 Q0 zzz 1 3.0 x\n", "broken.txt": "cat 1 0 0\ndog 0 1\ncow x y z\n"}

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["TCF1"], "did you mean 'axiom/TFC1'"),
            (["tfc1"], "did you mean 'axiom/TFC1'"),
            (["TFC1 & (M-AND"], "a bracket that is not closed"),
            (["TFC1 & M-AND)"], "a bracket that is not opened"),
            (["TFC1(length=5"], "a bracket that is not closed"),
            (["TFC1(seed=x)"], "seed must be a whole number"),
            (["TFC1 & LNC2"], "LNC2 has no condition on two documents"),
            (["TFC1", "--pairs", "top:0"], "'top:K'"),
            (["TFC1", "--max-tokens", "0"], "--max-tokens '0'"),
            (["TFC1", "--compat", "wrong"], "unknown compat mode 'wrong'"),
            (["TFC1", "--candidates", "empty.txt", "--pairs", "top:3"], "empty.txt: the file is empty"),
            (["TFC1", "--candidates", "unknown.run", "--pairs", "top:3"], "unknown.run: has no query"),
            (["TFC1", "-r", "run:unknown.run"], "unknown.run: has no query"),
            (["STMC1(vectors=nosuchfile)"], "nosuchfile: no such file"),
            (["STMC1(vectors=broken.txt)"], "broken.txt:2: 2 numbers where 3 are expected"),
            (["STMC1(vectors=empty.txt)"], "empty.txt: the file is empty"),
        ],
    )
    def test_one_clear_line(self, whyrank, tiny, monkeypatch, arguments, says):
        folder = tiny()
        monkeypatch.chdir(folder)
        for name, text in self.FILES.items():
            with open(name, "w") as file:
                file.write(text)
        code, out, err = whyrank("audit", *arguments, "-c", folder)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert says in err

    @pytest.mark.parametrize(
        ("command", "out"),
        [
            (["audit", "TFC1"], "results"),
            (["contrasts", "TFC1"], "x.jsonl"),
            (["contrasts", "TFC1"], "x.parquet"),
            (["rank", "--axiom", "TFC1", "--candidates", "bm25"], "x.txt"),
        ],
    )
    def test_stopped_in_the_middle(self, whyrank, tmp_path, monkeypatch, command, out):
        """Ctrl-C between two queries leaves no file behind, hidden ones included."""
        asked, wins = [], TFC1.wins

        def stopping(self, view, a, b):
            asked.append(view)
            if len(asked) == 20:
                raise KeyboardInterrupt
            return wins(self, view, a, b)

        monkeypatch.setattr(TFC1, "wins", stopping)
        code, printed, err = whyrank(*command, "--out", str(tmp_path / out))
        assert (code, printed) == (130, "")
        assert "stopped" in err
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_a_document_of_one_long_line(self, whyrank, tiny):
        folder = tiny()
        with open(f"{folder}/corpus.jsonl", "a") as file:
            file.write(json.dumps({"id": "long", "text": "x" * 2_000_000}) + "\n")
        with open(f"{folder}/qrels.txt", "a") as file:
            file.write("1 0 long 1\n")
        asked = ("audit", "TFC1", "LNC2", "-c", folder, "--analyzer", "whitespace", "-r", "bm25", "--json")
        code, out, err = whyrank(*asked)
        assert code == 0, err
        assert json.loads(out)[1]["dropped"] == "too long to be copied 1"


def test_the_scale_of_scores_is_stated_for_tfc2_alone(whyrank):
    code, out, _ = whyrank("audit", "TFC2", "-r", "bm25", "-r", "ql")
    assert code == 0
    assert "depend on their scale: bm25 sum of term weights, ql log probability" in out
    assert "depend on their scale" not in whyrank("audit", "TFC1", "-r", "bm25")[1]


def test_a_tie_tolerance_is_used_and_said_once(whyrank, tiny):
    folder = tiny()
    with open(f"{folder}/mine.py", "w") as file:
        file.write(
            "def f(queries, docs):\n    return [0.001 * ('cats cats' in d) for d in docs]\nf.tie_tolerance = 0.01\n"
        )
    asked = ("-c", folder, "--analyzer", "whitespace", "-r", f"python:{folder}/mine.py:f", "-r", "bm25")
    code, out, err = whyrank("audit", "TFC1", "LNC2", *asked)
    assert code == 0
    note = f"note: python:{folder}/mine.py:f: scores that differ by no more than 0.01 count as equal"
    assert err.splitlines().count(note) == 1
    assert f"delta: python:{folder}/mine.py:f 0.01 (tie tolerance of the ranker), bm25 0 (axioms)" in out
