"""`whyrank tables learn`: a command for each learner of the registry, those of plugins included.

The options of a learner are the fields of its dataclass, besides those of `Learn`. Learners that train a network
first, or that score texts, have a class here with more options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from whyrank.cli.command import description, documented, parameters, refuse, values
from whyrank.cli.console import keeps, plural, say, tell_failures
from whyrank.cli.options import Input, Scoring, open_collection, open_rankers
from whyrank.cli.train import RecipeOptions, has_torch, require_torch
from whyrank.core import WhyrankError, load_plugins

if TYPE_CHECKING:
    from whyrank.tables import TermTable


@dataclass(frozen=True, kw_only=True)
class Learn(Input):
    """Where a table is learned from, and where it is written.

    Attributes:
        out: the table: a .parquet, .arrow, .tsv or .tsv.gz file.
    """

    out: str

    def learn(self, learner: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        """Learn the table of a learner with these settings, and write it."""
        self.save(learner(**settings).learn(self.open_collection()))

    def save(self, table: TermTable, what: str = "") -> None:
        """Write the table and say how large it is."""
        table.save(self.out)
        say(f"{what}{plural(len(table), 'entry', 'entries')}: {self.out}")


@dataclass(frozen=True, kw_only=True)
class LearnEM(Learn):
    """EM says which pairs it learns from, and how the perplexity falls."""

    def learn(self, learner: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        """Learn from the judged queries of the collection."""
        from whyrank.core import exclusive

        em = learner(**settings)
        with exclusive(f"{em.checkpoint}.lock") if em.checkpoint else nullcontext():
            bitext = em.bitext(self.open_collection())
            if count := bitext.facts["queries_without_words"]:
                said = plural(count, "query has no word", "queries have no word")
                say(f"note: {said} under this analyzer and {'is' if count == 1 else 'are'} left out")
            if count := bitext.facts["texts_missing"]:
                said = plural(count, "judged text is not", "judged texts are not")
                say(f"note: {said} in the collection and {'is' if count == 1 else 'are'} left out")
            say(f"{plural(len(bitext), 'pair')}, {plural(bitext.links, 'link')}")
            if em.checkpoint:
                keeps("whole iterations")
            table = em.fit(bitext).table
            self.save(table, f"{_perplexities(table.facts)}; ")


def _perplexities(facts: Mapping[str, Any]) -> str:
    """The perplexities of all tables from the uniform one on; the held-out ones beside them."""
    trained, held = facts["perplexities"], facts.get("held_out_perplexities")
    found = "perplexity " + " ".join(f"{value:.4g}" for value in trained)
    found += ", held out " + " ".join(f"{value:.4g}" for value in held) if held else ""
    kept, gap = facts["iterations"], facts.get("float64_difference")
    found += f"; kept: iteration {kept}, the best held out" if kept < len(trained) - 1 else ""
    return found + (f", double precision differs by {gap:.1e} at most" if gap is not None else "")


@dataclass(frozen=True, kw_only=True)
class LearnLocal(Scoring, Learn):
    """The target is scored with an engine, and what is stored is not scored again."""

    def learn(self, learner: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        """Explain the lists of the target, and add the explanations up."""
        from whyrank.core import check_writable
        from whyrank.learners.local import default_analyzer

        made = learner(**{"analyzer": default_analyzer(), **settings})
        if made.explanations is not None:
            check_writable(made.explanations)
            if Path(made.explanations).resolve() == Path(self.out).resolve():
                raise WhyrankError("--out and --explanations name one file; give each one of its own")
        collection = self.open_collection()
        [target] = open_rankers([made.target], collection, made.analyzer, made.stats, made.precision)
        run = self.open_run(collection, made.candidates) if made.candidates else None
        found = made.explain(collection, target, self.engine(), run)
        tell_failures(found.failures)
        if made.explanations:
            found.save_explanations(made.explanations)
        if bare := sum(not each.words for each in found.explained):
            say(f"note: {plural(bare, 'query', 'queries')} without an explanation word")
        words = plural(sum(len(each.words) for each in found.explained), "explanation word")
        queries = plural(len(found.explained), "query", "queries")
        self.save(found.table, f"{words} of {queries}, terms by {found.table.facts['analyzer']}; ")


@dataclass(frozen=True, kw_only=True)
class LearnNeural(RecipeOptions, Learn):
    """A recipe trains the network first.

    Attributes:
        network: the folder of a neural-model1; with --recipe, where it is trained.
        recipe: first train the network: a YAML file or a bundled recipe.
        seed: instead of the recipe's first seed.
        collection: only tokens of its queries and texts; by default all.
    """

    network: str
    recipe: str | None = None
    seed: int | None = None
    collection: str | None = None  # type: ignore[assignment]

    def learn(self, learner: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        """Train the network where a recipe is named, and write it as a table."""
        from whyrank.core import LOCK, exclusive
        from whyrank.learners import ARCHITECTURE
        from whyrank.training import find_device, prepare, read_recipe, train_seeds

        if self.recipe is None:
            refuse(self, ("set", "seed"), "changes a recipe; name one with --recipe")
        device = find_device(self.device)
        made = learner(resource=self.network, device=device, **settings)
        if self.recipe is not None:
            recipe = read_recipe(self.recipe, self.set)
            if recipe.architecture != ARCHITECTURE:
                what = f"trains {recipe.architecture}; only {ARCHITECTURE} is a table"
                raise WhyrankError(f"recipe {self.recipe!r} {what}")
            keeps("checkpoints")
            with exclusive(Path(self.network) / LOCK):
                seed = recipe.seeds[0] if self.seed is None else self.seed
                train_seeds(prepare(recipe), Path(self.network), [seed], device, say)
        seen = open_collection(self.collection, self.strict) if self.collection else None
        table = made.learn(seen)
        tokens = len(table.query_terms)
        pairs = plural(tokens, "token") if seen else plural(tokens**2, "pair of tokens", "pairs of tokens")
        self.save(table, f"{pairs}, ")
        say(f"score with it: --ranker model1:{self.out}")


@dataclass(frozen=True, kw_only=True)
class LearnParm(RecipeOptions, Scoring, Learn):
    """PaRM is trained on the scores of a target first, unless a trained network is named.

    Attributes:
        target: the ranker to be explained: a call string.
        network: where PaRM is trained; TABLE.parm by default. Without --target, one that is trained.
        recipe: a YAML file, parm or parm-smoke.
        seed: instead of the recipe's first seed.
        collection: learn from it, and take its terms, instead of the recipe's collections; repeatable.
        doc_words: document terms on top: the words of a file, one a line.
        audit: keep all weights of a query term in a second table; repeatable.
        number_format: of the pair scorer: fp32 or bf16; by default bf16 on a GPU.
    """

    target: str | None = None
    network: str | None = None
    recipe: str = "parm-smoke"
    seed: int | None = None
    collection: tuple[str, ...] = ()  # type: ignore[assignment]
    doc_words: str | None = None
    audit: tuple[str, ...] = ()
    number_format: str | None = None

    def learn(self, learner: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        """Train PaRM where a target is named, then score all pairs of terms."""
        from whyrank.core import UnknownName
        from whyrank.data import read_lines
        from whyrank.learners.parm import beside, build_table, check_out, parm_recipe, train_on_target
        from whyrank.networks import read_config
        from whyrank.training import find_device

        if self.target is None:
            if self.network is None:
                raise WhyrankError("tables learn parm needs --target RANKER, or --network FOLDER of a trained parm")
            of_training = ("recipe", "set", "seed", "batch_size", "store", "fresh", "timeout")
            refuse(self, of_training, "is for training; name a --target")
        check_out(self.out, bool(self.audit))
        if self.number_format not in (None, "fp32", "bf16"):
            raise UnknownName("number format", self.number_format, ("fp32", "bf16"))
        folder = Path(self.network) if self.network else beside(self.out, ".parm")
        device, executor = find_device(self.device), replace(self, store="none", timeout=None).engine().executor
        words = [line.text.strip() for line in read_lines(Path(self.doc_words))] if self.doc_words else []
        made = learner(resource=str(folder), doc_words=words, **settings)
        for name in made.queries_of:
            open_collection(name)
        if self.target is not None:
            recipe = parm_recipe(self.target, self.recipe, self.collection, self.set, made.analyzer, say)
            engine = self.engine()
            keeps("scored pairs and checkpoints")
            train_on_target(recipe, self.target, folder, engine, self.seed, device, say)
        keeps("scored blocks")
        names = list(self.collection) or read_config(folder).get("collection") or ["sample"]
        built = build_table(
            made, names, self.out, device, self.number_format or "", self.audit, say, executor=executor
        )
        if built.audit is not None:
            audited = ", ".join(built.audit.facts["audited"])
            say(f"all weights of {audited}: {beside(self.out, '.audit', keep=True)}")
        facts = built.table.facts
        if not len(built.table):
            say(f"note: no pair weighs {facts['threshold']:g} or more; take a smaller --threshold")
        say(f"{plural(len(built.table), 'entry', 'entries')} of {facts['pairs']:,} pairs: {self.out}")
        say(f"rank with it: --ranker bm25t:{self.out}")


FRONTS = {"em": LearnEM, "local-to-global": LearnLocal, "neural": LearnNeural, "parm": LearnParm}
NETWORKS = ("neural", "parm")


class Learners(typer.core.TyperGroup):
    """The learners of the registry as commands, each imported when it is run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Load the plugins that the command names, one of which may bring the learner."""
        load_plugins(value for option, value in pairwise(args) if option == "--plugin")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        from whyrank.learners import table_learners

        return table_learners.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a learner, none for an unknown name."""
        from whyrank.learners import table_learners

        if cmd_name not in table_learners.names():
            return None
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        stub = cmd_name in NETWORKS and not has_torch()  # whatever it is given, it says what is missing
        settings = {"allow_extra_args": stub, "ignore_unknown_options": stub}
        single.command(cmd_name, context_settings=settings)(_command(cmd_name))
        return typer.main.get_command(single)


def _command(name: str) -> Callable[..., None]:
    """A function for typer whose parameters are the options of the front and the fields of the learner."""
    from whyrank.learners import table_learners

    if name in NETWORKS and not has_torch():
        return require_torch
    learner, front = table_learners.factory(name), FRONTS.get(name, Learn)
    own = {field.name for field in fields(front)}
    without = [*own, *(["resource"] if "network" in own else [])]

    def learn(**given: Any) -> None:
        from whyrank.core import check_writable
        from whyrank.tables import writer

        made = front(**values(front, {name: value for name, value in given.items() if name in own}))
        writer(made.out)  # a name or a path that cannot be written is an error before anything is learned
        check_writable(made.out)
        made.learn(learner, values(learner, {name: value for name, value in given.items() if name not in own}))

    return documented(learn, description(learner), [*parameters(front), *parameters(learner, without)])


app = typer.Typer(
    name="learn", cls=Learners, help="Learn a term table.", rich_markup_mode=None, invoke_without_command=True
)


@app.callback()
def learn(context: typer.Context) -> None:
    """Learn a term table; what can be set is shown by `whyrank tables learn LEARNER --help`."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
