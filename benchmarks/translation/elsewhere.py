"""Trains and scores what `prepare.py` wrote: torch, transformers and numpy are enough.

    PYTHONPATH=src python benchmarks/translation/elsewhere.py FOLDER OUT [--at-once 12] [--seconds 500]

Each network (a recipe and a seed) is trained by `python -m whyrank.training` in a process of its own, so many at
once, then scores all pairs. OUT gets `scores-N.npz` (float32, an array `RECIPE.SEED` aligned with the pairs, up to
15 MiB a file), the networks of neural Model 1 in eight bits (`tables-N.tar`), and all logs (`logs.tar.gz`); whatever has
finished when the time is over.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

CONTEXT_FREE = "neural-model1"
MOST = 15 << 20  # bytes of one file


def unpack(folder: Path, work: Path) -> list[tuple[str, int]]:
    """A prepared folder for each recipe; gives recipes and seeds, the slow ones first."""
    from safetensors.torch import load_file, save_file

    from whyrank.networks.quantised import restored

    encoder = work / "encoder"
    shutil.copytree(folder / "encoder", encoder, dirs_exist_ok=True)
    save_file(
        restored(load_file(folder / "encoder" / "model.safetensors")), encoder / "model.safetensors", {"format": "pt"}
    )
    jobs = []
    for recipe in sorted((folder / "recipes").glob("*.json.gz")):
        name = recipe.name.removesuffix(".json.gz")
        place = work / "prep" / name
        shutil.copytree(folder / "prep", place, dirs_exist_ok=True)
        if name == CONTEXT_FREE:
            shutil.copyfile(encoder / "tokenizer.json", place / "tokenizer.json")
        else:
            (place / "encoder").exists() or (place / "encoder").symlink_to(encoder)
        shutil.copyfile(recipe, place / "recipe.json.gz")
        with gzip.open(recipe, "rt") as file:
            jobs += [(name, seed) for seed in json.load(file)["seeds"]]
    return sorted(jobs, key=lambda job: (job[1], "full" not in job[0] and "cedr" not in job[0]))


def score(folder: Path, network: Path, out: Path, device: str) -> None:
    """The scores of one network for all pairs."""
    import torch

    from whyrank.networks.network import load
    from whyrank.training.validation import scored

    with lzma.open(folder / "pairs.json.xz", "rt", encoding="utf-8") as file:
        pairs = json.load(file)
    queries = [row["query"] for row in pairs["rows"]]
    query = np.repeat(np.arange(len(queries)), [len(row["texts"]) for row in pairs["rows"]])
    doc = np.concatenate([row["texts"] for row in pairs["rows"]])
    start = time.perf_counter()
    with torch.inference_mode():
        found = scored(load(network).to(device), queries, pairs["texts"], query, doc, 256, device)
    print(f"scored {len(found):,} pairs in {time.perf_counter() - start:.1f} s")
    np.save(out, found.astype(np.float32))


def shrink(network: Path, out: Path) -> None:
    """A network in eight bits."""
    from whyrank.networks.network import load, save

    save(load(network), out, bits=8)


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
    for number, some in enumerate(np.array_split(sorted((work / "small").iterdir()), 2)):
        packed(out / f"tables-{number}.tar", some)
    packed(out / "logs.tar.gz", [work / "logs"])


def packed(path: Path, folders: Sequence[Path]) -> None:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as file:
        for folder in folders:
            file.add(folder, folder.name)


def run(folder: Path, out: Path, work: Path, at_once: int, seconds: float, device: str) -> None:
    for name in ("logs", "scores", "small", "networks"):
        (work / name).mkdir(parents=True, exist_ok=True)
    begin, waiting, running = time.time(), unpack(folder, work), {}
    while (waiting or running) and time.time() - begin < seconds:
        while waiting and len(running) < at_once:
            name, seed = waiting.pop(0)
            running[name, seed] = started(name, seed, folder, work, device)
        time.sleep(0.2)
        for job in [job for job, process in running.items() if process.poll() is not None]:
            done = running.pop(job)
            print(f"[{time.time() - begin:6.1f}] {job[0]} seed {job[1]}: rc {done.returncode}", flush=True)
            tail = (work / "logs" / f"{job[0]}.{job[1]}.txt").read_text(errors="replace").strip().splitlines()
            print(*("    " + line[:200] for line in tail[-3:]), sep="\n", flush=True)
            collect(work, out)
    for process in running.values():
        os.killpg(process.pid, 9)
    collect(work, out)
    print(f"[{time.time() - begin:6.1f}] end; unfinished: {sorted({*waiting, *running})}", flush=True)


def started(name: str, seed: int, folder: Path, work: Path, device: str) -> subprocess.Popen:
    place, key, me = work / "networks" / f"{name}.{seed}", f"{name}.{seed}", [sys.executable, __file__]
    steps = [
        [sys.executable, "-m", "whyrank.training", work / "prep" / name, "--out", place, "--seed", seed, "--device", device],
        [*me, "score", folder, place, work / "scores" / f"{key}.npy", device],
        ["cp", place / "log.json", work / "logs" / f"{key}.json"],
    ]  # fmt: skip
    if name == CONTEXT_FREE:
        steps.append([*me, "shrink", place, work / "small" / key])
    line = " && ".join(" ".join(map(str, step)) for step in steps)
    with open(work / "logs" / f"{key}.txt", "wb") as log:
        return subprocess.Popen(line, shell=True, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def main() -> None:
    if sys.argv[1] == "score":
        score(*map(Path, sys.argv[2:5]), sys.argv[5])
        return
    if sys.argv[1] == "shrink":
        shrink(*map(Path, sys.argv[2:4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/translation"))
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    run(given.folder, given.out, given.work, given.at_once, given.seconds, given.device)


if __name__ == "__main__":
    main()
