"""Paired differences: how much more one ranker prefers, obeys or favours than another, on the same contrasts.

The difference of two scores or of two shares is a mean over contrasts, with an interval and a test that are clustered
by query and document. Effects of values of a bias study are compared in deltas of each ranker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import ALPHA, Codes, Flags, Floats, Interval, Ints, adjust, cluster_sums, mean_interval, sign_flip_p
from whyrank.studies.bias.reading import DRAWS, BiasResult
from whyrank.studies.bias.statistics import centred, cluster_scores, mean_bounds, omnibus, value_p
from whyrank.studies.bias.templates import finite_columns, finite_rows
from whyrank.studies.contrasts import Categories, Contrasts, index_texts
from whyrank.studies.findings import Finding, or_none
from whyrank.studies.reading import FLIPS, Reading, obeys, parts_of
from whyrank.studies.runner import Answer, Plan

MANY = 20  # clusters with differences whose mean is near enough to normal
SIGNS = 6  # equal signs that a sign-flip test finds significant at 0.05
SCORE, SHARE, DELTAS = "score", "share satisfied", "deltas"


class Side(NamedTuple):
    """What one ranker answered to a study: the finding over all contrasts, the contrasts, and a value for each."""

    finding: Finding
    contrasts: Contrasts
    reading: Reading

    @property
    def unit(self) -> float | None:
        """Delta, where the effects of the values of a bias study can be given in it."""
        return self.finding.delta if self.finding.range_deltas is not None else None


@dataclass(frozen=True)
class Difference:
    """A figure of a ranker and of a baseline on the `n` contrasts that both scored, and the first less the second.

    `unit` says what is compared: scores, the share of contrasts that satisfy an axiom, or the effects of a bias study
    in deltas, of one `value` or the range over all. For these `n` counts templates, and the p-value of the range is
    that of the omnibus test, whether any value is favoured differently. `positive` and `negative` are the shares of
    contrasts with such an effect, of the ranker and of the baseline. Undefined figures are None.
    """

    unit: str
    n: int = 0
    n_queries: int = 0
    figure: float | None = None
    baseline: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    difference_p: float | None = None
    value: str = ""
    positive: tuple[float, float] = (0.0, 0.0)
    negative: tuple[float, float] = (0.0, 0.0)

    @property
    def figures(self) -> dict[str, Any]:
        """The figures that a finding and the row of a value have."""
        return {name: value for name, value in vars(self).items() if name.startswith("difference")}


def common_rows(first: Contrasts, second: Contrasts) -> tuple[Ints, Ints]:
    """The rows of the contrasts that two sets have in common, by their texts, in the same order."""
    if first is second or _same_rows(first, second):
        return np.arange(len(first)), np.arange(len(first))
    if first.size != second.size:
        return np.arange(0), np.arange(0)
    if first.fingerprint == second.fingerprint:
        return first.canonical_order, second.canonical_order
    queries = index_texts([*first.queries, *second.queries])[1]
    docs = index_texts([*first.docs, *second.docs])[1]
    query = np.concatenate([first.query, second.query + len(first.queries)])
    doc = np.concatenate([first.doc, second.doc + len(first.docs)])
    rows = np.column_stack([queries[query], docs[doc]])
    codes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    _, mine, others = np.intersect1d(codes[: len(first)], codes[len(first) :], return_indices=True)
    return mine, others


def _same_rows(first: Contrasts, second: Contrasts) -> bool:
    """Whether two sets have the same contrasts in the same order, as two audits with the same settings have."""
    return (
        np.array_equal(first.doc, second.doc)
        and np.array_equal(first.query, second.query)
        and list(first.queries) == list(second.queries)
        and list(first.docs) == list(second.docs)
    )


def difference_of(
    first: Side, second: Side, seed: int = 0, draws: int | None = None, part: Flags | None = None
) -> Difference:
    """How far the figure of the first ranker lies above that of the second, over all contrasts that both scored.

    `part` are the contrasts of the first side to count, all of them without it.
    """
    if first.finding.range is not None:
        return _ValueGrid.of(first, second).range_difference(seed, draws or DRAWS, _share(first, second))
    reading, (rows, others) = first.reading, common_rows(first.contrasts, second.contrasts)
    keep: Flags = np.zeros(len(first.contrasts), np.bool_)
    keep[rows] = second.reading.finite[others]
    keep &= reading.finite if part is None else reading.finite & part
    aligned = np.zeros(len(first.contrasts), np.int8)
    aligned[rows] = second.reading.effects[others]
    mine, base, conclusion = reading.effects[keep], aligned[keep], first.finding.conclusion
    if not len(mine):
        return Difference(SHARE if conclusion else SCORE)
    values = [(obeys(signs, conclusion) if conclusion else signs).astype(np.float64) for signs in (mine, base)]
    paired, clusters, most = values[0] - values[1], reading.clusters[keep], 1 if conclusion else 2
    share = _share(first, second)
    covariance = partial(reading.covariance, rows=keep)
    low, high = paired_interval(paired, clusters, most, covariance, ALPHA * share)
    shared = covariance(paired - paired.mean())  # not of the mean itself, which would hide a difference
    p = sign_flip_p(cluster_sums(paired, clusters).sums, draws or FLIPS, seed, shared)
    return Difference(
        SHARE if conclusion else SCORE,
        len(mine),
        len(np.unique(clusters)),
        float(values[0].mean()),
        float(values[1].mean()),
        float(paired.mean()),
        or_none(low),
        or_none(high),
        or_none(float(np.minimum(1.0, p / share))),
        positive=(float(np.mean(mine > 0)), float(np.mean(base > 0))),
        negative=(float(np.mean(mine < 0)), float(np.mean(base < 0))),
    )


def _share(first: Side, second: Side) -> float:
    """The part of the error rate that a look at both sides may spend, where contrasts were drawn in rounds."""
    return min(first.finding.share, second.finding.share)


def paired_interval(
    paired: Floats,
    clusters: Codes,
    most: float,
    covariance: Callable[[Floats], float] = lambda residuals: 0.0,
    alpha: float = ALPHA,
) -> Interval:
    """Interval of the mean of paired differences between -`most` and `most`, clustered as in `mean_interval`.

    Two versions of a ranker agree on most contrasts, and the mean of few differences among many zeros is far from
    normal. So the means of gains and of losses have intervals of their own, between 0 and `most`, whose distances
    from the means are combined like standard errors, with the correlation of the two over clusters. The interval is
    never narrower than that of `mean_interval`, and from 20 clusters with differences on its end on the side of zero
    is no further out than that: the longer tail lies on the other side. Where six clusters or more have losses and
    none a gain, which the sign-flip test finds significant, it does not reach above zero, or the other way round.
    `covariance` is that of residuals of contrasts that share documents. Undefined (NaN) below two clusters. Newcombe,
    Improved confidence intervals for the difference between binomial proportions based on paired data, Statistics in
    Medicine 17 (1998); Zou and Donner, Construction of confidence limits about effect measures, Statistics in
    Medicine 27 (2008).
    """
    whole = mean_interval(paired, clusters, covariance(paired - float(paired.mean())), (-most, most), alpha)
    differing = len(np.unique(clusters[paired != 0]))
    if math.isnan(whole.low):
        return whole
    means, ends, sums = [], [], []
    for part in (np.maximum(paired, 0.0), np.maximum(-paired, 0.0)):
        mean = float(part.mean())
        means.append(mean)
        ends.append(mean_interval(part, clusters, covariance(part - mean), (0, most), alpha))
        sums.append(cluster_sums(part - mean, clusters).sums)
    scale = math.sqrt(float(sums[0] @ sums[0]) * float(sums[1] @ sums[1]))
    correlation = float(sums[0] @ sums[1]) / scale if scale else 0.0

    def reach(gain: float, loss: float) -> float:
        return math.sqrt(max(0.0, gain**2 + loss**2 - 2 * correlation * gain * loss))

    (gain, loss), (gains, losses) = means, ends
    low = min(whole.low, gain - loss - reach(gain - gains.low, losses.high - loss))
    high = max(whole.high, gain - loss + reach(gains.high - gain, loss - losses.low))
    if differing >= MANY:
        low, high = (whole.low if gain >= loss else low), (whole.high if loss >= gain else high)
    lowest, highest = (0.0 if differing >= SIGNS and not part else most for part in (loss, gain))
    return Interval(max(low, -lowest), min(high, highest))


def value_differences(first: Side, second: Side, seed: int = 0, draws: int | None = None) -> list[Difference]:
    """The difference of the effects of every value of a bias study, in deltas; none for other studies."""
    if first.finding.range is None or second.finding.range is None:
        return []
    return _ValueGrid.of(first, second).value_differences(seed, draws or DRAWS, _share(first, second))


@dataclass(frozen=True)
class _ValueGrid:
    """The scores of two rankers in deltas, by template and value, where both have all; texts and queries as codes."""

    values: list[str]
    first: Floats
    second: Floats
    text: Codes
    query: Codes

    @classmethod
    def of(cls, first: Side, second: Side) -> _ValueGrid:
        """The templates and values that both sides have; none where a side has no delta."""
        names, others = (_label(side.contrasts, "value").names for side in (first, second))
        values = [value for value in names if value in others]
        known = set(_templates(second.contrasts)[0])
        templates = [key for key in _templates(first.contrasts)[0] if key in known]
        if first.unit is None or second.unit is None:
            templates = []
        one, two = (_scores(side, values, templates) / (side.unit or 1.0) for side in (first, second))
        columns = finite_columns(one) & finite_columns(two)
        usable = finite_rows(one[:, columns]) & finite_rows(two[:, columns])
        queries, texts = ([key[part] for key, use in zip(templates, usable, strict=True) if use] for part in (0, 1))
        return cls(
            [value for value, keep in zip(values, columns, strict=True) if keep],
            one[np.ix_(usable, columns)],
            two[np.ix_(usable, columns)],
            index_texts(texts)[1],
            index_texts(queries)[1],
        )

    def __bool__(self) -> bool:
        return len(self.first) > 0 and len(self.values) > 1

    def range_difference(self, seed: int, draws: int, share: float) -> Difference:
        """Of the ranges; the interval takes the values with the highest and the lowest means as given."""
        if not self:
            return Difference(DELTAS)
        spans = []
        for grid in (self.first, self.second):
            means = grid.mean(axis=0)
            spans.append(grid[:, means.argmax()] - grid[:, means.argmin()])
        sums = cluster_scores(self.first - self.second, self.text, self.query)
        of_spans = cluster_scores((spans[0] - spans[1])[:, None], self.text, self.query)
        low, high = (float(end[0]) for end in mean_bounds(of_spans, lambda way: way.scores, ALPHA * share))
        return Difference(
            DELTAS,
            len(self.first),
            sums.size,
            float(spans[0].mean()),
            float(spans[1].mean()),
            float((spans[0] - spans[1]).mean()),
            or_none(low),
            or_none(high),
            or_none(float(np.minimum(1.0, omnibus(sums, draws, seed).p_value / share))),
        )

    def value_differences(self, seed: int, draws: int, share: float) -> list[Difference]:
        """Of each value's mean difference from all values in the same templates."""
        if not self:
            return []
        sums = cluster_scores(self.first - self.second, self.text, self.query)
        p_values = np.minimum(1.0, value_p(sums, draws, seed) / share)
        figures = np.stack([*mean_bounds(sums, lambda way: way.effects, ALPHA * share), p_values], axis=1)
        mine, base = (centred(grid).mean(axis=0).tolist() for grid in (self.first, self.second))
        found = []
        for value, first, second, (low, high, p) in zip(self.values, mine, base, figures.tolist(), strict=True):
            ends = or_none(low), or_none(high), or_none(p)
            found.append(
                Difference(DELTAS, len(self.first), sums.size, first, second, first - second, *ends, value=value)
            )
        return found


def _label(contrasts: Contrasts, name: str) -> Categories:
    column = contrasts.labels[name]
    assert isinstance(column, Categories), "a label of a bias study is a column of strings"
    return column


def _templates(contrasts: Contrasts) -> tuple[list[tuple[str, str]], Ints]:
    """Each query with a text that has a slot, and which of these every contrast is of."""
    template = _label(contrasts, "template")
    pairs, rows = np.unique(np.column_stack([contrasts.query, template.codes]), axis=0, return_inverse=True)
    return [(contrasts.queries[query], template.names[text]) for query, text in pairs.tolist()], rows.ravel()


def _scores(side: Side, values: list[str], templates: list[tuple[str, str]]) -> Floats:
    """Scores by template and value, NaN where there is none."""
    own, row_of = _templates(side.contrasts)
    label = _label(side.contrasts, "value")
    column, row = ({key: i for i, key in enumerate(keys)} for keys in (values, templates))
    columns = np.array([column.get(name, -1) for name in label.names], np.int64)[label.codes]
    rows = np.array([row.get(key, -1) for key in own], np.int64)[row_of]
    grid: Floats = np.full((len(templates) + 1, len(values) + 1), np.nan)  # the last ones take what is not common
    for text in (0, 1):
        grid[rows, columns[:, text]] = side.reading.scores[:, text]
    return grid[:-1, :-1]


# Differences from the baseline of an audit.


def with_differences(found: Iterable[Answer], plan: Plan) -> Iterator[Answer]:
    """The answers of a plan, whose first ranker is the baseline: those of all others with differences from it."""
    base: Answer | None = None
    for answer in found:
        if answer.ranker == plan.baseline:
            base = answer
        yield answer if base is None or answer is base else _compared(answer, base, plan)


def _compared(answer: Answer, base: Answer, plan: Plan) -> Answer:
    mine, other = (Side(each.findings[0], each.contrasts, each.reading) for each in (answer, base))
    parts = {part.group: part.rows for part in parts_of(answer.contrasts, plan.by, plan.grades)}
    findings = []
    for finding in answer.findings:
        found = difference_of(mine, other, plan.seed, plan.draws, parts[finding.group])
        findings.append(replace(finding, baseline=base.ranker, **found.figures))
    details = answer.details
    if isinstance(details, BiasResult):
        known = {each.value: each for each in value_differences(mine, other, plan.seed, plan.draws)}
        raw = np.array([each.difference_p for each in known.values()], dtype=np.float64)
        adjusted = dict(zip(known, map(or_none, adjust(raw, plan.correction).tolist()), strict=True))
        rows = [
            replace(row, difference_adjusted=adjusted[row.value], **known[row.value].figures)
            if row.value in known
            else row
            for row in details.values
        ]
        details = replace(details, values=rows, **found.figures)
    return replace(answer, findings=findings, details=details)
