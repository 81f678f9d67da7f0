"""The page of a term table in a real browser: it searches, sorts and filters, and asks the network for nothing."""

from __future__ import annotations

import pytest

from whyrank.report import write_page
from whyrank.tables import TermTable

pytestmark = pytest.mark.browser
ENTRIES = [("car", "ford", 0.39), ("car", "honda", 0.28), ("car", "vehicle", 0.8), ("carpet", "rug", 0.6),
           ("when", "2001", 0.17), ("x", "<b>bold</b>", 0.1)]  # fmt: skip


@pytest.fixture
def page(browser, tmp_path):
    entries = ENTRIES + [("many", f"word{i}", 0.01 + i / 100_000) for i in range(300)]
    write_page(TermTable.from_triples(*map(list, zip(*entries, strict=True)), learner="em"), tmp_path / "t.html", "t")
    opened = browser.new_page()
    opened.requests, opened.errors = [], []
    opened.on("request", lambda request: opened.requests.append(request.url))
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
    opened.goto((tmp_path / "t.html").as_uri())
    yield opened
    assert (len(opened.requests), opened.errors) == (1, [])
    opened.close()


def rows(page) -> list[list[str]]:
    return [line.split("\t")[:2] for line in page.locator("#entries tbody").inner_text().splitlines()]


def test_the_strongest_come_first_and_more_on_request(page):
    assert rows(page)[0] == ["car", "vehicle"]
    assert len(rows(page)) == 200
    page.click("#more")
    assert len(rows(page)) == 306
    assert page.locator("#more").is_hidden()


def test_search_by_beginning_and_by_whole_term(page):
    page.fill("#query", "car")
    assert rows(page) == [["car", "vehicle"], ["carpet", "rug"], ["car", "ford"], ["car", "honda"]]
    page.fill("#query", '"car"')
    page.fill("#doc", "Hon")
    assert rows(page) == [["car", "honda"]]
    assert page.locator("#count").inner_text() == "1 of 306"


def test_filter_by_class_and_weight(page):
    page.select_option("#class", label="car-makes")
    assert rows(page) == [["car", "ford"], ["car", "honda"]]
    page.fill("#least", "0.3")
    assert rows(page) == [["car", "ford"]]
    page.fill("#least", "0.39")  # what the page shows as 0.39 weighs 0.38999999 in single precision
    assert rows(page) == [["car", "ford"]]


def test_sorting(page):
    page.locator("#entries th button", has_text="document term").click()
    assert rows(page)[:2] == [["when", "2001"], ["x", "<b>bold</b>"]]
    page.locator("#entries th button", has_text="document term").click()
    assert rows(page)[0] == ["many", "word99"]
