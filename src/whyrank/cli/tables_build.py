"""`whyrank tables build`: the term table of a PaRM over the vocabulary of collections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli import stopping
from whyrank.cli.setup import plural, say
from whyrank.cli.train import require_torch

if TYPE_CHECKING:
    from whyrank.learners.parm import Build, Built
    from whyrank.learners.parm.pairs import How

Network = Annotated[
    Path | None, typer.Argument(metavar="[NETWORK]", help="The folder of a parm network.", show_default=False)
]
Out = Annotated[
    str | None, typer.Option("--out", "-o", metavar="TABLE", help="A .parquet, .arrow, .tsv or .tsv.gz file.")
]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", "-c", metavar="SPEC", help="Whose texts are counted; repeat for several. sample."),
]
Analyzer = Annotated[
    str | None,
    typer.Option("--analyzer", metavar="SPEC", help="Makes the terms; the network's own, or lucene."),
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
Cascade = Annotated[bool, typer.Option("--cascade", help="Score what a student proposes, with a bound on recall.")]
Recall = Annotated[float, typer.Option("--recall", help="With --cascade: the lower bound that is aimed at.")]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        min=1,
        help="With --cascade: pairs of a sample; 20,000, on a GPU 4,000,000, or what --recall takes.",
    ),
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda; by default cuda where there is one.")]
Precision = Annotated[str, typer.Option("--precision", help="fp32 or bf16; by default bf16 on a GPU.")]
Way = Annotated[str, typer.Option("--way", help="How pairs are scored; auto takes the fastest.")]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="End after so long; the same command goes on.", min=0.0)
]
Block = Annotated[
    int | None, typer.Option("--block", metavar="N", help="Pairs of a block, which is what a stop costs.", min=1)
]
Prepare = Annotated[
    Path | None,
    typer.Option("--prepare", metavar="FOLDER", help="Score nothing; write what another machine needs."),
]
Bits = Annotated[int, typer.Option("--bits", help="With --prepare: of the copied weights, 32 or 16.")]
Without = Annotated[
    bool,
    typer.Option("--without-network", help="With --prepare: leave it out; NETWORK needs a tokenizer.json only."),
]
Collect = Annotated[
    Path | None, typer.Option("--collect", metavar="FOLDER", help="Make the table of a folder that was scored.")
]
Results = Annotated[
    Path | None,
    typer.Option("--results", metavar="FOLDER", help="With --collect: what came back; by default FOLDER/results."),
]


_ALONE = {"bits": "prepare", "without_network": "prepare", "recall": "cascade", "sample": "cascade"}
_COLLECTING = {"collect", "out", "top", "results"}
_SCORING = {"device", "precision", "way", "seconds", "block"}


def build(
    context: typer.Context, network: Network = None, out: Out = None, collection: Collections = None,
    analyzer: Analyzer = None, query_terms: QueryTerms = 10_000, doc_terms: DocTerms = 100_000,
    from_queries: FromQueries = False, queries_of: QueriesOf = None, threshold: Threshold = 0.1, top: Top = None,
    audit: Audit = None, cascade: Cascade = False, recall: Recall = 0.99, sample: Sample = None, device: Device = "",
    precision: Precision = "", way: Way = "auto", seconds: Seconds = None, block: Block = None,
    prepare: Prepare = None, bits: Bits = 32, without_network: Without = False, collect: Collect = None,
    results: Results = None, frame: FrameName = None, doc_words: DocWords = None,
    seed: o.SeedOption = 0,
) -> None:  # fmt: skip
    """Build the term table of a PaRM: the weights of all pairs of terms, small ones left out."""
    require_torch()
    o.check_filled(out=out, analyzer=analyzer)
    _check(network, out, prepare, collect, bits, cascade, sample)
    _check_used([name for name in context.params if _is_given(context, name)])
    from whyrank.core import WhyrankError
    from whyrank.data import read_lines
    from whyrank.learners.parm import Build
    from whyrank.learners.parm.pairs import Settings, how_of

    if collect is not None:
        _collect(collect, str(out), top, results)
        return
    if results is not None:
        raise WhyrankError("--results is for --collect alone")
    method = "cascade" if cascade else "exhaustive"
    settings = Settings(threshold, (), method, recall, sample=sample, seed=seed, top=top)
    found = [*(collection or ["sample"])]
    sizes = query_terms, doc_terms, from_queries
    words = [] if doc_words is None else [line.text.strip() for line in read_lines(doc_words)]
    asked = Build(Path(str(network)), found, analyzer, *sizes, audit or [], settings, queries_of or [], frame, words)
    if prepare is not None:
        _prepare(asked, prepare, bits, not without_network)
        return
    stopping.keeps(stopping.BLOCKS)
    _build(asked, str(out), how_of(device, precision, way, seconds)._replace(block=block), top)


def _check(
    network: Path | None, out: str | None, prepare: Path | None, collect: Path | None, bits: int, *cascade: Any
) -> None:
    from whyrank.core import WhyrankError
    from whyrank.tables import check_suffix

    if (network is None) == (collect is None):
        raise WhyrankError("tables build needs a NETWORK, or --collect FOLDER for one that was scored elsewhere")
    if (out is None) == (prepare is None):
        raise WhyrankError("tables build needs --out TABLE, or --prepare FOLDER to score elsewhere")
    if collect is not None and prepare is not None:
        raise WhyrankError("--prepare and --collect exclude each other; choose one")
    if bits not in (16, 32):
        raise WhyrankError(f"--bits {bits}: weights have 32 or 16 bits")
    if cascade[1] is not None and not cascade[0]:
        raise WhyrankError("--sample is for --cascade alone")
    if out is not None:
        check_suffix(out)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_used(given: list[str]) -> None:
    """Raise an error for an option that would change nothing."""
    from whyrank.core import WhyrankError

    for name in given:
        option, needed = f"--{name.replace('_', '-')}", _ALONE.get(name, name)
        if "collect" in given and name not in _COLLECTING:
            raise WhyrankError(f"{option} changes nothing of what was scored; leave it out with --collect")
        if "prepare" in given and name in _SCORING:
            raise WhyrankError(f"{option} is for scoring; give it there, not with --prepare")
        if needed not in given:
            raise WhyrankError(f"{option} is for --{needed} alone")


def _prepare(asked: Build, folder: Path, bits: int, copy: bool) -> None:
    from whyrank.learners.parm import prepare_build

    task = prepare_build(asked, folder, copy, bits)
    sides = len(task.queries.of_term), len(task.docs.of_term)
    pairs = f"{plural(task.pairs, 'distinct pair')} of {task.pieces:.1f} pieces on average"
    say(f"{sides[0]:,} x {sides[1]:,} terms, {pairs}: {folder}")
    say(f"score it with `python -m whyrank.learners.parm.pairs.main {folder}{'' if copy else ' --network NETWORK'}`")
    say(f"then here: whyrank tables build --collect {folder} --out TABLE")


def _collect(folder: Path, out: str, top: int | None, results: Path | None) -> None:
    from whyrank.learners.parm import check_out, collect_build, write_built

    check_out(out)
    made = collect_build(folder, top, results)
    write_built(made, out)
    _tell(made, out)


def _build(asked: Build, out: str, how: How, top: int | None) -> None:
    from whyrank.learners.parm import build_table

    made = build_table(asked, out, how, top, say)
    if made is not None:
        _tell(made, out)


def _tell(made: Built, out: str) -> None:
    """What was built, in a line for each file."""
    from whyrank.learners.parm import audit_file

    proof = made.table.facts.get("certificate")
    if proof:
        say(_proven(proof, made.table.facts))
    if made.audit is not None:
        words = ", ".join(made.audit.facts["audited"])
        say(f"all weights of {words}: {audit_file(out)}")
    if not len(made.table):
        say(f"note: no pair weighs {made.table.facts['threshold']:g} or more; take a smaller --threshold")
    say(f"{plural(len(made.table), 'entry', 'entries')} of {made.table.facts['pairs']:,} pairs: {out}")
    say(f"rank with it: --ranker bm25t:{out}")


def _proven(proof: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """What a certificate says, and of which pairs: a table with the best of each query term has fewer."""
    if proof["level"] == 1:
        return "all pairs were scored, so none is missed"
    short = f", not the {proof['asked']:g} that was asked for" if proof["recall"] < proof.get("asked", 0) else ""
    pairs = f"pairs that weigh {facts['threshold']:g} or more{', before --top' if 'top' in facts else ''}"
    return (
        f"recall of at least {proof['recall']:.4f} of the {pairs}, with a probability of {proof['level']:.0%}{short}"
    )
