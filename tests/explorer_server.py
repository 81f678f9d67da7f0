"""An explorer that is served for a test, at a free port of this machine."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Thread

import pytest

import whyrank
from whyrank.data import open_collection
from whyrank.rankers import Setting, as_ranker
from whyrank.tables import TermTable

SCRIPT = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"
HOSTILE = f'</textarea>{SCRIPT} "quoted" \u202eturned\u202c \x1b[31mred\x1b[0m'


def slow(queries, docs):
    """A ranker that takes its time: it counts words, and has no formula to show."""
    time.sleep(0.02 * len(docs))
    return [float(len(doc.split())) for doc in docs]


def explorer_of(rankers=("bm25", slow), studies=()):
    """An explorer of the sample, with an audit where studies are named, and two tables."""
    from whyrank.explorer import Explorer

    sample = open_collection("sample")
    setting = Setting(sample, typed=True)
    opened = [as_ranker(each, setting) for each in rankers]
    found = whyrank.audit(["bm25", "ql"], "sample", list(studies), limit=15, delta=0.1) if studies else None
    tables = {
        name: TermTable.from_triples(["car", "x"], [term, SCRIPT], [weight, 0.25])
        for name, term, weight in (("left", "ford", 0.5), ("right", "auto", 0.75))
    }
    return Explorer(opened, sample, found, tables)


@contextmanager
def served(explorer, token=None):
    """The address of an explorer, for the length of a block."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra web is not installed")
    from whyrank.explorer import bind, make_app

    server = uvicorn.Server(uvicorn.Config(make_app(explorer, token), log_level="error", ws="none"))
    with bind("127.0.0.1", 0) as made:
        thread = Thread(target=server.run, kwargs={"sockets": [made]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{made.getsockname()[1]}"
        server.should_exit = True
        thread.join()
