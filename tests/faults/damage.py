"""Damage one byte of a file, read it, and tell what came of it; run as a process, because damage may end one.

    python tests/faults/damage.py KIND FOLDER SEED TRIALS

makes the files of a kind in a folder, and prints a line of JSON for every trial: what was done, and whether the file
was refused in one line, read as before, or read as something else.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
for each in (TESTS, TESTS / "training", TESTS / "networks", TESTS / "report"):
    sys.path.insert(0, str(each))

from whyrank.core import WhyrankError  # noqa: E402

FOR_PEOPLE = (".csv", ".html", ".svg", ".md", ".tex", ".tsv", ".jsonl")
QUIET = lambda line: None  # noqa: E731


def result(folder: Path):
    from whyrank.data import open_collection
    from whyrank.rankers import Setting, open_ranker
    from whyrank.report import read_findings, read_scores, read_settings, read_texts, run_plan
    from whyrank.scoring import Engine
    from whyrank.studies import Plan
    from whyrank.studies.probes import probes

    sample, study = open_collection("sample"), probes.create("matched/length|tf")
    plan = Plan(sample, {study.id: study}, [open_ranker("bm25", Setting(sample))], Engine())
    [made] = run_plan(plan, {"collection": "toy"}, out=folder / "r").findings
    results = folder / "r"

    def read():
        scores = read_scores(results, made.study, made.ranker)
        stored = read_findings(results), read_settings(results), read_texts(results)
        return repr((stored, scores.to_pydict(), scores.schema.metadata))

    return read


def bias(folder: Path):
    from whyrank.report import Audit, read_bias_results
    from whyrank.report.folder import record_of
    from whyrank.studies.bias import BiasResult

    made = BiasResult("bias/x", "bias/x", "bm25", "toy", 9, 8, 0, {}, 0.5, 1.5, 3, "holm", False, (), (), ())
    Audit([], [made], {"seed": 3}, record=record_of({}, {}, {}, [], [])).save(folder / "r")
    return lambda: repr(read_bias_results(folder / "r"))


def statistics(folder: Path):
    from whyrank.data import open_collection
    from whyrank.rankers.lexical import Background
    from whyrank.text import analyzers

    sample = open_collection("sample")
    Background.of(dict(list(sample.docs.items())[:30]), analyzers.create("lucene")).save(folder / "s.parquet")

    def read():
        found = Background.load(folder / "s.parquet")
        return found.digest, found.n_docs, found.n_tokens, found.analyzer

    return read


def em(folder: Path):
    from whyrank.learners.em import bitext_of, learn_em

    random = np.random.default_rng(0)
    words = [[f"{side}{word}" for word in random.integers(20, size=6)] for _ in range(40) for side in "dq"]
    made = bitext_of([(" ".join(a), " ".join(b)) for a, b in zip(words[::2], words[1::2], strict=True)], "whitespace")
    whole = folder / "state"
    learn_em(made, iterations=2, checkpoint=whole)
    kept = whole.read_bytes()

    def read():
        try:
            found = learn_em(made, iterations=3, checkpoint=whole).table
            return found.digest, repr(sorted(found.facts.items()))
        finally:
            whole.write_bytes(kept)

    return read


def network(folder: Path):
    from pair_models import saved
    from whyrank.networks import load

    saved(folder)
    shutil.rmtree(folder / "start")
    return lambda: state_of(load(folder / "parm"))


def state_of(module) -> str:
    total = hashlib.sha256(repr(sorted(getattr(module, "settings", {}).items())).encode())
    for name, tensor in module.state_dict().items():
        total.update(name.encode() + tensor.numpy().tobytes())
    tokenizer = getattr(module, "tokens", None)
    total.update(repr(tokenizer and tokenizer.ids(["cab dice zebra jig"], 9)).encode())
    return total.hexdigest()


def checkpoint(folder: Path):
    import torch

    from whyrank.training.checkpoints import load_checkpoint, save_checkpoint

    def new():
        torch.manual_seed(0)
        module = torch.nn.Linear(9, 7)
        return module, torch.optim.AdamW(module.parameters())

    module, optimiser = new()
    module(torch.ones(3, 9)).sum().backward()
    optimiser.step()
    save_checkpoint(
        folder / "c.safetensors", module, optimiser, {"step": 3, "losses": [0.5] * 40}, {"x": torch.ones(5)}
    )

    def read():
        module, optimiser = new()
        found = load_checkpoint(folder / "c.safetensors", module, optimiser)
        moments = [state["exp_avg"].tolist() for state in optimiser.state.values()]
        return repr((found.progress, found.kept["x"].tolist(), state_of(module), moments))

    return read


def blocks(folder: Path):
    from pair_models import saved
    from whyrank.learners.parm import PaRM, build_table
    from whyrank.learners.parm.pairs import Blocks

    os.chdir(folder.parent)
    one = folder.parent / "one"
    one.mkdir(exist_ok=True)
    texts = ("cab bad cab dice", "bad fad a", "dice DICE jig")
    (one / "corpus.jsonl").write_text(
        "".join(json.dumps({"id": f"d{i}", "text": t}) + "\n" for i, t in enumerate(texts))
    )
    (one / "queries.tsv").write_text("q1\tjig of cab\n")
    saved(folder.parent)
    parm = PaRM(str(folder.parent / "parm"), analyzer="whitespace", threshold=0.2)
    real, folder_of = Blocks.entries, folder.parent / "t.arrow.blocks"

    def stopped(self):
        raise KeyboardInterrupt

    Blocks.entries = stopped
    try:
        build_table(parm, [str(one)], folder.parent / "t.arrow", audit=["cab"], say=QUIET)
    except KeyboardInterrupt:
        shutil.copytree(folder_of, folder, dirs_exist_ok=True)
    finally:
        Blocks.entries = real

    def read():
        shutil.rmtree(folder_of, ignore_errors=True)
        shutil.copytree(folder, folder_of)
        made = build_table(parm, [str(one)], folder.parent / "t.arrow", audit=["cab"], say=QUIET)
        facts = [
            {name: fact for name, fact in each.facts.items() if name != "scored"} for each in made
        ]  # when, how fast
        return repr([(each.digest, sorted(known.items(), key=str)) for each, known in zip(made, facts, strict=True)])

    return read


def vectors(folder: Path):
    from whyrank.text.vectors import Vectors
    from whyrank.text.vectors.files import read_matrix, write_matrix

    matrix = np.random.default_rng(0).random((20, 5), np.float32)
    write_matrix(folder / "v.npy", Vectors("v", [f"word{i}" for i in range(20)], matrix))

    def read():
        found = read_matrix(folder / "v.npy")
        return list(found.words), found.matrix.tolist()

    return read


def documents(folder: Path):
    from whyrank.data.documents import read_corpus

    corpus = folder.parent / "corpus.jsonl"
    rows = ({"id": f"d{i}", "title": f"T{i % 3}" if i % 2 else "", "text": f"text {i} " * 5} for i in range(40))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.environ["WHYRANK_CACHE"] = str(folder)

    def read():
        found = read_corpus(corpus, limit=1)
        texts = [found.docs[f"d{i}"] for i in range(40)]
        return repr((list(found.docs.items()), texts, list(found.titles.items())))

    read()
    return read


def weights(folder: Path):
    from whyrank.rankers import write_weights
    from whyrank.rankers.fuse import read_weights

    write_weights(str(folder / "w.json"), ["bm25", "ql"], "minmax", [0.25, 0.75], {"seed": 1})
    return lambda: read_weights(str(folder / "w.json"), ["bm25", "ql"], "minmax")


KINDS = {
    "result": result, "bias": bias, "statistics": statistics, "em": em, "network": network,
    "checkpoint": checkpoint, "blocks": blocks, "vectors": vectors, "documents": documents, "weights": weights,
}  # fmt: skip


def damaged(content: bytes, random: np.random.Generator) -> tuple[bytes, str]:
    """A bit flipped, or, one time in five, the end cut off."""
    position = int(random.integers(len(content)))
    if random.random() < 0.2:
        return content[:position], f"cut at {position}"
    bit = int(random.integers(8))
    return content[:position] + bytes([content[position] ^ 1 << bit]) + content[
        position + 1 :
    ], f"bit {bit} of byte {position}"


def outcome(read, expected) -> str:
    try:
        found = read()
    except WhyrankError as error:
        return "refused" if "\n" not in str(error) else f"several lines: {error!r}"
    except BaseException as error:  # what is looked for
        return f"traceback: {type(error).__name__}: {error}"
    return "same" if found == expected else "different"


def main(kind: str, folder: Path, seed: int, trials: int) -> None:
    folder = folder / "files"
    folder.mkdir(parents=True)
    read = KINDS[kind](folder)
    expected, random = read(), np.random.default_rng(seed)
    whole = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    whole = {file: content for file, content in whole.items() if content and file.suffix not in FOR_PEOPLE}
    files = sorted(whole)
    for number in range(trials):
        file = files[number % len(files)]
        content, done = damaged(whole[file], random)
        print(json.dumps({"file": str(file.relative_to(folder)), "done": done}), flush=True)
        file.write_bytes(content)
        print(json.dumps({"came": outcome(read, expected)}), flush=True)
        for each, before in whole.items():
            each.parent.mkdir(parents=True, exist_ok=True)
            each.write_bytes(before)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
