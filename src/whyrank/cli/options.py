"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from whyrank.core import WhyrankError


def hide_secrets(given: Any) -> Any:
    """Call strings of rankers as the program keeps them: without values that may be secrets."""
    from whyrank.rankers import hide_values

    if given is None:
        return None
    return hide_values(given) if isinstance(given, str) else [hide_values(each) for each in given]


CollectionOption = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        metavar="SPEC",
        help="A folder, PATH:SPLIT, a BEIR folder, irds:ID, or 'sample'.",
    ),
]
RankerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ranker",
        "-r",
        metavar="SPEC",
        help="A ranker's call string, such as bm25(k1=1.2); repeat for several.",
        callback=hide_secrets,
    ),
]
AnalyzerOption = Annotated[
    str,
    typer.Option(
        "--analyzer",
        metavar="SPEC",
        help="How words are counted: lucene, krovetz, terrier(stopwords=FILE), whitespace, ...",
    ),
]
StatsOption = Annotated[
    str | None,
    typer.Option(
        "--stats",
        metavar="COLLECTION|FILE",
        help="Background statistics of lexical rankers and axioms, if not the collection's own.",
    ),
]
PrecisionOption = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="exact|fast",
        help="How neural rankers compute that do not say it themselves: fast is bf16 where the hardware has it.",
    ),
]
CompatOption = Annotated[
    str | None,
    typer.Option(
        "--compat",
        metavar="NAME",
        help="Reproduce published behaviour, slips included: abnirml (probes), camara-hauff (axioms) or "
        "relevance-thesaurus (bias studies).",
    ),
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        metavar="judged|top:K|all",
        help="Which documents of a query are paired or edited (pair sets are named in call strings).",
    ),
]
MaxTokensOption = Annotated[
    str | None,
    typer.Option(
        "--max-tokens", metavar="N|none", help="Axioms cut texts to so many tokens, to count and to score; 512."
    ),
]
CandidatesOption = Annotated[
    str | None,
    typer.Option("--candidates", metavar="RUN", help="A run file, or the name of a run of the collection."),
]
ToleranceOption = Annotated[
    str | None, typer.Option("--tolerance", metavar="X|N%", help="How far matched values may lie apart.")
]
DeltaOption = Annotated[
    str | None,
    typer.Option(
        "--delta",
        metavar="VALUE|pNN",
        help="Score differences up to this are neutral; p50 = the median of the calibration. Default: p50, axioms 0.",
    ),
]
DeltaFromOption = Annotated[
    str | None,
    typer.Option("--delta-from", metavar="COLLECTION", help="Calibrate on another collection's candidates."),
]
AlphaOption = Annotated[
    float, typer.Option("--alpha", help="Level of significance, after correction.", min=0.0, max=1.0)
]
CorrectionOption = Annotated[
    str,
    typer.Option("--correction", metavar="NAME", help="Over the whole table: holm, bonferroni, bh or none."),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="LABEL", help="Break findings down by a label, such as relevance_group or relevance."
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        help="At most N contrasts per study (of a bias study N templates), drawn at random.",
        min=1,
    ),
]
ExecutorOption = Annotated[str, typer.Option("--executor", metavar="NAME", help="serial or processes.")]
BatchOption = Annotated[
    int | None, typer.Option("--batch-size", metavar="N", help="Pairs per call of the ranker.", min=1)
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Where scores are kept; 'none' keeps nothing. Default: the user's cache folder.",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Delete what the store has of these rankers, and score anew.")
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="Most seconds for a batch; pairs that take longer alone count as without a score.",
    ),
]
OutOption = Annotated[str | None, typer.Option("--out", "-o", metavar="PATH", help="Where the result is written.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Make doubtful input an error: judgements that point nowhere.")
]
FormatOption = Annotated[
    list[str] | None,
    typer.Option("--format", metavar="NAME", help="Also write tables: markdown, csv, latex; repeat for several."),
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="GLOB",
        help="Rankers that belong together, such as one model trained with several seeds; shows how far they differ.",
    ),
]
SweepOption = Annotated[
    bool, typer.Option("--sweep", help="Also show the scores at every percentile of the calibration of delta.")
]


def check_filled(**given: str | None) -> None:
    """Raise an error for an option that is given and empty."""
    for name in (name for name, value in given.items() if value == ""):
        raise WhyrankError(f"--{name.replace('_', '-')} is empty; give a value or leave the option out")


def token_limit(given: str | None) -> dict[str, int | None]:
    """The argument `max_tokens` of axioms that `--max-tokens` stands for; none where the option is left out."""
    if given is None:
        return {}
    if given == "none":
        return {"max_tokens": None}
    if not (given.isascii() and given.isdigit() and int(given)):
        raise WhyrankError(f"--max-tokens {given!r}: give a whole number, 1 or more, or none")
    return {"max_tokens": int(given)}
