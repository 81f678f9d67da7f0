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
import torch
from torch import Tensor

from whyrank.core import (
    LOCK,
    WhyrankError,
    check_writable,
    exclusive,
    generator,
    sealed_json,
    write_text,
)
from whyrank.learners.parm.alignment import TokenTexts, occlusion_blocks, reader_blocks, token_texts
from whyrank.learners.parm.data import (
    CandidateSampler,
    ParmPrepared,
    Rows,
    Say,
    check_parm,
    prepare_parm,
    split_queries,
)
from whyrank.learners.parm.phase1 import FirstTrainer
from whyrank.learners.parm.phase2 import SecondTrainer, find_partners, slots_of, start_logits_at
from whyrank.learners.parm.phases import first_phase, second_phase
from whyrank.networks import BARE, CONFIG, ParmNetwork, save
from whyrank.training import (
    LOG,
    Recipe,
    Trainer,
    check_same,
    device_name,
    find_device,
    read_log,
    read_recipe,
    read_tensors,
    recipe_of,
    run_folder,
    summary,
    threads,
    write_tensors,
)

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.scoring import Engine

_HELD = 1000  # held-out queries that phase 2 is validated on, drawn at random


def parm_recipe(
    target: str, recipe: str = "parm-smoke", collections: Sequence[str] = (), changes: Sequence[str] = (),
    analyzer: str | None = None, say: Say = print,
) -> Recipe:  # fmt: skip
    """The recipe that explains a target, from a bundled one or a YAML file.

    Args:
        target: the ranker to explain: a call string.
        recipe: the name of a bundled recipe, or a file.
        collections: instead of all collections that the recipe names, those that it cuts queries from and holds
            back included.
        changes: such as `phases.second.rounds=2`; another preset replaces all that the recipe says of its phases.
        analyzer: makes the terms, instead of the recipe's.
        say: hears what of the recipe no longer holds.
    """
    old = read_recipe(recipe)
    given = old.data if collections else {}
    changed = [change.partition("=")[0].strip() for change in changes]
    cleared = ["data.cut={}"] if isinstance(given.get("cut"), Mapping) else []
    cleared += ["data.without=[]"] if given.get("without") else []
    cleared += ["phases={}"] if old.phases and "phases.preset" in changed else []
    made = read_recipe(recipe, [*cleared, *changes])
    if not made.phases:
        return made
    held = given.get("without")
    if held and not made.data.get("without") and not any(name.startswith("data.without") for name in changed):
        listed = held if isinstance(held, str) else ", ".join(held)
        way = "--set data.without=[NAME] holds texts back"
        say(f"note: -c: the recipe's data.without ({listed}) goes too; {way}")
    if made.data.get("target", target) != target:
        raise WhyrankError(f"--target {target}: the recipe is for {made.data['target']}; change it with --set")
    data = {**made.data, "target": target} | ({"collection": list(collections)} if collections else {})
    return recipe_of({**made.as_dict(), "data": data | ({"analyzer": analyzer} if analyzer else {})})


def train_on_target(
    recipe: Recipe, target: str | Ranker, out: str | Path, engine: Engine | None = None, seed: int | None = None,
    device: str = "", say: Say = print,
) -> None:  # fmt: skip
    """Prepare and train a network in a folder, unless it is trained already; a stopped run goes on.

    Without an engine nothing is kept of the target's scores; the seed is the recipe's first one by default.
    """
    from whyrank import scoring

    folder, seed = Path(out), recipe.seeds[0] if seed is None else seed
    check_parm(recipe, target)
    check_writable(folder / CONFIG)
    with exclusive(folder / LOCK):
        if is_trained(folder, recipe, seed):
            say(f"{folder}: trained already")
            return
        prepared = prepare_parm(recipe, target, engine or scoring.Engine(), say)
        train_parm(prepared, folder, seed, find_device(device), say)


def train_parm(prepared: ParmPrepared, out: Path, seed: int = 0, device: str = "cpu", say: Say = print) -> None:
    """Train a network and write it to a folder; started again after a stop, it goes on where it was."""
    recipe, mark = prepared.recipe, prepared.identity(seed)
    if (log := read_log(out, "identity")) is not None:
        check_same(out, str(log["identity"]), mark)
        say(f"{out}: trained already")
        return
    second = second_phase(recipe.phases)
    with run_folder(out, mark) as work, threads(first_phase(recipe.phases).schedule_for(seed).threads):
        run = _Training(prepared, prepared.network(seed), work, seed, device, say)
        histories = [run.phase("phase 1", "first", run.first)]
        for number in range(second.rounds):
            histories.append(run.phase(f"phase 2, round {number + 1}", f"second-{number}", run.second, number))
    frame = {} if second.rounds or second.frame == BARE else {"frame": second.frame}  # of a network of phase 1 alone
    save(run.network.cpu(), out, seed=seed, **{**prepared.facts, **frame})
    log = {"identity": mark, "seed": seed, "recipe": recipe.as_dict(), "phases": histories,
           "facts": dict(prepared.facts), "device": device_name(device), "torch": torch.__version__}  # fmt: skip
    write_text(out / LOG, sealed_json(log, default=str))
    shutil.rmtree(work, ignore_errors=True)


def is_trained(out: Path, recipe: Recipe, seed: int) -> bool:
    """Whether a folder holds the network of a recipe and seed; an error where it holds another run's.

    Unlike `train_parm` it reads neither collections nor target, so that a table goes on at once after a stop.
    """
    log = read_log(out, "recipe", "seed")
    if log is None:
        return False

    def text(given: Mapping[str, Any], number: int) -> str:
        plain = {name: value for name, value in given.items() if name != "seeds"}
        return json.dumps([plain, number], sort_keys=True, default=str)

    check_same(out, text(log["recipe"], log["seed"]), text(recipe.as_dict(), seed))
    return True


class _Training(NamedTuple):
    """One training run."""

    prepared: ParmPrepared
    network: ParmNetwork
    work: Path
    seed: int
    device: str
    say: Say

    def phase(self, name: str, folder: str, trainer_of: Callable[..., Trainer], *arguments: Any) -> dict[str, Any]:
        """Train, or take up the weights of a phase that is done; its history."""
        done = self.work / folder / "done.safetensors"
        if done.exists():
            weights, facts = read_tensors(done)
            self.network.load_state_dict(weights)
            found: dict[str, Any] = json.loads(facts["history"])
            return found
        history = trainer_of(self.work / folder, *arguments).run()
        tenth = max(1, len(history.losses) // 10)
        losses = f"{np.mean(history.losses[:tenth]):.4f} to {np.mean(history.losses[-tenth:]):.4f}"
        self.say(f"{name}: {summary(history)}, loss {losses}")
        found = {"phase": name, **asdict(history), "best": history.best}
        write_tensors(done, self.network.state_dict(), {"history": json.dumps(found)})
        return found

    def first(self, folder: Path) -> Trainer:
        """Phase 1: align, hold some queries out."""
        prepared, first, start = self.prepared, first_phase(self.prepared.recipe.phases), time.perf_counter()
        texts = token_texts(self.network, prepared.queries, prepared.docs)
        blocks = alignment_blocks(prepared, self.network, texts, self.device)
        how = f"aligned by {prepared.facts['alignment']} in {time.perf_counter() - start:.0f} s"
        width = prepared.candidates.doc.shape[1]
        self.say(f"{len(prepared.queries):,} queries with {width} of {len(prepared.docs):,} texts each, {how}")
        candidates = prepared.candidates.scaled() if first.scale == "unit" else prepared.candidates
        learned, held = split_queries(len(prepared.queries), first.held_out)
        sampler, held_out = (
            CandidateSampler(candidates, rows, first.texts, first.positives, name)
            for rows, name in ((learned, "first"), (held, "held out"))
        )
        return FirstTrainer(
            self.network, sampler, first, texts, blocks, seed=self.seed, held_out=held_out, folder=folder,
            device=self.device, say=self.say,
        )  # fmt: skip

    def second(self, folder: Path, number: int) -> Trainer:
        """One round of phase 2: find the best partners of terms that texts lack."""
        prepared, second, start = self.prepared, second_phase(self.prepared.recipe.phases), time.perf_counter()
        terms, candidates = prepared.terms, prepared.candidates
        chosen, held = phase_two_queries(prepared, second.limit, self.seed)
        slots = slots_of(terms, candidates.doc, np.sort(np.concatenate([chosen, held])), second.missing, self.seed)
        slots = slots if second.own else slots.take(slots.pair % candidates.doc.shape[1] > 0)
        slots = find_partners(slots, terms, self.network, self.device, BARE if number else second.frame)
        self.say(f"best partners of {len(slots.pair):,} missing terms in {time.perf_counter() - start:.0f} s")
        if second.start is not None and not number:
            start_logits_at(self.network, terms, slots, second.start, self.seed, self.device)
        phase = f"second {number}"
        sampler = CandidateSampler(candidates, chosen, second.texts, second.positives, phase, second.own)
        trainer = SecondTrainer(
            self.network, sampler, second, terms, slots, seed=self.seed, held_out=held, folder=folder,
            device=self.device, say=self.say,
        )  # fmt: skip
        if len(held):
            alone = trainer.correlation_of_bm25()
            self.say(f"correlation of BM25 alone with the target: {alone:.4f} (held-out queries)")
        return trainer


def alignment_blocks(
    prepared: ParmPrepared, network: ParmNetwork, texts: tuple[TokenTexts, TokenTexts], device: str
) -> Tensor:
    """How the tokens of each query and candidate belong together."""
    if prepared.occlusion is not None:
        return occlusion_blocks(prepared.occlusion, *texts, prepared.candidates.doc, device)
    assert prepared.reader is not None
    method = prepared.facts["alignment"]
    return reader_blocks(prepared.reader, method, network, texts, prepared.candidates.doc, device)


def phase_two_queries(prepared: ParmPrepared, limit: int | None, seed: int) -> tuple[Rows, Rows]:
    """The queries of phase 2 and those that it is validated on: those that have terms, some of them drawn."""
    parts = split_queries(len(prepared.queries), first_phase(prepared.recipe.phases).held_out)
    kept, held = (part[np.diff(prepared.terms.query_ends)[part] > 0] for part in parts)
    if not len(kept):
        raise WhyrankError("phase 2: no query has a term under this analyzer; choose another one")
    some = generator(0, "parm", "validated").permutation(held)[:_HELD]  # the first ones are of few collections
    return np.sort(generator(seed, "parm", "queries").permutation(kept)[:limit]), np.sort(some)
