"""Wrong requests: exit code 2, one line that names what is wrong, and nothing is written."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from refusals import one_line
from toy_bias import PLANTED, toy_table
from whyrank.tables import TermTable, open_table

AUDIT, AXIOM, RANK = "audit 'matched/length|tf' -r bm25", "audit TFC1", "rank --candidates bm25 --axiom"
BIAS, LOCAL = "audit -r bm25 --delta none", "tables learn local-to-global --store none --target ql --out t.tsv"
FIDELITY, OVERLAP = "fidelity --store none -t ql -s bm25", "evaluate --overlap"
SURPRISES = "tables surprises a.parquet --pipeline none"
FUSE = "tune -r \"fuse(of=['bm25','ql'],normalise=query)\""
REQUESTS = [
    ("audti", "audit"),
    ("probe 'matched/*'", "probe"),
    ("list ranker", "'rankers'"),
    ("audit 'matched/lenght|tf'", "matched/length|tf"),
    ("audit 'matched/length|tf' -r bm52", "'bm25'"),
    ("audit 'matched/length|tf' -r 'bm25(kl=1)'", "'k1'"),
    (f"{AUDIT} -r bm25", "twice"),
    (f"{AUDIT} --analyzer lucen", "'lucene'"),
    (f"{AUDIT} -c no/such/folder", "no/such/folder"),
    (f"{AUDIT} -c ''", "--collection is empty"),
    (f"{AUDIT} --delta median", "p50"),
    (f"{AUDIT} --correction bonferoni", "'bonferroni'"),
    (f"{AUDIT} --compat abnirm", "'abnirml' (probes), 'camara-hauff' (axioms), 'relevance-thesaurus' (bias studies)"),
    (f"{AUDIT} --pairs top:5 --candidates no.run", "no.run"),
    (f"{AUDIT} --executor threads", "serial"),
    (f"{AUDIT} --limit 0", "--limit"),
    (f"{AUDIT} --colection x", "--collection"),
    ("data check -c sample", "see 'whyrank data check --help'"),
    (f"{AUDIT} --format word --out x", "latex"),
    (f"{AUDIT} --by relevance_grop", "relevance_group"),
    (f"{AUDIT} -r ql --group 'bm52*'", "bm52*"),
    ("audit 'matched/*' --compat camara-hauff", "is for axioms"),
    # axioms
    ("audit TCF1", "did you mean 'axiom/TFC1'"),
    ("audit 'TFC1 & (M-AND'", "a bracket that is not closed"),
    ("audit 'TFC1(lenght=5)'", "'length'"),
    ("audit AND 'AND(compat=camara-hauff)'", "compat mode"),
    (f"{AXIOM} --candidates no.run", "no.run"),
    (f"{AXIOM} --max-tokens many", "--max-tokens"),
    (f"{AXIOM} --format latex", "--out"),
    (f"{AXIOM} --candidates unknown.run --pairs top:3", "unknown.run: has no query"),
    (f"{AXIOM} -r run:unknown.run", "unknown.run: has no query"),
    # bias studies
    (f"{BIAS} bias/substitution", "needs its values"),
    (f"{BIAS} bias/car-brnd", "did you mean 'bias/car-brand'"),
    ("audit TFC1 -r bm25 --delta 0.1 --table a.parquet", "--table is for bias studies"),
    (f"{BIAS} bias/when-year --table nofile.tsv", "nofile.tsv"),
    (f"{BIAS} bias/when-year --compat abnirml", "is for probes"),
    (f"{BIAS} \"bias/car-brand(filters='python:odd.py:fails')\"", "failed: ValueError: out of order"),
    # contrasts and preferences
    ("contrasts TFC1 -c no/such", "--out"),
    ("contrasts TFC1 -c no/such --out x.csv", "end the name in .jsonl or .parquet"),
    ("contrasts 'matched/*' --out x.parquet", "one study at a time"),
    ("contrasts TFC1 'matched/length|tf' --out x.parquet", "one study at a time"),
    ("contrasts 'TFC1 &' --out x.parquet", "no expression"),
    ("contrasts TFC2 TFC1 --out x.parquet", "TFC2"),
    ("contrasts TFC1 AND --candidates no.such --out x.parquet", "no.such"),
    ("contrasts TFC1 AND -r bm25 --out x.parquet", "--ranker is not for preferences"),
    # rank
    ("rank --stats no.parquet", "no.parquet"),
    ("rank --out .", "no ordinary file"),
    ("rank -r bm25 -r ql", "one --ranker"),
    ("rank --timeout 0 --store none", "timeout must be a number between 0 and infinity"),
    ("rank --aggregation tournament", "--axiom"),
    ("rank --max-tokens 5", "--max-tokens"),
    ("rank --axiom TFC1", "--candidates"),
    (f"{RANK} TFC1 --ranker bm25", "--ranker"),
    (f"{RANK} TFC1 --aggregation quicksort", "'kwiksort'"),
    (f"{RANK} 'TFC1(pairs=top:3)'", "leave out pairs=top:3"),
    (f"{RANK} TFC2", "TFC2"),
    # evaluate, tune, data, delta
    ("evaluate -m nDGC", "nDCG@10"),
    ("evaluate --run no.txt", "no.txt"),
    ("evaluate --run other.txt", "has no query of collection sample"),
    ("evaluate --mean-of S", "--mean-of 'S': write NAME=RUN"),
    ("evaluate --mean-of S=bm25 --mean-of S=bm25", "--mean-of 'S=bm25'"),
    ("evaluate --hypotheses no.yaml", "no.yaml: cannot be read"),
    (f"{OVERLAP} --mean-of S=bm25", "--mean-of does not go with --overlap"),
    (
        f"{OVERLAP} --out o.png",
        "o.png: the overlap split cannot be written so; end the name in .csv or .json or .svg",
    ),
    (f"{OVERLAP} --groups 0", "--groups"),
    ("tune --grid k1", "--grid"),
    ("tune -r bm25 -r ql", "one --ranker"),
    ("tune -r bm25 --restarts 2", "--restarts is for the weights of a fuse"),
    (f"{FUSE} --grid k=10,60 --least-gain 0.1", "--least-gain is for the weights of a fuse"),
    (f"{FUSE} --restarts 0", "--restarts"),
    ("data stats", "--out"),
    ("data split sample", "--out"),
    ("data split sample --out x --parts dev=2", "--parts"),
    ("data split sample --out full", "is there already"),
    # explain
    ("explain a", "explain takes QUERY and TEXT"),
    ("explain a b c", "3 texts given"),
    ("explain a b --doc-id p001", "explain takes QUERY, in quotes; 2 texts given"),
    ("explain a --doc-id nothing", "unknown document of sample 'nothing'"),
    ("explain a b --top 0", "--top"),
    ("explain a b -r python:odd.py:nans", "ranker 'python:odd.py:nans' has no finite score for 'b': score is nan"),
    ("explain --query a --doc b --doc c --doc d", "two texts at most; --doc is given 3 times"),
    ("explain --query a --query-id q01 --doc b", "--query and --query-id name the same thing"),
    ("explain --query a --doc b c", "explain takes no text besides those that options name"),
    ("explain --query a --doc b --out page.txt", "end the name in .html"),
    ("explain --query a --doc b -r cross:bundled --calls 9", "calls must be"),
    ("explain --query a --doc b -r run:bm25", "cannot score changed texts"),
    # fidelity
    (f"{FIDELITY} -s bm25", "given twice"),
    (f"{FIDELITY} --baseline bm26", "baseline"),
    (f"{FIDELITY} --missing keep", "drop"),
    (f"{FIDELITY} -m spearman", "measure of fidelity"),
    (f"{FIDELITY} --out f.csv", ".parquet or .json"),
    (f"{FIDELITY} --out /proc/f.json", "cannot be written"),
    (f"{FIDELITY} --candidates a --candidates b", "one for each"),
    ("fidelity --store none -t run:nowhere.txt -s bm25", "no such run file"),
    # tables
    ("tables show none.parquet", "no such file"),
    ("tables show a.parquet 20077", "did you mean '2007'"),
    ("tables diff a.parquet a.parquet --out x.csv", "end the name in .tsv or .parquet or .json"),
    ("tables export a.parquet", "Missing option '--out'"),
    ("tables export a.parquet --out x.txt", "the name says no format"),
    ("tables export a.parquet --out x --as synonym", "did you mean 'synonyms'?"),
    ("tables export a.parquet --out x --as synonyms", "choose with --threshold W or --top N"),
    ("tables export a.parquet --out x.tsv --equivalent", "--equivalent is for --as synonyms alone"),
    ("tables export a.parquet --out x --as synonyms --top 1 --equivalent --replace", "exclude each other"),
    ("tables export a.parquet --out x.tsv -c sample", "--collection is for --as synonyms and --as expansion"),
    ("tables export a.parquet --out x.tsv --threshold -1", "threshold"),
    ("tables export a.parquet --out x.tsv --threshold nan", "Invalid value for '--threshold'"),
    (f"{SURPRISES} --confirm", "--confirm needs --ranker SPEC and --collection SPEC"),
    (f"{SURPRISES} -r bm25", "--ranker is for --confirm"),
    (f"{SURPRISES} --limit 5", "--limit is for --confirm"),
    (f"{SURPRISES} --out found.csv", "end the name in .json"),
    ("tables surprises a.parquet --pipeline en_core_web_sm", "give them with --collection"),
    # table learners
    ("tables learn em --out table.csv", "a term table is written as"),
    ("tables learn em --out t.tsv --memory much", "is no size"),
    ("tables learn em --out t.tsv -c unjudged", "has no judgements"),
    (f"{LOCAL} --method shap", "unknown value of local-to-global: method"),
    (f"{LOCAL} --target run:bm25", "no scores for changed texts"),
    (f"{LOCAL} --explanations /proc/w.jsonl", "/proc/w.jsonl: cannot be written"),
    (f"{LOCAL} --explanations ./t.tsv", "name one file"),
]
ODD = """
def nans(queries, docs):
    return [float("nan")] * len(docs)

def fails(queries, docs):
    raise ValueError("out\\nof order")
"""
FILES = {
    "unknown.run": "9 Q0 zzz 1 3.0 x\n",
    "other.txt": "other Q0 d001 1 2.0 x\n", "odd.py": ODD,
    "unjudged/corpus.jsonl": '{"id": "d", "text": "some words"}\n', "unjudged/queries.tsv": "q\tthe of\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    for name in ("full", "unjudged"):
        (folder / name).mkdir()
    (folder / "full" / "file").touch()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    toy_table(PLANTED).save(str(folder / "a.parquet"))
    return folder


@pytest.mark.parametrize(("request_", "says"), REQUESTS, ids=[request for request, _ in REQUESTS])
def test_one_clear_line_and_nothing_is_written(whyrank, here, monkeypatch, request_, says):
    monkeypatch.chdir(here)
    before = sorted(here.rglob("*"))
    assert says in one_line(whyrank(*shlex.split(request_)))
    assert [path for path in sorted(here.rglob("*")) if "__pycache__" not in path.parts] == before


def test_judgements_that_point_nowhere(whyrank, folder):
    (folder / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n1 0 gone 1\n")
    code, _, err = whyrank("audit", "matched/length|relevance", "-r", "bm25", "-c", folder)
    assert (code, "gone" in err) == (0, True)
    assert "gone" in one_line(whyrank("audit", "TFC1", "-c", folder, "--strict"))


def test_nothing_to_calibrate_on(whyrank, folder):
    (folder / "qrels.txt").write_text("1 0 a 0\n")
    request = ("audit", "matched/length|tf", "-r", "bm25", "-c", folder)
    said = one_line(whyrank(*request))
    assert "no query has two texts" in said
    assert "whyrank rank" in said
    assert "--delta-from" in one_line(whyrank(*request, "--delta", "0.1", "--sweep"))


def test_damaged_tables(whyrank, here, tmp_path, monkeypatch):
    """A file that was cut, and one of another tool whose numbers point nowhere."""
    monkeypatch.chdir(tmp_path)
    whole = (here / "a.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    for request in (["tables", "show", "cut.parquet"], ["rank", "-r", "bm25t:cut.parquet"]):
        assert "damaged" in one_line(whyrank(*request))
    words = (["heart", "heart", "attack"], ["qcardiac", "heart", "qinfarct"])
    TermTable.from_triples(*words, [0.5, 0.3, 0.6]).save("t.arrow")
    content, numbers = (tmp_path / "t.arrow").read_bytes(), open_table("t.arrow").indices
    damaged = content.replace(numbers.tobytes(), np.full(len(numbers), 1 << 29, np.int32).tobytes())
    assert damaged != content
    (tmp_path / "t.arrow").write_bytes(damaged.replace(b"whyrank-sha256:", b"no-checksum-at-"))
    for request in (["tables", "show", "t.arrow", "heart"], ["explain", "-r", "qlt:t.arrow", "heart", "cardiac"]):
        assert "t.arrow: this is no term table" in one_line(whyrank(*request))
