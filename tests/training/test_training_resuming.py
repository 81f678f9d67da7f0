"""A run that is stopped and started again is the run that was never stopped."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from full_disks import small_files
from training_models import toy_network, toy_run, train_quietly
from whyrank.core import BadInput
from whyrank.networks import digest, load
from whyrank.training import Trainer, checkpoints
from whyrank.training.running import train
from whyrank.training.trainer import CHECKPOINT, new_optimiser

EVERY = {"validate_every": 3, "checkpoint_every": 2}


class Stopped(Exception):
    """What stops a run here."""


def curve(history):
    return history.losses, history.validations, history.pairs


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that was never stopped: losses, validations, and the folder of the network."""
    out = tmp_path_factory.mktemp("whole")
    return curve(train_quietly(toy_run(schedule=EVERY), out)), out


def assert_same(history, out, whole):
    assert curve(history) == whole[0]
    ours, theirs = load(out).state_dict(), load(whole[1]).state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("stop", [1, 3, 8, 16])
def test_an_exception_at_any_step_changes_nothing(tmp_path, whole, monkeypatch, stop):
    steps = []
    learned = Trainer._learn

    def failing(self, batch):
        steps.append(1)
        if len(steps) == stop:
            raise Stopped
        return learned(self, batch)

    monkeypatch.setattr(Trainer, "_learn", failing)
    with pytest.raises(Stopped):
        train_quietly(toy_run(schedule=EVERY), tmp_path)
    assert_same(train_quietly(toy_run(schedule=EVERY), tmp_path), tmp_path, whole)
    assert len(steps) == 16 + stop - (stop - 1) // 2 * 2


def test_a_stop_while_a_checkpoint_is_written_leaves_the_one_before(tmp_path, whole, monkeypatch):
    written, write_bytes = [], Path.write_bytes

    def half(path, content):
        write_bytes(path, content)
        written.extend([path] if CHECKPOINT in path.name else [])
        if len(written) == 3:
            write_bytes(path, content[:1000])
            raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", half)
        with pytest.raises(Stopped):
            train_quietly(toy_run(schedule=EVERY), tmp_path)
    assert [path.name for path in (tmp_path / "unfinished").iterdir() if path.suffix != ".txt"] == [CHECKPOINT]
    assert_same(train_quietly(toy_run(schedule=EVERY), tmp_path), tmp_path, whole)


def test_the_best_weights_survive_a_stop(tmp_path, monkeypatch):
    """The best validation lies before the stop, the rest of the run after it."""
    values = iter([0.9, 0.1, 0.1])
    best = []

    def validate(self, network):
        best.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        return next(values)

    monkeypatch.setattr("whyrank.training.validation.Validation.__call__", validate)
    schedule = {"validate_every": 6, "checkpoint_every": 6}
    with monkeypatch.context() as patched:
        patched.setattr(
            Trainer, "_checkpoint", lambda self, step, kept=Trainer._checkpoint: (kept(self, step), 1 / 0)
        )
        with pytest.raises(ZeroDivisionError):
            train_quietly(toy_run(schedule=schedule), tmp_path)
    history = train_quietly(toy_run(schedule=schedule), tmp_path)
    assert history.validations == [(6, 0.9), (12, 0.1), (16, 0.1)]
    assert all(torch.equal(tensor, best[0][name]) for name, tensor in load(tmp_path).state_dict().items())


def test_a_finished_run_is_not_trained_again(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(Trainer, "run", lambda self: 1 / 0)
    said = []
    history = train(toy_run(schedule=EVERY), whole[1], say=said.append)
    assert said == [f"{whole[1]}: trained already"]
    assert curve(history) == whole[0]
    assert sorted(path.name for path in whole[1].iterdir()) == [
        "checksums.json", "config.json", "log.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip


@pytest.mark.parametrize("finished", [True, False])
def test_another_run_is_not_mixed_in(tmp_path, whole, finished, monkeypatch):
    out = whole[1]
    if not finished:
        out = tmp_path
        monkeypatch.setattr(Trainer, "run", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_quietly(toy_run(schedule=EVERY), out)
    for other, seed in (
        (toy_run(schedule=EVERY), 1),
        (toy_run(schedule=EVERY | {"rate": 1e-5}), 0),
        (toy_run(negatives=2), 0),
    ):
        with pytest.raises(BadInput, match="another"):
            train_quietly(other, out, seed=seed)


def test_a_model_that_was_not_trained_here_is_left_alone(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"precious")
    with pytest.raises(BadInput, match="not trained here"):
        train_quietly(toy_run(), tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == b"precious"


def test_a_broken_checkpoint_is_one_clear_line(tmp_path):
    path, network = tmp_path / CHECKPOINT, toy_network()
    optimiser = new_optimiser(network, toy_run().recipe.schedule_for(0))
    assert checkpoints.load_checkpoint(path, network, optimiser) is None
    for content in (b"", b"nonsense" * 100):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=r"broken checkpoint[^\n]*remove it"):
            checkpoints.load_checkpoint(path, network, optimiser)
    checkpoints.save_checkpoint(path, torch.nn.Linear(2, 2), torch.optim.AdamW([torch.zeros(1)]), {"step": 1})
    with pytest.raises(BadInput, match="broken checkpoint"):
        checkpoints.load_checkpoint(path, network, optimiser)


@pytest.mark.parametrize(("options", "device"), [({"fused": True}, "meta"), ({"fused": None}, "cpu")])
def test_the_count_of_steps_goes_where_the_optimiser_looks_for_it(tmp_path, options, device):
    """Fused optimisers of a device want it there, all others on the processor; moments lie with their parameters."""
    parameter = torch.zeros(2, device="meta")
    optimiser = SimpleNamespace(param_groups=[{"params": [parameter], **options}], state=defaultdict(dict))
    moments = {"optimiser.0.step": torch.tensor(3.0), "optimiser.0.exp_avg": torch.ones(2)}
    path = tmp_path / CHECKPOINT
    checkpoints.write_tensors(path, moments | {"random.cpu": torch.get_rng_state()}, {"progress": "{}"})
    checkpoints.load_checkpoint(path, torch.nn.Identity(), optimiser)  # type: ignore[arg-type]
    state = optimiser.state[parameter]
    assert (state["step"].device.type, state["exp_avg"].device.type) == (device, "meta")


@pytest.mark.parametrize(("size", "schedule", "what"), [
    (9000, EVERY, rf"{CHECKPOINT}: cannot be written"),
    (9000, {}, r"model\.safetensors: cannot be written"),
])  # fmt: skip
def test_a_full_disk_is_one_line_and_training_goes_on_later(tmp_path, size, schedule, what):
    with small_files(size), pytest.raises(BadInput, match=rf"{what} \(File too large\); free the disk"):
        train_quietly(toy_run(schedule=schedule), tmp_path / "out")
    assert not list(tmp_path.rglob(".*.tmp"))
    train_quietly(toy_run(schedule=schedule), tmp_path / "out")
    train_quietly(toy_run(schedule=schedule), tmp_path / "whole")
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")
