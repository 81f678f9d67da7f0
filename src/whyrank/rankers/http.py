"""A rerank service as a ranker: `http:URL`, or the URL itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock
from typing import Any, ClassVar, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

import numpy as np

from whyrank.core.answers import Answered
from whyrank.core.callstrings import parse_call
from whyrank.core.checks import check_number, check_text, check_whole
from whyrank.core.errors import UnknownName, WhyrankError
from whyrank.core.protocols import Floats, Ints
from whyrank.core.registry import call_of
from whyrank.rankers.grouping import distinct, places
from whyrank.rankers.rerank_api import APIS, WrongAnswer, in_words, possible_apis, read_answer, request_body
from whyrank.rankers.service import Failed, Forbidden, Refused, Service
from whyrank.rankers.threads import spread

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
