"""`whyrank tables learn parm`: the relevance thesaurus of any ranker: train PaRM, then score the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import stopping
from whyrank.cli.setup import make_engine, plural, say
from whyrank.cli.train import Device, Sets, changed, require_torch

if TYPE_CHECKING:
    from whyrank.learners.parm import Built
    from whyrank.training import Recipe

Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="TABLE", help="A .parquet, .arrow, .tsv or .tsv.gz file.", show_default=False
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="RANKER", help="The ranker to explain: a call string.", callback=o.hide_secrets
    ),
]
Network = Annotated[
    Path | None,
    typer.Option(
        "--network",
        metavar="FOLDER",
        help="Where PaRM is trained; TABLE.parm by default. Without --target, one that is trained.",
    ),
]
RecipeName = Annotated[str, typer.Option("--recipe", metavar="RECIPE", help="A YAML file, parm or parm-smoke.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Instead of the recipe's first seed.")]
Collections = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        "-c",
        metavar="SPEC",
        help="Learn from it, and take its terms, instead of the recipe's collections; repeatable.",
    ),
]
Analyzer = Annotated[
    str | None, typer.Option("--analyzer", metavar="SPEC", help="Makes the terms; the recipe's, or the network's.")
]
QueryTerms = Annotated[
    int, typer.Option("--query-terms", metavar="N", help="The N most frequent terms as query terms.", min=1)
]
DocTerms = Annotated[
    int, typer.Option("--doc-terms", metavar="N", help="The N most frequent terms as document terms.", min=1)
]
FromQueries = Annotated[
    bool, typer.Option("--from-queries", help="Query terms are those of the collections' queries only.")
]
QueriesOf = Annotated[
    list[str] | None,
    typer.Option("--queries-of", metavar="SPEC", help="Add all terms of this collection's queries; repeatable."),
]
DocWords = Annotated[
    Path | None,
    typer.Option("--doc-words", metavar="FILE", help="Document terms on top: the words of a file, one a line."),
]
FrameName = Annotated[
    str | None,
    typer.Option("--frame", metavar="NAME", help="What stands around terms: bare, or masks, or runs of a phase 1."),
]
Threshold = Annotated[float, typer.Option("--threshold", help="Pairs with a smaller weight are left out.")]
Top = Annotated[
    int | None, typer.Option("--top", metavar="N", help="The best N document terms of each query term.", min=1)
]
Audit = Annotated[
    list[str] | None,
    typer.Option("--audit", metavar="WORD", help="Keep all weights of a query term in a second table; repeatable."),
]
Precision = Annotated[
    str, typer.Option("--precision", help="Of the pair scorer: fp32 or bf16; by default bf16 on a GPU.")
]
_TRAINING = ("recipe", "set_", "seed", "executor", "batch_size", "store", "fresh", "timeout")


def parm(
    context: typer.Context, out: Out, target: TargetName = None, network: Network = None,
    recipe: RecipeName = "parm-smoke", collection: Collections = None, analyzer: Analyzer = None, set_: Sets = None,
    seed: Seed = None, query_terms: QueryTerms = 10_000, doc_terms: DocTerms = 100_000,
    from_queries: FromQueries = False, queries_of: QueriesOf = None, doc_words: DocWords = None,
    threshold: Threshold = 0.1, top: Top = None, audit: Audit = None, frame: FrameName = None, device: Device = "",
    precision: Precision = "", executor: o.ExecutorOption = "serial", batch_size: o.BatchOption = None,
    store: o.StoreOption = None, fresh: o.FreshOption = False, timeout: o.TimeoutOption = None,
) -> None:  # fmt: skip
    """Learn the relevance thesaurus of a ranker: train PaRM on its scores, then score all pairs of terms."""
    from whyrank.core import UnknownName, WhyrankError
    from whyrank.data import open_collection, read_lines

    o.check_filled(out=out, recipe=recipe, target=target, analyzer=analyzer)
    if target is None and network is None:
        raise WhyrankError("tables learn parm needs --target RANKER, or --network FOLDER of a trained parm")
    for name in _TRAINING if target is None else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise WhyrankError(f"--{name.strip('_').replace('_', '-')} is for training; name a --target")
    require_torch()
    from whyrank.learners.parm import Parm, beside, build_table, check_out
    from whyrank.networks import read_config
    from whyrank.training import checked_device

    check_out(out, bool(audit))
    if precision not in ("", "fp32", "bf16"):
        raise UnknownName("precision", precision, ("fp32", "bf16"))
    folder, chosen = network or beside(out, ".parm"), checked_device(device)
    words = [] if doc_words is None else [line.text.strip() for line in read_lines(doc_words)]
    wanted = Parm(
        str(folder), query_terms, doc_terms, threshold, top, from_queries, analyzer, queries_of or [], words, frame
    )  # fmt: skip
    for name in queries_of or []:
        open_collection(name)
    if target is not None:
        made = _recipe(recipe, target, collection, analyzer, set_ or [])
        engine = executor, batch_size, store, fresh, timeout
        _train(made, target, folder, made.seeds[0] if seed is None else seed, chosen, engine)
    stopping.keeps(stopping.BLOCKS)
    names = collection or read_config(folder).get("collection") or ["sample"]
    _tell(build_table(wanted, names, out, chosen, precision, audit or [], say), out)


def _train(
    recipe: Recipe, target: str, folder: Path, seed: int, device: str,
    engine: tuple[str, int | None, str | None, bool, float | None],
) -> None:  # fmt: skip
    """Train a network in a folder, unless it is trained already."""
    from whyrank.core import LOCK, check_place, exclusive
    from whyrank.learners.parm import check_parm, is_trained, prepare_parm, train_parm

    check_parm(recipe, target)
    check_place(folder / "config.json")
    with exclusive(folder / LOCK):
        if is_trained(folder, recipe, seed):
            say(f"{folder}: trained already")
            return
        prepared = prepare_parm(recipe, target, make_engine(*engine), say)
        stopping.keeps(stopping.TRAINING)
        train_parm(prepared, folder, seed, device, say)


def _recipe(
    name: str, target: str, collections: list[str] | None, analyzer: str | None, settings: list[str]
) -> Recipe:
    """The recipe for a target: -c stands for all collections of a recipe, a preset for its phases."""
    from whyrank.core import WhyrankError
    from whyrank.training import read_recipe, recipe_of

    old = read_recipe(name)
    given = old.data if collections else {}
    cleared = ["data.cut={}"] if isinstance(given.get("cut"), Mapping) else []
    cleared += ["data.without=[]"] if given.get("without") else []
    if old.phases and any(setting.partition("=")[0].strip() == "phases.preset" for setting in settings):
        cleared.append("phases={}")
    made = changed(name, [*cleared, *settings])
    if not made.phases:
        return made
    held = given.get("without")
    if held and not made.data.get("without") and not any(s.startswith("data.without") for s in settings):
        listed = held if isinstance(held, str) else ", ".join(held)
        say(f"note: -c: the recipe's data.without ({listed}) goes too; --set data.without=[NAME] holds texts back")
    if made.data.get("target", target) != target:
        raise WhyrankError(f"--target {target}: the recipe is for {made.data['target']}; change it with --set")
    data = {**made.data, "target": target} | ({"collection": list(collections)} if collections else {})
    data |= {"analyzer": analyzer} if analyzer else {}
    return recipe_of({**made.as_dict(), "data": data})


def _tell(made: Built, out: str) -> None:
    """What was written, in a line for each file."""
    from whyrank.learners.parm import beside

    if made.audit is not None:
        words = ", ".join(made.audit.facts["audited"])
        say(f"all weights of {words}: {beside(out, '.audit', keep=True)}")
    if not len(made.table):
        say(f"note: no pair weighs {made.table.facts['threshold']:g} or more; take a smaller --threshold")
    say(f"{plural(len(made.table), 'entry', 'entries')} of {made.table.facts['pairs']:,} pairs: {out}")
    say(f"rank with it: --ranker bm25t:{out}")
