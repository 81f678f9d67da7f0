"""The report in a real browser: it shows, sorts, filters and draws, and asks the network for nothing."""

from __future__ import annotations

import json
import sys

import pytest

from whyrank.cli.main import main

pytestmark = pytest.mark.browser
TEAS = ["mint", "rose", "sage", "lime", "fennel", "ginger", "nettle", "jasmine"]
RANKER = """
def rose(queries, docs):
    return [len(q) / 10 + 0.5 * ('rose' in d) + 0.05 * (sum(map(ord, q + d)) % 7) for q, d in zip(queries, docs)]
"""
AUDITS = {
    "whole": ["matched/*", "TFC*", "--tolerance", "10%", "-r", "bm25", "-r", "ql"],
    "swept": ["matched/length|*", "--tolerance", "10%", "-r", "bm25", "-r", "bm25(b=0.9)", "--sweep", "--group", "bm25*"],
    "axioms": ["TFC1", "LNC1", "M-AND", "DIV", "-r", "bm25", "-r", "ql", "-r", "bm25(b=0.9)", "-r", "run:bm25"],
    "bias": [f"bias/substitution(values={'+'.join(TEAS)},templates=tea.tsv)", "TFC1", "-r", "python:likes.py:rose",
             "--delta", "0.1"],
}  # fmt: skip


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The result folder of an audit by its name, made when it is first wanted."""
    here, made = tmp_path_factory.mktemp("audits"), set()
    (here / "tea.tsv").write_text("".join(f"which drink {i}\tdrink {{value}} at {i}\n" for i in range(12)))
    (here / "likes.py").write_text(RANKER)

    def folder(name):
        if name not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(here)
                patch.setattr(sys, "argv", ["whyrank", "audit", *AUDITS[name], "--out", name, "--store", "none"])
                with pytest.raises(SystemExit) as stop:
                    main()
            assert stop.value.code == 0
            made.add(name)
        return here / name

    return folder


@pytest.fixture
def opened(browser):
    """Open a page, with every request and every error recorded."""
    contexts = []

    def load(path, **settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.requests, page.errors = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        return page

    yield load
    for context in contexts:
        context.close()


def looks(page, where, marks, what):
    """A property and the size of each mark of a chart: `where` is the beginning of the label of a picture."""
    inside = f'svg[aria-label^="{where}"] ' if page.url.endswith(".html") else ""
    return page.locator(f"{inside}g.{marks}.role-mark path").evaluate_all(
        "(found, what) => found.map(e => [getComputedStyle(e)[what], e.getBoundingClientRect().x,"
        " e.getBoundingClientRect().width, e.getBoundingClientRect().height])",
        what,
    )


def test_the_overview_lists_sorts_and_filters(opened, audited):
    folder = audited("whole")
    page = opened(folder / "report.html")
    studies = len(json.loads((folder / "settings.json").read_text())["studies"])
    rows, families = (page.locator(f"#overview-table tr.{kind}:visible") for kind in ("study", "family"))
    assert (len(page.requests), page.requests[0][:7], page.errors) == (1, "file://", [])
    assert rows.count() == studies >= 20
    assert "bm25" in page.locator("#verdict").inner_text()
    before = families.count()
    page.fill("#filter", "overlap|tf")
    assert rows.count() == 1
    assert families.count() == min(before, 1), "families without studies to show are hidden"
    page.fill("#filter", "")
    assert (rows.count(), families.count()) == (studies, before)
    button = page.locator("#overview-table th[data-sort] button").last
    button.click()
    one = rows.first.inner_text()
    button.click()
    assert rows.first.inner_text() != one
    ordered = "#overview-table th[aria-sort=ascending], #overview-table th[aria-sort=descending]"
    assert page.locator(ordered).count() == 1
    link = page.locator("#overview-table tbody a").first
    target = link.get_attribute("href")
    link.click()
    assert page.locator(target).is_visible()
    plain = opened(folder / "report.html", java_script_enabled=False)
    assert plain.locator("#overview-table tr.study:visible").count() == studies, "readable without scripts"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("whole", "#verdict"), ("swept", "#stability"), ("axioms", "#overlap"), ("bias", "figure.chart svg")],
)
def test_it_fits_a_phone(opened, audited, name, shown):
    page = opened(audited(name) / "report.html", viewport={"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert page.locator(shown).first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report.html", "sweep.svg"])
def test_sweeps_are_drawn(opened, audited, name, scheme):
    """Every line is visible and has a colour of its own, in the report and in the file."""
    page = opened(audited("swept") / name, color_scheme=scheme)
    lines = looks(page, "Scores of each study", "mark-line", "stroke")
    assert len(lines) == 4 * 2
    assert min(width for _, _, width, _ in lines) > 100
    strokes = {stroke for stroke, *_ in lines}
    assert len(strokes) == 2
    assert not {"none", "rgb(0, 0, 0)"} & strokes


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report.html", "*.svg"])
def test_values_of_bias_studies_are_drawn(opened, audited, name, scheme):
    """Every value has a dot with a colour, those that differ another one; the most favoured stands furthest right."""
    folder = audited("bias")
    [path] = (folder / "bias").glob(name) if name == "*.svg" else [folder / name]
    page = opened(path, color_scheme=scheme)
    dots = looks(page, "bias/substitution", "mark-symbol", "fill")
    colours = {fill for fill, *_ in dots}
    assert len(dots) == len(TEAS)
    assert dots[0][1] == max(x for _, x, _, _ in dots)
    assert len(colours) == 2
    assert ("rgb(31, 95, 168)" in colours) == (scheme == "light"), "dark screens have colours of their own"
    assert "rgb(0, 0, 0)" not in colours
    assert page.errors == []
