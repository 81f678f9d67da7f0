"""The report: one HTML file that needs nothing but a browser, no network and no other file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from whyrank.evaluation import OverlapRow, Spread
from whyrank.report import bias as biases
from whyrank.report import overlaps, svg, words
from whyrank.report.arrow import encodable
from whyrank.report.examples import Examples, marker, shorten
from whyrank.report.grid import (
    Row,
    collections_of,
    lean,
    rankers_of,
    rows_of,
    scales_of,
    shade,
    shared_names,
    significant,
    standing,
)
from whyrank.report.overlap_drawing import overlap_panel, top_of
from whyrank.report.pages import csp_hash, new_environment, script_json, source_of, style_of
from whyrank.report.panels import panel, slots_of, swatch
from whyrank.report.slugs import slug
from whyrank.report.spreads import published, stability_groups
from whyrank.report.sweeps import MARKS, StudySweep, sweeps_of
from whyrank.report.tables import to_json
from whyrank.report.verdict import verdicts
from whyrank.studies import Finding, SweepPoint
from whyrank.studies.bias import BiasResult

_FAMILIES = {
    "matched": ("Matched pairs", "Two texts for one query that agree in one measure and differ in another."),
    "edited": ("Edited texts", "A text and a copy of it in which one thing was changed."),
    "transferred": ("Transferred pairs", "Pairs of texts from a data set made for another purpose."),
    "axiom": ("Retrieval axioms", "Texts of which an axiom says which one must win."),
    "bias": (
        "What it favours",
        "Texts that differ in one value of a class, which should not matter to a query that names none.",
    ),
}
_EMPTY: dict[str, Any] = {
    "settings": {}, "thresholds": {}, "failures": {"count": 0, "first": []},
    "notes": [], "versions": {}, "created": "",
}  # fmt: skip


@dataclass(frozen=True)
class Section:
    """All that a report says about one study; `call` is its full call string where the name does not tell all.

    `bias` has the results of a bias study, one per ranker.
    """

    anchor: str
    short: str
    call: str
    row: Row
    groups: Sequence[Row]
    examples: Sequence[tuple[str, Examples]]
    symmetric: bool
    sweep: StudySweep | None = None
    bias: Sequence[BiasResult] = ()


@dataclass(frozen=True)
class Family:
    """The studies of one family."""

    name: str
    title: str
    summary: str
    sections: Sequence[Section]

    @property
    def anchor(self) -> str:
        """Element id of the family's heading."""
        return f"family-{slug(self.name)}"


def render(
    findings: Sequence[Finding],
    record: Mapping[str, Any] | None = None,
    examples: Mapping[tuple[str, str], Examples] | None = None,
    sweep: Sequence[SweepPoint] = (),
    spreads: Sequence[Spread] | None = None,
    overlap: Sequence[OverlapRow] = (),
    bias: Sequence[BiasResult] = (),
    table_page: str | None = None,
) -> str:
    """The report on some findings as HTML.

    Args:
        findings: with corrected p-values.
        record: what `settings.json` of a result folder holds; what is missing is left out.
        examples: contrasts to show, by study and ranker.
        sweep: scores at every percentile of delta, where there was a sweep.
        spreads: how far the rankers of a group differ, where groups were asked for.
        overlap: effectiveness by overlap with the relevant document, where there are judgements.
        bias: the results of bias studies, which have findings too.
        table_page: where a page of the term table lies that these were compared with.
    """
    environment = _environment()
    page = _page(findings, record or {}, examples or {}, sweeps_of(sweep), bias)
    page |= {"stability": stability_groups(spreads, rankers_of(findings)), "table_page": table_page}
    page |= {"overlap": overlaps.by_measure(overlap), "lines": slots_of(row.run for row in overlap)}
    script = Markup(source_of(environment, "report.js").strip())
    style = style_of(environment, "palette", "report", "sweep", "bias")
    template = environment.get_template("report.html.j2")
    return encodable(template.render(page | {"style": style, "script": script, "script_hash": csp_hash(script)}))


@cache
def _environment() -> Environment:
    environment = new_environment()
    environment.filters |= {
        "count": words.count, "figure": words.figure, "p": words.p_value, "signed": words.signed,
        "breakable": words.breakable, "sentence": words.sentence, "anchor": slug,
        "interval": words.interval, "shorten": shorten, "day": _day, "setting": _setting,
        "dropped": words.dropped_words, "share": words.share,
        "share_interval": words.share_interval, "bias_range": words.bias_range, "concludes": words.conclusion_words,
        "agrees": words.agreement_words, "per": words.per, "shares_of": overlaps.shares_of,
        "mean_of": overlaps.mean_of, "interval_of": overlaps.interval_of,
    }  # fmt: skip
    environment.globals |= {
        "stacked_bar": svg.stacked_bar, "interval_bar": svg.interval_bar, "share_bar": svg.share_bar,
        "standing": standing, "lean": lean, "shade": shade, "overlap_panel": overlap_panel, "top_of": top_of,
        "marker": marker, "significant": significant, "panel": panel, "swatch": swatch, "marks": MARKS,
        "published": published, "bias_panel": biases.bias_panel, "bounds": words.bounds, "is_flat": biases.is_flat,
        "is_sure": biases.is_sure, "ranked": biases.ranked, "sure_pairs": biases.sure_pairs,
        "dropped_of": biases.dropped_of, "largest_differences": biases.largest_differences,
    }  # fmt: skip
    return environment


def _page(
    findings: Sequence[Finding],
    record: Mapping[str, Any],
    examples: Mapping[tuple[str, str], Examples],
    sweeps: Mapping[str, StudySweep],
    bias: Sequence[BiasResult],
) -> dict[str, Any]:
    settings = record.get("settings", {})
    alpha = float(settings.get("alpha", 0.05))
    symmetric = {study["name"] for study in record.get("studies", ()) if study.get("symmetric")}
    families = _families(_sections(findings, examples, symmetric, sweeps, biases.by_study(bias)))
    sections = [section for family in families for section in family.sections]
    return {
        "title": _title(rankers_of(findings)),
        "collections": collections_of(findings),
        "several": shared_names(findings),
        "rankers": rankers_of(findings),
        "contrasts": sum(section.row.n for section in sections),
        "sections": sections,
        "families": families,
        "slots": slots_of(ranker for sweep in sweeps.values() for ranker in sweep.scores),
        "controlled": any(section.row.controlled for section in sections),
        "anchors": {(s.row.study, s.row.collection): s.anchor for s in sections},
        "axioms": any(section.row.conclusion for section in sections),
        "favours": any(section.bias for section in sections),
        "directed": any(not section.row.conclusion and not section.bias for section in sections) or not sections,
        "verdicts": verdicts(findings, alpha, symmetric),
        "deltas": words.delta_words([f for f in findings if not f.conclusion]),
        "axiom_deltas": words.delta_words([f for f in findings if f.conclusion]),
        "scales": {ranker: scale for ranker, scale in scales_of(findings).items() if scale},
        "alpha": alpha,
        "correction": words.correction_words(str(settings.get("correction", ""))),
        "by": settings.get("by"),
        "record": _EMPTY | dict(record),
        "findings_json": script_json(to_json(findings)),
    }


def _families(sections: Sequence[Section]) -> list[Family]:
    names = dict.fromkeys(section.row.family for section in sections)
    return [
        Family(name, *_FAMILIES.get(name, (name.capitalize(), "")), [s for s in sections if s.row.family == name])
        for name in names
    ]


def _sections(
    findings: Sequence[Finding],
    examples: Mapping[tuple[str, str], Examples],
    symmetric: set[str],
    sweeps: Mapping[str, StudySweep],
    bias: Mapping[str, Sequence[BiasResult]],
) -> list[Section]:
    rows, several = rows_of(findings), shared_names(findings)
    shorts = _short_names([row.study for row in rows])
    found = []
    for (study, collection), parts in groupby(rows, key=lambda row: (row.study, row.collection)):
        whole, *groups = _whole_first(list(parts))
        anchor = f"study-{slug(study, collection) if several else slug(study)}"
        shown = [(ranker, examples[study, ranker]) for ranker in whole.cells if (study, ranker) in examples]
        section = Section(anchor, shorts[study], _call(whole), whole, groups, shown, study in symmetric)
        found.append(replace(section, sweep=sweeps.get(study), bias=bias.get(study, ())))
    return found


def _call(row: Row) -> str:
    calls = dict.fromkeys(finding.call for finding in row.cells.values() if finding.call != row.study)
    return ", ".join(filter(None, calls))


def _short_names(studies: Sequence[str]) -> dict[str, str]:
    """Studies without family, and without arguments where the rest still tells them apart."""
    return {study: name.partition("/")[2] or name for study, name in _bare(studies).items()}


def _bare(calls: Sequence[str]) -> dict[str, str]:
    """Call strings without their arguments, but for those that would look the same."""
    bare = {call: call.partition("(")[0] for call in calls}
    taken = Counter(bare.values())
    return {call: name if taken[name] == 1 else call for call, name in bare.items()}


def _whole_first(rows: list[Row]) -> list[Row]:
    """The rows of one study; where only groups were given, an empty row stands for the whole."""
    first = rows[0]
    return rows if first.group is None else [Row(first.study, first.collection, None, first.meaning), *rows]


def _title(rankers: Sequence[str]) -> str:
    if not rankers:
        return "No findings"
    if len(rankers) > 3:
        return f"What {len(rankers)} rankers reward"
    *most, last = _bare(rankers).values()
    return f"What {', '.join(most)} and {last} reward" if most else f"What {last} rewards"


def _day(stamp: str) -> str:
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{when.day} {when:%B %Y}"


def _setting(value: Any) -> str:
    """A value of the settings on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
