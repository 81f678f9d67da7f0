"""The report in a real browser: it reads, sorts, filters, unfolds and draws, and asks the network for nothing.

Screenshots are kept in `$WHYRANK_SCREENSHOTS` where that names a folder. The picture of the README is `first.png`, with
the report of `make demo` in `$WHYRANK_REPORT`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from whyrank.cli.main import main

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("report")]
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
TEAS = ["mint", "rose", "sage", "lime", "fennel", "ginger", "nettle", "jasmine"]
RANKER = """
def rose(queries, docs):
    return [len(q) / 10 + 0.5 * ('rose' in d) + 0.05 * (sum(map(ord, q + d)) % 7) for q, d in zip(queries, docs)]
def rough(queries, docs):
    return [len(set(q.lower().split()) & set(d.lower().split())) - 0.3 * d.count(' a ') for q, d in zip(queries, docs)]
"""
AUDITS = {
    "whole": ["matched/*", "TFC*", "LB2", "LNC2", "transferred/*", "bias/car-brand", "--tolerance", "10%", "--limit", "60",
              "-r", "bm25", "-r", "ql", "-r", "bm25(b=0)", "-r", "ql(mu=10)", "-r", "the old ranker=python:likes.py:rough"],
    "swept": ["matched/length|*", "--tolerance", "10%", "-r", "bm25", "-r", "bm25(b=0.9)", "--sweep", "--group", "bm25*",
              "--by", "relevance_group"],
    "bias": [f"bias/substitution(values={'+'.join(TEAS)},templates=tea.tsv)", "TFC1", "-r", "rose=python:likes.py:rose",
             "--delta", "0.1", "--table", "tea-terms.tsv"],
    "hostile": ["matched/length|relevance", "LNC2", "-c", "texts", "-r", "bm25", "-r", "mine=python:likes.py:rough", "--delta", "0.01"],
}  # fmt: skip
SCRIPT = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"
HOSTILE = f'{SCRIPT} "quoted" \u202eturned\u202c \x1b[31mred\x1b[0m'
WORDS = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walk.nextNode()) {
    range.selectNodeContents(walk.currentNode);
    const box = range.getBoundingClientRect();
    if (box.height && box.top >= 0 && box.left >= 0 && box.top < innerHeight) found.push(...walk.currentNode.textContent.split(/\\s+/));
  }
  return found.filter((word) => /[\\p{L}\\p{N}]/u.test(word));
}"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The result folder of an audit by its name, made when it is first wanted."""
    here, made = tmp_path_factory.mktemp("audits"), set()
    (here / "tea.tsv").write_text("".join(f"which drink {i}\tdrink {{value}} at {i}\n" for i in range(12)))
    (here / "tea-terms.tsv").write_text("drink\tmint\t0.5\nwhich\tsage\t0.25\nwhich\t<b>rose</b>\t0.125\n")
    (here / "likes.py").write_text(RANKER)
    (here / "texts").mkdir()
    docs = [{"id": f"d{i}", "text": f"tea {HOSTILE} " + "and a cup " * (i % 5)} for i in range(40)]
    (here / "texts" / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (here / "texts" / "queries.tsv").write_text("".join(f"q{i}\ttea cup {i} {SCRIPT}\n" for i in range(10)))
    (here / "texts" / "qrels.txt").write_text("".join(f"q{i % 10} 0 d{i} {i % 2}\n" for i in range(40)))

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
    """Open a page, with every request and every error recorded; none may be there in the end."""
    contexts, pages = [], []

    def load(path, width=1280, height=800, **settings):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **settings))
        pages.append(page := contexts[-1].new_page())
        page.requests, page.errors = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        return page

    yield load
    for page in pages:
        assert ([url[:7] for url in page.requests], page.errors) == (["file://"], [])
    for context in contexts:
        context.close()


def keep(page, name, **settings):
    """Keep a screenshot, where a folder is named for them."""
    if folder := os.environ.get("WHYRANK_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", **settings)


@pytest.mark.parametrize("width", [1280, 390])
def test_studies_are_listed_sorted_filtered_and_unfolded(opened, audited, width):
    page = opened(audited("whole") / "report.html", width)
    rows, themes = page.locator("details.study:visible"), page.locator(".theme:visible")
    whole, before = rows.count(), themes.count()
    assert whole >= 20
    assert before >= 6
    page.fill("#filter", "overlap|tf")
    assert (rows.count(), themes.count(), page.inner_text("#shown")) == (1, 1, f"1 of {whole}")
    page.fill("#filter", "")
    first = rows.first.get_attribute("id")
    for order in ("spread", "0", "2"):
        page.select_option("#sort", order)
        values = rows.evaluate_all("all => all.map((each) => +each.dataset.spread)")
        assert (values == sorted(values, reverse=True)) or order != "spread"
        assert (rows.count(), themes.count()) == (whole, 0)
    page.select_option("#sort", "")
    assert (rows.first.get_attribute("id"), themes.count()) == (first, before)
    page.click("#unfold")
    assert page.locator("details.study[open]").count() == whole
    page.locator("details.more").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    assert page.locator(".example:visible").count() >= whole
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    cut = page.locator("details.study .wide").evaluate_all(
        "all => all.filter((e) => e.scrollWidth > e.clientWidth).length"
    )
    assert cut == 0 or width < 1280, "all figures of a study are seen at once on a desktop"
    page.click("#unfold")
    assert page.locator("details.study[open]").count() == 0
    link = page.locator(".headlines .subject").first
    link.click()
    expect(page.locator(f"{link.get_attribute('href')}[open] .body")).to_be_visible()
    keep(page, f"unfolded-{width}")


def test_the_first_screen_is_short_and_in_plain_words(opened, audited):
    given = os.environ.get("WHYRANK_REPORT")
    page = opened(Path(given).absolute() if given else audited("whole") / "report.html")
    words = page.evaluate(WORDS)
    keep(page, "first")
    assert 40 < len(words) <= 150
    text = " ".join(words)
    assert not re.search(r"[α-ωΑ-Ω]|\w/\w|\w\|\w|\b(axiom|TFC|LB2|nDCG|matched|edited|transferred)\b", text), text
    names = page.locator(".legend li").all_inner_texts()
    explained = page.locator("#glossary summary").inner_text().split(", ")
    assert {"BM25", "QL"} <= set(names) & set(explained), "a reader need not know them"
    samples = page.locator(".headlines .sample").all_inner_texts()
    assert len(words) + 2 * len(samples) > 150 or min(map(len, samples)) > 60, (
        "examples are as long as there is room for"
    )
    linked = [*page.locator("#findings a.term").all(), *page.locator(".legend a.term").all()]
    assert linked
    for term in linked:
        assert term.get_attribute("title")
        assert page.locator(term.get_attribute("href")).count() == 1
    assert page.locator(".headlines li").count() in (3, 4)
    assert page.locator(".headlines .sample").count() >= 3


def test_it_is_a_few_screens_long_and_prints_on_a_few_pages(opened, audited):
    page = opened(audited("whole") / "report.html")
    assert page.evaluate("document.documentElement.scrollHeight") <= 6 * 800
    pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf()))
    assert 1 <= pages <= 5
    plain = opened(audited("whole") / "report.html", java_script_enabled=False)
    assert plain.locator("details.study:visible").count() >= 20, "readable without scripts"


def test_the_term_table_is_searched_and_the_glossary_unfolds(opened, audited):
    page = opened(audited("bias") / "report.html")
    page.locator("#table summary").click()
    rows = page.locator("#terms tbody tr:visible")
    assert [row.inner_text() for row in rows.all()] == [
        "drink\t12\tmint 0.5",
        "which\t12\tsage 0.25, <b>rose</b> 0.125",
    ]
    page.fill("#term", "Sage")
    assert rows.count() == 1
    page.locator("a.term").first.click()
    expect(page.locator("#glossary dl")).to_be_visible()


@pytest.mark.parametrize("name", AUDITS)
def test_it_fits_a_phone(opened, audited, name):
    page = opened(audited(name) / "report.html", 380)
    page.locator("details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert page.locator("details.study .cell .who").first.is_visible(), "cards name the rankers"
    page.locator("details").evaluate_all("all => all.forEach((each) => { each.open = false; })")
    keep(page, f"phone-{name}")


def test_hostile_texts_are_shown_and_not_run(opened, audited):
    page = opened(audited("hostile") / "report.html")
    page.locator("details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    assert page.evaluate("window.ran") is None
    text = page.inner_text("main")
    assert SCRIPT in text
    assert '"quoted"' in text
    assert page.locator("main img, main script").count() == 0
    assert page.locator(".passage[dir=auto]").count(), "marks of direction end with their element"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", AUDITS)
def test_axe_finds_nothing_serious(opened, audited, name, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    page = opened(audited(name) / "report.html", color_scheme=scheme, bypass_csp=True)
    for part in (page.locator("details.study").first, page.locator("details.more").first):
        part.evaluate("each => { each.open = true; }")
    found = axe.Axe().run(page).response["violations"]
    serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]
    assert not serious


def looks(page, where, marks, what):
    """A property and the size of each mark of a chart: `where` is the beginning of the label of a picture."""
    inside = f'svg[aria-label^="{where}"] ' if page.url.endswith(".html") else ""
    return page.locator(f"{inside}g.{marks}.role-mark path").evaluate_all(
        "(found, what) => found.map(e => [getComputedStyle(e)[what], e.getBoundingClientRect().x,"
        " e.getBoundingClientRect().width, e.getBoundingClientRect().height])",
        what,
    )


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
    if name == "report.html":
        page.locator("details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    dots = looks(page, "bias/substitution", "mark-symbol", "fill")
    colours = {fill for fill, *_ in dots}
    assert len(dots) == len(TEAS)
    assert dots[0][1] == max(x for _, x, _, _ in dots)
    assert len(colours) == 2
    assert ("rgb(29, 30, 32)" in colours) == (scheme == "light"), "dark screens have colours of their own"
    assert "rgb(0, 0, 0)" not in colours
