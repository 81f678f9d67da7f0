"""What a ranker favours, in a real browser: the plot of each value, in the report, on its own page and as a file."""

from __future__ import annotations

import sys

import pytest

from whyrank.cli.main import main

pytestmark = pytest.mark.browser

TEAS = "mint rose sage lime fennel ginger nettle jasmine"
RANKER = """
def rose(queries, docs):
    return [len(q) / 10 + 0.5 * ('rose' in d) + 0.05 * (sum(map(ord, q + d)) % 7) for q, d in zip(queries, docs)]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The result of an audit, `whole`, and of the same study alone, `alone`."""
    made = tmp_path_factory.mktemp("favours")
    (made / "tea.tsv").write_text("".join(f"which drink {i}\tdrink {{value}} at {i}\n" for i in range(12)))
    (made / "likes.py").write_text(RANKER)
    study = f"bias/substitution(values={'+'.join(TEAS.split())},templates=tea.tsv)"
    for more, out in ((["TFC1"], "whole"), ([], "alone")):
        asked = [
            "audit",
            study,
            *more,
            "-r",
            "python:likes.py:rose",
            "--delta",
            "0.1",
            "--out",
            out,
            "--store",
            "none",
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(made)
            patch.setattr(sys, "argv", ["whyrank", *asked])
            with pytest.raises(SystemExit) as stop:
                main()
        assert stop.value.code == 0
    return made


def pages_of(folder):
    [drawing] = (folder / "whole" / "bias").glob("*.svg")
    return [folder / "whole" / "report.html", folder / "alone" / "report.html", drawing]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_values_are_drawn(browser, folder, scheme, which):
    """Every value has a dot with a colour, those that differ another one; the most favoured stands furthest right."""
    context = browser.new_context(color_scheme=scheme)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.goto(pages_of(folder)[which].as_uri())
    dots = opened.locator("g.mark-symbol.role-mark path").evaluate_all(
        "found => found.map(e => [getComputedStyle(e).fill, e.getBoundingClientRect().x])"
    )
    assert len(dots) == len(TEAS.split())
    assert dots[0][1] == max(x for _, x in dots)
    colours = {fill for fill, _ in dots}
    assert len(colours) == 2
    assert "rgb(0, 0, 0)" not in colours
    assert ("rgb(31, 95, 168)" in colours) == (scheme == "light"), "dark screens have colours of their own"
    assert errors == []
    context.close()


def test_the_section_has_its_tables(browser, folder):
    opened = browser.new_page()
    opened.goto(pages_of(folder)[0].as_uri())
    section = opened.locator("section.family")
    assert "What it favours" in section.locator("h2").inner_text()
    closed = section.locator("details.more").first
    assert not closed.locator("table").is_visible()
    closed.locator("summary").click()
    assert closed.locator("tbody tr").count() == len(TEAS.split())
    assert "rose" in closed.locator("tbody tr").first.inner_text()
    assert "favours rose over" in opened.locator("#verdict").inner_text()
    opened.close()


@pytest.mark.parametrize("which", [0, 1])
def test_it_fits_a_phone(browser, folder, which):
    context = browser.new_context(viewport={"width": 380, "height": 800})
    opened = context.new_page()
    opened.goto(pages_of(folder)[which].as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= 380
    assert opened.locator("figure.chart svg").first.is_visible()
    context.close()
