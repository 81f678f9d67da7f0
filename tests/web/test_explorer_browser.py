"""The explorer in a real browser: every view is opened, typed into and clicked, and asks nobody else for anything.

Screenshots are kept in `$WHYRANK_SCREENSHOTS` where that names a folder.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from explorer_server import HOSTILE, SCRIPT, explorer_of, served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("explorer")]
pytest.importorskip("fastapi", reason="the extra web is not installed")
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
VIEWS = ["/", "/charts", "/study?name=edited/typos", "/workbench", "/collected", "/terms?term=car"]


@pytest.fixture(scope="module")
def explorer():
    made = explorer_of(studies=["edited/typos", "matched/length|relevance"])
    made.steps["slow"] = 0.5
    return made


@pytest.fixture(scope="module")
def address(explorer):
    with served(explorer) as url:
        yield url


@pytest.fixture
def opened(browser, address):
    """Open a view in a browser of its own; in the end there is no error, and no request to elsewhere."""
    contexts, pages = [], []

    def load(path, **settings):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 800}, base_url=address, **settings))
        pages.append(page := contexts[-1].new_page())
        page.requests, page.errors = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.goto(path)
        return page

    yield load
    for page in pages:
        assert page.errors == []
        assert {urlsplit(url).hostname for url in page.requests if not url.startswith("data:")} == {"127.0.0.1"}
    for context in contexts:
        context.close()


def keep(page, name):
    """Keep a screenshot, where a folder is named for them."""
    if folder := os.environ.get("WHYRANK_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def score(page, ranker, column):
    """A figure of the table of scores, once there is one."""
    cell = page.locator("#scores tbody tr", has_text=ranker).locator("td").nth(column)
    cell.wait_for()
    return cell.inner_text()


def settle(page):
    """Wait until nothing is asked, and scores are shown."""
    busy = ":has(.htmx-request, .htmx-swapping, .htmx-settling)"
    page.wait_for_selector(f"body:not({busy}) #scores > *", state="attached")


def type_in(page, **texts):
    """Type texts, and wait for their scores."""

    def answers_these(response):
        sent = parse_qs(response.request.post_data or "", keep_blank_values=True)
        return response.url.endswith("/score") and all(sent.get(name) == [text] for name, text in texts.items())

    with page.expect_response(answers_these):
        for name, text in texts.items():
            page.fill(f"#{name}", text)
    settle(page)


def press(page, *labels):
    """Click on what puts texts into the workbench, and wait for their scores."""
    with page.expect_response("**/score"):
        for label in labels:
            page.click(f"text={label}")
    settle(page)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits(opened, view):
    page = opened(view)
    page.wait_for_load_state("networkidle")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => innerWidth === width", arg=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        keep(page, f"explorer{view.partition('?')[0].replace('/', '-')}-{width}")


def test_from_a_finding_to_its_example_in_the_workbench(opened, explorer):
    page = opened("/")
    page.click("tbody a[href*=typos]")
    page.locator("a.open").first.click()
    example = explorer.audit["edited/typos"].examples(2, "bm25")[0]
    assert page.input_value("#a") == example.texts[0].text
    assert float(score(page, "BM25", 0)) == pytest.approx(example.texts[0].score, rel=1e-3)


def test_what_is_typed_edited_and_put_in_moves_the_scores(opened):
    page = opened("/workbench")
    type_in(page, query="fast car", a="A fast Ford.", b="A slow bicycle that is not fast")
    assert (score(page, "slow", 0), score(page, "slow", 1)) == ("3", "7")
    press(page, "Compare edits with these texts")
    page.select_option("#edit", "repeat-document")
    press(page, "Apply to A")
    assert page.input_value("#a") == "A fast Ford. A fast Ford."
    assert score(page, "slow", 4) == "+3 (+6.0 steps)"
    page.select_option("#value-a-car-makes", "Volvo")
    page.wait_for_selector("text=A now: A fast Volvo.")
    assert page.input_value("#a") == "A fast Volvo. A fast Volvo."
    page.fill("#pick_query", "q01")
    page.click("text=Take it")
    page.wait_for_selector("#query[value='mercury melting point']")
    keep(page, "explorer-edited")


def test_what_is_typed_and_clicked_before_an_answer_comes_counts(opened, explorer, monkeypatch):
    def late(name):
        real = getattr(explorer, name)
        monkeypatch.setattr(explorer, name, lambda *given: time.sleep(0.4) or real(*given))

    late("edit")
    late("scores")
    page = opened("/workbench")
    for words in ("fast", "fast car"):  # the second while the scores of the first are asked
        with page.expect_request(lambda sent, words=words: parse_qs(sent.post_data or "").get("query") == [words]):
            page.fill("#query", words)
    type_in(page, a="A fast Ford.", b="A bicycle")
    page.select_option("#edit", "repeat-document")
    press(page, "Apply to A", "Apply to B")
    assert (page.input_value("#a"), page.input_value("#b")) == ("A fast Ford. A fast Ford.", "A bicycle A bicycle")
    page.select_option("#edit", "prepend-query")
    page.click("text=Apply to A")
    page.locator("#b").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("typed")
    expect(page.locator("#a")).to_have_value("fast car A fast Ford. A fast Ford.")
    expect(page.locator("#b")).to_have_value("typed")
    settle(page)


def test_what_is_said_stays_until_something_else_is_done(opened):
    page = opened("/workbench")
    message = page.locator("#message")
    type_in(page, query="car", a="small", b="")
    page.select_option("#edit", "case-fold")
    page.click("text=Apply to A")
    expect(message).to_contain_text("does not change this text")
    type_in(page, a="SMALL")
    expect(message).to_be_empty()
    page.route("**/edit/a", lambda route: route.abort())
    page.click("text=Apply to A")
    expect(message).to_have_text("The explorer does not answer. Is it still running?")
    page.errors.clear()  # those of the browser itself: a request was refused, and one failed
    page.unroute("**/edit/a")
    press(page, "Apply to A")
    expect(message).to_be_empty()
    expect(page.locator("#a")).to_have_value("small")


def test_explanations_show_progress_can_be_cancelled_and_give_an_edit(opened):
    page = opened("/workbench")
    type_in(page, query="car", a=" ".join(f"w{i}" for i in range(190)), b="one two three")
    page.select_option("#ranker", "slow")
    page.click("[hx-post='/explain/a']")
    page.wait_for_selector(".job progress")
    page.click("text=Cancel")
    page.wait_for_selector("text=Cancelled.")
    type_in(page, a="one two three four five")
    page.click("text=A against B")
    press(page, "Put this edit into the workbench")
    assert page.input_value("#a") != "one two three four five" or page.input_value("#b") != "one two three"


def test_two_browsers_collect_apart_and_run_a_study(opened):
    one, other = opened("/workbench"), opened("/workbench")
    for number, text in enumerate(("one two", "one two three"), 1):
        type_in(one, query="words", a=f"{text} more", b=text)
        one.click("text=Collect:")
        expect(one.locator("#message")).to_have_text(f"Collected: {number} so far.")
    one.click("nav >> text=Collected")
    one.click("text=Run as a study")
    row = one.locator("#work tbody tr", has_text="slow")
    row.wait_for()
    assert row.locator("td").all_inner_texts()[2:5] == ["2", "0", "0"]
    with one.expect_download() as download:
        one.click("text=Download")
    assert len(Path(download.value.path()).read_text().splitlines()) == 2
    one.locator("text=Remove").first.click()
    expect(one.locator(".pair")).to_have_count(1)
    other.click("nav >> text=Collected")
    expect(other.locator("text=Nothing is collected yet")).to_be_visible()


def test_hostile_texts_are_shown_and_not_run(opened):
    page = opened("/workbench")
    type_in(page, query=SCRIPT, a=f"a Ford {HOSTILE}", b=HOSTILE, own=f"{SCRIPT}, Ford")
    press(page, "Compare edits with these texts")
    type_in(page, a=f"a Volvo {HOSTILE}")
    page.click("[hx-post='/explain/both']")
    page.wait_for_selector(".whyrank-explanation")
    page.click("text=Collect:")
    page.wait_for_selector("#message >> text=Collected")
    assert SCRIPT in page.inner_text(".whyrank-explanation")
    assert page.input_value("#b") == HOSTILE
    for view in (None, "/collected", "/terms?term=x", "/terms?term=" + SCRIPT, "/study?name=edited/typos"):
        if view:
            page.goto(view)
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("window.ran") is None
    assert SCRIPT in opened("/terms?term=x").inner_text("main")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    page = opened(VIEWS[0], color_scheme=scheme, bypass_csp=True)
    for view in [*VIEWS, "/workbench", "/collected"]:
        page.goto(view)
        if view == "/workbench":
            type_in(page, query="fast car", a="A fast Ford.", b="A slow bicycle")
            press(page, "Compare edits with these texts")
            type_in(page, a="A fast car")
            page.click("[hx-post='/explain/both']")
            page.wait_for_selector(".whyrank-explanation")
            page.click("text=Collect:")
            page.wait_for_selector("#message >> text=Collected")
        found = axe.Axe().run(page).response["violations"]
        serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, view
