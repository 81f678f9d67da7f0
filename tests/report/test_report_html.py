from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import (
    NASTY,
    axiom,
    broken_axiom,
    curve,
    empty,
    finding,
    findings,
    overlap_rows,
    report_of,
    toy_answer,
)

import whyrank
from toy_bias import Toy
from whyrank.evaluation import group_rankers
from whyrank.evaluation.stability import stability
from whyrank.report.examples import choose
from whyrank.report.words import slug

VOID = {"meta", "input", "wbr", "br", "img", "link", "rect", "line", "circle"}


class Page(HTMLParser):
    """Collects the elements of a page and checks that they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag and all(a.get(k) == v for k, v in wanted.items())]

    @property
    def ids(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def text(self) -> str:
        return " ".join("".join(data for tag, data in self.texts if tag not in ("script", "style")).split())


def spaced(page: Page) -> str:
    """The text with a blank between elements."""
    return " ".join(" ".join(data for tag, data in page.texts if tag not in ("script", "style")).split())


def sample_page(**record) -> Page:
    answer = toy_answer()
    rows = [
        finding(),
        finding(ranker="ql", score=-0.5, p_adjusted=0.4, delta=3.5),
        finding(group="both relevant", n=9),
        finding(group="none", n=4, ranker="ql", delta=3.5),
        empty(study="matched/tf|sum-tf"),
        finding(study="edited/typos(seed=3)", nonfinite=5, n=105),
        finding(study="plain"),
    ]
    return Page(report_of(rows, record, {("matched/length|tf", "bm25"): choose(answer.contrasts, answer.reading)}))


@pytest.fixture(scope="module")
def page() -> Page:
    return sample_page(
        settings={"alpha": 0.05, "correction": "holm", "by": "relevance_group", "limit": None},
        versions={"whyrank": "0.1.0"},
        created="2026-11-15T08:00:00+00:00",
        notes=["2 judgements name documents that do not exist"],
        thresholds={
            "bm25": {"delta": 0.5, "source": "run bm25", "differences": 90, "chance": 0.5},
            "ql": {"delta": 1.0},
        },
        failures={
            "count": 101,
            "first": [{"study": "s", "ranker": "ql", "query": NASTY, "doc": NASTY, "reason": "nan"}],
        },
    )


def test_every_study_with_an_answer_has_a_row_and_links_lead_somewhere(page):
    for study in ("matched/length|tf", "edited/typos(seed=3)", "plain"):
        assert f"study-{slug(study)}" in page.ids
    assert f"study-{slug('matched/tf|sum-tf')}" not in page.ids
    assert "No such pair of texts in the collection: more of a query word, same number of query words." in page.text()
    assert {"findings", "studies", "glossary", "settings", "filter", "sort", "findings-data"} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    targets = [link["href"] for link in page.all("a")]
    assert {target[1:] for target in targets} <= set(page.ids)


def test_nothing_is_loaded(page):
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "action", "background", "data"} & set(attributes)
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert (attributes.get("href") or "#").startswith("#")
    style = "".join(data for tag, data in page.texts if tag == "style")
    assert not re.search(r"@import|url\(|https?:", style)


def test_documents_stay_text(page):
    assert len(page.all("script")) == 2
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert "long text 0 " + NASTY in page.text()


def test_only_our_script_may_run(page):
    import base64
    import hashlib

    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    script = [data for tag, data in page.texts if tag == "script"][-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_names_are_escaped_everywhere():
    rows = [
        finding(study=f"x/{NASTY}", ranker=NASTY, collection=NASTY, meaning=NASTY),
        finding(study=f"x/{NASTY}", ranker=NASTY, collection=NASTY, group=NASTY),
    ]
    hostile = Page(report_of(rows, {"settings": {NASTY: NASTY}, "notes": [NASTY], "versions": {NASTY: NASTY}}))
    assert len(hostile.all("script")) == 2
    assert not hostile.all("img")
    data = next(data for tag, data in hostile.texts if tag == "script")
    assert [row["ranker"] for row in json.loads(data)] == [NASTY, NASTY]
    assert "<" not in data


def test_tables_are_semantic(page):
    assert all("scope" in head for head in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    regions = [a for _, a in page.elements if a.get("role") == "region"]
    assert regions
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in regions)


def test_rows_have_dots_where_scores_lie_and_shares_with_arrows(page):
    dots = page.all("circle")
    assert [(a["cx"], a["class"]) for a in dots[:2]] == [("64.4%", "r0"), ("26.0%", "r1 open")], "50 + 48 * score"
    values = [a["data-values"] for a in page.all("details") if "data-values" in a]
    assert values[0] == "0.3000 -0.5000"
    assert "bm25".upper() + " 60% ▸" in page.text()
    assert len(page.all("a", **{"class": "term"})) >= 5


def test_settings_notes_and_failures_are_shown(page):
    text = page.text()
    for words in (
        "15 November 2026", "2 judgements name documents", "101 pairs of texts got no finite score",
        "Holm correction", "in full matched/length|tf(tolerance=5)", "run bm25", "By relevance group", "Not finite",
    ):  # fmt: skip
        assert words in text
    assert "limit" not in [data for tag, data in page.texts if tag == "th"]


def test_the_command_repeats_the_audit():
    given = {
        "command": "audit",
        "study": ["TFC1 & AND"],
        "ranker": ["bm25", "ql"],
        "seed": 3,
        "json": False,
        "by": None,
        "seconds": {"scoring": 2.5},
    }
    page = Page(report_of([finding()], {"settings": given | {"rankers": {"bm25": "x"}}}))
    [command] = [data for tag, data in page.texts if tag == "code" and data.startswith("whyrank audit")]
    assert command == "whyrank audit 'TFC1 & AND' --ranker bm25 --ranker ql --seed 3"


def test_studies_in_which_nothing_happens_share_a_line():
    rows = [finding(study="edited/case-fold", positive=0, neutral=100, negative=0, score=0.0), finding()]
    page = Page(report_of(rows))
    assert "No difference for any ranker: lower case." in page.text()
    assert len([a for a in page.all("details") if (a.get("class") or "").startswith("study")]) == 1


def test_few_pairs_are_pale():
    classes = [
        a["class"] for a in Page(report_of([finding(n=20), finding(study="plain")])).all("details") if a.get("id")
    ]
    assert classes == ["study few", "study"]


def test_headlines_come_first_with_an_example(page):
    text = page.text()
    first = "Length. Of two texts with the same query words, BM25 prefers the longer one in 60% of 100 pairs from 20 queries"
    assert text.index(first) < text.index("4 studies on toy" if "4 studies on toy" in text else "studies on toy")
    assert page.all("q", dir="auto")


@pytest.mark.parametrize(("name", "told"), [("m", 4), ("the model that we want to put online next month", 3)])
def test_long_names_leave_room_for_fewer_sentences(name, told):
    studies = ("edited/shuffle-words", "edited/typos", "matched/length|tf", "transferred/formality")
    apart = ({"score": 0.9, "ci_low": 0.8, "ci_high": 0.95}, {"score": -0.9, "ci_low": -0.95, "ci_high": -0.8})
    rows = [finding(study=s, ranker=f"{name}{i}", **figures) for s in studies for i, figures in enumerate(apart)]
    subjects = [a for a in Page(report_of(rows)).all("a") if a.get("class") == "subject"]
    assert len(subjects) == told


@pytest.mark.parametrize(
    ("rows", "says"),
    [([], "No findings"), ([finding(group="both")], "both"), ([finding(ranker="\ud800")], "What ? rewards")],
)
def test_odd_findings_make_a_page(rows, says):
    """No findings at all, groups alone, and half characters."""
    assert says in Page(report_of(rows)).text()


def test_a_symmetric_study_is_explained():
    record = {"studies": [{"name": "s/x", "positive": "differs", "symmetric": True}]}
    text = Page(report_of([finding(study="s/x", meaning="differs", p_adjusted=0.6)], record)).text()
    assert "carries no meaning here" in text
    assert "No ranker shows a significant preference in any study of 8 queries or more." in text


def test_sweeps_have_a_chart_tables_and_sentences():
    rows = [finding(study=s, ranker=r) for s in ("x/a", "x/b") for r in ("bm25", "ql")]
    points = [*curve("x/a", "bm25", 0.5, 0.1), *curve("x/a", "ql", 0.75, 0.05), *curve("x/b", "bm25", -0.25)]
    page = Page(report_of(rows, sweep=points))
    assert {"href": "#sweeps"} in page.all("a")
    assert page.all("svg", **{"aria-label": "Scores of each study by percentile of the rank step of BM25, QL"})
    text = page.text()
    assert "Percentile 0 10 25 50 75 90 99 BM25 +0.50 +0.50 +0.50 +0.10" in spaced(page)
    assert text.count("The order of rankers is stable from percentile 50 on.") == 1


def test_stability_has_a_section():
    rows = [finding(study=s, ranker=r, score=x) for s in ("x/a", "x/b") for r, x in (("m<1>", 0.1), ("m<2>", 0.3))]
    page = Page(report_of(rows, spreads=stability(rows, group_rankers(["m<*"], ["m<1>", "m<2>"]))))
    assert "stability" in page.ids
    assert {"href": "#stability"} in page.all("a")
    assert "m<*: 2 rankers m<1>, m<2>." in page.text()
    assert len(page.all("tr", **{"class": "total"})) == 1
    cells = [data for tag, data in page.texts if tag == "td"]
    assert f"{100 * math.sqrt(0.02):.2f}" in cells
    assert cells.count("0.141") == 3
    assert "stability" not in Page(report_of(rows)).ids


class TestAxioms:
    def page(self, *rows, **record):
        return Page(report_of([axiom(), axiom(ranker="ql", satisfied=0.95, nonfinite=0, n=100), *rows], record))

    def test_details_say_what_the_axiom_demands_and_how_relevance_agrees(self):
        text = self.page(broken_axiom(conclusion="weak", with_relevant=None)).text()
        assert "Rule: the ranker prefers the text with more query terms, at similar length." in text
        assert "Strict conclusion: the winner must score higher, so a tie violates." in text
        assert "Weak conclusion: the winner must not score lower, so a tie obeys." in text
        assert "104 pairs from 20 queries." in text
        assert text.count("40 instances have a relevant document; relevance decides 25 of them") == 1

    def test_share_interval_and_chance_stand_beside_the_counts(self):
        page = self.page()
        assert "BM25 90.0% [85.0, 94.0] 47.0% +0.86† [+0.80, +0.92] 4 6 90 4" in spaced(page)
        heads = [data for tag, data in page.texts if tag == "th"]
        assert {"Rule kept", "Second wins", "Tied", "First wins", "Not finite", "Chance"} <= set(heads)

    def test_dots_are_open_where_the_interval_holds_chance(self):
        page = self.page(broken_axiom(), axiom(study="axiom/X", ci_low=-0.1))
        dots = [(a["cx"], a["class"]) for a in page.all("circle")]
        assert ("26.0%", "r0") in dots
        assert ("91.3%", "r0 open") in dots


class TestBaseline:
    """A real audit of a ranker that reads word order, beside BM25, of which texts were drawn."""

    @pytest.fixture(scope="class")
    def audit(self):
        studies = ["edited/shuffle-words", "axiom/TFC1", "bias/car-brand"]
        return whyrank.audit(
            ["ql", Toy(1, words=(("honda", 1.0),))], "sample", studies, baseline="bm25", limit=60, effectiveness=True
        )

    @pytest.fixture(scope="class")
    def text(self, audit, tmp_path_factory):
        path = tmp_path_factory.mktemp("report") / "report.html"
        audit.report(path)
        return spaced(Page(path.read_text()))

    def test_rows_and_figures_have_the_difference_in_the_unit_of_the_study(self, audit, text):
        assert "Below them stands the difference to BM25, the baseline ; † where it is significant." in text
        for f in audit:
            assert (f.baseline, f.difference is None) == (("", True) if f.ranker == "bm25" else ("bm25", False))
        for study, unit in (("edited/shuffle-words", ""), ("axiom/TFC1", " points"), ("bias/car-brand", " steps")):
            [f] = [f for f in audit[study].findings if f.ranker == "toy1"]
            number = f"{100 * f.difference:+.1f}" if unit == " points" else f"{f.difference:+.2f}"
            mark = "†" if f.difference_adjusted < 0.05 else ""
            assert text.count(f"{number.replace('-', '−')}{unit}{mark}") >= 2, "in the row and among the figures"

    def test_details_say_how_many_were_drawn(self, audit, text):
        [f, *_] = audit["edited/shuffle-words"].findings
        assert f.drawn < f.available
        assert f"; {f.drawn:,} of {f.available:,} texts drawn." in text

    def test_effectiveness_has_a_table(self, audit, text):
        own = [row for row in audit.effectiveness if row.run == "ql"]
        means = [f"{row.mean:.3f}" for row in own]
        assert f"Ranker {' '.join(row.measure for row in own)} " in text
        assert re.search("QL " + r" \[[\d.]+, [\d.]+\] ".join(map(re.escape, means)), text)


class TestOverlap:
    def test_chart_and_table(self):
        page = Page(report_of([finding()], overlap=overlap_rows()))
        assert "overlap" in page.ids
        assert {"href": "#effectiveness"} in page.all("a")
        assert page.all("svg", **{"aria-label": "nDCG@10 by overlap of bm25, ql"})
        text = spaced(page)
        assert (
            "Ranker 0–33% 4 queries 50% 3 queries 75–100% 3 queries 0–33% 2 queries 50% 1 query 75–100% 0 queries"
            in text
        )
        assert "BM25 0.200 [0.100, 0.400] 0.400 [0.100, 0.600] 0.600 [0.100, 0.800] 0.200 [0.100, 0.400]" in text
        assert "0.400 [0.100, 0.600] – –" in text, "a group without queries has no mean"
        assert "The first panel has all queries" in text


@settings(max_examples=8, deadline=None)
@given(findings, st.text(max_size=20))
def test_any_finding_makes_a_page_that_nests(rows, note):
    Page(report_of(rows, {"notes": [note]}))
