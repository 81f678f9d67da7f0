"""A rerank service as a ranker: `http:URL`, or the URL itself."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit

import numpy as np

from whyrank.core import (
    Answered,
    Floats,
    Ints,
    MissingExtra,
    UnknownName,
    WhyrankError,
    call_of,
    check_number,
    check_text,
    check_whole,
    parse_call,
)
from whyrank.rankers.grouping import distinct, places

if TYPE_CHECKING:
    import httpx

# The rerank request that many services share: how it is spelled, and how its answers are read.
#
# | api | request | answer |
# | --- | --- | --- |
# | `jina` | query, documents, top_n, return_documents | results: [{index, relevance_score}] |
# | `cohere` | query, documents, top_n | results: [{index, relevance_score}] |
# | `tei` | query, texts, raw_scores, truncate, return_text | [{index, score}] |
#
# `jina` is also what vLLM, Infinity and llama.cpp read; `tei` is Text Embeddings Inference.

APIS = ("jina", "tei", "cohere")
_OF_HOST = {"api.jina.ai": "jina", "api.cohere.com": "cohere", "api.cohere.ai": "cohere"}
_LACKING = "the answer has no score for this text"


class WrongAnswer(Exception):
    """A service answered something that is no list of scores."""


def possible_apis(api: str, host: str) -> tuple[str, ...]:
    """How a service may want to be asked, in the order to try; with `auto` an unknown host is tried two ways."""
    if api != "auto":
        return (api,)
    return (_OF_HOST[host],) if host in _OF_HOST else APIS[:2]


def request_body(api: str, query: str, texts: Sequence[str], model: str | None, options: Mapping[str, Any]) -> bytes:
    """The request as JSON in plain ASCII, so that any text can be sent; `options` add to it or replace parts."""
    body: dict[str, Any] = {"query": query, "texts" if api == "tei" else "documents": list(texts)}
    if model is not None:
        body["model"] = model
    if api == "tei":  # raw scores do not saturate as probabilities do; a text that is too long is cut
        body |= {"raw_scores": True, "truncate": True, "return_text": False}
    else:
        body |= {"top_n": len(texts)} | ({"return_documents": False} if api == "jina" else {})
    return json.dumps(body | dict(options)).encode("ascii")


def read_answer(content: bytes, size: int) -> Answered:
    """The scores of `size` texts in the order of the request; a text that the answer leaves out has a reason."""
    scores, reasons = np.full(size, np.nan), dict.fromkeys(range(size), _LACKING)
    for row in _rows(content):
        index, score = _entry(row)
        if not 0 <= index < size:
            raise WrongAnswer(f"the answer has a score for text {index} of {size}")
        if index not in reasons and score is not None:
            raise WrongAnswer(f"the answer has two scores for text {index}")
        if score is not None:
            scores[index] = score
            del reasons[index]
    return Answered(scores, reasons)


def in_words(content: bytes) -> str:
    """What a service says in an error: the message of a JSON answer, else the beginning of the text."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return _page(content)
    for key in ("message", "detail", "error"):
        if isinstance(found, dict) and key in found:
            return _short(str(found[key]))
    return _short(str(found))


def _rows(content: bytes) -> list[Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise WrongAnswer(f"the answer is no JSON but {_page(content) or 'empty'}") from None
    rows = found.get("results") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise WrongAnswer(f"the answer has no list of results: {_short(str(found))}")
    return rows


def _entry(row: Any) -> tuple[int, float | None]:
    """The number of a text and its score; None where the service has none."""
    index = row.get("index") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(index, int) or isinstance(index, bool):
        raise WrongAnswer(f"a result has no index: {_short(str(row))}")
    score = row.get("relevance_score", row.get("score"))
    if score is None:
        return index, None
    try:
        return index, float(score if isinstance(score, int | float) and not isinstance(score, bool) else "no number")
    except (ValueError, OverflowError):
        raise WrongAnswer(f"a score is no number: {_short(str(row))}") from None


def _page(content: bytes) -> str:
    text = content[:2000].decode("utf-8", "replace")
    return "an HTML page" if "<html" in text.lower() or "<!doctype" in text.lower() else _short(text)


def _short(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= 160 else joined[:160] + "…"


# A few threads for work that mostly waits, such as requests to a service.

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T, Event], R], items: Sequence[T], workers: int) -> list[R]:
    """What `work` gives for each item, in their order; the first error ends it all.

    The event that `work` gets is set once nobody waits for its result any more. The threads are daemons: a run that
    is stopped ends at once and does not wait for an answer from far away.
    """
    stop, found = Event(), dict[int, R]()
    if min(workers, len(items)) <= 1:
        return [work(item, stop) for item in items]
    done: SimpleQueue[tuple[int, R] | BaseException] = SimpleQueue()
    try:
        _start(work, items, workers, stop, done)
        while len(found) < len(items):
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            found[result[0]] = result[1]
    finally:
        stop.set()
    return [found[i] for i in range(len(items))]


def _start(
    work: Callable[[T, Event], R],
    items: Sequence[T],
    workers: int,
    stop: Event,
    done: SimpleQueue[tuple[int, R] | BaseException],
) -> None:
    waiting, lock = iter(range(len(items))), Lock()

    def serve() -> None:
        while not stop.is_set():
            with lock:
                number = next(waiting, None)
            if number is None:
                return
            try:
                done.put((number, work(items[number], stop)))
            except BaseException as error:  # it belongs to whoever waits for the results
                done.put(error)

    for _ in range(min(workers, len(items))):
        Thread(target=serve, daemon=True).start()


# One service on the network: a request with a deadline, tried again while there is hope.
#
# Requests go through httpx: its client keeps connections open for several threads at once, knows proxies and
# certificates, and tells a refused connection from a late answer. There is no second way without it, so that what the
# tests cover is what users run.

FIRST_WAIT = 0.5  # seconds before the second attempt; doubled each time
MOST_BYTES = 2**26
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_VISIBLE = re.compile(r"[!-~]+")
_MISSING, _FORBIDDEN, _WAIT = (404, 405, 410), (401, 402, 407), (408, 425, 429)


class Refused(Exception):
    """The service does not take this request; it may take a part of it."""


class Forbidden(Refused):
    """The service forbids this request: it wants another key, or a filter before it does not like a text."""


class Failed(Exception):
    """No use was to be had of the service; `answered` says whether it answered at all, `after` when to come again."""

    def __init__(self, what: str, answered: bool = False, after: float | None = None) -> None:
        super().__init__(what)
        self.answered, self.after = answered, after


@dataclass(frozen=True)
class Service:
    """Where requests go, and for how long and how often each is tried.

    Attributes:
        url: the address, as it may be shown.
        key_env: name of the environment variable with the key, which is read when it is used and kept nowhere.
        timeout: seconds to wait for a connection, and then for the whole answer.
        retries: attempts after the first, for requests that time out, break off or meet a status 429 or 5xx.
        longest_wait: most seconds between two attempts, whatever the service asks for.
        connections: requests at a time.
        describe: turns the content of an error into words.
        address: gives the whole address, secrets included, when it is used.
        secrets: gives what must not be repeated besides the key.
    """

    url: str
    key_env: str | None
    timeout: float
    retries: int
    longest_wait: float
    connections: int
    describe: Callable[[bytes], str]
    address: Callable[[], str]
    secrets: Callable[[], list[str]]

    def post(self, body: bytes, stop: Event) -> bytes:
        """The content of the answer to a JSON body; waits between attempts end when `stop` is set."""
        for attempt in range(self.retries + 1):
            try:
                return self._once(body)
            except Failed as error:
                failure = error
            if attempt == self.retries or stop.wait(self._pause(attempt, failure.after)):
                break
        raise Failed(f"{failure} (attempts: {attempt + 1})", failure.answered)

    def key(self) -> str:
        """The key, or nothing; an error that does not show it where it cannot be sent."""
        if self.key_env is None:
            return ""
        found = os.environ.get(self.key_env, "").strip()
        if not _VISIBLE.fullmatch(found):
            what = "holds no key that can be sent" if found else "is not set"
            raise WhyrankError(f"the environment variable {self.key_env} {what}; put the key of {self.url} there")
        return found

    def ready(self) -> None:
        """Raise an error for a missing key, value or package before anything is sent."""
        self.key()
        self.secrets()
        _ = self._client

    def locked(self, what: str) -> WhyrankError:
        """The error for a service that does not let us in."""
        return WhyrankError(f"{self.url} asks for another key ({what}); name its variable with key_env=VARIABLE")

    def _once(self, body: bytes) -> bytes:
        import httpx

        deadline, headers = time.monotonic() + self.timeout, self._headers()
        try:
            with self._client.stream("POST", self.address(), content=body, headers=headers) as response:
                content = self._content(response, deadline)
        except httpx.TimeoutException:
            raise self._late() from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise WhyrankError(f"{self.url} is no address of a service ({self.shown(str(error))})") from None
        except httpx.HTTPError as error:
            raise Failed(self.shown(f"{type(error).__name__}: {error}")) from None
        if not response.is_success:
            self._complain(response, content)
        return content

    def _content(self, response: httpx.Response, deadline: float) -> bytes:
        """All bytes of an answer; a service that sends them one by one is no better than one that sends none."""
        found = bytearray()
        for part in response.iter_bytes():
            found += part
            if len(found) > MOST_BYTES:
                raise Failed(f"an answer of more than {MOST_BYTES:,} bytes", answered=True)
            if time.monotonic() > deadline:
                raise self._late()
        return bytes(found)

    def _complain(self, response: httpx.Response, content: bytes) -> None:
        """Raise what a status other than success means."""
        status = response.status_code
        what = self.shown(f"status {status} {response.reason_phrase}: {self.describe(content)}".strip(": "))
        if status in _WAIT or status >= 500:
            raise Failed(what, answered=True, after=retry_after(response.headers.get("retry-after")))
        if status in _FORBIDDEN:
            raise self.locked(what)
        if status in _MISSING:
            raise WhyrankError(f"{self.url} is no address of a rerank service ({what})")
        if response.is_redirect:
            place = self.shown(str(response.headers.get("location")).partition("?")[0])
            raise WhyrankError(f"{self.url} has moved to {place!r}; give that address")
        raise Forbidden(what) if status == 403 else Refused(what)

    def _late(self) -> Failed:
        return Failed(f"no answer within {self.timeout:g} s")

    def _headers(self) -> dict[str, str]:
        key = self.key()
        return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def shown(self, text: str) -> str:
        """A text from outside without the key and other secrets, which a service may repeat."""
        key = os.environ.get(self.key_env or "", "").strip()
        for secret in sorted([key, *(s for s in self.secrets() if len(s) > 2)], key=len, reverse=True):
            text = text.replace(secret, "…") if secret else text
        return text

    def _pause(self, attempt: int, after: float | None) -> float:
        """Seconds until the next attempt: what the service asks for, else exponential; several clients spread out."""
        spread = random.random()  # no result depends on it: only when a request is sent
        wanted = FIRST_WAIT * 2**attempt * (0.5 + spread) if after is None else after + FIRST_WAIT * spread
        return min(wanted, self.longest_wait)

    @cached_property
    def _client(self) -> httpx.Client:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("ranker 'http'", "http") from None
        logging.getLogger("httpx").addFilter(_above_info)
        host = urlsplit(self.url).hostname or ""
        direct: dict[str, Any] = {f"all://{f'[{host}]' if ':' in host else host}": None} if host in _LOOPBACK else {}
        limits = httpx.Limits(max_connections=self.connections)
        client = httpx.Client(timeout=self.timeout, limits=limits, mounts=direct, headers={"User-Agent": "whyrank"})
        weakref.finalize(self, client.close)
        return client


def _above_info(record: logging.LogRecord) -> bool:
    """Drop what httpx logs of each request: the whole address, secrets included."""
    return record.levelno > logging.INFO


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, given as a number or as a date; None where it says nothing."""
    try:
        return max(0.0, float(value or ""))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value or "") - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


IN_A_ROW = 10  # requests that fail one after the other until the service is given up
_SECRET = re.compile(r"key|token|secret|password|signature", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(rf"\$({_VARIABLE.pattern})")  # the value of an environment variable
_HIDDEN = re.compile(r"\*\*\*[0-9]*")
# names whose values are shown; any other name may stand for a secret
HARMLESS = {
    "activation", "api_version", "batch_size", "chunk", "deployment", "dimensions", "dtype", "engine", "format",
    "instruction", "lang", "language", "max_chunks_per_doc", "max_length", "max_tokens", "max_tokens_per_doc",
    "model", "model_id", "model_name", "normalize", "overlap", "pretty", "priority", "prompt", "prompt_name",
    "raw_scores", "return_documents", "return_text", "revision", "task", "temperature", "top_k", "top_n",
    "truncate", "truncate_prompt_tokens", "truncation", "truncation_direction", "type", "use_activation",
    "version",
}  # fmt: skip
_hidden: dict[str, Any] = {}  # what stands for a hidden value in this process -> the value
_OWN = {"query", "documents", "texts"}


class _Request(NamedTuple):
    """One query and the places of its texts among the pairs."""

    query: str
    texts: list[str]
    places: Ints


@dataclass(frozen=True, repr=False)
class HttpRanker:
    """A rerank service: Text Embeddings Inference, Jina, Cohere, vLLM and others that take the same request.

    `http:URL`, or the URL itself (`http://localhost:8080`); a URL without a path gets `/rerank`. A request has one
    query and up to `batch` texts. Where the service does not take a request, it is halved to find the text that it
    does not take. A request that fails for good leaves its pairs without a score, and the run goes on; ten such
    requests in a row, a service that never answers at all, a wrong key or address end it with one line.

    Scores are reused in a later run only with `version=`, which says what runs behind the URL. A service that
    compares the texts of a request with each other (a listwise model) is asked fairly only with `batch=1`.

    Args:
        api: how the service wants to be asked: jina, tei, cohere, or auto to find out.
        model: name of the model, where the service has several.
        batch: most texts in a request.
        parallel: requests at a time.
        timeout: seconds to wait for a connection, and then for the whole answer.
        retries: attempts after the first, on time-outs, broken connections and the statuses 429 and 5xx.
        longest_wait: most seconds between attempts, which grow exponentially or as Retry-After asks.
        key_env: name of the environment variable that holds the key; a key itself never stands in a call string.
        version: names the state of the service.
        options: more fields for the request, such as {'raw_scores': False}.

    In the URL's query and in `options`, `$VARIABLE` stands for the value of an environment variable. Any other value
    whose name is not in `HARMLESS` is shown as `***`, and its scores are not reused: nothing tells two of them apart.
    """

    resource: str
    api: str = "auto"
    model: str | None = None
    batch: int = 32
    parallel: int = 4
    timeout: float = 30.0
    retries: int = 3
    longest_wait: float = 60.0
    key_env: str | None = None
    version: str | int | float | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    scheme: ClassVar[str] = "http"
    arithmetic: ClassVar[str] = "a service's"
    scale: ClassVar[str] = "as the service gives it"

    def __post_init__(self) -> None:
        if self.api not in (*APIS, "auto"):
            raise UnknownName("api of ranker 'http'", self.api, (*APIS, "auto"))
        for name, least in (("batch", 1), ("parallel", 1), ("retries", 0)):
            check_whole(f"http: {name}", getattr(self, name), least)
        check_number("http: timeout", self.timeout, 0, strict=True)
        check_number("http: longest_wait", self.longest_wait, 0)
        check_text("http: model", self.model)
        object.__setattr__(self, "resource", _hidden_url(self.resource))
        _check_secrets(self._parts, self.key_env)
        _check_options(self.options)
        object.__setattr__(self, "options", _hidden_options(self.options))

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, self.scheme)

    @property
    def url(self) -> str:
        """The whole address, as it may be shown."""
        parts = self._parts
        return parts._replace(path="/rerank").geturl() if parts.path in ("", "/") else parts.geturl()

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        return self.version is not None and not any(map(_HIDDEN.fullmatch, self._values()))

    @property
    def batch_size(self) -> int:
        """Pairs that keep all connections busy."""
        return self.batch * self.parallel

    def __repr__(self) -> str:
        asked = f"api={self.api} model={self.model!r} batch={self.batch} options={dict(self.options)!r}"
        return f"http {self.url} {asked} version={self.version!r}"

    def __getstate__(self) -> dict[str, Any]:
        """The configuration and what it hides: a worker has connections of its own."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("_service", "_luck")}
        return state | {"_hidden": {value: _hidden[value] for value in self._values() if value in _hidden}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Learn what is hidden."""
        _hidden.update(state.pop("_hidden"))
        self.__dict__.update(state)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Ask the service, one request per query and `batch` texts."""
        scores, reasons = np.full(len(docs), np.nan), dict[int, str]()
        requests = list(self._requests(queries, docs))
        if requests:
            self._ready()
        for request, found in zip(requests, spread(self._asked, requests, self.parallel), strict=True):
            scores[request.places] = found.scores
            reasons |= {int(request.places[i]): reason for i, reason in found.reasons.items()}
        return Answered(scores, reasons).handed_over()

    def _ready(self) -> None:
        """Make what the threads share before they start."""
        self._service.ready()
        _ = self._luck

    def _requests(self, queries: Sequence[str], docs: Sequence[str]) -> list[_Request]:
        texts, codes = distinct(queries)
        if len(codes) != len(docs):
            raise WhyrankError(f"{len(queries)} queries for {len(docs)} texts; give one query per text")
        found = []
        for query, rows in zip(texts, places(codes, len(texts)), strict=True):
            for start in range(0, len(rows), self.batch):
                some = rows[start : start + self.batch]
                found.append(_Request(query, [docs[i] for i in some.tolist()], some))
        return found

    def _asked(self, request: _Request, stop: Event) -> Answered:
        return self._answered(request.query, request.texts, stop)

    def _answered(self, query: str, texts: list[str], stop: Event) -> Answered:
        """Scores and reasons for the texts of one request."""
        try:
            return self._luck.kept(self._tried(query, texts, stop))
        except (Failed, WrongAnswer) as error:
            return self._unlucky(error, len(texts))
        except Refused as error:
            if isinstance(error, Forbidden) and not self._luck.worked:
                raise self._service.locked(str(error)) from None
            if len(texts) == 1 or self._luck.hopeless:
                return self._luck.refused(str(error), len(texts))
        middle = len(texts) // 2
        first, second = (self._answered(query, part, stop) for part in (texts[:middle], texts[middle:]))
        return first.followed_by(second)

    def _tried(self, query: str, texts: list[str], stop: Event) -> Answered:
        """Put one request in each of the ways that may be the right one."""
        refusal = Refused()
        for api in self._luck.apis:
            try:
                options = _filled(self.options, self._secret)
                content = self._service.post(request_body(api, query, texts, self.model, options), stop)
            except Refused as error:
                refusal = error if not refusal.args else refusal
                continue
            found = read_answer(content, len(texts))
            self._luck.apis = (api,)
            return found
        raise refusal

    def _unlucky(self, error: Failed | WrongAnswer, size: int) -> Answered:
        if isinstance(error, Failed) and not error.answered and not self._luck.worked:
            raise WhyrankError(f"{self.url} does not answer: {error}; see that the service runs there")
        if self._luck.failed() >= IN_A_ROW:
            last = self._service.shown(str(error))
            raise WhyrankError(f"{self.url} failed {IN_A_ROW} requests in a row, the last with: {last}")
        return lacking(self._service.shown(str(error)), size)

    def _values(self) -> Iterator[str]:
        """All values of the URL's query and of the options that are words."""
        yield from (value for _, value in _items(self._parts.query))
        yield from _words(self.options)

    def _secret(self, value: str) -> Any:
        """What a reference to an environment variable or a hidden value stands for; other words are themselves."""
        if _HIDDEN.fullmatch(value):
            if value not in _hidden:
                remedy = "give it again, best as $VARIABLE"
                raise WhyrankError(f"{self.url}: the value behind {value} was hidden in an earlier run; {remedy}")
            return _hidden[value]
        if found := _REFERENCE.fullmatch(value):
            if found[1] not in os.environ:
                raise WhyrankError(f"{self.url}: the environment variable {found[1]} is not set; put the value there")
            return os.environ[found[1]].strip()
        return value

    def _address(self) -> str:
        """The address that requests go to."""
        items = ((name, value, str(self._secret(value))) for name, value in _items(self._parts.query))
        spelled = [name + (quote(new, safe="%") if _REFERENCE.fullmatch(old) else new) for name, old, new in items]
        return urlsplit(self.url)._replace(query="&".join(spelled)).geturl()

    def _secrets(self) -> list[str]:
        """What must not be repeated: the values behind references and hidden ones."""
        found = (str(self._secret(value)) for value in self._values() if self._secret(value) != value)
        return [each for value in found for each in {value, unquote(value), quote(value, safe="")}]

    @property
    def _parts(self) -> SplitResult:
        text = f"{self.scheme}:{self.resource}" if self.resource.startswith("//") else self.resource
        try:
            parts = urlsplit(text)
            if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
                return parts._replace(fragment="")
        except ValueError:
            pass
        shown = re.sub(r"//[^/]*@", "//***@", text)
        raise WhyrankError(
            f"ranker 'http': {shown!r} is no URL; write http:URL, such as http://localhost:8080/rerank"
        )

    @cached_property
    def _service(self) -> Service:
        limits = (self.timeout, self.retries, self.longest_wait, self.parallel)
        return Service(self.url, self.key_env, *limits, in_words, self._address, self._secrets)

    @cached_property
    def _luck(self) -> _Luck:
        return _Luck(possible_apis(self.api, self._parts.hostname or ""))


@dataclass(frozen=True, repr=False)
class HttpsRanker(HttpRanker):
    """A rerank service over an encrypted connection, by its URL: the same as `http:https://...`."""

    scheme: ClassVar[str] = "https"


class _Luck:
    """How a service has behaved so far; shared by all threads that ask it."""

    def __init__(self, apis: tuple[str, ...]) -> None:
        self.apis, self.worked = apis, False
        self._in_a_row, self._refused, self._lock = 0, 0, Lock()

    @property
    def hopeless(self) -> bool:
        """Whether it took nothing yet, so that looking for a text that it takes is no use any more."""
        return not self.worked and self._refused >= IN_A_ROW

    def kept(self, answered: Answered) -> Answered:
        """Remember an answer."""
        with self._lock:
            self.worked, self._in_a_row = True, 0
        return answered

    def failed(self) -> int:
        """Remember a failure; how many there were in a row."""
        with self._lock:
            self._in_a_row += 1
            return self._in_a_row

    def refused(self, reason: str, size: int) -> Answered:
        """Remember a refusal."""
        with self._lock:
            self._refused += 1
        return lacking(reason, size)


def lacking(reason: str, size: int) -> Answered:
    """No scores, and one reason."""
    return Answered(np.full(size, np.nan), dict.fromkeys(range(size), reason))


def hide_values(spec: str) -> str:
    """A ranker's call string with `***` for the values in it that may be secrets, also inside other call strings."""
    if "://" not in spec:
        return spec
    call = parse_call(spec)
    if call.name in (HttpRanker.scheme, HttpsRanker.scheme):
        options = {"options": _hidden_options(call.arguments["options"])} if "options" in call.arguments else {}
        hidden = call._replace(resource=_hidden_url(call.resource or ""), arguments={**call.arguments, **options})
    else:
        hidden = call._replace(arguments={key: _nested(value) for key, value in call.arguments.items()})
    return str(hidden) if hidden != call else spec


def _nested(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_nested(each) for each in value]
    return hide_values(value) if isinstance(value, str) else value


def _hide(name: str, value: Any) -> Any:
    """What is shown of a value: itself where its name is harmless or it names a variable, else a mark for it."""
    if isinstance(value, dict):
        return {key: _hide(str(key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [_hide(name, each) for each in value]
    shown = isinstance(value, str) and (_REFERENCE.fullmatch(value) or _HIDDEN.fullmatch(value))
    if value is None or isinstance(value, bool) or shown or name.lower().replace("-", "_") in HARMLESS:
        return value
    known = [mark for mark, each in _hidden.items() if each == value and type(each) is type(value)]
    mark = known[0] if known else f"***{len(_hidden) + 1 if _hidden else ''}"
    _hidden[mark] = value
    return mark


def _hidden_url(resource: str) -> str:
    """A URL with marks for the values of its query that may be secrets, without a fragment."""
    address, mark, query = resource.partition("#")[0].partition("?")
    items = [name + _hide(unquote((name or value).rstrip("=")), value) for name, value in _items(query)]
    return address + mark + "&".join(items)


def _hidden_options(options: Any) -> Any:
    return _hide("", options) if isinstance(options, dict) else options


def _items(query: str) -> list[tuple[str, str]]:
    """The items of a URL's query as they are spelled: name with `=`, and value; an item of one part is all value."""
    found = (item.partition("=") for item in query.split("&") if item)
    return [(name + mark, value) if value else ("", name + mark) for name, mark, value in found]


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _words(each)
    elif isinstance(value, str):
        yield value


def _filled(value: Any, secret: Callable[[str], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, secret) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, secret) for each in value]
    return secret(value) if isinstance(value, str) else value


def _check_secrets(parts: SplitResult, key_env: object) -> None:
    """Raise an error, which does not repeat it, for a key in a place where all can read it."""
    remedy = "put the key in an environment variable and name that with key_env=VARIABLE"
    given = ((name.rstrip("="), value) for name, value in _items(parts.query) if not _REFERENCE.fullmatch(value))
    named = [name for name, _ in given if _SECRET.search(name)]
    if parts.username is not None or parts.password is not None or named:
        more = f", or write {named[0]}=$VARIABLE" if named else ""
        raise WhyrankError(f"ranker 'http': the URL holds a {named[0] if named else 'password'}; {remedy}{more}")
    if key_env is not None and not (isinstance(key_env, str) and _VARIABLE.fullmatch(key_env)):
        raise WhyrankError(f"ranker 'http': key_env names no environment variable; {remedy}")


def _check_options(options: object) -> None:
    if not isinstance(options, dict) or not all(isinstance(key, str) for key in options) or _OWN & options.keys():
        raise WhyrankError(f"http: options must be fields of the request besides {', '.join(sorted(_OWN))}")
    try:
        json.dumps(options)
    except (TypeError, ValueError):
        raise WhyrankError("http: options must be plain JSON") from None
