"""`whyrank tables learn`: learn a term table from queries and the texts that answer them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import stopping, tables_local, tables_parm
from whyrank.cli.setup import open_collection, plural, say
from whyrank.cli.train import Sets, changed, require_torch

if TYPE_CHECKING:
    from whyrank.learners.em import Bitext
    from whyrank.tables import TermTable

Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="TABLE", help="A .parquet, .arrow, .tsv or .tsv.gz file.", show_default=False
    ),
]
Iterations = Annotated[int, typer.Option("--iterations", help="Of EM, at most.", min=1)]
Ratio = Annotated[float, typer.Option("--ratio", help="Length of a chunk of text, in lengths of the query.")]
Fertility = Annotated[
    float, typer.Option("--fertility", help="Pairs whose sides differ more in length are left out.")
]
Symmetrise = Annotated[
    bool, typer.Option("--symmetrise/--no-symmetrise", help="Also learn from each pair the other way round.")
]
Sample = Annotated[float, typer.Option("--sample", help="Share of the pairs to learn from, drawn at random.")]
Relevant = Annotated[
    int | None, typer.Option("--relevant", metavar="GRADE", help="Lowest grade that counts; the collection's own.")
]
Most = Annotated[
    int | None, typer.Option("--most", metavar="N", help="Only the N most frequent terms of the judged texts.", min=1)
]
Null = Annotated[bool, typer.Option("--null/--no-null", help="Query words may come from nowhere.")]
Threshold = Annotated[float, typer.Option("--threshold", help="Smaller probabilities are left out of the table.")]
Top = Annotated[
    int, typer.Option("--top", metavar="N", help="Only the N most frequent terms of each side are in it.", min=1)
]
Threads = Annotated[int, typer.Option("--threads", help="The result does not depend on it.", min=1)]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="SIZE", help="For links, such as 8G; the rest lies on disk. Half the machine's."
    ),
]
HeldOut = Annotated[float, typer.Option("--held-out", help="Share of the queries kept for a held-out perplexity.")]
Stop = Annotated[
    float | None, typer.Option("--stop", metavar="SHARE", help="End once perplexity falls by less than this share.")
]
Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", metavar="FILE", help="Keep the state here, and go on from it.")
]
Check = Annotated[bool, typer.Option("--check", help="Learn in double precision too, and compare.")]
Network = Annotated[
    Path, typer.Option("--network", metavar="FOLDER", help="A trained neural-model1.", show_default=False)
]
RecipeName = Annotated[
    str | None,
    typer.Option("--recipe", metavar="RECIPE", help="First train the network: a YAML file or a bundled recipe."),
]
Smallest = Annotated[float, typer.Option("--threshold", help="Smaller T(q|d) are left out of the table.")]
Best = Annotated[
    int | None,
    typer.Option("--top", metavar="N", help="The N largest T(q|d) of each query piece; by default all.", min=1),
]
Seen = Annotated[
    str | None,
    typer.Option("--collection", "-c", metavar="SPEC", help="Only pieces of its queries and texts; by default all."),
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda; by default cuda where there is one.")]
Block = Annotated[
    int | None, typer.Option("--block", metavar="N", help="N x N pairs of pieces are scored at a time.", min=1)
]
Seed = Annotated[int | None, typer.Option("--seed", help="Instead of the recipe's first seed.")]

app = typer.Typer(name="learn", help="Learn a term table.", rich_markup_mode=None)
app.command("parm")(tables_parm.parm)


@app.callback(invoke_without_command=True)
def top(context: typer.Context) -> None:
    """Learn a term table."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("local-to-global")(tables_local.local_to_global)


@app.command("em")
def em(
    out: Out, collection: o.CollectionOption = "sample", analyzer: o.AnalyzerOption = "lucene",
    iterations: Iterations = 5, ratio: Ratio = 1.5, fertility: Fertility = 9.0, symmetrise: Symmetrise = True,
    sample: Sample = 1.0, relevant: Relevant = None, most: Most = None, null: Null = True,
    threshold: Threshold = 1e-3, top: Top = 1_000_000, threads: Threads = 1, memory: Memory = None,
    held_out: HeldOut = 0.0, stop: Stop = None, checkpoint: Checkpoint = None, check: Check = False,
    seed: o.SeedOption = 0, strict: o.StrictOption = False,
) -> None:  # fmt: skip
    """Learn IBM Model 1, T(query term | document term), by EM from relevant texts."""
    from whyrank.core import exclusive
    from whyrank.learners.em import EM

    o.check_filled(out=out, memory=memory, checkpoint=checkpoint)
    _check_name(out)
    learner = EM(
        analyzer, ratio, fertility, symmetrise, sample, relevant, most, iterations, null, threads, memory, held_out,
        stop, threshold, top, seed, checkpoint, check,
    )  # fmt: skip
    with exclusive(f"{checkpoint}.lock") if checkpoint else nullcontext():
        bitext = learner.bitext(open_collection(collection, strict))
        _tell(bitext)
        _tell_stop(checkpoint)
        table, _ = learner.fit(bitext)
        table.save(out)
    say(f"{_perplexities(table)}; {plural(len(table), 'entry', 'entries')}: {out}")


@app.command("neural")
def neural(
    network: Network, out: Out, recipe: RecipeName = None, set_: Sets = None, seed: Seed = None,
    threshold: Smallest = 1e-4, top: Best = None, collection: Seen = None, block: Block = None, device: Device = "",
) -> None:  # fmt: skip
    """Write a neural Model 1 as a table: T(query piece | document piece) of all pieces; a recipe trains it first."""
    o.check_filled(out=out, recipe=recipe, collection=collection)
    _check_name(out)
    require_torch()
    from whyrank.learners import export_table, open_network
    from whyrank.training import checked_device

    _check_training(recipe, set_, seed)
    chosen = checked_device(device)
    if recipe is not None:
        _train_network(recipe, set_ or [], seed, network, chosen)
    seen = open_collection(collection, False) if collection else None
    table = export_table(open_network(network), threshold, block, chosen, top=top, collection=seen)
    table.save(out)
    pieces = len(table.query_terms)
    pairs = plural(pieces, "piece") if seen else plural(pieces**2, "pair of pieces", "pairs of pieces")
    say(f"{pairs}, {plural(len(table), 'entry', 'entries')}: {out}")
    say(f"score with it: --ranker model1:{out}")


def _check_training(recipe: str | None, settings: list[str] | None, seed: int | None) -> None:
    from whyrank.core import WhyrankError

    if recipe is None and (settings or seed is not None):
        raise WhyrankError(f"--{'set' if settings else 'seed'} changes a recipe; name one with --recipe")


def _train_network(recipe: str, settings: list[str], seed: int | None, folder: Path, device: str) -> None:
    from whyrank.core import LOCK, WhyrankError, exclusive
    from whyrank.learners import ARCHITECTURE
    from whyrank.training import prepare, train_seeds

    made = changed(recipe, settings)
    if made.architecture != ARCHITECTURE:
        raise WhyrankError(f"recipe {recipe!r} trains {made.architecture}; only {ARCHITECTURE} is a table")
    stopping.keeps(stopping.TRAINING)
    with exclusive(folder / LOCK):
        train_seeds(prepare(made), folder, [made.seeds[0] if seed is None else seed], device, say)


def _check_name(out: str) -> None:
    """A wrong name is said before anything is learned."""
    from whyrank.tables import writer

    writer(out)


def _tell(bitext: Bitext) -> None:
    for what, one, many in (
        (
            "queries_without_words",
            "query has no word under this analyzer",
            "queries have no word under this analyzer",
        ),
        ("texts_missing", "judged text is not in the collection", "judged texts are not in the collection"),
    ):
        if count := bitext.facts[what]:
            say(f"note: {plural(count, one, many)} and {'is' if count == 1 else 'are'} left out")
    say(f"{plural(len(bitext), 'pair')}, {plural(bitext.links, 'link')}")


def _tell_stop(checkpoint: str | None) -> None:
    if checkpoint:
        stopping.keeps(f"the last whole iteration is kept in {checkpoint}")
    else:
        stopping.keeps_nothing("--checkpoint FILE keeps each iteration, and then the same command goes on from there")


def _perplexities(table: TermTable) -> str:
    """The perplexities of all tables from the uniform one on; the held-out ones beside them."""
    trained, held = table.facts["perplexities"], table.facts.get("held_out_perplexities")
    found = f"perplexity {_series(trained)}"
    found += f", held out {_series(held)}" if held else ""
    kept = table.facts["iterations"]
    found += f"; kept: iteration {kept}, the best held out" if kept < len(trained) - 1 else ""
    gap = table.facts.get("float64_difference")
    return found + (f", double precision differs by {gap:.1e} at most" if gap is not None else "")


def _series(values: list[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)
