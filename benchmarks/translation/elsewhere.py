"""Trains and scores what `prepare.py` wrote: torch, transformers and numpy are enough.

    PYTHONPATH=src python benchmarks/translation/elsewhere.py FOLDER OUT [--at-once 10] [--seconds 420]

Each network (a recipe and a seed) is trained by `whyrank.training` and then scores its pairs, in one of some workers
that share texts and pieces. What matters most comes first, so that a run that is cut has whole seeds of it. OUT gets
`scores-N.npz` (float32, an array `RECIPE.SEED` aligned with the pairs, not a number where a network was not asked, up to
15 MiB a file), the networks of neural Model 1 in eight bits (`tables-N.tar`), all logs (`logs.tar.gz`), and
`finished.txt` with the names of the arrays. Started again, it goes on with what is missing: in the folder `--work`,
or, on another machine, in the lists that `--before` names.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import json
import lzma
import os
import shutil
import signal
import sys
import tarfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from budgets import HALF, Pairs, scored
from safetensors.torch import load_file, save_file
from workers import Crew

from whyrank.networks import Pieces, load, restored, save
from whyrank.training import Prepared, Sources, load_prepared, recipe_of, summary
from whyrank.training.running import train

CONTEXT_FREE = "neural-model1"
TIERS = (
    {CONTEXT_FREE, "vanilla-short", "bert-model1-short"},
    {"vanilla-full", "bert-model1-full"},
    {"cedr-knrm", "cedr-drmm", "cedr-pacrr"},
)  # recipes in order of what matters most
PARTS = {CONTEXT_FREE: ("test", "fusion")}  # which pairs a network is asked; all others the test part alone
MOST = 15 << 20  # bytes of one file
PIECES = 600  # of a text, the most that any network reads


class Job(NamedTuple):
    """A network to train and to ask."""

    recipe: str
    seed: int

    @property
    def key(self) -> str:
        return f"{self.recipe}.{self.seed}"


@dataclass(frozen=True, eq=False)
class Task:
    """All that the workers share."""

    recipes: dict[str, Prepared]
    pairs: Pairs
    parts: np.ndarray  # the part of each pair
    work: Path
    device: str
    share: float  # of a GPU's memory, for one worker

    def do(self, job: Job) -> str:
        """Train a network and ask it; says how that went."""
        with open(self.work / "logs" / f"{job.key}.txt", "a", encoding="utf-8") as log:
            try:
                return self._done(job, partial(print, file=log, flush=True))
            except Exception:
                traceback.print_exc(file=log)
                raise

    def _done(self, job: Job, say) -> str:
        self._begin()
        place, start = self.work / "networks" / job.key, time.perf_counter()
        history = train(self.recipes[job.recipe], place, seed=job.seed, device=self.device, say=say)
        between = time.perf_counter()
        network = load(place).to(self.device)
        self._ask(job, network)
        if job.recipe == CONTEXT_FREE:
            save(network.cpu(), self.work / "small" / job.key, bits=8)
        shutil.copyfile(place / "log.json", self.work / "logs" / f"{job.key}.json")
        told = (
            f"{summary(history)}; with start {between - start:.1f} s, scoring {time.perf_counter() - between:.1f} s"
        )
        say(told)
        return told + self._memory()

    def _begin(self) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not survive a fork
        torch.set_num_threads(1)
        if self.device.startswith("cuda"):
            torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for each shape, and batches have many
            torch.cuda.set_per_process_memory_fraction(self.share)
            torch.cuda.reset_peak_memory_stats()

    def _ask(self, job: Job, network) -> None:
        rows = np.flatnonzero(np.isin(self.parts, PARTS.get(job.recipe, ("test",))))
        asked = self.pairs._replace(query=self.pairs.query[rows], doc=self.pairs.doc[rows])
        found = np.full(len(self.parts), np.nan, np.float32)
        found[rows] = scored(network, asked, self.device, HALF if self.device.startswith("cuda") else None)
        with open(self.work / "beside" / f"{job.key}.npy", "wb") as file:
            np.save(file, found)
        os.replace(self.work / "beside" / f"{job.key}.npy", self.work / "scores" / f"{job.key}.npy")

    def _memory(self) -> str:
        used = torch.cuda.max_memory_reserved() / 2**30 if self.device.startswith("cuda") else 0.0
        return f", {used:.1f} GiB" if used else ""

    def leave(self) -> None:
        """Let the GPU finish, then go."""
        if self.device.startswith("cuda") and torch.cuda.is_initialized():
            torch.cuda.synchronize()


def loaded(folder: Path, work: Path, device: str, share: float) -> Task:
    """Everything that the workers need, imported, read and cut into pieces once."""
    import transformers.models.bert.modeling_bert  # noqa: F401 - takes seconds, which each worker would spend again

    base, recipes = unpack(folder, work)
    with lzma.open(folder / "pairs.json.xz", "rt", encoding="utf-8") as file:
        content = json.load(file)
    sizes = [len(row["texts"]) for row in content["rows"]]
    pairs = Pairs(
        [row["query"] for row in content["rows"]],
        content["texts"],
        np.repeat(np.arange(len(sizes)), sizes),
        np.concatenate([row["texts"] for row in content["rows"]]),
    )
    texts = [*base.data.queries, *base.data.docs, *pairs.queries, *pairs.texts]
    judged = base.validation
    remember(work / "encoder", texts + ([*judged.queries, *judged.docs] if judged else []))
    return Task(recipes, pairs, np.repeat([row["part"] for row in content["rows"]], sizes), work, device, share)


def unpack(folder: Path, work: Path) -> tuple[Prepared, dict[str, Prepared]]:
    """What all recipes have in common, and each recipe with what it starts from."""
    encoder, contents = work / "encoder", {}
    shutil.copytree(folder / "encoder", encoder, dirs_exist_ok=True)
    state = restored(load_file(folder / "encoder" / "model.safetensors"))
    save_file(state, encoder / "model.safetensors", {"format": "pt"})
    for path in sorted((folder / "recipes").glob("*.json.gz")):
        with gzip.open(path, "rt") as file:
            contents[path.name.removesuffix(".json.gz")] = json.load(file)
    shutil.copytree(folder / "prep", work / "prep", dirs_exist_ok=True)
    shutil.copyfile(path, work / "prep" / "recipe.json.gz")
    base = load_prepared(work / "prep")
    return base, {name: of_recipe(base, content, encoder) for name, content in contents.items()}


def of_recipe(base: Prepared, content: dict, encoder: Path) -> Prepared:
    free = content["architecture"] == CONTEXT_FREE
    sources = Sources(tokenizer=(encoder / "tokenizer.json").read_bytes()) if free else Sources(encoder)
    checked = base.validation if content.get("validation") else None
    return base._replace(recipe=recipe_of(content), sources=sources, validation=checked)


def remember(tokenizer: Path, texts: Sequence[str]) -> None:
    """Cut texts into pieces once for all workers and networks, which read the first of them."""
    plain = Pieces.ids
    distinct = list(dict.fromkeys(texts))
    known = dict(zip(distinct, Pieces(tokenizer).ids(distinct, PIECES), strict=True))

    def ids(self: Pieces, texts: Sequence[str], most: int) -> list[np.ndarray]:
        if most > PIECES or not all(text in known for text in texts):
            return plain(self, texts, most)
        return [known[text][:most] for text in texts]

    Pieces.ids = ids


def jobs_of(task: Task, before: Sequence[Path], only: Sequence[str]) -> list[Job]:
    """What is missing, in order of what matters most, then by seed."""
    done = {path.stem for path in (task.work / "scores").glob("*.npy")}
    done |= {line for path in before for line in path.read_text().split()}
    tier = {name: number for number, names in enumerate(TIERS) for name in sorted(names)}
    jobs = [Job(name, seed) for name, prepared in task.recipes.items() for seed in prepared.recipe.seeds]
    wanted = [job for job in jobs if job.key not in done and (not only or job.recipe in only)]
    return sorted(wanted, key=lambda job: (tier.get(job.recipe, len(TIERS)), job.seed, job.recipe))


def collect(work: Path, out: Path) -> None:
    """All that is finished, in few files."""
    groups, size = [{}], 0
    for path in sorted((work / "scores").glob("*.npy")):
        if size + path.stat().st_size > MOST:
            groups.append({})
            size = 0
        groups[-1][path.stem] = np.load(path)
        size += path.stat().st_size
    for number, group in enumerate(groups):
        np.savez(out / f"scores-{number}.npz", **group)
    small = sorted(path for path in (work / "small").iterdir() if (path / "config.json").exists())
    for number, some in enumerate(np.array_split(np.array(small, object), 2)):
        packed(out / f"tables-{number}.tar", some)
    packed(out / "logs.tar.gz", [work / "logs"])
    (out / "finished.txt").write_text("".join(f"{key}\n" for group in groups for key in group))


def edition(folder: Path) -> str:
    """A digest of recipes and pairs: networks and scores of others lie elsewhere."""
    found = hashlib.sha256((folder / "pairs.json.xz").read_bytes())
    for path in sorted((folder / "recipes").glob("*.json.gz")):
        found.update(gzip.decompress(path.read_bytes()))
    return found.hexdigest()[:12]


def packed(path: Path, folders: Sequence[Path]) -> None:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as file:
        for folder in folders:
            file.add(folder, folder.name)


def run(given: argparse.Namespace) -> int:
    """Do all that is missing; gives 1 where a worker could not be ended."""
    begin, work, out = time.monotonic(), given.work / edition(given.folder), given.out
    for name in ("logs", "scores", "small", "networks", "beside"):
        (work / name).mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begin:6.1f}] {text}", flush=True)

    task = loaded(given.folder, work, given.device, given.share or 0.9 / given.at_once)
    jobs = jobs_of(task, given.before, given.only)
    say(f"{len(jobs)} networks, {len(task.parts):,} pairs")
    gc.freeze()  # what is loaded stays shared with the workers
    crew = Crew(task.do, lambda job: job.recipe, task.leave)

    def after(job: Job, told: str) -> None:
        say(f"{job.key}: {told[:250]}")
        collect(work, out)

    try:
        left = crew.run(jobs, given.at_once, given.seconds - (time.monotonic() - begin), after)
        say(f"end; left: {[job.key for job in left]}")
    finally:
        collect(work, out)
    if crew.stuck:
        say(f"workers that did not end: {crew.stuck}")
    return 1 if crew.stuck else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--work", type=Path, default=Path("/tmp/translation"), help="networks and scores until the end"
    )
    parser.add_argument("--at-once", type=int, default=10, help="workers")
    parser.add_argument("--seconds", type=float, default=420, help="after which no worker goes on")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--share", type=float, help="of a GPU's memory for one worker; by default 0.9 of it for all")
    parser.add_argument("--before", type=Path, action="append", default=[], help="a finished.txt of another run")
    parser.add_argument("--only", action="append", default=[], metavar="RECIPE")
    torch.set_num_threads(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    status = run(parser.parse_args())
    sys.stdout.flush()
    if status:
        os._exit(status)  # a plain end would wait for the workers


if __name__ == "__main__":
    main()
