"""`whyrank train`: train a neural ranker from a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from whyrank.cli.command import argument
from whyrank.cli.console import keeps, plural, say
from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.training import Recipe


@dataclass(frozen=True, kw_only=True)
class RecipeOptions:
    """How a recipe is changed, and where it is trained.

    Attributes:
        set: KEY=VALUE, change the recipe, such as data.collection=PATH; repeatable.
        device: cpu or cuda; by default cuda where there is one.
    """

    set: tuple[str, ...] = ()
    device: str = ""


@dataclass(frozen=True, kw_only=True)
class TrainCommand(RecipeOptions):
    """Train a network (or a tree ensemble) from a recipe; started again after a stop, it goes on.

    Attributes:
        recipe: a YAML file, or the name of a bundled recipe.
        out: folder for the network; one below it per seed if several.
        seed: instead of the recipe's seeds; may be repeated.
    """

    recipe: str = argument("RECIPE")
    out: str
    seed: tuple[int, ...] = ()

    def run(self) -> None:
        """Train."""
        from whyrank.core import LOCK, exclusive
        from whyrank.training import TREES, read_recipe

        recipe, out = read_recipe(self.recipe, self.set), Path(self.out)
        if recipe.architecture == TREES:
            _train_trees(recipe, out, self.seed or recipe.seeds)
            return
        require_torch()
        from whyrank.training import prepare, train_seeds

        with exclusive(out / LOCK):
            prepared = prepare(recipe)
            counts = plural(len(prepared.data.queries), "query", "queries"), plural(len(prepared.data.docs), "text")
            say(f"{recipe.architecture}: {', '.join(counts)}")
            keeps("checkpoints")
            folders = train_seeds(prepared, out, list(self.seed), self.device, say)
            say(f"score with it: --ranker {recipe.architecture}:{folders[0]}")


def _train_trees(recipe: Recipe, out: Path, seeds: Sequence[int]) -> None:
    from whyrank.rankers.ltr import train_recipe

    if len({*seeds}) > 1:
        raise WhyrankError("train: a tree ensemble is one file; give one --seed")
    found = train_recipe(recipe.data, recipe.settings, out, seeds[0])
    fit = f"{plural(found.trees, 'tree')} from {plural(found.queries, 'query', 'queries')}, nDCG@10 {found.ndcg:.4f}"
    say(f"{fit} on what they learned from: {out}")
    say(f"score with it: --ranker ltr:{out}")


def has_torch() -> bool:
    """Whether torch and transformers are installed; neither is imported."""
    return find_spec("torch") is not None and find_spec("transformers") is not None


def require_torch() -> None:
    """Raise an error where torch or transformers are not installed."""
    from whyrank.core import MissingExtra

    if not has_torch():
        raise MissingExtra("training a network", "models")
