"""The other side of `em.py`: an aligner in an environment of its own. Prints seconds and links as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

NLTK_PAIRS = 1000


def eflomal(source: str, target: str, iterations: int) -> None:
    """Sweeps of the sampler for IBM Model 1, one direction, one sampler."""
    from eflomal import Aligner

    aligner = Aligner(model=1, n_iterations=(iterations, 0, 0), n_samplers=1)
    with (
        TemporaryDirectory() as folder,
        open(source, encoding="utf-8") as one,
        open(target, encoding="utf-8") as other,
    ):
        aligner.align(one, other, links_filename_fwd=str(Path(folder) / "links"))


def thot(source: str, target: str, iterations: int) -> None:
    from thot.alignment import Ibm1AlignmentModel

    model = Ibm1AlignmentModel()
    model.read_sentence_pairs(source, target, "")
    model.start_training()
    for _ in range(iterations):
        model.train()
    model.end_training()


def nltk(source: str, target: str, iterations: int) -> None:
    from nltk.translate import AlignedSent, IBMModel1

    with open(source, encoding="utf-8") as one, open(target, encoding="utf-8") as other:
        lines = islice(zip(one, other, strict=True), NLTK_PAIRS)
        pairs = [AlignedSent(b.split(), a.split()) for a, b in lines]
    IBMModel1(pairs, iterations)


def links_of(source: str, target: str, most: int | None) -> int:
    with open(source, encoding="utf-8") as one, open(target, encoding="utf-8") as other:
        return sum(len(a.split()) * len(b.split()) for a, b in islice(zip(one, other, strict=True), most))


def cpu() -> float:
    return sum(
        getattr(resource.getrusage(who), kind)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        for kind in ("ru_utime", "ru_stime")
    )


def main() -> None:
    name, source, target, iterations = sys.argv[1:]
    run = {"eflomal": eflomal, "sil-thot": thot, "nltk": nltk}[name]
    __import__({"sil-thot": "thot.alignment", "nltk": "nltk.translate"}.get(name, name))  # before the clock starts
    start = cpu(), time.perf_counter()
    run(source, target, int(iterations))
    told = {"cpu": cpu() - start[0], "wall": time.perf_counter() - start[1]}
    print(json.dumps({**told, "links": links_of(source, target, NLTK_PAIRS if name == "nltk" else None)}))


if __name__ == "__main__":
    main()
