"""The report: one HTML file that needs nothing but a browser, no network and no other file.

One script may run, which the security policy of the page names by its hash; nothing of a text can become markup.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from whyrank.report import views, words
from whyrank.report.arrow import encodable, plain
from whyrank.report.examples import Compared, Example, Examples, compared, marker, shorten
from whyrank.report.sentences import LEAST, Headline, headlines
from whyrank.report.themes import GLOSSARY, RANKERS, THEMES, Words, label_of, theme_of, words_for
from whyrank.report.views import Row, StudySweep
from whyrank.report.words import slug
from whyrank.studies import FEW_QUERIES, LAST, Finding
from whyrank.studies.bias import BiasResult

if TYPE_CHECKING:
    from whyrank.report.audit import Audit

_EMPTY: dict[str, Any] = {
    "settings": {}, "thresholds": {}, "failures": {"count": 0, "first": []},
    "notes": [], "versions": {}, "created": "",
}  # fmt: skip
_FORMS = {"rank steps": "rank step", "pairs": "pair", "queries": "query", "prefers": "prefers", "favours": "bias",
          "the original": "original"}  # fmt: skip
_TERMS = re.compile(rf"\b(?:{'|'.join(_FORMS)})\b")
_CONTENTS = {"sweeps": "Rank steps", "table": "Term table"}  # where the id of a section is not its title
_FEW_PAIRS = 30  # below, a row is pale
_FIRST_SCREEN = 150  # words
_ROOMS = (12, 9, 7, 5, 4, 3)  # words of either text of an example there, as many as there is room for


@dataclass(frozen=True)
class Section:
    """All that a report says about one study; `call` is its full call string, `bias` has a result per ranker."""

    anchor: str
    label: str
    theme: str
    about: Words | None
    call: str
    row: Row
    groups: Sequence[Row]
    examples: Sequence[tuple[str, Examples]]
    symmetric: bool
    sweep: StudySweep | None
    bias: Sequence[BiasResult]

    @property
    def few(self) -> bool:
        """Whether there are too few pairs or queries to rely on."""
        return self.row.n < _FEW_PAIRS or self.row.n_queries < FEW_QUERIES

    @property
    def answers(self) -> list[float | None]:
        """A figure per ranker to sort by: the score, or the range of a bias study."""
        return [f.score if f.range is None else f.range_deltas or f.range for f in self.row.cells.values() if f.n]

    def favours(self, alpha: float) -> dict[str, list[str]]:
        """Which name is favoured over which in a bias study, and by which rankers."""
        found: dict[str, list[str]] = {}
        for f in self.row.cells.values():
            if views.is_clear(f, alpha):
                found.setdefault(f"{f.favoured} over {f.disfavoured}", []).append(f.ranker)
        return found

    @property
    def spread(self) -> float:
        """How far the rankers lie apart."""
        known = [answer for answer in self.answers if answer is not None]
        return max(known) - min(known) if known else 0.0


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

    findings, record, shown = audit.findings, _EMPTY | audit.record, examples or {}
    rankers, sweeps, several = views.rankers_of(findings), views.sweeps_of(audit.sweep), views.shared_names(findings)
    names = words.short_names(rankers)
    sections = _sections(audit, shown, sweeps, several)
    full = [section for section in sections if section.groups or (section.row.n and not section.row.tied)]
    said = headlines(findings, audit.alpha, audit.symmetric, names)
    page: dict[str, Any] = {
        "title": _title([names[each] for each in rankers]),
        "collections": views.collections_of(findings),
        "several": several,
        "names": names,
        "numbers": {ranker: i % charts.CURVES for i, ranker in enumerate(rankers)},
        "contrasts": sum(section.row.n for section in sections),
        "contents": {"studies": "Studies"},
        "symmetric": audit.symmetric,
        "anchors": {(s.row.study, s.row.collection): s.anchor for s in full},
        "themes": [(t, q, own) for t, q in THEMES.items() if (own := [s for s in full if s.theme == t])],
        "studies": len(sections),
        "unanswered": [s for s in sections if s not in full and not s.row.n],
        "tied": [s for s in sections if s not in full and s.row.n],
        "glossary": GLOSSARY | {names[r]: RANKERS[call] for r in rankers if (call := r.partition("(")[0]) in RANKERS},
        "alpha": audit.alpha,
        "correction": words.correction_words(audit.correction),
        "by": audit.settings.get("by"),
        "record": record,
        "command": _command(record["settings"]),
        "findings_json": script_json(json.dumps(
            [{name: value for name, value in plain(f.as_dict()).items() if value is not None} for f in findings],
            ensure_ascii=False, allow_nan=False, separators=(",", ":"),
        )),
        "stability": views.stability_groups(audit.spreads, rankers),
        "baseline": next((finding.baseline for finding in findings if finding.baseline), ""),
        "effectiveness": views.by_run(audit.effectiveness),
        "overlap": views.by_measure(audit.overlap),
        "table_page": table_page,
        "biased": bool(audit.details),
        "table": views.table_rows(audit.table, {q for run in audit.scores.values() for q in run})
        if audit.table is not None else [],
        "surprises": views.surprises_of(audit.table, audit.alpha) if audit.table is not None else [],
        "fidelity": audit.fidelity,
        "target": audit.target,
        "fidelity_chart": None,
        "sweep_chart": None,
        "overlap_chart": None,
        "chart_style": Markup(charts.dark_style()),
        "bias_chart": lambda result: charts.picture(
            charts.bias_chart([replace(result, ranker=names.get(result.ranker, result.ranker))], audit.alpha),
            f"{result.study}: effect of each value on the scores of {names.get(result.ranker, result.ranker)}",
        ),
    }  # fmt: skip
    if any(section.sweep and section.sweep.curves for section in full):
        label = f"Scores of each study by percentile of the rank step of {', '.join(names.values())}"
        studies = {section.row.study for section in full}
        shown_points = [point for point in audit.sweep if point.study in studies]
        page["sweep_chart"] = charts.picture(charts.sweep_chart(shown_points, names), label)
    if audit.overlap:
        runs = ", ".join(dict.fromkeys(row.run for row in audit.overlap))
        label = f"{', '.join(page['overlap'])} by overlap of {runs}"
        page["overlap_chart"] = charts.picture(charts.overlap_chart(audit.overlap, names), label)
    if audit.fidelity:
        label = f"Scores of {', '.join(names[ranker] for ranker in audit.fidelity)} and of {names[audit.target]}"
        page["fidelity_chart"] = charts.picture(charts.fidelity_chart(audit), label)
    for name, there in (("sweeps", "sweep_chart"), ("effectiveness", "effectiveness"), ("effectiveness", "overlap"),
                        ("fidelity", "fidelity"), ("table", "table"), ("stability", "stability")):  # fmt: skip
        page["contents"] |= {name: _CONTENTS.get(name, name.capitalize())} if page[there] else {}
    page["contents"] |= {"glossary": "Glossary", "settings": "Settings"}
    explained = list(zip(said, _explained(said), strict=True))
    for most, room in product(range(len(said), min(len(said), LEAST) - 1, -1), _ROOMS):
        page["headlines"] = [(h, text, _sample(h.finding, shown, room)) for h, text in explained[:most]]
        if _words_of_first_screen(page) <= _FIRST_SCREEN:
            break
    return fill("report", ("palette", "report"), page)


def _words_of_first_screen(page: Mapping[str, Any]) -> int:
    """How many words stand above the studies: contents, names of rankers, title, sentences and examples."""
    shown = ["whyrank", *page["contents"].values(), *page["names"].values(), page["title"]]
    for headline, _, sample in page["headlines"]:
        shown += [str(headline), *([sample.first, "over", sample.second] if sample else [])]
    return sum(bool(re.search(r"\w", word)) for text in shown for word in text.split())


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
        words.count, words.figure, words.signed, words.sentence, words.interval, words.share, words.share_interval,
        words.bias_range, words.listed, words.difference, words.difference_interval, views.shares_of,
        views.mean_of, views.interval_of,
    )  # fmt: skip
    functions = (
        views.standing, views.is_clear, views.differs, views.mean_with_interval, views.significant,
        views.family_deviation, views.mean_over, views.is_flat, views.by_effect,
        views.significant_pairs, views.dropped_of, views.largest_differences, words.bounds, answer, pair_of,
    )  # fmt: skip
    environment.filters |= {function.__name__: function for function in filters} | {
        "p": words.p_value, "dropped": words.dropped_words, "concludes": words.conclusion_words,
        "agrees": words.agreement_words, "day": _day, "setting": _setting, "slug": slug,
    }  # fmt: skip
    environment.globals |= {function.__name__: function for function in functions} | {
        "marks": views.MARKS,
        "last": LAST,
        "few_queries": FEW_QUERIES,
    }
    return environment


def answer(finding: Finding | None) -> str:
    """An answer in brief: the share of pairs, an arrow to the text that wins more often; or a range in rank steps."""
    if finding is None or finding.score is None or finding.n == finding.nonfinite:
        return words.DASH
    if finding.range is not None:
        return words.bias_range(finding, "steps")
    if not finding.positive and not finding.negative:
        return "0%"
    if finding.positive >= finding.negative:
        return f"{words.share(finding.positive / (finding.n - finding.nonfinite), 0)} ▸"
    return f"◂ {words.share(finding.negative / (finding.n - finding.nonfinite), 0)}"


def pair_of(example: Example, edited: bool, *window: int) -> Compared:
    """The texts of an example as HTML: what was changed marked word by word, else the words of the query."""
    first, second = (text.text for text in example.texts[:2])
    if edited:
        return compared(first, second, *window)
    mark = marker(example.query)
    return Compared(mark(shorten(first)), mark(shorten(second)))


def _explained(said: Sequence[Headline]) -> list[Markup]:
    """The texts of headlines; where a word of the glossary first occurs, it is explained on hover."""
    seen, texts = set[str](), list[Markup]()
    for headline in said:
        parts, end = list[str](), 0
        for found in _TERMS.finditer(headline.text):
            word = _FORMS[found[0]]
            if word not in seen:
                link = Markup('<a class="term" href="#term-{}" title="{}">{}</a>')
                parts += [
                    escape(headline.text[end : found.start()]),
                    link.format(slug(word), GLOSSARY[word], found[0]),
                ]
                seen, end = seen | {word}, found.end()
        texts.append(Markup("").join([*parts, escape(headline.text[end:])]))
    return texts


def _sample(finding: Finding, examples: Mapping[tuple[str, str], Examples], room: int) -> Compared | None:
    """A few words of both texts of the clearest example of what a finding says, those of the chosen text first."""
    found, low = examples.get((finding.study, finding.ranker), Examples()), (finding.score or 0.0) < 0
    side, about = found.low if low else found.high, words_for(finding.study)
    if not side or len(side[0].texts) != 2:
        return None
    if (about and about.edited) or finding.range is not None:
        both = pair_of(side[0], True, room // 3, room)
    else:
        mark = marker(side[0].query)
        both = Compared(*(mark(shorten(text.text, 7 * room)) for text in side[0].texts))
    return Compared(both.second, both.first) if low else both


def _sections(
    audit: Audit,
    examples: Mapping[tuple[str, str], Examples],
    sweeps: Mapping[str, StudySweep],
    several: bool,
) -> list[Section]:
    rows, bias, symmetric = views.rows_of(audit.findings), views.by_study(audit.details), audit.symmetric
    taken = Counter(label_of(row.study) for row in rows if row.group is None)
    found = []
    for (study, collection), parts in groupby(rows, key=lambda row: (row.study, row.collection)):
        whole, *groups = parts
        if whole.group is not None:  # only groups were given
            whole, groups = Row(study, collection, None, whole.meaning), [whole, *groups]
        calls = dict.fromkeys(finding.call for finding in whole.cells.values() if finding.call != study)
        label = label_of(study, full=taken[label_of(study)] > 1)
        found.append(
            Section(
                anchor=f"study-{slug(study, collection) if several else slug(study)}",
                label=f"{label} ({collection})" if several else label,
                theme=theme_of(study),
                about=words_for(study),
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


def _title(names: Sequence[str]) -> str:
    if not names:
        return "No findings"
    if len(names) > 3:
        return f"What {len(names)} rankers reward"
    return f"What {words.listed(names)} {'rewards' if len(names) == 1 else 'reward'}"


def _command(settings: Mapping[str, Any]) -> str:
    """The command that repeats an audit, from the settings that the command line wrote; empty for any other audit."""
    if settings.get("command") != "audit":
        return ""
    left_out = ("command", "formats", "rankers", "studies", "collection_name", "study", "seconds", "budget_pairs")
    parts = ["whyrank", "audit", *settings.get("study", [])]
    for name, value in settings.items():
        if name not in left_out and value not in (None, False, []):
            option = f"--{name.replace('_', '-')}"
            values = value if isinstance(value, list) else [value]
            parts += [option] if value is True else [part for each in values for part in (option, str(each))]
    return shlex.join(parts)


def _day(stamp: str) -> str:
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{when.day} {when:%B %Y}"


def _setting(value: Any) -> str:
    """A value of the settings on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
