"""The report in a real browser: it shows, sorts and filters, and asks the network for nothing."""

from __future__ import annotations

import json
import sys

import pytest

from whyrank.cli.main import main

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "result"
    with pytest.MonkeyPatch.context() as patch:
        command = ["whyrank", "audit", "--ranker", "bm25", "--ranker", "ql", "--out", str(folder), "--store", "none"]
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def studies(report):
    """How many studies the result has."""
    return len(json.loads((report.parent / "settings.json").read_text())["studies"])


@pytest.fixture
def page(browser, report):
    """The report, with every request and every error recorded."""
    opened = browser.new_page()
    opened.requests, opened.errors = [], []
    opened.on("request", lambda request: opened.requests.append(request.url))
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
    opened.goto(report.as_uri())
    yield opened
    opened.close()


def test_nothing_leaves_the_page(page):
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file://")
    assert page.errors == []


def test_overview_lists_every_study(page, studies):
    rows = page.locator("#overview-table tr.study:visible")
    assert rows.count() == studies >= 20
    assert "bm25" in page.locator("#verdict").inner_text()


def test_filter(page, studies):
    families = page.locator("#overview-table tr.family:visible")
    before = families.count()
    page.fill("#filter", "overlap|tf")
    assert page.locator("#overview-table tr.study:visible").count() == 1
    assert families.count() == min(before, 1), "families without studies to show are hidden"
    page.fill("#filter", "")
    assert page.locator("#overview-table tr.study:visible").count() == studies
    assert families.count() == before


def test_sorting_by_a_ranker(page):
    def first() -> str:
        return page.locator("#overview-table tr.study:visible").first.inner_text()

    button = page.locator("#overview-table th[data-sort] button").last
    button.click()
    one = first()
    button.click()
    assert first() != one
    assert (
        page.locator("#overview-table th[aria-sort=ascending], #overview-table th[aria-sort=descending]").count() == 1
    )


def test_links_of_the_overview_lead_to_sections(page):
    link = page.locator("#overview-table tbody a").first
    target = link.get_attribute("href")
    link.click()
    assert page.locator(target).is_visible()


def test_readable_without_scripts(browser, report, studies):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(report.as_uri())
    assert opened.locator("#overview-table tr.study:visible").count() == studies
    context.close()


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A result with a sweep and a group of rankers."""
    folder = tmp_path_factory.mktemp("sweep") / "result"
    asked = ["audit", "matched/length|*", "--tolerance", "10%", "--ranker", "bm25", "--ranker", "bm25(b=0.9)"]
    command = ["whyrank", *asked, "--sweep", "--group", "bm25*", "--out", str(folder), "--store", "none"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 0
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sweeps_are_drawn(browser, swept, scheme):
    """Every line is visible and has a colour of its own, in the report and in the file."""
    context = browser.new_context(color_scheme=scheme)
    opened = context.new_page()
    for name in ("report.html", "sweep.svg"):
        opened.goto((swept / name).as_uri())
        lines = opened.locator("g.mark-line.role-mark path").evaluate_all(
            "lines => lines.map(line => [getComputedStyle(line).stroke, line.getBoundingClientRect().width > 100])"
        )
        assert len(lines) == 4 * 2
        assert all(wide for _, wide in lines)
        assert len({stroke for stroke, _ in lines}) == 2
        assert not {"none", "rgb(0, 0, 0)"} & {stroke for stroke, _ in lines}
    context.close()


def test_sweeps_and_groups_fit_a_phone(browser, swept):
    context = browser.new_context(viewport={"width": 380, "height": 800})
    opened = context.new_page()
    opened.goto((swept / "report.html").as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= 380
    assert opened.locator("#stability").is_visible()
    context.close()


@pytest.fixture(scope="module")
def obeying(tmp_path_factory):
    """A result with axioms, one of them without instances, four rankers and the overlap split."""
    from whyrank.data import open_collection
    from whyrank.evaluation import overlap_of_plan
    from whyrank.rankers import Setting, open_ranker
    from whyrank.report import ResultWriter
    from whyrank.scoring import Engine
    from whyrank.studies import Plan, answers
    from whyrank.studies.axioms import axioms
    from whyrank.studies.runner import with_adjusted_p

    sample = open_collection("sample")
    studies = {name: axioms.create(name) for name in ("axiom/TFC1", "axiom/LNC1", "axiom/M-AND", "axiom/DIV")}
    rankers = [open_ranker(spec, Setting(sample)) for spec in ("bm25", "ql", "bm25(b=0.9)", "run:bm25")]
    plan = Plan(sample, studies, rankers, Engine())
    folder = tmp_path_factory.mktemp("axioms") / "result"
    with ResultWriter(folder, {"alpha": 0.05}) as writer:
        for answer in answers(plan):
            writer.add(answer)
        writer.finish(with_adjusted_p(writer.findings, "holm"), plan.thresholds, overlap=overlap_of_plan(plan))
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axioms_are_drawn(browser, obeying, scheme):
    """Chance levels, shares and their colours are visible; what is broken is named."""
    context = browser.new_context(color_scheme=scheme)
    opened = context.new_page()
    opened.goto((obeying / "report.html").as_uri())
    looks = "found => found.map(e => [getComputedStyle(e).fill, e.getBoundingClientRect().height > 3])"
    chances = opened.locator("g.mark-rect.role-mark path").evaluate_all(looks)
    assert len(chances) == 3 * 4
    assert all(tall and fill not in ("none", "") for fill, tall in chances)
    verdict = opened.locator("#verdict").inner_text()
    assert "TFC1 in 100% of 489 pairs" in verdict
    assert "breaks DIV" in verdict
    fills = opened.locator("#overview-table td.cell.pos, #overview-table td.cell.neg").evaluate_all(
        "found => found.map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(fills)) > 2
    context.close()


@pytest.mark.parametrize("name", ["report.html", "overlap.svg"])
def test_the_overlap_split_is_drawn(browser, obeying, name):
    opened = browser.new_page()
    opened.goto((obeying / name).as_uri())
    lines = opened.locator("g.mark-line.role-mark path").evaluate_all(
        "lines => lines.map(line => [getComputedStyle(line).stroke, line.getBoundingClientRect().width > 100])"
    )
    assert len(lines) == 2 * 4
    assert all(wide for _, wide in lines)
    assert len({stroke for stroke, _ in lines}) == 4
    points = opened.locator("g.mark-symbol.role-mark path").evaluate_all(
        "found => found.map(e => getComputedStyle(e).fill)"
    )
    assert len(points) >= 2 * 4 * 3
    assert "rgb(0, 0, 0)" not in points
    opened.close()


def test_axioms_and_overlap_fit_a_phone(browser, obeying):
    context = browser.new_context(viewport={"width": 380, "height": 800})
    opened = context.new_page()
    opened.goto((obeying / "report.html").as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= 380
    assert opened.locator("#overlap").is_visible()
    context.close()


def test_fits_a_phone(browser, report):
    context = browser.new_context(viewport={"width": 380, "height": 800})
    opened = context.new_page()
    opened.goto(report.as_uri())
    width = opened.evaluate("document.documentElement.scrollWidth")
    assert width <= 380
    context.close()
