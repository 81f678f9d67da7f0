"""The options of commands over studies, and the plan that they make: studies, rankers and delta, all checked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyrank.cli.options import Input, RankerOptions, Scoring, token_limit
from whyrank.core import Whole, WhyrankError

if TYPE_CHECKING:
    from whyrank.studies import Request

PREFIX = "axiom/"
EXPRESSION = f"{PREFIX}expression"
_NAME = re.compile(r"[A-Za-z*?\[][\w./*?\[\]!-]*")


@dataclass(frozen=True, kw_only=True)
class StudyOptions(Scoring, RankerOptions, Input):
    """Which contrasts rankers score, and how large a difference counts.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2), or NAME=SPEC to give it a name; repeat for several.
        compat: reproduce published behaviour, slips included: abnirml (probes), camara-hauff (axioms) or
            relevance-thesaurus (bias studies).
        pairs: which documents of a query are paired or edited: judged, top:K or all (pair sets are named in call
            strings).
        candidates: a run file, or the name of a run of the collection.
        max_tokens: axioms cut texts to so many tokens, to count and to score; 512, or none.
        tolerance: how far matched values may lie apart: a number, or N%.
        delta: score differences up to this are neutral, a number or a percentile; p50 is the median of the
            calibration. Default: p50, axioms 0.
        delta_from: calibrate on another collection's candidates.
        seed: seed of everything random.
        limit: at most N contrasts per study (of a bias study N templates), drawn at random.
    """

    ranker: tuple[str, ...] = ()
    compat: str | None = None
    pairs: str | None = None
    candidates: str | None = None
    max_tokens: str | None = None
    tolerance: str | None = None
    delta: str | None = None
    delta_from: str | None = None
    seed: int = 0
    limit: Whole | None = None

    def study_options(self) -> dict[str, Any]:
        """What the options say that studies may accept."""
        given = {"analyzer": self.analyzer, "compat": self.compat, "pairs": self.pairs, "tolerance": self.tolerance,
                 "stats": self.stats}  # fmt: skip
        return {name: value for name, value in given.items() if value is not None} | token_limit(self.max_tokens)


def study_pattern(given: str) -> str:
    """The pattern or call string that an argument stands for: `axiom/` may be left out, and an expression is one."""
    from whyrank.core import Call, parse_call
    from whyrank.studies import all_studies

    text = name = given.strip()
    with suppress(WhyrankError):  # an expression with brackets is no call string
        name = parse_call(text).name
    names = all_studies().names()
    families = {each.partition("/")[0] for each in names} - {PREFIX.rstrip("/")}
    if name.partition("/")[0] in families or fnmatch.filter(names, name):
        return text
    if not _NAME.fullmatch(name):
        return str(Call(EXPRESSION, None, {"of": text}))
    return text if name.startswith(PREFIX) else PREFIX + text


def make_request(options: StudyOptions, patterns: Sequence[str], **more: Any) -> Request:
    """The request that the options of a command make."""
    from whyrank.studies import Request

    source = options.delta_from
    return Request(
        studies=patterns,
        collection=options.open_collection,
        rankers=lambda collection: options.open_rankers(options.ranker, collection),
        engine=options.engine(),
        options=options.study_options(),
        candidates=options.candidates,
        delta=options.delta,
        delta_from=None if source is None else lambda: options.open_collection(source),
        seed=options.seed,
        limit=options.limit,
        strict=options.strict,
        **more,
    )
