"""Findings, contrasts and answers made by hand for the tests of the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from hypothesis import strategies as st

from whyrank.evaluation import OverlapRow
from whyrank.report import Audit, render
from whyrank.report.folder import record_of
from whyrank.scoring import Failure
from whyrank.studies import Answer, Context, Contrasts, Finding, Pair, Reading, SweepPoint, reading_of

NASTY = """<script>alert(1)</script> & "quotes" 'single' </script><!-- --> <img src=x onerror=alert(2)>"""

BASE = Finding(
    study="matched/length|tf", ranker="bm25", collection="toy",
    n=100, positive=60, neutral=10, negative=30, nonfinite=0,
    score=0.3, ci_low=0.2, ci_high=0.4, p_value=0.001, p_adjusted=0.01, mean_diff=0.5, median_diff=0.25, delta=0.125,
    n_queries=20, fingerprint="ab" * 32, seed=0, p_t=0.002, p_wilcoxon=0.003, p_sign=0.004,
    meaning="prefers the text with more words, at equal tf", call="matched/length|tf(tolerance=5)",
)  # fmt: skip


def finding(**changes: Any) -> Finding:
    return replace(BASE, **changes)


AXIOM = replace(
    BASE, study="axiom/TFC1", call="axiom/TFC1", meaning="prefers the text with more query terms, at similar length",
    n=104, nonfinite=4, positive=90, neutral=6, negative=4, score=0.86, ci_low=0.8, ci_high=0.92, delta=0.0,
    conclusion="strict", satisfied=0.9, satisfied_low=0.85, satisfied_high=0.94, chance=0.47,
    with_relevant=40, decided=25, agreement=0.84, scale="sum of term weights",
)  # fmt: skip


def axiom(**changes: Any) -> Finding:
    return replace(AXIOM, **changes)


def broken_axiom(**changes: Any) -> Finding:
    """An axiom that is obeyed less often than by chance."""
    figures = {"score": -0.5, "ci_low": -0.6, "ci_high": -0.4, "satisfied": 0.22, "satisfied_low": 0.17}
    return axiom(**figures | {"study": "axiom/TP", "satisfied_high": 0.27} | changes)


def overlap_rows(
    runs: tuple[str, ...] = ("bm25", "ql"), measures: tuple[str, ...] = ("nDCG@10",)
) -> list[OverlapRow]:
    """Rows of three groups, all queries and those retrieved; the last retrieved group is empty."""
    bounds, sizes = [(0.0, 1 / 3), (0.5, 0.5), (0.75, 1.0)], {"all": (4, 3, 3), "retrieved": (2, 1, 0)}
    return [
        OverlapRow(run, measure, kind, g + 1, *bounds[g], n, *((0.2 * (g + 1), 0.1, 0.2 * (g + 2)) if n else (None,)))
        for measure in measures for run in runs for kind in sizes for g, n in enumerate(sizes[kind])
    ]  # fmt: skip


def empty(**changes: Any) -> Finding:
    """The finding of a study without contrasts."""
    undefined = ("score", "ci_low", "ci_high", "p_value", "p_adjusted", "mean_diff", "median_diff")
    counts = ("n", "positive", "neutral", "negative", "nonfinite", "n_queries")
    nothing = dict.fromkeys((*undefined, "p_t", "p_wilcoxon", "p_sign")) | dict.fromkeys(counts, 0)
    return finding(**nothing | changes)


@dataclass(frozen=True)
class ToyStudy:
    """A study by name."""

    id: str = "matched/length|tf"
    positive: str = "prefers the text with more words, at equal tf"
    symmetric: bool = False


def toy_contrasts(pairs: int = 4) -> Contrasts:
    rows = [
        Pair(f"query {i // 2}", (f"long text {i} " + NASTY, f"text {i}"), {
            "query_id": f"q{i // 2}", "doc_ids": (f"a{i}", f"b{i}"), "grade": i, "group": "odd" if i % 2 else "even",
        })
        for i in range(pairs)
    ]  # fmt: skip
    return Contrasts.from_pairs(rows)


def toy_answer(
    study: ToyStudy | None = None,
    ranker: str = "bm25",
    contrasts: Contrasts | None = None,
    scores: Any = None,
    failures: tuple[Failure, ...] = (),
) -> Answer:
    study = study or ToyStudy()
    contrasts = toy_contrasts() if contrasts is None else contrasts
    if scores is None:
        scores = np.arange(2.0 * len(contrasts)).reshape(-1, 2)[:, ::-1]
    reading = Reading.of(contrasts, np.asarray(scores, dtype=np.float64), 0.5, study.symmetric)
    context = Context(ranker, "toy", 0.5, draws=100, study=study.id)
    rows = reading_of(study).read(study, contrasts, reading, context).findings
    return Answer(study.id, study, ranker, contrasts, reading, rows, list(failures))


def curve(study: str, ranker: str, *levels: float | None) -> list[SweepPoint]:
    """Scores at percentiles 0 to 99: each level holds for an equal share of them."""
    return [SweepPoint(study, ranker, p, p / 10, levels[p * len(levels) // 100]) for p in range(100)]


def report_of(
    rows: Iterable[Finding], record: dict[str, Any] | None = None, examples: Any = None, **parts: Any
) -> str:
    """The report on some findings, with other parts of an audit."""
    made = Audit(list(rows), settings=(record or {}).get("settings", {}), record=record or {}, **parts)
    return render(made, examples)


def written(path: Path, *answers: Answer, rows: list[Finding] | None = None, **rest: Any) -> Path:
    """The result folder of some answers; `rest` are settings, thresholds and notes, and parts of an audit."""
    named = {answer.name: answer.study for answer in answers}
    failures = [(answer.name, answer.ranker, each) for answer in answers for each in answer.failures]
    settings, thresholds, notes = (rest.pop(name, {}) for name in ("settings", "thresholds", "notes"))
    found = [f for answer in answers for f in answer.findings] if rows is None else rows
    record = record_of(settings, named, thresholds, failures, list(notes))
    kept = {(answer.name, answer.ranker): answer for answer in answers}
    Audit(found, settings=record["settings"], answers=kept, record=record, **rest).save(path)
    return path


SVG = "{http://www.w3.org/2000/svg}"


def marks(chart: str, kind: str) -> list[ElementTree.Element]:
    """The marks of one kind (line, rule, symbol, rect) of an SVG chart, without those of axes and legends."""
    groups = ElementTree.fromstring(chart).iter(f"{SVG}g")
    return [mark for g in groups if (g.get("class") or "").startswith(f"mark-{kind} role-mark") for mark in g]


_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_figure = st.none() | st.floats(allow_nan=False, allow_infinity=False)
_count = st.integers(0, 2**53)
_share = st.none() | st.floats(0, 1)

findings = st.lists(
    st.builds(
        Finding, study=_words, ranker=_words, collection=_words, n=_count, positive=_count, neutral=_count,
        negative=_count, nonfinite=_count, score=_figure, ci_low=_figure, ci_high=_figure, p_value=_figure,
        p_adjusted=_figure, mean_diff=_figure, median_diff=_figure,
        delta=st.floats(0, allow_infinity=False), n_queries=_count, fingerprint=_words, seed=st.integers(0, 2**62),
        group=st.none() | _words, seconds=st.floats(0, 1e9), p_t=_figure, p_wilcoxon=_figure, p_sign=_figure,
        meaning=_words, call=_words, dropped=_words, control=_figure, conclusion=st.sampled_from(["", "strict", "weak"]),
        satisfied=_share, satisfied_low=_share, satisfied_high=_share, chance=_share, with_relevant=st.none() | _count,
        decided=st.none() | _count, agreement=_share, scale=_words,
    ),
    max_size=4,
)  # fmt: skip
