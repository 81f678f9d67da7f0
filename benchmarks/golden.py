"""What the program answers, recorded once and compared later: the net under a restructuring that keeps behaviour.

    python benchmarks/golden.py record  [--src PATH] [--spelling 0.1|0.2] [GLOB...]
    python benchmarks/golden.py compare [--src PATH] [--spelling 0.1|0.2] [GLOB...]

Each request is one or more command lines, run in an empty folder with the source tree `--src` (by default the one beside
this script). Its answers (JSON on standard output, and the files that it names) are normalised to plain JSON and kept as
one file per request in `--golden` (`.golden/`). `compare` prints one line per request and exits with 1 where one differs
or fails. Rows such as findings are matched by what they are about (study, ranker, group), never by their order. Nothing
is answered from stored scores; annotations are kept per source tree in `.golden/cache`, so spaCy reads each text once.
Requests on TREC DL 2019 are skipped where WHYRANK_DATA does not name a folder of collections.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import math
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]

# Floats may differ by this, relative to numbers above 1; integers, strings and fingerprints are equal under every kind.
TOLERANCE = {"exact": 0.0, "lexical": 1e-9, "neural": 1e-5, "training": 1e-3}
# "mixed" is neural for rows about this ranker, and lexical for the rest.
NEURAL = "cross"

IGNORED = {
    "seconds": "time",
    "created": "time",
    "torch": "version",
    "version": "version",
    "device": "machine",
    "checksum": "of weights that training may change within its tolerance; losses are compared",
    "digest": "the same of tables; their entries are compared",
    "identity": "hash of a recipe, keys without effect included",
    "recipe": "what was asked, not an answer",
    "meaning": "wording",
    "null": "wording",
    "source": "wording",
    "notes": "wording",
    "unjudged": "wording",
    "settings": "what was asked, not an answer",
    "top": "a setting of learners, some of which have another name for it in 0.2: table_terms, explained",
    "table_terms": "see top",
    "explained": "see top",
}
NEW = {
    "available": "joins the findings in 0.2",
    "difference": "joins the findings in 0.2, as do its interval and its p-value",
    "difference_low": "see difference",
    "difference_high": "see difference",
    "difference_p": "see difference",
}
# What a row is about: the first of these that all rows of a list have, and that tells them apart.
KEYS = (
    ("study", "ranker", "group"), ("study", "ranker"), ("collection", "target", "surrogate", "measure"),
    ("run", "measure", "queries", "group"), ("run", "measure"), ("kind", "group", "query_term", "value"),
    ("first", "second", "given"), ("first", "second"), ("value",), ("query_id", "doc_a", "doc_b"), ("query_id", "doc_id"),
    ("query_id", "doc_ids"), ("query_term", "document_term"), ("query_id",), ("term",), ("ranker",), ("part",), ("phase",),
)  # fmt: skip


class Request(NamedTuple):
    """A question to the program: command lines, in the spelling of 0.1 and of 0.2 (None: the same), one per line."""

    name: str
    kind: str
    old: str
    new: str | None = None
    files: str = ""  # written by the commands, and part of the answer


DL19 = "-c $WHYRANK_DATA/msmarco_dl19 -r bm25 -r ql --store none --json"
BOTH = "-r bm25 -r ql --store none --json"
SMALL = "--threshold 0.05 --seed 4"
PARM = "tables learn parm --target bm25 --network parm --seed 5 --device cpu --store none"
PAIRS = "--query-terms 30 --doc-terms 150 --threshold 0.01 --device cpu"
NEURAL1 = (
    "--recipe neural-model1 --set data.collection=sample --set schedule.max_steps=12 -c sample --top 3 --device cpu"
)

REQUESTS = [
    Request("list", "exact", "list --json"),
    Request("parameters", "exact", "PARAMETERS"),
    Request("audit-sample", "mixed", "audit --json --store none"),
    Request("audit-by-group", "lexical", f"audit 'matched/*' {BOTH} --by relevance_group"),
    Request("audit-options", "lexical", f"audit 'matched/*' 'axiom/TFC*' 'axiom/PROX*' {BOTH} --analyzer krovetz --pairs top:10 --tolerance 5 --limit 40 --seed 3 --delta p75 --correction bh"),
    Request("audit-processes", "lexical", f"audit 'matched/length*' 'axiom/LNC*' {BOTH} --executor processes"),
    Request("dl19-matched", "lexical", f"probe 'matched/*' {DL19}", f"audit 'matched/*' {DL19}"),
    Request("dl19-matched-compat", "lexical", f"probe 'matched/*' --compat abnirml {DL19}", f"audit 'matched/*' --compat abnirml {DL19}"),
    Request("dl19-edited", "lexical", f"probe 'edited/*' {DL19}", f"audit 'edited/*' {DL19}"),
    Request("dl19-edited-compat", "lexical", f"probe 'edited/*' --compat abnirml {DL19}", f"audit 'edited/*' --compat abnirml {DL19}"),
    Request("dl19-axioms", "lexical", f"axioms {DL19}", f"audit 'axiom/*' {DL19}"),
    Request("dl19-axioms-compat", "lexical", f"axioms --compat camara-hauff {DL19}", f"audit 'axiom/*' --compat camara-hauff {DL19}"),
    Request("bias-bm25", "lexical", "audit 'bias/*' -r bm25 --store none --json -o out", files="out/bias/bias.json"),
    Request("bias-compat", "lexical", "audit 'bias/*' -r bm25 --compat relevance-thesaurus --store none --json -o out", files="out/bias/bias.json"),
    Request("bias-cross", "neural", "audit 'bias/*' -r cross:bundled --limit 8 --store none --json -o out", files="out/bias/bias.json"),
    Request("bias-table", "lexical", f"tables learn em -o em.parquet {SMALL}\naudit bias/car-brand bias/country -r bm25t:em.parquet --table em.parquet --store none --json -o out", files="out/bias/bias.json"),
    Request("contrasts-matched", "lexical", "contrasts 'matched/length|tf' -r bm25 --store none -o c.jsonl", files="c.jsonl"),
    Request("contrasts-edited", "exact", "contrasts edited/typos --limit 60 -o c.parquet\ncontrasts edited/shuffle-words --limit 60 --seed 2 -o d.parquet", files="c.parquet d.parquet"),
    Request("contrasts-axiom", "exact", "contrasts TFC1 -o c.parquet\ncontrasts 'TFC1 & M-AND' -o d.parquet", files="c.parquet d.parquet"),
    Request("contrasts-transferred", "exact", "contrasts transferred/formality -o c.parquet", files="c.parquet"),
    Request("preferences", "exact", "preferences 'TFC*' 'PROX*' -o p.parquet", "contrasts 'axiom/TFC*' 'axiom/PROX*' -o p.parquet", "p.parquet"),
    Request("preferences-features", "lexical", "preferences 'TFC*' --features -o p.parquet", "contrasts 'axiom/TFC*' --features -o p.parquet", "p.parquet"),
    Request("delta", "lexical", "delta -r bm25 -r ql --json --store none"),
    Request("rank", "lexical", "rank -r bm25 --depth 20 -o a.txt\nrank -r ql --candidates bm25 --store none -o b.txt\nrank -r \"fuse(of=['bm25','ql'],weights=[0.3,0.7])\" --candidates bm25 --store none -o c.txt", files="a.txt b.txt c.txt"),
    Request("rank-cross", "neural", "rank -r bm25 --depth 10 -o a.txt\nrank -r cross:bundled --candidates a.txt --store none -o b.txt", files="b.txt"),
    Request("rank-axiom", "lexical", "rank --axiom 'TFC1 & M-AND' --candidates bm25 --depth 20 -o a.txt\nrank --axiom 'PROX1 | -DIV' --method tournament --candidates bm25 -o b.txt", "rank --axiom 'TFC1 & M-AND' --candidates bm25 --depth 20 -o a.txt\nrank --axiom 'PROX1 | -DIV' --aggregation tournament --candidates bm25 -o b.txt", files="a.txt b.txt"),
    Request("rank-table", "lexical", f"tables learn em -o em.parquet {SMALL}\n" + "\n".join(f"rank -r {name}:em.parquet --candidates bm25 --store none -o {name}.txt" for name in ("bm25t", "qlt", "model1")), files="bm25t.txt qlt.txt model1.txt"),
    Request("evaluate", "lexical", "rank -r ql -o ql.txt\nevaluate --json --run bm25 --run ql.txt --baseline bm25\nevaluate --json --by overlap", "rank -r ql -o ql.txt\nevaluate --json --run bm25 --run ql.txt --baseline bm25\nevaluate --json --overlap"),
    Request("tune", "lexical", "tune -r bm25 --json --dev-share 0.5"),
    Request("tune-fuse", "lexical", "tune -r \"fuse(of=['bm25','ql'])\" --json"),
    Request("fidelity", "mixed", "fidelity -t cross:bundled -s bm25 -s ql --depth 10 --store none --json"),
    Request("stats", "exact", "stats -o s.parquet\nstats --analyzer krovetz -o k.parquet", "data stats -o s.parquet\ndata stats --analyzer krovetz -o k.parquet", "s.parquet k.parquet"),
    Request("split", "exact", "split sample -o parts --seed 1 --json", "data split sample -o parts --seed 1 --json", "parts/queries.dev.tsv parts/queries.test.tsv"),
    Request("tables-em", "lexical", f"tables learn em -o em.parquet --held-out 0.1 {SMALL}", files="em.parquet"),
    Request("tables-em-options", "lexical", "tables learn em -o em.parquet --iterations 3 --ratio 3 --no-symmetrise --sample 0.5 --no-null --threshold 0.1 --analyzer krovetz --seed 7", files="em.parquet"),
    Request("tables-local", "lexical", "tables learn local-to-global --target ql --depth 20 --method bm25 --pool 20 --store none -o l.parquet --explanations l.jsonl", files="l.parquet l.jsonl"),
    Request("tables-local-cross", "neural", "tables learn local-to-global --target cross:bundled --depth 10 --top 3 --queries 4 --store none -o l.parquet\ntables learn local-to-global --target cross:bundled --method lime --samples 20 --depth 10 --top 3 --queries 4 --store none -o m.parquet", "tables learn local-to-global --target cross:bundled --depth 10 --explained 3 --query-sample 4 --store none -o l.parquet\ntables learn local-to-global --target cross:bundled --method lime --samples 20 --depth 10 --explained 3 --query-sample 4 --store none -o m.parquet", files="l.parquet m.parquet"),
    Request("tables-neural", "training", f"tables learn neural --network n -o n.parquet {NEURAL1}", files="n/log.json n.parquet"),
    Request("tables-parm", "training", f"{PARM}\ntables build parm -o p.parquet -c sample {PAIRS}", f"{PARM} -o p.parquet -c sample {PAIRS}", "parm/log.json p.parquet"),
    Request("tables-views", "lexical", f"tables learn em -o a.parquet {SMALL}\ntables learn em -o b.parquet --iterations 2 {SMALL}\ntables show a.parquet --json\ntables show a.parquet world when --json\ntables diff a.parquet b.parquet --json -o d.json\ntables export a.parquet --format synonyms --top 3 -o s.txt\ntables export a.parquet --format expansion --top 3 -o e.txt", f"tables learn em -o a.parquet {SMALL}\ntables learn em -o b.parquet --iterations 2 {SMALL}\ntables show a.parquet --json\ntables show a.parquet world when --json\ntables diff a.parquet b.parquet --json -o d.json\ntables export a.parquet --as synonyms --top 3 -c sample -o s.txt\ntables export a.parquet --as expansion --top 3 -c sample -o e.txt", files="d.json s.txt e.txt"),
    Request("tables-surprises", "lexical", "tables learn em -o a.parquet --seed 4\ntables surprises a.parquet --pipeline none --json -o s.json\ntables surprises a.parquet --pipeline none -c sample -r bm25 --run --top 2 --limit 8 --store none --json", "tables learn em -o a.parquet --seed 4\ntables surprises a.parquet --pipeline none --json -o s.json\ntables surprises a.parquet --pipeline none -c sample -r bm25 --confirm --show 2 --limit 8 --store none --json", files="s.json"),
    Request("train", "training", "train smoke --out net --device cpu --set schedule.epochs=8", files="net/log.json"),
]  # fmt: skip

LAUNCH = """
import importlib, sys, whyrank
assert whyrank.__file__.startswith(sys.argv[2] + "/"), f"{whyrank.__file__} is not in {sys.argv[2]}"
module, function = sys.argv[1].split(":")
sys.argv = ["whyrank", *sys.argv[3:]]
getattr(importlib.import_module(module), function)()
"""
# All registries wherever they are: what can be made, with the parameters and the defaults that are plain values.
PARAMETERS = """
import contextlib, importlib, inspect, json, pkgutil, sys, whyrank
for module in pkgutil.walk_packages(whyrank.__path__, "whyrank."):
    if not module.name.endswith("__main__"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)
def plain(value):
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__
def parameters(factory, name):
    if not hasattr(factory, "make"):
        return {p.name: plain(p.default) for p in inspect.signature(factory).parameters.values()}
    declared = getattr(factory, "arguments", ())  # of a family of studies, whose members have the values
    member = factory.make(name)
    return {key: plain(getattr(member, key, None)) for key in (declared(name) if callable(declared) else declared)}
found = {}
for module in [m for name, m in sys.modules.items() if name.startswith("whyrank")]:
    for registry in vars(module).values():
        if any(base.__name__ == "Registry" for base in type(registry).__mro__):
            kind = "studies" if registry.kind in ("probes", "axioms", "bias_studies") else registry.kind
            for name in registry.names():
                found.setdefault(kind, {})[name] = parameters(registry.factory(name), name)
print(json.dumps(found))
"""


def answers_of(request: Request, source: Path, spelling: str, cache: Path) -> Any:
    """Run the command lines of a request in an empty folder; what they answer, as plain JSON."""
    project = source.parent / "pyproject.toml"
    scripts = tomllib.loads(project.read_text())["project"]["scripts"] if project.exists() else {}
    launch = ["-c", LAUNCH, scripts.get("whyrank", "whyrank.cli.main:main"), str(source)]
    environment = os.environ | {"PYTHONPATH": str(source), "WHYRANK_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        lines = (request.new if spelling == "0.2" and request.new else request.old).splitlines()
        for number, line in enumerate(lines, 1):
            words = [os.path.expandvars(word) for word in shlex.split(line)]
            asked = ["-c", PARAMETERS] if words == ["PARAMETERS"] else [*launch, *words]
            done = subprocess.run(
                [sys.executable, *asked], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise RuntimeError(f"exit code {done.returncode} of {line[:60]!r}: {last}")
            if done.stdout:
                answers[f"stdout {number}"] = json.loads(done.stdout)
        for name in request.files.split():
            answers[name] = read(Path(folder) / name)
    if request.name == "list":  # one line each is wording; kinds of studies may join
        return {"names": sorted(name for kind in answers["stdout 1"].values() for name in kind)}
    return answers if request.name == "parameters" else normalised(answers)


def read(path: Path) -> Any:
    """The contents of a file that a command wrote."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        told = {key.decode(): value for key, value in (table.schema.metadata or {}).items() if b"vocab" not in key}
        facts = {key: json.loads(value) for key, value in told.items() if key.startswith("whyrank.")}
        return {"rows": table.to_pylist(), "facts": facts}
    text = path.read_text()
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    fields = [line.split() for line in text.splitlines()]
    if all(len(row) == 6 and row[1] == "Q0" for row in fields):  # a run
        return {f"{row[0]} | {row[2]}": [int(row[3]), float(row[4])] for row in fields}
    return text.splitlines()


def normalised(value: Any) -> Any:
    """Without ignored keys; lists of rows become mappings from what a row is about."""
    if isinstance(value, dict):
        return {key: normalised(each) for key, each in value.items() if key not in IGNORED}
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return [normalised(each) for each in value] if isinstance(value, list) else value
    rows = [normalised(each) for each in value]
    for key in KEYS:
        if all(field in row for row in rows for field in key):
            named = {" | ".join(str(row[field]) for field in key): row for row in rows}
            if len(named) == len(rows):
                return named
    return rows


def differences(old: Any, new: Any, kind: str, path: str = "") -> Iterator[str]:
    """Where two normalised answers differ, each with its path of keys."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            where = f"{path} / {key}" if path else key
            if key not in new:
                yield f"{where}: gone"
            elif key in old:
                yield from differences(old[key], new[key], kind, where)
            elif key not in NEW:
                yield f"{where}: new"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} elements, now {len(new)}"
        for number, (a, b) in enumerate(zip(old, new, strict=False)):
            yield from differences(a, b, kind, f"{path}[{number}]")
    elif isinstance(old, float) and isinstance(new, float | int) and not isinstance(new, bool):
        limit = TOLERANCE[("neural" if NEURAL in path else "lexical") if kind == "mixed" else kind]
        same = old == new or (math.isnan(old) and math.isnan(new))
        if not same and not abs(old - new) <= limit * max(1.0, abs(old)):
            yield f"{path}: {old!r}, now {new!r}"
    elif type(old) is not type(new) or old != new:
        a, b = str(old), str(new)
        parting = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
        start = max(0, parting - 20)  # long texts are shown where they part
        yield f"{path}: {a[start : start + 60]!r}, now {b[start : start + 60]!r}"


def verdict(request: Request, answers: Any, kept: Path) -> str:
    """`same`, or how many answers differ from the recorded ones and the first of them."""
    if not kept.exists():
        return "failed: not recorded"
    found = list(differences(json.loads(kept.read_text()), answers, request.kind))
    if not found:
        return "same"
    return "\n    ".join([f"differs in {len(found)}:", *found[:5]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["record", "compare"])
    parser.add_argument("globs", nargs="*", default=["*"], metavar="GLOB", help="names of requests; all when none")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the source tree that is asked")
    parser.add_argument("--golden", type=Path, default=ROOT / ".golden", help="the folder of recorded answers")
    parser.add_argument("--spelling", choices=["0.1", "0.2"], default="0.2", help="of the command lines")
    parser.add_argument(
        "--cache", type=Path, help="annotations and word vectors; by default a folder per source tree"
    )
    given = parser.parse_intermixed_args()
    source = given.src.resolve()
    own = ROOT / ".golden" / "cache" / hashlib.sha256(str(source).encode()).hexdigest()[:12]
    cache = (given.cache or own).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    given.golden.mkdir(parents=True, exist_ok=True)
    bad = 0
    for request in REQUESTS:
        if not any(fnmatch.fnmatch(request.name, glob) for glob in given.globs):
            continue
        if "$WHYRANK_DATA" in request.old and not os.environ.get("WHYRANK_DATA"):
            print(f"{request.name}: skipped, WHYRANK_DATA is not set")
            continue
        began, spent = time.monotonic(), cpu_seconds()
        kept = given.golden / f"{request.name}.json"
        try:
            answers = answers_of(request, source, given.spelling, cache)
            if given.task == "record":
                kept.write_text(json.dumps(answers, indent=0) + "\n")
            said = "recorded" if given.task == "record" else verdict(request, answers, kept)
        except (RuntimeError, OSError, ValueError) as error:
            said = f"failed: {error}"
        bad += said not in ("recorded", "same")
        print(
            f"{request.name} ({time.monotonic() - began:.0f} s, {cpu_seconds() - spent:.0f} s of CPU): {said}",
            flush=True,
        )
    return min(bad, 1)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
