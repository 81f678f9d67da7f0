"""The report: one HTML file that needs nothing but a browser, no network and no other file.

One script may run, which the security policy of the page names by its hash; nothing of a text can become markup.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from whyrank.report import views, words
from whyrank.report.arrow import encodable
from whyrank.report.examples import Examples, marker, shorten
from whyrank.report.tables import to_json
from whyrank.report.views import Row, StudySweep
from whyrank.report.words import slug
from whyrank.studies import LAST
from whyrank.studies.bias import BiasResult

if TYPE_CHECKING:
    from whyrank.report.audit import Audit

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
    sweep: StudySweep | None
    bias: Sequence[BiasResult]


@dataclass(frozen=True)
class StudyFamily:
    """The studies of one family, and charts of their scores."""

    name: str
    title: str
    summary: str
    sections: Sequence[Section]
    charts: Sequence[Markup]

    @property
    def anchor(self) -> str:
        """Element id of the family's heading."""
        return f"family-{slug(self.name)}"


def render(
    audit: Audit, examples: Mapping[tuple[str, str], Examples] | None = None, table_page: str | None = None
) -> str:
    """The report on an audit as HTML.

    Args:
        audit: its findings have corrected p-values; what its record lacks is left out.
        examples: contrasts to show, by study and ranker.
        table_page: where a page of the term table lies that bias studies were compared with.
    """
    from whyrank.report import charts

    findings, record = audit.findings, _EMPTY | audit.record
    alpha, rankers, sweeps = audit.alpha, views.rankers_of(findings), views.sweeps_of(audit.sweep)
    several = views.shared_names(findings)
    sections = _sections(audit, examples or {}, sweeps, several)
    families = _families(sections, alpha, several)
    page: dict[str, Any] = {
        "title": _title(rankers),
        "collections": views.collections_of(findings),
        "several": several,
        "rankers": rankers,
        "contrasts": sum(section.row.n for section in sections),
        "sections": [section for family in families for section in family.sections],
        "families": families,
        "controlled": any(section.row.controlled for section in sections),
        "anchors": {(s.row.study, s.row.collection): s.anchor for s in sections},
        "axioms": any(section.row.conclusion for section in sections),
        "favours": any(section.bias for section in sections),
        "directed": any(not section.row.conclusion and not section.bias for section in sections) or not sections,
        "verdicts": audit.verdicts,
        "deltas": views.delta_words([f for f in findings if not f.conclusion]),
        "axiom_deltas": views.delta_words([f for f in findings if f.conclusion]),
        "scales": {ranker: scale for ranker, scale in views.scales_of(findings).items() if scale},
        "alpha": alpha,
        "correction": words.correction_words(audit.correction),
        "by": audit.settings.get("by"),
        "record": record,
        "findings_json": script_json(to_json(findings)),
        "stability": views.stability_groups(audit.spreads, rankers),
        "overlap": views.by_measure(audit.overlap),
        "table_page": table_page,
        "sweep_chart": None,
        "overlap_chart": None,
        "chart_style": Markup(charts.dark_style()),
        "bias_chart": lambda result: charts.picture(
            charts.bias_chart([result], alpha),
            f"{result.study}: effect of each value on the scores of {result.ranker}",
        ),
    }
    if any(sweep.curves for sweep in sweeps.values()):
        label = f"Scores of each study by percentile of δ of {', '.join(rankers)}"
        page["sweep_chart"] = charts.picture(charts.sweep_chart(audit.sweep), label)
    if audit.overlap:
        runs = ", ".join(dict.fromkeys(row.run for row in audit.overlap))
        label = f"{', '.join(page['overlap'])} by overlap of {runs}"
        page["overlap_chart"] = charts.picture(charts.overlap_chart(audit.overlap), label)
    return fill("report", ("palette", "report"), page)


def fill(name: str, styles: Sequence[str], values: Mapping[str, Any]) -> str:
    """The template `name` with its script and some style sheets inside, filled with values, which are escaped."""
    environment = _environment()
    assert environment.loader is not None
    read = environment.loader.get_source
    script = read(environment, f"{name}.js")[0].strip()
    own = {
        "style": Markup("\n".join(read(environment, f"{style}.css")[0].strip() for style in styles)),
        "script": Markup(script),
        "script_hash": base64.b64encode(sha256(script.encode()).digest()).decode(),
    }
    return encodable(environment.get_template(f"{name}.html.j2").render({**values, **own}))


def script_json(text: str) -> Markup:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("whyrank.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters = (
        words.count, words.figure, words.signed, words.breakable, words.sentence, words.interval, words.share,
        words.share_interval, words.bias_range, words.per, views.shares_of, views.mean_of, views.interval_of, shorten,
    )  # fmt: skip
    functions = (
        views.standing, views.lean, views.shade, views.significant, views.family_deviation, views.is_flat,
        views.by_effect, views.significant_pairs, views.dropped_of, views.largest_differences, words.bounds, marker,
    )  # fmt: skip
    environment.filters |= {function.__name__: function for function in filters} | {
        "p": words.p_value, "dropped": words.dropped_words, "concludes": words.conclusion_words,
        "agrees": words.agreement_words, "day": _day, "setting": _setting,
    }  # fmt: skip
    environment.globals |= {function.__name__: function for function in functions} | {
        "marks": views.MARKS,
        "last": LAST,
    }
    return environment


def _families(sections: Sequence[Section], alpha: float, several: bool) -> list[StudyFamily]:
    """The families in the order of the studies, each with a chart of its scores and one of its axioms."""
    from whyrank.report.charts import forest, picture

    found = []
    for name in dict.fromkeys(section.row.family for section in sections):
        title, summary = _FAMILIES.get(name, (name.capitalize(), ""))
        own = [section for section in sections if section.row.family == name]
        drawn = []
        for what, axioms in (("scores", False), ("shares of satisfied instances", True)):
            rows = {
                f"{section.short} ({section.row.collection})" if several else section.short: section.row
                for section in own
                if bool(section.row.conclusion) is axioms and section.row.charted
            }
            if rows:
                drawn.append(picture(forest(rows, alpha), f"{title}: {what} of each ranker, with 95% intervals"))
        found.append(StudyFamily(name, title, summary, own, drawn))
    return found


def _sections(
    audit: Audit,
    examples: Mapping[tuple[str, str], Examples],
    sweeps: Mapping[str, StudySweep],
    several: bool,
) -> list[Section]:
    rows, bias, symmetric = views.rows_of(audit.findings), views.by_study(audit.details), audit.symmetric
    bare = _bare([row.study for row in rows])
    found = []
    for (study, collection), parts in groupby(rows, key=lambda row: (row.study, row.collection)):
        whole, *groups = parts
        if whole.group is not None:  # only groups were given
            whole, groups = Row(study, collection, None, whole.meaning), [whole, *groups]
        calls = dict.fromkeys(finding.call for finding in whole.cells.values() if finding.call != study)
        found.append(
            Section(
                anchor=f"study-{slug(study, collection) if several else slug(study)}",
                short=bare[study].partition("/")[2] or bare[study],
                call=", ".join(filter(None, calls)),
                row=whole,
                groups=groups,
                examples=[(ranker, examples[study, ranker]) for ranker in whole.cells if (study, ranker) in examples],
                symmetric=study in symmetric,
                sweep=sweeps.get(study),
                bias=bias.get(study, ()),
            )
        )
    return found


def _bare(calls: Sequence[str]) -> dict[str, str]:
    """Call strings without their arguments, but for those that would look the same."""
    bare = {call: call.partition("(")[0] for call in calls}
    taken = Counter(bare.values())
    return {call: name if taken[name] == 1 else call for call, name in bare.items()}


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
