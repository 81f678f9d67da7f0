"""The options of commands over studies, and the plan that they make: studies, rankers and delta, all checked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import Whole
from whyrank.cli.console import say
from whyrank.cli.options import Input, Lexical, Scoring, open_rankers, token_limit
from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.core import Ranker, Study
    from whyrank.data import Collection
    from whyrank.studies import Options, Plan, Threshold

PREFIX = "axiom/"
EXPRESSION = f"{PREFIX}expression"
_NAME = re.compile(r"[A-Za-z*?\[][\w./*?\[\]!-]*")


@dataclass(frozen=True, kw_only=True)
class Asking(Scoring, Lexical, Input):
    """What is asked of whom.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2); repeat for several.
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

    def open_rankers(self, collection: Collection) -> list[Ranker]:
        """The rankers over a collection."""
        return open_rankers(self.ranker, collection, self.analyzer, self.stats, self.precision)

    def study_options(self) -> dict[str, Any]:
        """What the options say that studies may accept."""
        from_run = (self.pairs or "judged") != "judged"  # else the run is for the calibration of delta only
        given = {"analyzer": self.analyzer, "compat": self.compat, "pairs": self.pairs, "seed": self.seed,
                 "candidates": self.candidates if from_run else None, "tolerance": self.tolerance,
                 "stats": self.stats}  # fmt: skip
        return {name: value for name, value in given.items() if value is not None} | token_limit(self.max_tokens)


def spelled(given: str) -> str:
    """The pattern or call string that an argument stands for: `axiom/` may be left out, and an expression is one."""
    from whyrank.core import Call, parse_call
    from whyrank.studies import every_kind

    text = name = given.strip()
    with suppress(WhyrankError):  # an expression with brackets is no call string
        name = parse_call(text).name
    names = every_kind().names()
    families = {each.partition("/")[0] for each in names} - {PREFIX.rstrip("/")}
    if name.partition("/")[0] in families or fnmatch.filter(names, name):
        return text
    if not _NAME.fullmatch(name):
        return str(Call(EXPRESSION, None, {"of": text}))
    return text if name.startswith(PREFIX) else PREFIX + text


def open_studies(
    asked: Asking, patterns: Sequence[str], limited: bool = False
) -> tuple[Collection, dict[str, Study], list[str]]:
    """The collection, the studies by name, and notes; a wrong name shows before a large collection is read.

    Where studies are `limited`, the limit is also one of the templates of bias studies.
    """
    from whyrank.studies import every_kind, limit_options, unjudged_options

    catalogue = every_kind()
    by_kind: dict[str, Options] = limit_options(asked.limit) if limited else {}
    studies, notes = _make_studies(asked, patterns, by_kind)
    collection = asked.open_collection()
    has_axioms = any(catalogue.home(name).kind == "axioms" for name in studies)
    if asked.pairs or collection.qrels or not has_axioms:
        return collection, studies, notes
    options = unjudged_options(collection, asked.candidates)
    if not options:
        note = f"{collection.name} has neither judgements nor a run to pair documents of; give --candidates RUN"
        return collection, studies, [*notes, note]
    again, _ = _make_studies(asked, patterns, {**by_kind, **options})
    changed: list[Any] = [study for name, study in again.items() if study.id != studies[name].id]
    if changed:
        where = f"{changed[0].pairs} of {changed[0].candidates or 'the run'}"
        notes += [f"{collection.name} has no judgements, so axioms pair {where} (--pairs, --candidates)"]
    return collection, again if changed else studies, notes


def _make_studies(
    asked: Asking, patterns: Sequence[str], by_kind: Mapping[str, Options]
) -> tuple[dict[str, Study], list[str]]:
    """Studies by call string or by glob, with notes; those that globs find and that cannot run are left out."""
    from whyrank.studies import every_kind

    catalogue = every_kind()
    found = catalogue.make(
        [n for pattern in patterns for n in catalogue.match(pattern)], asked.study_options(), by_kind
    )
    reasons: dict[str, list[str]] = {}
    for name, study in found.items():
        reason = getattr(study, "unavailable", "") if name not in patterns else ""
        if reason:
            reasons.setdefault(reason, []).append(name)
    notes = [f"left out, because {reason}: {', '.join(names)}" for reason, names in reasons.items()]
    lacking = {name for names in reasons.values() for name in names}
    studies = {name: study for name, study in found.items() if name not in lacking}
    if not studies:
        raise WhyrankError("; ".join(notes))
    if asked.compat == "camara-hauff":
        axioms = [name for name in found if catalogue.home(name).kind == "axioms"]
        plain = [name for name in axioms if getattr(found[name], "compat", None) != asked.compat]
        notes += [f"asked as they are, because they have no mode {asked.compat}: {', '.join(plain)}"] if plain else []
    return studies, notes


def make_plan(
    asked: Asking,
    patterns: Sequence[str],
    *,
    table: str | None = None,
    by: str | None = None,
    correction: str = "holm",
    sweep: bool = False,
    groups: Sequence[str] = (),
    limited: bool = False,
) -> Plan:
    """Open everything that the options name; whatever is wrong shows before anything is scored."""
    from whyrank.core import adjust
    from whyrank.evaluation import group_rankers
    from whyrank.studies import Plan, reading_of
    from whyrank.tables import open_table

    adjust([], correction)
    opened = None if table is None else open_table(table, check=True)
    collection, studies, notes = open_studies(asked, patterns, limited)
    if opened is not None and not any(reading_of(study).has_table for study in studies.values()):
        raise WhyrankError("--table is for bias studies, and none of them is asked for; name one, such as 'bias/*'")
    rankers = asked.open_rankers(collection)
    group_rankers(groups, [ranker.name for ranker in rankers])  # a wrong group is an error at once
    plan = Plan(collection, studies, rankers, asked.engine(), seed=asked.seed, limit=asked.limit, by=by)
    used = _thresholds(asked, plan, sweep)
    bare = [ranker for ranker, threshold in used.items() if threshold.calibration is None]
    if sweep and bare:
        ways = "give --candidates RUN or --delta-from COLLECTION"
        raise WhyrankError(f"--sweep needs candidates to calibrate {bare[0]} on; {ways}")
    notes = [*notes, *_tied(studies, used), *_without_chance(studies, used)]
    return replace(plan, thresholds=used, notes=notes, table=opened, correction=correction)


def _thresholds(asked: Asking, plan: Plan, sweep: bool) -> dict[str, Threshold]:
    """Delta for each ranker; a number, or axioms alone, need no calibration, but for a sweep or a named source.

    Studies that can do without a delta take `none` for it, and none where there is nothing to calibrate on.
    """
    from whyrank.studies import (
        Threshold,
        candidates_for_delta,
        needs_calibration,
        reading_of,
        thresholds,
        uncalibrated,
    )

    needed = any(reading_of(study).needs_delta for study in plan.studies.values())
    unknown = {ranker.name: Threshold(known=False).for_ranker(ranker) for ranker in plan.rankers}
    if asked.delta == "none" and not needed:
        return unknown
    named = sweep or (asked.delta is not None and asked.delta_from is not None)
    if not named and not needs_calibration(asked.delta, plan.studies.values()):
        if asked.candidates:  # no such run is an error, whether pairs come from it or not
            asked.open_run(plan.collection, asked.candidates)
        return uncalibrated(asked.delta, plan.rankers)
    found: dict[str, Threshold] = {}
    try:
        if asked.delta_from:
            candidates = candidates_for_delta(asked.open_collection(asked.delta_from))
        else:
            candidates = candidates_for_delta(plan.collection, asked.candidates)
        for ranker in plan.rankers:
            found |= thresholds(asked.delta, [ranker], candidates, plan.engine)
    except WhyrankError as error:
        if needed or asked.delta or asked.delta_from or asked.candidates:
            raise
        lacking = ", ".join(name for name in unknown if name not in found)
        say(f"note: effects of {lacking} are in scores alone: {error}")
    return unknown | found


def _tied(studies: Mapping[str, Study], used: Mapping[str, Threshold]) -> list[str]:
    """A note on each ranker whose tie tolerance decides what is equal in any of the studies."""
    tied = {
        r: t.tolerance for r, t in used.items() if any(t.of(s).delta == t.tolerance > 0 for s in studies.values())
    }
    return [
        f"{ranker}: scores that differ by no more than {least:.3g} count as equal" for ranker, least in tied.items()
    ]


def _without_chance(studies: Mapping[str, Study], used: Mapping[str, Threshold]) -> list[str]:
    """A note on symmetric studies that have no p-value, because nothing says what chance gives."""
    from whyrank.studies import reading_of

    found = [name for name, study in studies.items() if reading_of(study).needs_chance(study)]
    if not found or any(threshold.calibration for threshold in used.values()):
        return []
    why = "delta is given, so it is not calibrated; for p-values give a percentile such as p50, or --delta-from"
    return [f"no p-values for {', '.join(found)}: {why}"]
