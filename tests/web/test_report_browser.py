"""The report in a real browser: it shows, sorts and filters, and asks the network for nothing."""

from __future__ import annotations

import shutil
import sys

import pytest

from whyrank.cli.main import main

pytestmark = pytest.mark.browser
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "result"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["whyrank", "audit", "--out", str(folder), "--store", "none"])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 0
    return folder / "report.html"


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


def test_overview_lists_every_study(page):
    rows = page.locator("#overview-table tbody tr:visible")
    assert rows.count() == 20
    assert "bm25" in page.locator("#verdict").inner_text()


def test_filter(page):
    page.fill("#filter", "overlap|tf")
    assert page.locator("#overview-table tbody tr:visible").count() == 1
    page.fill("#filter", "")
    assert page.locator("#overview-table tbody tr:visible").count() == 20


def test_sorting_by_a_ranker(page):
    def first() -> str:
        return page.locator("#overview-table tbody tr:visible").first.inner_text()

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


def test_readable_without_scripts(browser, report):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(report.as_uri())
    assert opened.locator("#overview-table tbody tr:visible").count() == 20
    context.close()


def test_fits_a_phone(browser, report):
    context = browser.new_context(viewport={"width": 380, "height": 800})
    opened = context.new_page()
    opened.goto(report.as_uri())
    width = opened.evaluate("document.documentElement.scrollWidth")
    assert width <= 380
    context.close()
