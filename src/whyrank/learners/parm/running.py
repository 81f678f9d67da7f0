"""Both phases of PaRM for one seed: from what was prepared to a network in a folder, resumable at any step."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import BadInput, WhyrankError, generator, read_sealed_json, sealed_json, write_text
from whyrank.learners.parm.alignment import attention_blocks, embedding_blocks, occlusion_blocks, reader_of, side
from whyrank.learners.parm.data import Drawn, split_queries
from whyrank.learners.parm.first import FirstTrainer
from whyrank.learners.parm.second import SecondTrainer, begin_at, slots_of, with_partners
from whyrank.learners.parm.texts import TokenTexts, token_texts
from whyrank.networks import BARE, ParmNetwork, save
from whyrank.training import (
    LOG,
    History,
    begun,
    check_same,
    device_name,
    first_phase,
    read_tensors,
    second_phase,
    summary,
    threads,
    write_tensors,
)

if TYPE_CHECKING:
    from whyrank.learners.parm.preparing import ParmPrepared
    from whyrank.training import Recipe

Say = Callable[[str], None]
Rows = npt.NDArray[np.int64]
_HELD = 1000  # held-out queries that phase 2 is validated on, drawn at random


def train_parm(prepared: ParmPrepared, out: Path, seed: int = 0, device: str = "cpu", say: Say = print) -> None:
    """Train a network and write it to a folder; started again after a stop, it goes on where it was."""
    recipe, mark = prepared.recipe, prepared.identity(seed)
    if (log := _log(out)) is not None:
        check_same(out, str(log["identity"]), mark)
        say(f"{out}: trained already")
        return
    with begun(out, mark) as work, threads(first_phase(recipe.phases).schedule_for(seed).threads):
        run = _Run(prepared, prepared.network(seed), work, seed, device, say)
        told = [run.first()]
        second = second_phase(recipe.phases)
        told += [run.second(number) for number in range(second.rounds)]
    frame = {} if second.rounds or second.frame == BARE else {"frame": second.frame}  # of a network of phase 1 alone
    save(run.network.cpu(), out, seed=seed, **{**prepared.facts, **frame})
    log = {"identity": mark, "seed": seed, "recipe": recipe.as_dict(), "phases": told, "facts": dict(prepared.facts),
           "device": device_name(device), "torch": torch.__version__}  # fmt: skip
    write_text(out / LOG, sealed_json(log, default=str))
    shutil.rmtree(work, ignore_errors=True)


def is_trained(out: Path, recipe: Recipe, seed: int) -> bool:
    """Whether a folder holds the network of a recipe and seed; an error where it holds another run's.

    Unlike `train_parm` it asks neither collections nor target, so that a table goes on at once after a stop.
    """
    log = _log(out)
    if log is None:
        return False
    ours, theirs = (
        _request(each, number) for each, number in ((recipe.as_dict(), seed), (log["recipe"], log["seed"]))
    )
    check_same(out, theirs, ours)
    return True


def _request(recipe: Mapping[str, Any], seed: int) -> str:
    plain = {name: value for name, value in recipe.items() if name != "seeds"}
    return json.dumps([plain, seed], sort_keys=True, default=str)


def _log(out: Path) -> dict[str, Any] | None:
    """The log of a finished run."""
    if not (out / LOG).exists():
        return None
    try:
        found = read_sealed_json(out / LOG, "name another folder, or remove it")
        return {name: found[name] for name in ("identity", "recipe", "seed")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(out / LOG, f"is no log of a training run ({error})", "name another folder") from None


class _Run(NamedTuple):
    """One training run."""

    prepared: ParmPrepared
    network: ParmNetwork
    work: Path
    seed: int
    device: str
    say: Say

    def first(self) -> dict[str, Any]:
        """Phase 1."""
        return self._phase("phase 1", self.work / "first", self._train_first)

    def _train_first(self, folder: Path) -> History:
        prepared, first = self.prepared, first_phase(self.prepared.recipe.phases)
        start = time.perf_counter()
        texts = token_texts(self.network, prepared.queries, prepared.docs)
        blocks = alignment_blocks(prepared, self.network, texts, self.device)
        how = f"aligned by {prepared.facts['alignment']} in {time.perf_counter() - start:.0f} s"
        width = prepared.candidates.doc.shape[1]
        self.say(f"{len(prepared.queries):,} queries with {width} of {len(prepared.docs):,} texts each, {how}")
        given = prepared.candidates.scaled() if first.scale == "unit" else prepared.candidates
        parts = split_queries(len(prepared.queries), first.held_out)
        drawn, held = (Drawn(given, rows, first.texts, first.positives, name)
                       for rows, name in zip(parts, ("first", "held out"), strict=True))  # fmt: skip
        return FirstTrainer(
            self.network, drawn, first, texts, blocks, seed=self.seed, held_out=held, folder=folder,
            device=self.device, say=self.say,
        ).run()  # fmt: skip

    def second(self, number: int) -> dict[str, Any]:
        """One round of phase 2."""
        return self._phase(
            f"phase 2, round {number + 1}", self.work / f"second-{number}",
            lambda folder: self._train_second(number, folder),
        )  # fmt: skip

    def _train_second(self, number: int, folder: Path) -> History:
        prepared, second = self.prepared, second_phase(self.prepared.recipe.phases)
        terms, doc, start = prepared.terms, prepared.candidates.doc, time.perf_counter()
        chosen, held = validated_queries(prepared, second.limit, self.seed)
        slots = slots_of(terms, doc, np.sort(np.concatenate([chosen, held])), second.missing, self.seed)
        slots = slots if second.own else slots.take(slots.place % doc.shape[1] > 0)
        slots = with_partners(slots, terms, self.network, self.device, BARE if number else second.frame)
        self.say(f"best partners of {len(slots.place):,} missing terms in {time.perf_counter() - start:.0f} s")
        if second.start is not None and not number:
            begin_at(self.network, terms, slots, second.start, self.seed, self.device)
        drawn = Drawn(prepared.candidates, chosen, second.texts, second.positives, f"second {number}", second.own)
        trainer = SecondTrainer(
            self.network, drawn, second, terms, slots, seed=self.seed, held_out=held, folder=folder,
            device=self.device, say=self.say,
        )  # fmt: skip
        if len(held):
            alone = trainer.correlation_of_bm25()
            self.say(f"correlation of BM25 alone with the target: {alone:.4f} (held-out queries)")
        return trainer.run()

    def _phase(self, what: str, folder: Path, train: Callable[[Path], History]) -> dict[str, Any]:
        """Train, or take up the weights of a phase that is done; its history."""
        done = folder / "done.safetensors"
        if done.exists():
            weights, facts = read_tensors(done)
            self.network.load_state_dict(weights)
            found: dict[str, Any] = json.loads(facts["history"])
            return found
        history = train(folder)
        tenth = max(1, len(history.losses) // 10)
        losses = f"{np.mean(history.losses[:tenth]):.4f} to {np.mean(history.losses[-tenth:]):.4f}"
        self.say(f"{what}: {summary(history)}, loss {losses}")
        told = {"phase": what, **asdict(history), "best": history.best}
        write_tensors(done, self.network.state_dict(), {"history": json.dumps(told)})
        return told


def validated_queries(prepared: ParmPrepared, limit: int | None, seed: int) -> tuple[Rows, Rows]:
    """The queries of phase 2 and those held out: those that have terms, some of them drawn."""
    parts = split_queries(len(prepared.queries), first_phase(prepared.recipe.phases).held_out)
    kept, held = (part[np.diff(prepared.terms.query_ends)[part] > 0] for part in parts)
    if not len(kept):
        raise WhyrankError("phase 2: no query has a term under this analyzer; choose another one")
    some = generator(0, "parm", "validated").permutation(held)[:_HELD]  # the first ones are of few collections
    return np.sort(generator(seed, "parm", "queries").permutation(kept)[:limit]), np.sort(some)


def alignment_blocks(
    prepared: ParmPrepared, network: ParmNetwork, texts: Sequence[TokenTexts], device: str
) -> Tensor:
    """How the tokens of each query and candidate belong together."""
    (asked, told), several = texts, prepared.candidates.doc
    if prepared.occlusion is not None:
        return occlusion_blocks(prepared.occlusion, asked, told, several, device)
    assert prepared.reader is not None
    reader = reader_of(prepared.reader, network.max_query, network.max_doc)
    query, doc = np.repeat(np.arange(len(several)), several.shape[1]), several.reshape(-1).astype(np.int64)
    sides = (
        side(asked, network.tokenizer, reader, reader.max_query),
        side(told, network.tokenizer, reader, reader.max_doc),
    )
    found = attention_blocks if prepared.facts["alignment"] == "attention" else embedding_blocks
    return found(reader, *sides, query, doc, device)
