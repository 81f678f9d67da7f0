"""Rerank services as rankers, against a server on this machine that behaves well, and one that does not."""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
import re
import socket
import sys
import threading
import time
from pathlib import Path
from signal import SIGINT, pthread_kill
from urllib.parse import quote, unquote

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("httpx", reason="the extra http is not installed")
from rerank_server import jina, rows, serving, tei, true_score

from whyrank.core import Call, MissingExtra, WhyrankError, executor
from whyrank.core.protocols import PartlyScored
from whyrank.rankers import open_ranker, rankers
from whyrank.rankers.http import service
from whyrank.rankers.http.service import BREAKER_LIMIT
from whyrank.scoring import Engine, ScoreStore
from whyrank.testing import RankerContract

KEY = "sk-0123456789abcdef"
SECRET = "Geh3im+w/rt="


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(service, "FIRST_WAIT", 0.01)


def pairs(n_queries=3, n_docs=5):
    grid = [(f"query {q}", f"text {d}") for d in range(n_docs) for q in range(n_queries)]
    return [q for q, _ in grid], [d for _, d in grid]


def expected(queries, docs):
    return [true_score(q, d) for q, d in zip(queries, docs, strict=True)]


def opened(server, **arguments):
    inside = ",".join(f"{key}={value!r}" for key, value in ({"retries": 1, "timeout": 5} | arguments).items())
    return open_ranker(f"{server.url}({inside})")


def scored(ranker, n_queries=3, n_docs=5, store=None):
    """Through the engine: scores and the reasons of failures by text."""
    queries, docs = [f"query {i}" for i in range(n_queries)], [f"text {i}" for i in range(n_docs)]
    query, doc = (np.array(c, np.int32).ravel() for c in np.meshgrid(range(n_queries), range(n_docs), indexing="ij"))
    found = Engine(store).score(ranker, queries, docs, query, doc)
    wanted = [true_score(queries[q], docs[d]) for q, d in zip(query, doc, strict=True)]
    return found, np.array(wanted), {(failure.query, failure.doc): failure.reason for failure in found.failures}


class TestContract(RankerContract):
    @pytest.fixture(autouse=True)
    def service(self):
        with serving(jina) as self.server:
            yield

    def make(self):
        return opened(self.server, version=1, batch=3)


# Requests


@pytest.mark.parametrize(("batch", "parallel"), [(2, 1), (32, 3)])
@pytest.mark.parametrize(("api", "behave"), [("jina", jina), ("cohere", jina), ("tei", tei)])
def test_scores_come_back_in_the_order_of_the_pairs(api, behave, batch, parallel):
    queries, docs = pairs()
    with serving(behave) as server:
        ranker = opened(server, api=api, batch=batch, parallel=parallel)
        assert ranker.score(queries, docs).tolist() == expected(queries, docs)
        assert len(server.log) == 3 * -(-5 // batch)
        assert all(len(body.get("texts", body.get("documents"))) <= batch for body in server.bodies)
        assert ranker.batch_size == batch * parallel


def test_what_is_sent_in_each_notation():
    texts, options = ["a", "b\ud800"], {"raw_scores": False, "truncation_direction": "left"}
    with serving(lambda handler: handler.answer({"results": rows(handler)})) as server:
        for api in ("jina", "cohere", "tei"):
            opened(server, api=api, model="m").score(["q", "q"], texts)
        opened(server, api="tei", options=options).score(["q", "q"], texts)
    assert server.bodies == [
        {"query": "q", "documents": texts, "model": "m", "top_n": 2, "return_documents": False},
        {"query": "q", "documents": texts, "model": "m", "top_n": 2},
        {"query": "q", "texts": texts, "model": "m", "raw_scores": True, "truncate": True, "return_text": False},
        {"query": "q", "texts": texts, "truncate": True, "return_text": False, **options},
    ]
    assert {path for path, _, _ in server.log} == {"/rerank"}


@pytest.mark.parametrize(("behave", "sent"), [(jina, ["documents"] * 2), (tei, ["documents", "texts", "texts"])])
def test_auto_finds_the_notation_once(behave, sent):
    with serving(behave) as server:
        ranker = opened(server)
        for _ in range(2):
            assert ranker.score(["q"], ["a"]).tolist() == [true_score("q", "a")]
    assert [next(key for key in ("documents", "texts") if key in body) for body in server.bodies] == sent
    assert open_ranker("https://api.cohere.com/v2/rerank")._service.apis == ("cohere",)


def test_several_requests_are_in_flight_and_no_more_than_allowed():
    together, now, most = threading.Barrier(3, timeout=10), [0], [0]

    def behave(handler):
        with handler.server.lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait()
        with handler.server.lock:
            now[0] -= 1
        jina(handler)

    queries, docs = pairs(6, 1)
    with serving(behave) as server:
        assert opened(server, parallel=3).score(queries, docs).tolist() == expected(queries, docs)
    assert most[0] == 3


def unused_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_proxy_is_not_asked_about_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(jina) as server:
        assert opened(server).score(["q"], ["a"]).tolist() == [true_score("q", "a")]


def test_inside_a_running_event_loop_and_in_other_processes():
    async def ask(ranker):
        return ranker.score(["q"], ["a"]).tolist()

    queries, codes = [f"query {i}" for i in range(4)], np.arange(4, dtype=np.int32)
    with serving(jina) as server:
        ranker = opened(server, version=1)
        assert asyncio.run(ask(ranker)) == [true_score("q", "a")]
        apart = Engine(executor=executor("processes(workers=2)"), batch_size=2)
        found = apart.score(ranker, queries, ["text"], codes, np.zeros(4, np.int32)).values
    assert found.tolist() == [true_score(query, "text") for query in queries]


# Failures that pass


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_service_is_asked_again(status):
    def behave(handler):
        busy = len(handler.server.log) <= 2
        handler.answer({"error": "busy"}, status) if busy else jina(handler)

    with serving(behave) as server:
        assert opened(server, retries=2).score(["q"], ["a"]).tolist() == [true_score("q", "a")]
        assert len(server.log) == 3


def test_retry_after_is_honoured_up_to_the_longest_wait():
    def behave(handler):
        jina(handler) if len(handler.server.log) > 1 else handler.answer({}, 429, Retry_After="0.6")

    with serving(behave) as server:
        start = time.monotonic()
        opened(server).score(["q"], ["a"])
        assert time.monotonic() - start > 0.55
    with serving(lambda handler: handler.answer({}, 429, Retry_After="3600")) as server:
        start = time.monotonic()
        with pytest.raises(PartlyScored, match=r"status 429 Too Many Requests: \{\} \(attempts: 2\)"):
            opened(server, longest_wait=0.05).score(["q"], ["a"])
        assert time.monotonic() - start < 10


def test_a_connection_that_breaks_off_is_tried_again():
    def behave(handler):
        if len(handler.server.log) > 1:
            return jina(handler)
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"results": [')
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
        return None

    with serving(behave) as server:
        assert opened(server).score(["q"], ["a"]).tolist() == [true_score("q", "a")]


# Failures of some pairs: the run goes on


def test_a_failing_request_costs_its_pairs_and_nothing_else(tmp_path):
    def behave(handler):
        jina(handler) if handler.body["query"] != "query 1" else handler.answer({"message": "out of\nmemory"}, 500)

    with serving(behave) as server, ScoreStore(tmp_path / "s.sqlite") as store:
        ranker = opened(server, version=3)
        found, wanted, reasons = scored(ranker, store=store)
        lost = np.repeat([False, True, False], 5)
        assert np.array_equal(found.values, np.where(lost, np.nan, wanted), equal_nan=True)
        assert set(reasons.values()) == {"status 500 Internal Server Error: out of memory (attempts: 2)"}
        assert len(server.log) == 4  # one of them tried twice, and no batch halved
        server.behave = jina
        again, wanted, reasons = scored(ranker, store=store)
        assert (again.scored, again.reused, reasons) == (5, 10, {})
        assert again.values.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [({"error": "too long"}, 413, r"status 413 [\w ]+ Too Large: too long"),
     (b"<html>blocked</html>", 403, "status 403 Forbidden: an HTML page")],
)  # fmt: skip
def test_a_text_that_the_service_does_not_take_is_found(content, status, reason):
    def behave(handler):
        jina(handler) if "text 3" not in handler.texts else handler.answer(content, status)

    with serving(behave) as server:
        ranker = opened(server, api="jina")
        ranker.score(["q"], ["it works"])
        found, wanted, reasons = scored(ranker, 1, 9)
        assert list(reasons) == [("query 0", "text 3")]
        assert re.fullmatch(reason, *reasons.values())
        assert np.array_equal(found.values, np.where(np.arange(9) == 3, np.nan, wanted), equal_nan=True)
        assert len(server.log) <= 2 + 2 * 4


def entries(*given):
    return [dict(zip(("index", "score"), entry, strict=True)) for entry in given]


@pytest.mark.parametrize(
    ("content", "values", "reason"),
    [
        ({"results": [{"index": 1, "relevance_score": 2}]}, [None, 2.0, None], "no score for this text"),
        ({"results": entries((0, None), (1, 1))}, [None, 1.0, None], "no score for this text"),
        (entries((0, 1), (0, 2)), [None] * 3, "two scores for text 0"),
        (entries((3, 1)), [None] * 3, "score for text 3 of 3"),
        ([{"score": 1}], [None] * 3, "0/index: Field required"),
        (entries((0, "high")), [None] * 3, "0/score: "),
        (b'[{"index": 0, "score": 1' + b"0" * 400 + b"}]", [None] * 3, "0/score: "),
        ({"error": "no"}, [None] * 3, "no list of scores (results: Input should be a valid list): {'error': 'no'}"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", [None] * 3, "no JSON but an HTML page"),
        (b"", [None] * 3, "no JSON but empty"),
        (b"[" * 100_000, [None] * 3, "no JSON but"),
    ],
)
def test_wrong_answers_leave_their_pairs_without_a_score(content, values, reason):
    with serving(lambda handler: handler.answer(content)) as server, pytest.raises(PartlyScored) as caught:
        opened(server, api="jina").score(["q"] * 3, ["a", "b", "c"])
    assert [None if np.isnan(value) else value for value in caught.value.scores] == values
    assert sorted(caught.value.reasons) == [i for i in range(3) if values[i] is None]
    assert all(reason in found for found in caught.value.reasons.values()), caught.value.reasons
    assert len(server.log) == 1  # nobody thinks that asking again would help


def test_compressed_broken_and_endless_answers(monkeypatch):
    def behave(handler):
        right = gzip.compress(b'[{"index": 0, "score": 4.5}]', mtime=0)
        contents = {"broken": right[:12] + b"\0\0\0\0" + right[16:], "endless": gzip.compress(b" " * 100_000)}
        handler.answer(contents.get(handler.body["query"], right), Content_Encoding="gzip")

    monkeypatch.setattr(service, "MAX_BYTES", 10_000)
    with serving(behave) as server:
        ranker = opened(server, retries=0)
        assert ranker.score(["fine"], ["a"]).tolist() == [4.5]
        for query, reason in (("broken", "DecodingError"), ("endless", "more than 10,000 bytes")):
            with pytest.raises(PartlyScored, match=reason):
                ranker.score([query], ["a"])


# A service that hangs


def hang(handler):
    handler.server.ended.wait(20)


def trickle(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.ended.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


@pytest.mark.parametrize("deed", [hang, trickle])
def test_a_service_that_hangs(deed):
    """From the start it ends the run with one line; later it costs those pairs."""
    what = r"rerank does not answer: no answer within 0.3 s \(attempts: 2\)"
    with serving(deed) as server, pytest.raises(WhyrankError, match=what):
        scored(opened(server, timeout=0.3))

    def behave(handler):
        deed(handler) if handler.body["query"] == "query 1" else jina(handler)

    with serving(behave) as server:
        ranker = opened(server, timeout=0.3, api="jina")
        ranker.score(["q"], ["it works"])
        found, wanted, reasons = scored(ranker)
    assert set(reasons.values()) == {"no answer within 0.3 s (attempts: 2)"}
    assert (found.values[0], len(reasons)) == (wanted[0], 5)


def test_an_interrupted_call_does_not_wait_for_the_service():
    with serving(hang) as server:
        start = time.monotonic()
        threading.Timer(0.3, pthread_kill, (threading.main_thread().ident, SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            opened(server, timeout=15).score(*pairs())
        assert time.monotonic() - start < 8


# Failures that end the run


def test_a_service_that_goes_away_is_given_up_after_some_requests():
    with serving(jina) as server:
        ranker = opened(server)
        ranker.score(["q"], ["it works"])
    found, _, reasons = scored(ranker, BREAKER_LIMIT - 1, 2)
    assert np.isnan(found.values).all()
    assert all("ConnectError" in reason for reason in reasons.values())
    with pytest.raises(WhyrankError, match=f"failed {BREAKER_LIMIT} requests in a row, the last with: ConnectError"):
        ranker.score(["q"], ["a"])


def test_failures_with_successes_between_them_do_not_end_a_run():
    """Neither does a first request that crashes the service."""

    def behave(handler):
        odd = int(handler.body["query"].split()[1]) % 2 == 1
        jina(handler) if odd else handler.answer({}, 500)

    with serving(behave) as server:
        _, _, reasons = scored(opened(server, retries=0, parallel=1), 4 * BREAKER_LIMIT, 1)
    assert len(reasons) == 2 * BREAKER_LIMIT


@pytest.mark.parametrize("behave", [lambda h: h.answer({"detail": "no model"}, 400), lambda h: h.answer(b"<html>")])
def test_a_service_that_takes_nothing_is_given_up_soon(behave):
    with serving(behave) as server, pytest.raises(WhyrankError, match=r"in a row|first 20 pairs"):
        scored(opened(server), 2, 100)
    assert len(server.log) < 150


@pytest.mark.parametrize(
    ("status", "what"),
    [(401, r"asks for another key.*invalid Bearer …"), (402, "asks for another key"), (403, "asks for another key"),
     (404, "is no address of a rerank service .status 404"), (405, "is no address"), (410, "is no address")],
)  # fmt: skip
def test_a_wrong_key_or_address_is_one_line_without_the_key(status, what, monkeypatch):
    monkeypatch.setenv("RERANK_KEY", KEY)

    def behave(handler):
        handler.answer({"message": f"invalid {handler.headers['Authorization']}"}, status)

    with serving(behave) as server, pytest.raises(WhyrankError, match=what) as caught:
        scored(opened(server, key_env="RERANK_KEY"))
    assert KEY not in str(caught.value)
    assert server.log[0][1]["Authorization"] == f"Bearer {KEY}"


def test_a_redirect_is_not_followed_with_the_key(monkeypatch):
    monkeypatch.setenv("RERANK_KEY", KEY)
    with serving(jina) as other, serving(lambda h: h.answer(b"", 302, Location=other.url)) as server:
        with pytest.raises(WhyrankError, match=f"has moved to '{other.url}'"):
            opened(server, key_env="RERANK_KEY").score(["q"], ["a"])
        assert other.log == []


# Keys and other secrets


def test_the_key_stands_nowhere(monkeypatch):
    monkeypatch.setenv("RERANK_KEY", f" {KEY}\n")
    with serving(jina) as server:
        ranker = opened(server, key_env="RERANK_KEY", version=1)
        ranker.score(["q"], ["a"])
        assert server.log[0][1]["Authorization"] == f"Bearer {KEY}"
        for text in (repr(ranker), ranker.name, str(ranker.__dict__), repr(ranker._service)):
            assert KEY not in text
        assert KEY.encode() not in pickle.dumps(ranker)
    with pytest.raises(PartlyScored) as caught:
        ranker.score(["q"], ["a"])
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("value", [None, "", "two words", "new\nline", "schlüssel"])
def test_a_key_that_cannot_be_sent(value, monkeypatch):
    monkeypatch.delenv("RERANK_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("RERANK_KEY", value)
    with serving(jina) as server:
        with pytest.raises(WhyrankError, match=r"RERANK_KEY (is not set|holds no key)") as caught:
            opened(server, key_env="RERANK_KEY").score(["q"], ["a"])
        assert not value or value not in str(caught.value)
        assert server.log == []


@pytest.mark.parametrize(
    "spec",
    [
        f"http://user:{KEY}@localhost/rerank",
        f"http://{KEY}@localhost/rerank",
        f"http://localhost/rerank?api_key={KEY}",
        f"https://localhost/rerank?access-token={KEY}",
        f"http://localhost(key_env={KEY})",
    ],
)
def test_a_key_in_the_call_string_is_refused_and_not_repeated(spec):
    with pytest.raises(WhyrankError, match="key_env") as caught:
        open_ranker(spec)
    assert KEY not in str(caught.value)


PLANTED = [
    f"/rerank?sig={SECRET}(version=1)",
    f"/rerank?api-version=2&auth={SECRET}(version=1)",
    f"/rerank?code={SECRET}#x(version=1)",
    f"/rerank?{SECRET}",
    f"/rerank(options={{'api_key': '{SECRET}'}},version=1)",
    f"/rerank(options={{'extra': [{{'user': '{SECRET}'}}], 'top_k': 3}})",
]


def everything_in(folder):
    """All bytes of all files below a folder, with Parquet files also unpacked."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()
            if path.suffix == ".parquet":
                table = pq.read_table(path)
                yield path, repr((table.to_pylist(), table.schema.metadata)).encode()


@pytest.mark.parametrize(
    ("planted", "nested"), [*((each, False) for each in PLANTED), (PLANTED[0], True), (PLANTED[-1], True)]
)
def test_what_may_be_a_secret_stands_in_no_file_and_no_output(
    planted, nested, whyrank, tmp_path, monkeypatch, caplog
):
    """A service that repeats it in its errors does not help: it is sent, and shown nowhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / "cache"))
    caplog.set_level("INFO")

    def behave(handler):
        bad = any("bad" in text for text in handler.texts)
        said = f"{handler.path} {unquote(handler.path)} {json.dumps(handler.body)[:90]} {SECRET}"
        handler.answer({"message": said}, 400) if bad else jina(handler)

    Path("tiny").mkdir()
    texts = ["One", "Two two", "Three Three Three", "A bad Text"]
    Path("tiny/corpus.jsonl").write_text("".join(f'{{"id": "d{i}", "text": "{t}"}}\n' for i, t in enumerate(texts)))
    Path("tiny/queries.tsv").write_text("q\tone two\n")
    Path("tiny/qrels.txt").write_text("".join(f"q 0 d{i} {i % 2}\n" for i in range(4)))
    with serving(behave) as server:
        spec = server.url + planted
        options = ["-c", "tiny", "-r", str(Call("fuse", None, {"of": ["bm25", spec]})) if nested else spec]
        kept = ["--delta", "0", "--store", "scores.db", "--format", "latex", "--out", "res"]
        kept += ["--executor", "processes(workers=2)"] if planted == PLANTED[0] and not nested else []
        code, out, err = whyrank("audit", "edited/replace-with-query", *options, *kept)
        assert (code, "400" in err) == (0, True), err
        ranked = whyrank("rank", *options, "--out", "run.txt")
        wrong = whyrank("rank", *options[:-1], options[-1] + "(batch=)")
    assert any(SECRET in f"{path} {json.dumps(body)}" for path, _, body in server.log)
    shown, written = [out, err, caplog.text, *ranked[1:], *wrong[1:]], list(everything_in(tmp_path))
    assert len(written) > 8
    for secret in (SECRET, quote(SECRET, safe=""), SECRET[:8]):
        assert all(secret not in each for each in shown)
        assert [path for path, content in written if secret.encode() in content] == []


def test_hidden_values_tell_rankers_apart_but_are_not_reused():
    first, second, again = (open_ranker(f"http://h/x?tier={v}(version=1)") for v in ("large", "small", "large"))
    assert first.name != second.name
    assert (first.name, first) == (again.name, again)
    assert "***" in first.name
    assert "large" not in first.name + repr(first) + first.url
    assert not first.cacheable
    assert open_ranker(first.name) == first
    assert first.address == "http://h/x?tier=large"
    assert pickle.loads(pickle.dumps(second)).address == "http://h/x?tier=small"
    assert open_ranker("http://h/x?api-version=2&model=$M(options={'prompt': 'p', 'x': True},version=1)").cacheable
    with pytest.raises(WhyrankError, match=r"sig=\*\*\*999: the value behind \*\*\*999 was hidden .* \$VARIABLE"):
        open_ranker("http://h/x?sig=***999").score(["q"], ["a"])


def test_values_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("SIG", f"{SECRET}\n")

    def behave(handler):
        wrong = handler.texts == ["no"]
        handler.answer({"message": f"{handler.path} {handler.body}"}, 401) if wrong else jina(handler)

    with serving(behave) as server:
        ranker = open_ranker(f"{server.url}/x?api_key=$SIG(options={{'sig': '$SIG', 'n': [1]}},version=1)")
        assert ranker.score(["q"], ["a"]).tolist() == [true_score("q", "a")]
        path, _, body = server.log[0]
        assert (unquote(path), body["sig"]) == (f"/x?api_key={SECRET}", SECRET)
        with pytest.raises(WhyrankError, match="asks for another key") as caught:
            ranker.score(["q"], ["no"])
        monkeypatch.delenv("SIG")
        with pytest.raises(WhyrankError, match="the environment variable SIG is not set"):
            ranker.score(["q"], ["a"])
    for text in (str(caught.value), repr(ranker), ranker.name, str(ranker.__dict__), repr(ranker._service)):
        assert SECRET not in text
        assert quote(SECRET, safe="") not in text


# Identity and configuration


@pytest.mark.parametrize(
    ("spec", "url"),
    [
        ("http://localhost:8080", "http://localhost:8080/rerank"),
        ("http://localhost:8080/", "http://localhost:8080/rerank"),
        ("https://api.jina.ai/v1/rerank(model=m)", "https://api.jina.ai/v1/rerank"),
        ("http:https://api.cohere.com/v2/rerank(model='a b',batch=8)", "https://api.cohere.com/v2/rerank"),
        ("http:http://[::1]:80/x?api-version=1#z", "http://[::1]:80/x?api-version=1"),
        ("http://h/x?sig=$SIG&flag=$FLAG", "http://h/x?sig=$SIG&flag=$FLAG"),
        ("http://h/p(options={'a': [1, 'x']},version=2)", "http://h/p"),
    ],
)
def test_call_strings_parse_back(spec, url):
    made = rankers.create(spec)
    assert made.url == url
    assert rankers.create(made.name) == made
    assert hash(made) == hash(rankers.create(made.name))


@pytest.mark.parametrize(
    ("spec", "what"),
    [("http:", "not a call string"), ("http", "needs 'resource'|is no URL"), ("http:localhost:8080", "is no URL"),
     ("http:ftp://localhost", "is no URL"), ("http://", "is no URL"), ("http://localhost:99999", "is no URL"),
     ("http://h(api=jna)", "jina"), ("http://h(batch=0)", "batch"), ("http://h(parallel=1.5)", "parallel"),
     ("http://h(timeout=0)", "timeout"), ("http://h(timeout=1e999)", "timeout"), ("http://h(retries=-1)", "retries"),
     ("http://h(longest_wait=long)", "longest_wait"), ("http://h(options=3)", "options"), ("http://h(key='x')", "key"),
     ("http://h(options={'query': 'x'})", "options"), ("http://h(options={1: 2})", "options")],
)  # fmt: skip
def test_refusals(spec, what):
    with pytest.raises(WhyrankError, match=what) as caught:
        open_ranker(spec)
    assert "\n" not in str(caught.value)


def test_wrong_calls(monkeypatch):
    with pytest.raises(WhyrankError, match="2 queries for 1 texts"):
        open_ranker("http://localhost").score(["a", "b"], ["c"])
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"whyrank\[http\]"):
        open_ranker("http://localhost").score(["q"], ["a"])
