"""`whyrank train`: train a neural ranker from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import stopping
from whyrank.cli.setup import plural, say

if TYPE_CHECKING:
    from whyrank.training import Recipe

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A YAML file, or the name of a bundled recipe.")]
Out = Annotated[
    Path, typer.Option("--out", help="Folder for the network; one below it per seed if several.", show_default=False)
]
Seeds = Annotated[list[int] | None, typer.Option("--seed", help="Instead of the recipe's seeds; may be repeated.")]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda; by default cuda where there is one.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe, such as data.collection=PATH; repeatable."),
]


def train(recipe: RecipeName, out: Out, seed: Seeds = None, device: Device = "", set_: Sets = None) -> None:
    """Train a network (or a tree ensemble) from a recipe; started again after a stop, it goes on."""
    from whyrank.core import LOCK, exclusive
    from whyrank.training import TREES

    made = changed(recipe, set_ or [])
    if made.architecture == TREES:
        _train_trees(made, out, seed or made.seeds)
        return
    require_torch()
    from whyrank.training import prepare, train_seeds

    with exclusive(out / LOCK):
        prepared = prepare(made)
        counts = plural(len(prepared.data.queries), "query", "queries"), plural(len(prepared.data.docs), "text")
        say(f"{made.architecture}: {', '.join(counts)}")
        stopping.keeps(stopping.TRAINING)
        folders = train_seeds(prepared, out, seed or [], device, say)
        say(f"score with it: --ranker {made.architecture}:{folders[0]}")


def changed(name: str, settings: list[str]) -> Recipe:
    """The recipe with some of its values replaced."""
    from whyrank.core import WhyrankError
    from whyrank.training import read_recipe, recipe_of

    made = read_recipe(name)
    if not settings:
        return made
    content = made.as_dict()
    for setting in settings:
        path, equals, text = setting.partition("=")
        key, *inner = path.strip().split(".")
        if not equals or not key:
            raise WhyrankError(f"--set {setting}: write KEY=VALUE, such as schedule.epochs=2")
        content[key] = _put(content.get(key), inner, _value(setting, text), setting)
    return recipe_of(content)


def _put(old: Any, keys: list[str], value: Any, setting: str) -> Any:
    """A value in its place; mappings around it are copied."""
    from collections.abc import Mapping

    from whyrank.core import WhyrankError

    if not keys:
        return value
    if old and not isinstance(old, Mapping):
        raise WhyrankError(f"--set {setting}: {old!r} has no keys; set it as a whole")
    return {**(old or {}), keys[0]: _put((old or {}).get(keys[0]), keys[1:], value, setting)}


def _value(setting: str, text: str) -> Any:
    from whyrank.core import WhyrankError
    from whyrank.data import YAML_ERRORS, parse_yaml

    try:
        return parse_yaml(text)
    except YAML_ERRORS:
        raise WhyrankError(f"--set {setting}: {text!r} is no value in YAML; put it in quotes") from None


def _train_trees(recipe: Recipe, out: Path, seeds: Any) -> None:
    from whyrank.core import WhyrankError
    from whyrank.rankers.ltr.training import train_recipe

    if len(set(seeds)) > 1:
        raise WhyrankError("train: a tree ensemble is one file; give one --seed")
    found = train_recipe(recipe.data, recipe.settings, out, seeds[0], replace=False)
    fit = f"{plural(found.trees, 'tree')} from {plural(found.queries, 'query', 'queries')}, nDCG@10 {found.ndcg:.4f}"
    say(f"{fit} on what they learned from: {out}")
    say(f"score with it: --ranker ltr:{out}")


def require_torch() -> None:
    """Raise an error where torch or transformers are not installed."""
    from importlib.util import find_spec

    from whyrank.core import MissingExtra

    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtra("training a network", "models")
