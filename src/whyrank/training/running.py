"""From a recipe to trained networks: all that it names is read, and each seed gives a folder with weights and log."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from whyrank.core import BadInput, WhyrankError, read_sealed_json, sealed_json, write_text
from whyrank.networks import CONFIG, WEIGHTS, save
from whyrank.training.data import TrainingSet, corpus_texts, training_set, validation_set
from whyrank.training.distilling import distillation_set, with_candidates
from whyrank.training.losses import losses
from whyrank.training.pretraining import STATE, pretrain
from whyrank.training.recipe import Recipe
from whyrank.training.sources import Sources, check_settings, new_network, sources_of
from whyrank.training.trainer import CHECKPOINT, History, Trainer
from whyrank.training.validation import Validation

Say = Callable[[str], None]
LOG, WORK, MARK = "log.json", "unfinished", "identity.txt"


class TrainingInputs(NamedTuple):
    """All that training needs.

    Attributes:
        recipe: what is trained, and how.
        data: what it learns from.
        validation: what it is validated on.
        corpus: the texts of pre-training.
        sources: what the network starts from.
    """

    recipe: Recipe
    data: TrainingSet
    validation: Validation | None
    corpus: Sequence[str]
    sources: Sources

    def identity(self, seed: int) -> str:
        """A digest of recipe, texts, first examples and seed: two runs that share it are the same run."""
        recipe = {name: value for name, value in self.recipe.as_dict().items() if name != "seeds"}
        digest = hashlib.sha256(json.dumps([recipe, seed], sort_keys=True, default=str).encode())
        judged = [self.validation.queries, self.validation.docs] if self.validation else []
        for texts in (self.data.queries, self.data.docs, self.corpus, *judged):
            digest.update(hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).digest())
        for column in self.data.sampler.epoch(seed, 0):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()[:16]


def prepare(recipe: Recipe) -> TrainingInputs:
    """All that a recipe names, ready to train from."""
    if recipe.phases:
        raise WhyrankError("this recipe has phases; it is for `whyrank tables learn parm`")
    check_settings(recipe)
    losses.create(recipe.loss)
    read = distillation_set if "teachers" in recipe.data else training_set
    data, validation = read(recipe.data), validation_set(recipe.validation)
    own = recipe.pretraining
    corpus = corpus_texts([own["collection"]], own.get("limit")) if own else []
    return TrainingInputs(recipe, data, validation, corpus, sources_of(recipe))


def train_seeds(
    prepared: TrainingInputs, out: Path, seeds: Sequence[int], device: str = "", say: Say = print
) -> list[Path]:
    """Train one network for each seed: in the folder itself, or for several seeds in folders below it."""
    chosen = find_device(device)
    several = list(dict.fromkeys(seeds or prepared.recipe.seeds))
    folders = [out if len(several) == 1 else out / f"seed-{seed}" for seed in several]
    todo = [f for seed, f in zip(several, folders, strict=True) if _finished(f, prepared.identity(seed)) is None]
    data = with_candidates(prepared.data, prepared.sources.teachers, chosen, say) if len(todo) > 1 else None
    for seed, folder in zip(several, folders, strict=True):
        history = train(prepared, folder, seed=seed, device=chosen, say=say, data=data)
        say(f"seed {seed}: {summary(history)}: {folder}")
    return folders


def train(
    prepared: TrainingInputs, out: Path, *, seed: int = 0, device: str = "cpu", say: Say = print,
    data: TrainingSet | None = None,
) -> History:  # fmt: skip
    """Train one network and write it to a folder; started again after a stop, it goes on where it was.

    `data` is what it learns from, with candidates, where several networks share what teachers found.
    """
    recipe, mark = prepared.recipe, prepared.identity(seed)
    if (done := _finished(out, mark)) is not None:
        say(f"{out}: trained already")
        return done
    facts: dict[str, Any] = {"device": device_name(device)}
    with run_folder(out, mark) as work, threads(recipe.schedule_for(seed).threads):
        network = new_network(recipe, seed, prepared.sources)
        if prepared.corpus:
            facts |= {"pretraining": pretrain(network, prepared.corpus, recipe.pretraining, seed, device, say, work)}
        validate = replace(prepared.validation, device=device) if prepared.validation is not None else None
        data = data or with_candidates(prepared.data, prepared.sources.teachers, device, say)
        history = Trainer(
            network, data, losses.create(recipe.loss), recipe.schedule_for(seed), folder=work, validate=validate,
            device=device, say=say,
        ).run()  # fmt: skip
    save(network.cpu(), out, seed=seed)
    log = {
        "identity": mark, "seed": seed, "recipe": recipe.as_dict(), "losses": history.losses,
        "validations": history.validations, "best": history.best, "pairs": history.pairs,
        "seconds": round(history.seconds, 1), "stopped": history.stopped, **facts, "torch": torch.__version__,
    }  # fmt: skip
    write_text(out / LOG, sealed_json(log, default=str))
    for name in (CHECKPOINT, STATE, MARK):
        (work / name).unlink(missing_ok=True)
    if not any(work.iterdir()):
        work.rmdir()
    return history


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """Let torch use so many threads for a while; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(n or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def summary(history: History) -> str:
    """Steps, time, throughput and the best validation in one line."""
    steps, rate = len(history.losses), history.pairs / max(history.seconds, 1e-9)
    best = f", best validation {history.best[1]:.4f} at step {history.best[0]:,}" if history.best else ""
    stopped = f", {history.stopped}" if history.stopped else ""
    return f"{steps:,} step{'s' * (steps != 1)} in {history.seconds:.0f} s ({rate:,.0f} pairs/s){best}{stopped}"


def device_name(device: str) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device.upper()


def find_device(device: str = "") -> str:
    """A device that is there; by default `cuda` where there is one, else `cpu`."""
    if not device:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise WhyrankError(f"device {device!r} is not available here; give cpu, or cuda where there is one") from None
    return device


def _finished(out: Path, mark: str) -> History | None:
    """The history of a run that is at its end; an error where another run's network lies there."""
    log = read_log(out, "identity", "losses", "validations", "pairs", "seconds", "stopped")
    if log is None:
        return None
    check_same(out, str(log["identity"]), mark)
    validations = [(int(step), float(value)) for step, value in log["validations"]]
    return History(log["losses"], validations, log["pairs"], log["seconds"], log["stopped"])


def read_log(out: Path, *names: str) -> dict[str, Any] | None:
    """Some values of the log of a finished run; None where there is none."""
    if not (out / LOG).exists():
        return None
    try:
        found = read_sealed_json(out / LOG, "name another folder, or remove it")
        return {name: found[name] for name in names}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(out / LOG, f"is no log of a training run ({error})", "name another folder") from None


@contextmanager
def run_folder(out: Path, mark: str) -> Iterator[Path]:
    """The folder of a run's checkpoints, made where this is a new run.

    What is wrong with a recipe may show only now: then nothing stays that would keep the corrected one out.
    """
    work = out / WORK
    if (work / MARK).exists():
        check_same(out, (work / MARK).read_text(encoding="utf-8").strip(), mark)
    elif any((out / name).exists() for name in (CONFIG, WEIGHTS)):
        raise BadInput(out, "holds a model that was not trained here", "name another folder")
    write_text(work / MARK, mark + "\n")
    try:
        yield work
    except WhyrankError:
        if [each.name for each in work.rglob("*") if each.is_file()] == [MARK]:
            shutil.rmtree(work, ignore_errors=True)
        raise


def check_same(out: Path, theirs: str, ours: str) -> None:
    """Raise an error where the mark of a run is that of another one."""
    if theirs != ours:
        what = "holds the run of another recipe, seed, collection or target"
        raise BadInput(out, what, "name another folder, or remove it")
