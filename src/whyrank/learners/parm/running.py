"""From a prepared run of PaRM to trained networks: both phases for each seed, resumable, one folder per seed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import BadInput, WhyrankError, generator, read_sealed_json, sealed_json, write_text
from whyrank.learners.parm.alignment import attention_blocks, embedding_blocks, occlusion_blocks, side
from whyrank.learners.parm.data import Candidates, Drawn, split_queries
from whyrank.learners.parm.first import FirstTrainer, piece_texts, scaled
from whyrank.learners.parm.prepared import ParmPrepared
from whyrank.learners.parm.second import SecondTrainer, begin_at, slots_of, with_partners
from whyrank.learners.parm.target import reader_of, target_scores
from whyrank.learners.parm.texts import PieceTexts
from whyrank.networks import BARE, ParmNetwork, save
from whyrank.training import (
    LOG,
    History,
    Second,
    begun,
    check_same,
    checked_device,
    device_name,
    first_phase,
    new_network,
    read_tensors,
    second_phase,
    summary,
    threads,
    write_tensors,
)

Say = Callable[[str], None]
Rows = npt.NDArray[np.int64]
_HELD = 1000  # held-out queries that phase 2 is validated on, drawn at random


class Ready(NamedTuple):
    """What all seeds share: the target's scores, the pieces of queries and texts, and how these belong together."""

    given: Candidates
    texts: tuple[PieceTexts, PieceTexts]
    blocks: Tensor


def train_parm(
    prepared: ParmPrepared, out: Path, seeds: Sequence[int] = (), device: str = "", say: Say = print
) -> list[Path]:
    """Train one network for each seed: in the folder itself, or for several seeds in folders below it."""
    chosen = checked_device(device)
    several = list(dict.fromkeys(seeds or prepared.recipe.seeds))
    folders = [out if len(several) == 1 else out / f"seed-{seed}" for seed in several]
    todo = [(s, f) for s, f in zip(several, folders, strict=True) if not _finished(f, prepared.identity(s), say)]
    ready = _ready(prepared, chosen, say) if todo else None
    for seed, folder in todo:
        assert ready is not None
        _train(prepared, ready, folder, seed, chosen, say)
    return folders


def _train(prepared: ParmPrepared, ready: Ready, out: Path, seed: int, device: str, say: Say) -> None:
    recipe, mark = prepared.recipe, prepared.identity(seed)
    with begun(out, mark) as work, threads(first_phase(recipe.phases).schedule_for(seed).threads):
        network = _network(prepared, seed)
        told = [_first(prepared, ready, network, work, seed, device, say)]
        for number in range(second_phase(recipe.phases).rounds):
            told.append(_second(prepared, ready, network, work, number, seed, device, say))
    save(network.cpu(), out, seed=seed, **{**prepared.facts, **_framed(second_phase(recipe.phases))})
    log = {"identity": mark, "seed": seed, "recipe": recipe.as_dict(), "phases": told, "facts": dict(prepared.facts),
           "device": device_name(device), "torch": torch.__version__}  # fmt: skip
    write_text(out / LOG, sealed_json(log, default=str))
    shutil.rmtree(work, ignore_errors=True)


def _framed(second: Second) -> dict[str, str]:
    """What a network of phase 1 alone says of the terms that it is asked about."""
    return {} if second.rounds or second.frame == BARE else {"frame": second.frame}


def _first(
    prepared: ParmPrepared, ready: Ready, network: ParmNetwork, work: Path, seed: int, device: str, say: Say
) -> dict[str, Any]:
    first = first_phase(prepared.recipe.phases)
    kept, held = split_queries(len(prepared.queries), first.held_out)
    given = scaled(ready.given, first)
    drawn, shown = (Drawn(given, rows, first.texts, first.positives, name)
                    for rows, name in ((kept, "first"), (held, "held out")))  # fmt: skip

    def train() -> History:
        return FirstTrainer(
            network, drawn, first, ready.texts, ready.blocks, seed=seed, held_out=shown, folder=work / "first",
            device=device, say=say,
        ).run()  # fmt: skip

    return _phase("phase 1", train, network, work / "first", say)


def _second(
    prepared: ParmPrepared, ready: Ready, network: ParmNetwork, work: Path, number: int, seed: int, device: str,
    say: Say,
) -> dict[str, Any]:  # fmt: skip
    second, terms = second_phase(prepared.recipe.phases), prepared.terms
    chosen, held = _chosen(prepared, second.limit, seed)

    def train() -> History:
        start = time.perf_counter()
        slots = slots_of(terms, prepared.doc, np.sort(np.concatenate([chosen, held])), second.missing, seed)
        slots = slots if second.own else slots.take(slots.place % prepared.doc.shape[1] > 0)
        slots = with_partners(slots, terms, network, device, BARE if number else second.frame)
        say(f"best partners of {len(slots.place):,} missing terms in {time.perf_counter() - start:.0f} s")
        if second.start is not None and not number:
            begin_at(network, terms, slots, second.start, seed, device)
        drawn = Drawn(ready.given, chosen, second.texts, second.positives, f"second {number}", second.own)
        trainer = SecondTrainer(
            network, drawn, second, terms, slots, seed=seed, held_out=held, folder=work / f"second-{number}",
            device=device, say=say,
        )  # fmt: skip
        if len(held):
            say(f"correlation of BM25 alone with the target: {trainer.correlation_of_bm25():.4f} (held-out queries)")
        return trainer.run()

    return _phase(f"phase 2, round {number + 1}", train, network, work / f"second-{number}", say)


def _chosen(prepared: ParmPrepared, limit: int | None, seed: int) -> tuple[Rows, Rows]:
    """The queries of phase 2 and those held out: those that have terms, some of them drawn."""
    parts = split_queries(len(prepared.queries), first_phase(prepared.recipe.phases).held_out)
    kept, held = (part[np.diff(prepared.terms.query_ends)[part] > 0] for part in parts)
    if not len(kept):
        raise WhyrankError("phase 2: no query has a term under this analyzer; choose another one")
    some = generator(0, "parm", "validated").permutation(held)[:_HELD]  # the first ones are of few collections
    return np.sort(generator(seed, "parm", "queries").permutation(kept)[:limit]), np.sort(some)


def _phase(what: str, train: Callable[[], History], network: ParmNetwork, folder: Path, say: Say) -> dict[str, Any]:
    """Train, or take up the weights of a phase that is done; its history."""
    done = folder / "done.safetensors"
    if done.exists():
        weights, facts = read_tensors(done)
        network.load_state_dict(weights)
        found: dict[str, Any] = json.loads(facts["history"])
        return found
    history = train()
    say(f"{what}: {summary(history)}, loss {_ends(history.losses)}")
    told = {"phase": what, **asdict(history), "best": history.best}
    write_tensors(done, network.state_dict(), {"history": json.dumps(told)})
    return told


def _ends(losses: Sequence[float]) -> str:
    """The mean loss of the first and of the last tenth of the steps."""
    part = max(1, len(losses) // 10)
    return f"{np.mean(losses[:part]):.4f} to {np.mean(losses[-part:]):.4f}"


def _ready(prepared: ParmPrepared, device: str, say: Say) -> Ready:
    network, facts, start = _network(prepared, 0), prepared.facts, time.perf_counter()
    texts = piece_texts(network, list(prepared.queries), list(prepared.docs))
    scores = prepared.scores
    if scores is None:
        asked = prepared.queries, prepared.docs, prepared.doc
        scores = target_scores(facts["asked_as"], _reading_folder(prepared), *asked, device, facts.get("reads"))
    blocks = _blocks(prepared, network, texts, device)
    how = f"aligned by {facts['alignment']} in {time.perf_counter() - start:.0f} s"
    say(f"{len(prepared.queries):,} queries with {prepared.doc.shape[1]} of {len(prepared.docs):,} texts each, {how}")
    return Ready(prepared.candidates(scores), texts, blocks)


def _blocks(
    prepared: ParmPrepared, network: ParmNetwork, texts: tuple[PieceTexts, PieceTexts], device: str
) -> Tensor:
    """How the pieces of each query and candidate belong together."""
    if prepared.occlusion is not None:
        return occlusion_blocks(prepared.occlusion, *texts, prepared.doc, device)
    reader = reader_of(_reading_folder(prepared), network.max_query, network.max_doc)
    query = np.repeat(np.arange(len(prepared.doc)), prepared.doc.shape[1])
    doc, (asked, told) = prepared.doc.reshape(-1).astype(np.int64), texts
    sides = side(asked, network.pieces, reader, reader.max_query), side(told, network.pieces, reader, reader.max_doc)
    found = attention_blocks if prepared.facts["alignment"] == "attention" else embedding_blocks
    return found(reader, *sides, query, doc, device)


def _reading_folder(prepared: ParmPrepared) -> Path:
    """The model that scores and aligns: the target's, which may be the one that the network starts from."""
    teachers, encoder = prepared.sources.teachers, prepared.sources.encoder
    folder = teachers[0] if teachers else encoder
    if folder is None:
        raise WhyrankError("alignment: a new encoder has no embeddings to align by; choose occlusion")
    return folder


def _network(prepared: ParmPrepared, seed: int) -> ParmNetwork:
    made = new_network(prepared.recipe, seed, prepared.sources)
    assert isinstance(made, ParmNetwork)
    return made


def _finished(out: Path, mark: str, say: Say) -> bool:
    """Whether a run is at its end; an error where another run's network lies there."""
    if not (out / LOG).exists():
        return False
    try:
        theirs = read_sealed_json(out / LOG, "name another folder, or remove it")["identity"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(out / LOG, f"is no log of a training run ({error})", "name another folder") from None
    check_same(out, str(theirs), mark)
    say(f"{out}: trained already")
    return True
