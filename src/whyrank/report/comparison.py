"""Two audits, or two rankers of one audit, side by side: what changed, with intervals and tests by query.

comparison = whyrank.compare("results/old", "results/new")
print(comparison)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from whyrank.core import Ranker, UnknownName, WhyrankError, adjust
from whyrank.evaluation import Effectiveness, against
from whyrank.report.arrow import data_frame
from whyrank.report.audit import Audit, audit, open_audit
from whyrank.report.sentences import changed, favours, prefers, where
from whyrank.report.tables import escape_markdown
from whyrank.report.themes import theme_of, words_for
from whyrank.report.views import rankers_of
from whyrank.report.words import DASH, bounds, count, figure, moved, p_value, share, signed
from whyrank.studies import DELTAS, SCORE, SHARE, Difference, Finding, Side, difference_of, or_none, value_differences

AnyRanker = str | Ranker | Callable[..., Any]
EFFECTIVENESS = "effectiveness"
_COLUMNS = ("study", "difference", "95% interval", "p adj.", "n", "queries")


@dataclass(frozen=True)
class Change:
    """How one figure of a ranker differs from that of the baseline on the same contrasts, or the same queries.

    `unit` is `score`, `share satisfied`, `deltas` or a measure of effectiveness. A bias study has a row for its
    range, and one for each `value`. `difference` is `figure` less `baseline_figure`; `difference_adjusted` is
    corrected over all studies, over all bias studies, over the values of one, or over all measures. `text` says it
    in a sentence.
    """

    study: str
    ranker: str
    baseline: str
    value: str
    unit: str
    n: int
    n_queries: int
    figure: float | None
    baseline_figure: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    difference_p: float | None
    difference_adjusted: float | None = None
    text: str = ""

    @property
    def size(self) -> float:
        """How large the difference is from 0 to 1, whatever its unit."""
        far = abs(self.difference or 0.0)
        return far / 2 if self.unit == SCORE else far / (1 + far) if self.unit == DELTAS else far

    def significant(self, alpha: float = 0.05) -> bool:
        """Whether the corrected p-value lies below alpha."""
        return self.difference_adjusted is not None and self.difference_adjusted < alpha

    def shown(self, value: float | None) -> str:
        """A figure in the unit of this row."""
        if self.unit == SHARE:
            return share(value)
        if self.unit in (SCORE, DELTAS):
            return signed(value)
        return DASH if value is None else f"{value:.4f}"

    @property
    def shown_difference(self) -> str:
        """The difference in the unit of this row: of shares in percentage points."""
        return DASH if self.difference is None else self._moved(self.difference) + " points" * (self.unit == SHARE)

    @property
    def shown_interval(self) -> str:
        """The interval of the difference, in the same unit."""
        return bounds(self.difference_low, self.difference_high, self._moved)

    def _moved(self, value: float) -> str:
        return moved(value, self.unit == SHARE) if self.unit in (SHARE, SCORE, DELTAS) else figure(value, "+.4f")


@dataclass(frozen=True)
class Comparison:
    """What changed between two audits or rankers: `rows`, the largest significant differences first.

    Differences are those of the second from the first. `uncompared` says why a study of the first is not compared.

    Example:
        >>> import whyrank
        >>> found = whyrank.compare("bm25", "ql", "sample", "edited/typos", limit=20, delta=0)
        >>> [(row.study, row.unit, row.n) for row in found.studies]
        [('edited/typos', 'score', 20)]
    """

    first: str
    second: str
    rows: tuple[Change, ...] = field(repr=False)
    alpha: float = 0.05
    correction: str = "holm"
    notes: tuple[str, ...] = ()
    uncompared: tuple[tuple[str, str], ...] = ()

    @property
    def studies(self) -> list[Change]:
        """The rows of whole studies, without those of single values and of effectiveness."""
        return [row for row in self.rows if not row.value and row.study != EFFECTIVENESS]

    @property
    def effectiveness(self) -> list[Change]:
        """The rows of effectiveness."""
        return [row for row in self.rows if row.study == EFFECTIVENESS]

    def headlines(self, most: int = 5) -> list[str]:
        """The largest significant differences in sentences, then those of effectiveness; or that there are none."""
        found = [row.text for row in self.studies if row.significant(self.alpha)][:most]
        shows = "shows a significant difference between" if self.studies else "could be compared of"
        nothing = f"No study {shows} {self.second} and {self.first}."
        return (found or [nothing]) + [row.text for row in self.effectiveness if row.significant(self.alpha)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"headlines": self.headlines(), "uncompared": dict(self.uncompared)}

    def to_pandas(self) -> Any:
        """The rows as a data frame."""
        return data_frame("pandas", [asdict(row) for row in self.rows])

    def to_polars(self) -> Any:
        """The rows as a data frame of polars."""
        return data_frame("polars", [asdict(row) for row in self.rows])

    def to_markdown(self) -> str:
        """The headlines, and a table of the studies and measures."""
        head, body = self._table()
        lines = [f"- {escape_markdown(line)}" for line in self.headlines()]
        rules = ["---"] * (len(head) - len(_COLUMNS) + 1) + ["---:"] * (len(_COLUMNS) - 1)
        cells = [map(escape_markdown, head), rules, *(map(escape_markdown, row) for row in body)]
        return "\n".join([*lines, "", *(f"| {' | '.join(row)} |" for row in cells), "", self._legend(), ""])

    def _repr_html_(self) -> str:
        head, body = self._table()
        items = Markup("").join(Markup("<li>{}</li>").format(line) for line in self.headlines())
        rows = [
            Markup("<tr>{}</tr>").format(Markup("").join(Markup(f"<{tag}>{{}}</{tag}>").format(c) for c in cells))
            for tag, cells in [("th", head), *(("td", row) for row in body)]
        ]
        return str(Markup("<ul>{}</ul><table>{}</table>").format(items, Markup("").join(rows)))

    def __str__(self) -> str:
        return "\n".join(self.headlines())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """A head and rows of cells; the rankers have columns where there is one pair, else a column of names."""
        rows = [*self.studies, *self.effectiveness]
        several = len({(row.baseline, row.ranker) for row in rows}) > 1
        study, *rest = _COLUMNS
        head = [study, *(["ranker"] if several else []), "first" if several else self.first,
                "second" if several else self.second, *rest]  # fmt: skip
        body = []
        for row in rows:
            name = row.unit if row.study == EFFECTIVENESS else row.study
            star = "†" if row.significant(self.alpha) else ""
            body.append([
                name, *([row.ranker] if several else []), row.shown(row.baseline_figure), row.shown(row.figure),
                row.shown_difference + star, row.shown_interval,
                p_value(row.difference_adjusted), count(row.n), count(row.n_queries),
            ])  # fmt: skip
        return head, body

    def _legend(self) -> str:
        return escape_markdown(
            f"Difference: {self.second} less {self.first} on the same contrasts: of scores (from −1 to +1), of "
            f"shares satisfied, of ranges in δ, of measures. † p < {self.alpha:g} by query, after correction "
            f"({self.correction})."
        )


def compare(
    first: Audit | AnyRanker | os.PathLike[str],
    second: Audit | AnyRanker | os.PathLike[str],
    collection: Any = "sample",
    studies: Any = None,
    *,
    rankers: Sequence[str] = (),
    alpha: float | None = None,
    correction: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """What differs between two audits, or between two rankers, with intervals and tests by query.

    Args:
        first: an audit, its result folder, or a ranker: what the second is compared with.
        second: the same kind of thing.
        collection: of two rankers: what they are audited on.
        studies: of two rankers: as those of `audit`.
        rankers: of two audits: the name of a ranker in both, or its names in the first and in the second. By default
            the only ranker of each, or all that have the same name in both.
        alpha: level of significance; by default that of the second audit.
        correction: `holm`, `bonferroni`, `bh` or `none`; by default that of the second audit.
        seed: of all that is random.
        options: of two rankers: those of `audit`.

    Example:
        >>> found = compare("bm25", "bm25(b=0)", "sample", "matched/length|relevance", delta=0)
        >>> found.first, found.second, [row.difference > 0 for row in found.studies]
        ('bm25', 'bm25(b=0)', [True])
    """
    old, new = (_opened(each) for each in (first, second))
    if isinstance(old, Audit) and isinstance(new, Audit):
        if options or studies is not None:
            raise WhyrankError(
                f"{next(iter(options), 'studies')} is for two rankers; two audits are compared as they are"
            )
        names = tuple(_named(each, other) for each, other in ((first, second), (second, first)))
        labels = names if all(names) else ("first audit", "second audit")
        return compare_audits(old, new, rankers, (labels[0], labels[1]), alpha, correction, seed)
    if isinstance(old, Audit) or isinstance(new, Audit):
        other = new if isinstance(old, Audit) else old
        kinds = "an audit is compared with an audit, and a ranker with a ranker"
        raise WhyrankError(f"{kinds}; {other!r:.80} is neither an audit nor its folder")
    both = audit(
        [old, new], collection, studies, seed=seed, correction=correction or "holm", effectiveness=True, **options
    )  # fmt: skip
    names_of = rankers_of(both.findings)
    if len(names_of) < 2:
        raise WhyrankError(f"both rankers are called {names_of[0]!r}, so they cannot be told apart; rename one")
    return compare_audits(both, both, names_of, ("", ""), alpha, correction, seed)


def _opened(given: Any) -> Any:
    """The audit of a result folder; whatever else is given as it is."""
    is_path = isinstance(given, os.PathLike) or (isinstance(given, str) and Path(given).is_dir())
    return open_audit(given) if is_path else given


def _named(given: Any, other: Any) -> str:
    """The name of a result folder, with its path where the other one has the same name; empty in memory."""
    paths = [Path(each.folder or "") if isinstance(each, Audit) else Path(each) for each in (given, other)]
    return str(paths[0]) if paths[0].name == paths[1].name and paths[0].name else paths[0].name


def compare_audits(
    first: Audit,
    second: Audit,
    rankers: Sequence[str] = (),
    names: tuple[str, str] = ("first audit", "second audit"),
    alpha: float | None = None,
    correction: str | None = None,
    seed: int = 0,
) -> Comparison:
    """What differs between two audits; `names` are what people call them. See `compare`."""
    correction = correction or second.correction or "holm"
    rows, notes, uncompared = list[Change](), list[str](), dict[str, str]()
    pairs = _pairs(first, second, rankers)
    for old, new in pairs:
        labels = (f"{old} ({names[0]})", f"{new} ({names[1]})") if old == new else (old, new)
        of = {
            (which, f.study): f
            for which, each, name in ((0, first, old), (1, second, new))
            for f in each.findings
            if f.group is None and f.ranker == name
        }
        for study in second.studies:
            if (0, study) in of and (1, study) in of:
                sides = [
                    Side(of[which, study], *each._read(study, name))
                    for which, each, name in ((1, second, new), (0, first, old))
                ]
                found, note = _study_rows(sides[0], sides[1], labels, seed, study in second.symmetric)
                rows += found
                notes += [f"{study}, {labels[1]}: {note}"] if found and note else []
                uncompared |= {study: note} if note and not found else {}
        rows += _measured(first, second, (old, new), labels, seed)
    if all(row.study == EFFECTIVENESS for row in rows) and not uncompared:
        raise WhyrankError("the two audits have no study in common; run the same studies in both")
    uncompared |= {study: f"{names[1]} does not have it" for study in first.studies if study not in second.studies}
    if only := [study for study in second.studies if study not in first.studies]:
        notes.append(f"only in {names[1]}: {', '.join(only)}")
    level = second.alpha if alpha is None else alpha
    ordered = sorted(_adjusted(rows, correction), key=lambda row: (not row.significant(level), -row.size))
    single = pairs[0] if len(pairs) == 1 and pairs[0][0] != pairs[0][1] else names
    return Comparison(*single, tuple(ordered), level, correction, tuple(notes), tuple(uncompared.items()))


def _pairs(first: Audit, second: Audit, rankers: Sequence[str]) -> list[tuple[str, str]]:
    """The rankers to compare: those named, those of the same name, or the only one of each audit."""
    known = [rankers_of(each.findings) for each in (first, second)]
    if rankers:
        if len(rankers) > 2:
            raise WhyrankError("name one ranker that is in both audits, or one of the first and one of the second")
        pair = (rankers[0], rankers[-1])
        for name, names, which in zip(pair, known, ("first", "second"), strict=True):
            if name not in names:
                raise UnknownName(f"ranker of the {which} audit", name, names)
        return [pair]
    same = [(name, name) for name in known[1] if name in known[0]]
    if not same and [len(names) for names in known] == [1, 1]:
        return [(known[0][0], known[1][0])]
    if not same:
        listed = "; ".join(", ".join(names) or "none" for names in known)
        raise WhyrankError(f"no ranker is in both audits ({listed}); name one of each with --ranker, twice")
    return same


def _study_rows(
    new: Side, old: Side, labels: tuple[str, str], seed: int, undirected: bool
) -> tuple[list[Change], str]:
    """The rows of one study, and what is to be said of them; no rows, and why, where nothing can be compared."""
    found = difference_of(new, old, seed)
    if found.difference is None:
        if not new.finding.n or not old.finding.n:
            return [], "one audit has no contrasts of it" if new.finding.n or old.finding.n else ""
        if found.unit == DELTAS and (new.unit is None or old.unit is None):
            return [], "a ranker has no delta, in which effects of values are compared"
        return [], "the audits have no contrast in common that both rankers scored, so no paired difference"
    counted = "templates" if found.unit == DELTAS else "contrasts"
    note = ""
    if new.finding.fingerprint != old.finding.fingerprint:
        note = f"other contrasts than in the first audit; compared on the {found.n:,} {counted} that both have"
    differences = [found, *value_differences(new, old, seed)]
    rows = [
        Change(
            new.finding.study, labels[1], labels[0], each.value, each.unit, each.n, each.n_queries, each.figure,
            each.baseline, **each.figures, text=_sentence(each, new.finding, old.finding, labels, undirected),
        )
        for each in differences
    ]  # fmt: skip
    return rows, note


def _sentence(
    found: Difference, new: Finding, old: Finding, labels: tuple[str, str], undirected: bool
) -> str:  # fmt: skip
    """The same words as those of the headlines of an audit."""
    (first, second), about = labels, words_for(new.study)
    if found.value:
        effects = [f"{signed(each)} rank steps" for each in (found.figure, found.baseline)]
        said = f"{found.value}: {second} moves scores by {effects[0]}; {first} by {effects[1]}"
    elif found.unit == DELTAS:
        one, two = (
            favours(finding, far) if finding.favoured else "favours nothing"
            for finding, far in ((new, found.figure), (old, found.baseline))
        )
        if (new.favoured, new.disfavoured) == (old.favoured, old.disfavoured) != ("", ""):
            two = f"by {found.baseline:.1f}"
        said = f"{changed(about)}{second} {one}; {first} {two}"
    else:
        up, down = found.positive, found.negative
        more = round(abs(up[0] - up[1]) - abs(down[0] - down[1]), 9) >= 0  # without ties, both moved as far
        (setting, does), shares = prefers(new, about, more, undirected), up if more else down
        mine, base = (share(each, 0) for each in shares)
        said = f"{setting}{second} {does} in {mine} of {where(found.n, found.n_queries)}; {first} in {base}"
    return f"{theme_of(new.study)}. {said}."


def _measured(
    first: Audit, second: Audit, pair: tuple[str, str], labels: tuple[str, str], seed: int
) -> list[Change]:  # fmt: skip
    """Differences of the measures that both audits have of the two rankers, over the queries of both."""

    def of(each: Audit, ranker: str) -> dict[str, Effectiveness]:
        return {row.measure: row for row in each.effectiveness if row.run == ranker}

    rows, old, new = [], of(first, pair[0]), of(second, pair[1])
    for measure in (name for name in new if name in old and old[name].per_query.keys() & new[name].per_query.keys()):
        both = [q for q in new[measure].per_query if q in old[measure].per_query]
        means = [float(np.mean([each[measure].per_query[q] for q in both])) for each in (new, old)]
        found = against(new[measure], old[measure], seed)
        text = f"{measure}: {labels[1]} {means[0]:.3f}, {labels[0]} {means[1]:.3f} over {len(both):,} queries"
        figures = (found.difference, found.ci_low, found.ci_high, found.p_value)
        rows.append(
            Change(
                EFFECTIVENESS, labels[1], labels[0], "", measure, len(both), len(both), means[0], means[1], *figures,
                text=text,
            )
        )  # fmt: skip
    return rows


def _adjusted(rows: Sequence[Change], correction: str) -> list[Change]:
    """The rows with p-values corrected: over studies, bias studies, the values of each, and measures."""
    families: dict[tuple[Any, ...], list[Change]] = {}
    for row in rows:
        own = (row.study, row.ranker) if row.value else (row.unit == DELTAS, row.study == EFFECTIVENESS)
        families.setdefault(own, []).append(row)
    found = []
    for family in families.values():
        raw = np.array([row.difference_p for row in family], dtype=np.float64)
        corrected = zip(family, adjust(raw, correction).tolist(), strict=True)
        found += [replace(row, difference_adjusted=or_none(p)) for row, p in corrected]
    return found
