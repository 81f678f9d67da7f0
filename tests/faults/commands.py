"""Long commands on tiny input, killed, run side by side or on a full disk, then run to their end: the same result.

    python tests/faults/commands.py FAULT FOLDER SEED TRIALS [COMMAND ...]

prints a line of JSON per trial. FAULT is kill, together or full. A command runs in a fork of this process, which has
imported what the first run needed, so that faults fall into its work and not into imports.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

RECIPE = """
architecture: ARCHITECTURE
encoder: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
          max_position_embeddings: 64}
tokenizer: collection(size=300)
settings: {max_query: 8, max_doc: 24}
"""
PARM = """data: {analyzer: whitespace, candidates: [2, 1, 1]}
phases:
  preset: target
  first: {held_out: 0.1, schedule: {epochs: 1, batch: 4, max_steps: 9, threads: 1}}
  second: {schedule: {epochs: 1, batch: 4, max_steps: 9, threads: 1}}
"""
CROSS = """loss: margin
data: {collection: toy}
schedule: {epochs: 3, batch: 4, threads: 1, checkpoint_every: 2}
"""
RANKER = """
import time

def longer(queries, docs):
    time.sleep(0.004 * len(docs))
    return [len(set(doc) & set(query)) + len(doc) / 1000 for query, doc in zip(queries, docs)]
"""
MINE = "python:mine.py:longer(batch_size=16)"


class Command(NamedTuple):
    """What is typed, and how what it wrote is read."""

    arguments: str
    read: Callable[[Path], object]


def result(folder: Path) -> object:
    import pyarrow.parquet as pq

    from whyrank.report import read_findings, read_texts

    tables = [(file.name, pq.read_table(file).to_pydict()) for file in sorted((folder / "out/scores").iterdir())]
    findings = [replace(each, seconds=0) for each in read_findings(folder / "out")]
    return repr((findings, tables, read_texts(folder / "out")))


def file(name: str = "out") -> Callable[[Path], object]:
    return lambda folder: (folder / name).read_bytes()


def table(folder: Path) -> object:
    from whyrank.tables import open_table

    return open_table(folder / "t.arrow").digest


def network(folder: Path) -> object:
    from whyrank.networks import digest

    return digest(folder / "out")


COMMANDS = {
    "audit": Command(f"audit matched/length|* edited/repeat-* -c toy -r {MINE} --out out --store s", result),
    "probes": Command(f"audit matched/length|tf matched/tf|length -c toy -r {MINE} --out out --store s", result),
    "axioms": Command(f"audit axiom/TFC1 axiom/LNC1 -c toy -r {MINE} --out out --store s", result),
    "bias": Command(f"audit bias/when-year --limit 3 -r {MINE} --delta none --out out --store s", file("out/bias/values.csv")),
    "rank": Command(f"rank -c toy -r {MINE} --candidates bm25 --out out --store s", file()),
    "evaluate": Command("evaluate -c toy --run bm25 --out out.csv", file("out.csv")),
    "tune": Command("tune -c toy -r bm25 --grid k1=0.6,0.9 --grid b=0.2,0.4 --out out", file()),
    "train": Command("train cross.yaml --out out --device cpu", network),
    "em": Command("tables learn em -c toy --iterations 40 --checkpoint c --out t.arrow", table),
    "neural": Command("tables learn neural --network nm1 --threshold 0.01 --out t.arrow", table),
    "parm": Command(
        f"tables learn parm -c toy --recipe parm.yaml --target {MINE} --network out --out t.arrow --query-terms 5"
        " --doc-terms 20 --device cpu --store s", network,
    ),
    "local-to-global": Command(
        f"tables learn local-to-global -c toy --target {MINE} --depth 10 --explained 2 --samples 9 --out t.arrow --store s",
        table,
    ),
    "build": Command(
        "tables learn parm --network parm --out t.arrow -c toy --query-terms 60 --doc-terms 200 --device cpu", table
    ),
    "fidelity": Command(f"fidelity -c toy -t {MINE} -s bm25 --candidates bm25 --out out.json --store s", file("out.json")),
}  # fmt: skip


def make_inputs(folder: Path) -> None:
    """A slice of the sample, recipes, a ranker that takes its time and a network."""
    import torch

    import whyrank.data
    from pair_models import saved
    from whyrank.networks import ModelTokenizer, NeuralModel1Network, save

    torch.set_num_threads(1)
    sample, toy = Path(str(whyrank.data.__file__)).parent / "sample", folder / "toy"
    (toy / "runs").mkdir(parents=True)
    queries = (sample / "queries.tsv").read_text().splitlines()[:6]
    kept = {line.split("\t")[0] for line in queries}
    qrels = [line for line in (sample / "qrels.txt").read_text().splitlines() if line.split()[0] in kept]
    docs = {line.split()[2] for line in qrels}
    run = [line for line in (sample / "runs/bm25.txt").read_text().splitlines() if line.split()[0] in kept]
    corpus = (sample / "corpus.jsonl").read_text().splitlines()
    found = {json.loads(line).get("id") or json.loads(line)["_id"]: line for line in corpus}
    (toy / "queries.tsv").write_text("\n".join(queries) + "\n")
    (toy / "qrels.txt").write_text("\n".join(qrels) + "\n")
    (toy / "corpus.jsonl").write_text("\n".join(found[doc] for doc in sorted(docs & found.keys())) + "\n")
    (toy / "runs/bm25.txt").write_text("\n".join(line for line in run if line.split()[2] in docs) + "\n")
    (folder / "mine.py").write_text(RANKER)
    (folder / "cross.yaml").write_text(RECIPE.replace("ARCHITECTURE", "cross") + CROSS)
    (folder / "parm.yaml").write_text(RECIPE.replace("ARCHITECTURE", "parm") + PARM)
    save(
        NeuralModel1Network.over_tokenizer(ModelTokenizer(saved(folder)), dims=8, widths=(8, 8, 4), max_doc=30),
        folder / "nm1",
    )


def start(arguments: str, folder: Path, most: int | None = None) -> int:
    """Run a command in a fork, in a process group of its own; gives its id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    os.chdir(folder)
    os.environ |= {"WHYRANK_CACHE": str(folder / "cache")}
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if most is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    sys.argv = ["whyrank", *arguments.split()]
    code = 1
    try:
        from whyrank.cli.main import main

        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if most is None:
            (folder / "modules.txt").write_text(" ".join(sys.modules))
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a fork; gives its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(child: int, seconds: float) -> bool:
    """Kill a fork and whatever it started after some time; whether it had not ended before."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    ended(child)
    return True


def said(folder: Path) -> str:
    return (folder / "log.txt").read_text(errors="replace")[-1500:]


def kill(command: Command, folder: Path, dice: random.Random, duration: float) -> dict[str, object]:
    """Kill it one to three times."""
    moments = [dice.uniform(0, duration) for _ in range(dice.choice((1, 1, 2, 3)))]
    return {"kills": sum(killed(start(command.arguments, folder), seconds) for seconds in moments), "at": moments}


def together(command: Command, folder: Path, dice: random.Random, duration: float) -> dict[str, object]:
    """Start it twice at once; one succeeds, the other does too or is refused."""
    first = start(command.arguments, folder)
    time.sleep(dice.uniform(0, duration / 2))
    codes = [ended(start(command.arguments, folder)), ended(first)]
    return {"codes": codes, "wrong": said(folder) if sorted(codes) not in ([0, 0], [0, 2]) else ""}


def full(command: Command, folder: Path, dice: random.Random, duration: float) -> dict[str, object]:
    """Let no file grow beyond a size that is drawn: it succeeds or says what it cannot write."""
    most = int(2 ** dice.uniform(8, 18))
    store = dice.choice(("--store s", "--store none"))  # without one, it comes as far as the output
    code = ended(start(command.arguments.replace("--store s", store), folder, most))
    return {"size": most, "code": code, "wrong": said(folder) if code not in (0, 2) else ""}


FAULTS = {"kill": kill, "together": together, "full": full}


def trial(
    name: str, fault: str, folder: Path, dice: random.Random, duration: float, expected: object
) -> dict[str, object]:
    command = COMMANDS[name]
    found = FAULTS[fault](command, folder, dice, duration)
    code = ended(start(command.arguments, folder))
    if code:
        return {**found, "equal": False, "wrong": f"exit code {code}: {said(folder)}"}
    if "Traceback" in (folder / "log.txt").read_text(errors="replace"):
        return {**found, "equal": False, "wrong": said(folder)}
    left = [each.name for each in folder.rglob(".*") if each.suffix in (".tmp", ".old")]
    equal = command.read(folder) == expected
    return {**found, "equal": equal and not left, "left": left}


def main(fault: str, root: Path, seed: int, trials: int, names: list[str]) -> None:
    inputs = root / "inputs"
    make_inputs(inputs)
    for name in names or COMMANDS:
        for warm in range(2):
            shutil.copytree(inputs, root / name / f"whole{warm}")
            began = time.monotonic()
            code = ended(start(COMMANDS[name].arguments, root / name / f"whole{warm}"))
            duration = time.monotonic() - began
            assert code == 0, (name, code, said(root / name / f"whole{warm}"))
            for module in (root / name / f"whole{warm}" / "modules.txt").read_text().split():
                with suppress(Exception):  # some are no files, as those that `six` makes
                    import_module(module)
        expected = [COMMANDS[name].read(root / name / f"whole{warm}") for warm in range(2)]
        assert expected[0] == expected[1], name
        for number in range(trials):
            folder = root / name / f"{fault}{number}"
            shutil.copytree(inputs, folder)
            found = trial(name, fault, folder, random.Random(f"{seed} {name} {number}"), duration, expected[0])
            print(json.dumps({"command": name, "fault": fault, "duration": round(duration, 2), **found}), flush=True)
            shutil.rmtree(folder) if found["equal"] else None


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
