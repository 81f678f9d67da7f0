"""The pages of the explorer, rendered on the server; htmx swaps the parts that a request changes."""

from __future__ import annotations

import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from whyrank.core import UnknownName, WhyrankError
from whyrank.explain import Explanation
from whyrank.explorer.guard import Guard, read_form
from whyrank.explorer.jobs import Job, Session
from whyrank.explorer.live import CALLS, MOST_COLLECTED, OFFERED, Explorer, Texts
from whyrank.report.examples import compared, shorten
from whyrank.report.html import answer, pair_of
from whyrank.report.themes import THEMES, label_of, theme_of, words_for
from whyrank.report.views import differs, is_clear, rows_of
from whyrank.report.words import bounds, count, difference, figure, p_value, signed
from whyrank.studies import Contrasts, Pair, save

TERMS = 15  # terms of a table that are shown in either direction
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}

Form = Annotated[dict[str, str], Depends(read_form)]


def _texts(fields: Form) -> Texts:
    return Texts.of(fields)


def _session(request: Request) -> Session:
    session: Session = request.state.session
    return session


Typed = Annotated[Texts, Depends(_texts)]
Own = Annotated[Session, Depends(_session)]


def make_app(explorer: Explorer, token: str | None = None) -> Guard:
    """The application of an explorer; with a token, nothing is answered to who does not know it."""
    app, page = FastAPI(docs_url=None, redoc_url=None, openapi_url=None), Pages(explorer)

    @app.exception_handler(WhyrankError)
    def refuse(request: Request, error: WhyrankError) -> HTMLResponse:
        whole = "error.html.j2" if "hx-request" not in request.headers else "message.html.j2"
        answer = page(whole, problem=str(error), said="", status=422)
        if "hx-request" in request.headers:  # what somebody typed stays where it is
            answer.headers.update({"HX-Retarget": "#message", "HX-Reswap": "innerHTML"})
        return answer

    @app.exception_handler(HTTPException)
    def wrong(request: Request, error: HTTPException) -> HTMLResponse:
        answer = refuse(request, WhyrankError(error.detail))
        answer.status_code = error.status_code
        return answer

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _files():
            raise HTTPException(404, "there is no such file")
        return Response(_files()[name], media_type=TYPES[name.rpartition(".")[2]])

    for add in (_add_findings, _add_workbench, _add_jobs, _add_collected):
        add(app, explorer, page)
    return Guard(app, token)


def _add_findings(app: FastAPI, explorer: Explorer, page: Pages) -> None:
    """What the audit found, and what term tables have."""

    @app.get("/")
    def home() -> Response:
        if explorer.audit is None:
            return RedirectResponse("/workbench", 303)
        findings = [finding for finding in explorer.audit.findings if finding.group is None]
        rows = rows_of(findings)
        themes = [(theme, asks, own) for theme, asks in THEMES.items()
                  if (own := [row for row in rows if theme_of(row.study) == theme])]  # fmt: skip
        return page("home.html.j2", audit=explorer.audit, themes=themes)

    @app.get("/study")
    def study(name: str) -> HTMLResponse:
        if explorer.audit is None:
            raise WhyrankError("there is no audit; start the explorer with a result folder")
        view = explorer.audit[name]
        about = words_for(name)
        edited = bool(about and about.edited) or any(f.range is not None for f in view.findings)
        found = {}
        for f in (each for each in view.findings if each.group is None):
            usual = -1 if (f.score or 0.0) < 0 else 1  # what the ranker does more often comes first
            shown = sorted(enumerate(explorer.examples(name, f.ranker)), key=lambda each: usual * each[1].diff < 0)
            found[f.ranker] = f, [(number, each, pair_of(each, edited)) for number, each in shown]
        return page("study.html.j2", study=name, found=found, names=explorer.audit.names, about=about)

    @app.get("/charts")
    def charts(name: str = "") -> HTMLResponse:
        from whyrank.report.charts import picture

        chosen = name or next(iter(explorer.charts), "")
        if chosen and chosen not in explorer.charts:
            raise UnknownName("chart of this audit", chosen, explorer.charts)
        drawn = picture(explorer.charts[chosen], chosen) if chosen else ""
        return page("charts.html.j2", chosen=chosen, drawn=drawn)

    @app.get("/terms")
    def terms(term: str = "") -> HTMLResponse:
        wanted = term.strip()[:200]
        found = {name: table.neighbours(wanted, TERMS) for name, table in explorer.tables.items()} if wanted else {}
        return page("terms.html.j2", term=wanted, found=found)


def _add_workbench(app: FastAPI, explorer: Explorer, page: Pages) -> None:
    """Texts that one types, picks and edits."""

    @app.get("/workbench")
    def workbench(study: str = "", ranker: str = "", n: int = 0) -> HTMLResponse:
        texts = Texts()
        if study:
            found = explorer.examples(study, ranker)
            if not 0 <= n < len(found):
                raise WhyrankError(f"{study} has no example {n} of {ranker}")
            texts = Texts.fresh(found[n].query, *(text.text for text in found[n].texts[:2]))
        elif explorer.collection.queries:
            texts = explorer.pick_query(texts, next(iter(explorer.collection.queries)))
        return page("workbench.html.j2", texts=texts)

    @app.post("/score")
    def score(texts: Typed) -> HTMLResponse:
        offers = explorer.offers(texts)
        both = (("A", texts.a, texts.start_a), ("B", texts.b, texts.start_b))
        changed = [(name, compared(now, before)) for name, now, before in both if before and now != before]
        return page("scores.html.j2", texts=texts, lines=explorer.scores(texts), offers=offers, changed=changed)

    @app.post("/edit/{which}")
    def edit(which: str, texts: Typed, fields: Form) -> HTMLResponse:
        return page("texts.html.j2", texts=explorer.edit(texts, _which(which), fields.get("edit", "")))

    @app.post("/value/{which}/{name}")
    def value(which: str, name: str, texts: Typed, fields: Form) -> HTMLResponse:
        wanted = fields.get(f"value-{which}-{name}", "")
        return page("texts.html.j2", texts=explorer.replace_value(texts, _which(which), name, wanted))

    @app.post("/pick/query")
    def pick_query(texts: Typed, fields: Form) -> HTMLResponse:
        return page("texts.html.j2", texts=explorer.pick_query(texts, fields.get("pick_query", "").strip()))

    @app.post("/pick/{which}")
    def pick_document(which: str, texts: Typed, fields: Form) -> HTMLResponse:
        doc_id = fields.get("pick_document", "").strip()
        return page("texts.html.j2", texts=explorer.pick_document(texts, _which(which), doc_id))

    @app.post("/keep")
    def keep(texts: Typed) -> HTMLResponse:
        return page("texts.html.j2", texts=Texts(texts.query, texts.a, texts.b, texts.a, texts.b, texts.own))

    @app.post("/explain/{which}")
    def explain(which: str, texts: Typed, fields: Form, session: Own) -> HTMLResponse:
        ranker = explorer.ranker(fields.get("ranker", ""))
        what = f"explaining what {explorer.names[ranker.name]} does"
        chosen = which if which == "both" else _which(which)
        return page.job(session.start(what, lambda job: explorer.explanation(job, ranker.name, texts, chosen), CALLS))


def _add_jobs(app: FastAPI, explorer: Explorer, page: Pages) -> None:
    """Work in the background: how far it is, its end, and its result."""

    @app.get("/job/{number}")
    def job(number: str, session: Own) -> HTMLResponse:
        return page.job(_job(session, number))

    @app.post("/job/{number}/cancel")
    def cancel(number: str, session: Own) -> HTMLResponse:
        _job(session, number).cancel()
        return page.job(_job(session, number))

    @app.post("/job/{number}/use")
    def use(number: str, texts: Typed, session: Own) -> HTMLResponse:
        found = _job(session, number).result
        if not isinstance(found, Explanation) or found.counterfactual is None:
            raise WhyrankError("there is no edit to take over")
        edit = found.counterfactual
        return page("texts.html.j2", texts=texts.put("ab"[edit.doc], edit.text))


def _add_collected(app: FastAPI, explorer: Explorer, page: Pages) -> None:
    """The contrasts that a browser collected."""

    @app.get("/collected")
    def collected(session: Own) -> HTMLResponse:
        return page("collected.html.j2", pairs=session.collected)

    @app.post("/collected/add")
    def add(texts: Typed, session: Own) -> HTMLResponse:
        if not (texts.query.strip() and texts.a.strip() and texts.b.strip()) or texts.a == texts.b:
            raise WhyrankError("a contrast has a query and two texts that differ")
        if len(session.collected) >= MOST_COLLECTED:
            raise WhyrankError(f"{MOST_COLLECTED:,} contrasts are collected: download them, and remove some")
        session.collected.append(Pair(texts.query, (texts.a, texts.b)))
        said = f"Collected: {count(len(session.collected))} so far."
        return page("message.html.j2", problem="", said=said)

    @app.post("/collected/remove/{number}")
    def remove(number: int, session: Own) -> RedirectResponse:
        if 0 <= number < len(session.collected):
            del session.collected[number]
        return RedirectResponse("/collected", 303)

    @app.post("/collected/run")
    def run(session: Own) -> HTMLResponse:
        pairs = _collected(session)
        return page.job(
            session.start(f"running {count(len(pairs))} contrasts", lambda job: explorer.study(job, pairs))
        )

    @app.get("/collected/contrasts.jsonl")
    def download(session: Own) -> Response:
        with tempfile.TemporaryDirectory(prefix="whyrank-") as room:
            save(Contrasts.from_pairs(_collected(session)), path := Path(room) / "contrasts.jsonl")
            given = {"Content-Disposition": 'attachment; filename="contrasts.jsonl"'}
            return Response(path.read_bytes(), media_type="application/jsonl", headers=given)


class Pages:
    """Renders templates; whatever is no template of ours is escaped."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        loader = PackageLoader("whyrank.explorer")
        self.environment = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self.environment.filters |= {
            "figure": figure, "signed": signed, "p": p_value, "count": count, "label": label_of,
            "shorten": shorten, "difference": difference,
        }  # fmt: skip
        self.environment.globals |= {
            "explorer": explorer, "offered": OFFERED, "is_clear": is_clear, "answer": answer, "bounds": bounds,
            "differs": differs,
        }  # fmt: skip

    def __call__(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        """The answer that a template makes of some values."""
        text = self.environment.get_template(name).render(values)
        return HTMLResponse(text.encode("utf-8", "replace"), status)

    def job(self, job: Job) -> HTMLResponse:
        """How far a job is, or what it gave."""
        running, found = job.running, job.result  # in this order: it may end meanwhile
        explained = found if isinstance(found, Explanation) else None
        return self(
            "job.html.j2", job=job, running=running, explained=explained, findings=found if explained is None else [],
            shown=Markup(explained.to_html()) if explained else "",
        )  # fmt: skip


@cache
def _files() -> dict[str, bytes]:
    """The files that pages load: all styles in one, htmx, and what htmx leaves to do."""
    from whyrank.report.charts import dark_style

    own, report = files("whyrank.explorer") / "static", files("whyrank.report") / "templates"
    styles = [report / "palette.css", report / "report.css", own / "explorer.css"]
    return {
        "style.css": b"\n".join(each.read_bytes() for each in styles) + dark_style().encode(),
        **{name: (own / name).read_bytes() for name in ("htmx.min.js", "explorer.js")},
    }


def _which(given: str) -> str:
    if given not in ("a", "b"):
        raise HTTPException(404, "there are the texts a and b")
    return given


def _job(session: Session, number: str) -> Job:
    if number not in session.jobs:
        raise HTTPException(404, "this work is no longer kept")
    return session.jobs[number]


def _collected(session: Session) -> list[Pair]:
    if not session.collected:
        raise WhyrankError("nothing is collected yet: the workbench collects contrasts")
    return list(session.collected)
