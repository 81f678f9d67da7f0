"""`whyrank tables learn parm`: train the network behind a relevance thesaurus of any ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import stopping
from whyrank.cli.setup import make_engine, say
from whyrank.cli.train import Device, Seeds, Sets, changed, require_torch

if TYPE_CHECKING:
    from whyrank.learners.parm import ParmPrepared
    from whyrank.training import Recipe

RecipeName = Annotated[str, typer.Option("--recipe", metavar="RECIPE", help="A YAML file, parm or parm-smoke.")]
TargetName = Annotated[
    str,
    typer.Option(
        "--target", "-t", metavar="RANKER", help="The ranker to explain: a call string.", callback=o.hide_secrets
    ),
]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", "-c", metavar="SPEC", help="Learn from it, instead of the recipe's; repeatable."),
]
Network = Annotated[
    Path | None, typer.Option("--network", metavar="FOLDER", help="Where the network is written; one below per seed.")
]
Prepare = Annotated[
    Path | None,
    typer.Option("--prepare", metavar="FOLDER", help="Train nothing; write what `python -m whyrank.learners` needs."),
]
Bits = Annotated[int, typer.Option("--bits", metavar="8|16|32", help="Of models' weights in a prepared folder.")]
Beside = Annotated[
    Path | None,
    typer.Option("--beside", metavar="FOLDER", help="Prepare for the texts and encoder of another prepared folder."),
]


def parm(
    target: TargetName, recipe: RecipeName = "parm-smoke", collection: Collections = None, network: Network = None,
    prepare: Prepare = None, bits: Bits = 32, beside: Beside = None, set_: Sets = None, seed: Seeds = None,
    device: Device = "",
    executor: o.ExecutorOption = "serial", batch_size: o.BatchOption = None, store: o.StoreOption = None,
    fresh: o.FreshOption = False, timeout: o.TimeoutOption = None,
) -> None:  # fmt: skip
    """Train PaRM, which explains a ranker by pairs of terms; `tables build` makes a table of it."""
    from whyrank.core import LOCK, WhyrankError, exclusive

    o.check_filled(recipe=recipe, target=target)
    if (network is None) == (prepare is None):
        raise WhyrankError("tables learn parm needs --network FOLDER (or --prepare FOLDER to train elsewhere)")
    _check_places(network, prepare, bits, beside)
    require_torch()
    made = _recipe(recipe, target, collection, set_ or [])
    from whyrank.learners.parm import check_parm, check_place, prepare_parm
    from whyrank.training import checked_device

    check_parm(made, target)
    if prepare is not None:
        check_place(prepare, bits)
    chosen = checked_device(device)
    engine = make_engine(executor, batch_size, store, fresh, timeout)
    if prepare is not None:
        _save(prepare, prepare_parm(made, target, engine, travels=True, say=say), bits, beside)
    elif network is not None:
        with exclusive(network / LOCK):
            _train(prepare_parm(made, target, engine, travels=False, say=say), network, seed or [], chosen)


def _check_places(network: Path | None, prepare: Path | None, bits: int, beside: Path | None) -> None:
    """What cannot be written, or would change nothing, is said before the target is asked."""
    from whyrank.core import WhyrankError, check_place

    if network is not None:
        check_place(network / "config.json")
    if prepare is None and (bits != 32 or beside is not None):
        raise WhyrankError(f"--{'bits' if bits != 32 else 'beside'} is for --prepare alone")


def _recipe(name: str, target: str, collections: list[str] | None, settings: list[str]) -> Recipe:
    from whyrank.core import WhyrankError
    from whyrank.training import read_recipe, recipe_of

    old = read_recipe(name)
    made = changed(name, [*_cleared(old, collections, settings), *settings])
    if not made.phases:
        return made
    if collections and not made.data.get("without") and not any(s.startswith("data.without") for s in settings):
        _say_free(old.data.get("without"))
    if made.data.get("target", target) != target:
        raise WhyrankError(f"--target {target}: the recipe is for {made.data['target']}; change it with --set")
    data = {**made.data, "target": target} | ({"collection": list(collections)} if collections else {})
    return recipe_of({**made.as_dict(), "data": data})


def _cleared(old: Recipe, collections: list[str] | None, settings: list[str]) -> list[str]:
    """Settings that go before the given ones: -c stands for all collections of a recipe, a preset for its phases."""
    given = old.data if collections else {}
    found = ["data.cut={}"] if isinstance(given.get("cut"), Mapping) else []
    found += ["data.without=[]"] if given.get("without") else []
    preset = any(setting.partition("=")[0].strip() == "phases.preset" for setting in settings)
    return [*found, "phases={}"] if preset and old.phases else found


def _say_free(names: str | Sequence[str] | None) -> None:
    """A note on the collections that a recipe holds back, where that went with its own collections."""
    if names:
        listed = names if isinstance(names, str) else ", ".join(names)
        say(f"note: -c: the recipe's data.without ({listed}) goes too; --set data.without=[NAME] holds texts back")


def _save(folder: Path, prepared: ParmPrepared, bits: int, beside: Path | None) -> None:
    from whyrank.learners.parm import save_parm

    save_parm(folder, prepared, bits, beside)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    say(f"prepared: {folder} ({size / 2**20:,.1f} MiB)")
    say(f"train there with `python -m whyrank.learners {folder} --out OUT`")


def _train(prepared: ParmPrepared, network: Path, seeds: list[int], device: str) -> None:
    from whyrank.learners.parm import train_parm

    stopping.keeps(stopping.TRAINING)
    folders = train_parm(prepared, network, seeds, device, say)
    named = " ".join(f"-c {name}" for name in prepared.facts["collection"])
    words = f"--analyzer '{prepared.facts['analyzer']}' {named}"
    say(f"build its table: whyrank tables build {folders[0]} --out TABLE.parquet {words}")
