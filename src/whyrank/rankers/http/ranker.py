"""A rerank service as a ranker: `http:URL`, or the URL itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal
from urllib.parse import SplitResult, quote, unquote, urlsplit

import numpy as np

from whyrank.core import Answered, Floats, Natural, NonNegative, Positive, Whole, WhyrankError
from whyrank.rankers.base import Described, distinct, rows_by_code
from whyrank.rankers.http.secrets import (
    HIDDEN,
    MARK,
    REFERENCE,
    VARIABLE,
    hide_options,
    hide_url,
    query_items,
    reveal,
    strings_in,
)
from whyrank.rankers.http.service import Request, Service

_SECRET = re.compile(r"key|token|secret|password|signature", re.IGNORECASE)
_FIELDS = {"query", "documents", "texts"}  # of a request, which options cannot replace


@dataclass(frozen=True, repr=False)
class HttpRanker(Described):
    """A rerank service: Text Embeddings Inference, Jina, Cohere, vLLM and others that take the same request.

    `http:URL`, or the URL itself (`http://localhost:8080`); a URL without a path gets `/rerank`. A request has one
    query and up to `batch` texts. Where the service does not take a request, it is halved to find the text that it
    does not take. A request that fails for good leaves its pairs without a score, and the run goes on. Ten such
    requests in a row, a service that never answers at all, a wrong key or address end it with one line.

    Scores are reused in a later run only with `version=`, which says what runs behind the URL. A service that
    compares the texts of a request with each other (a listwise model) gives comparable scores only with `batch=1`.

    Args:
        resource: the URL of the service.
        api: the form of the request: jina, tei, cohere, or auto to find out.
        model: name of the model, where the service has several.
        batch: most texts in a request.
        parallel: requests at a time.
        timeout: seconds until the whole answer must be there.
        retries: attempts after the first, on time-outs, broken connections and the statuses 429 and 5xx.
        longest_wait: most seconds between attempts, which grow exponentially or as Retry-After asks.
        key_env: name of the environment variable that holds the key; a key itself is never part of a call string.
        version: names the state of the service.
        options: more fields for the request, such as {'raw_scores': False}.

    In the URL's query and in `options`, `$VARIABLE` stands for the value of an environment variable. Any other value
    whose name is not in `HARMLESS` is shown as `***`, and its scores are not reused: nothing tells two of them apart.
    """

    resource: str
    api: Literal["jina", "tei", "cohere", "auto"] = "auto"
    model: str | None = None
    batch: Whole = 32
    parallel: Whole = 4
    timeout: Positive = 30.0
    retries: Natural = 3
    longest_wait: NonNegative = 60.0
    key_env: Any = None  # no message repeats what may be a key
    version: str | int | float | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    registered: ClassVar[str] = "http"
    arithmetic: ClassVar[str] = "a service's"
    scale: ClassVar[str] = "as the service gives it"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "resource", hide_url(self.resource))
        self._check_key()
        options = self.options
        plain = isinstance(options, dict) and all(isinstance(key, str) for key in options)
        if not plain or _FIELDS & options.keys():
            raise WhyrankError(f"http: options must be fields of the request besides {', '.join(sorted(_FIELDS))}")
        try:
            json.dumps(options)
        except (TypeError, ValueError):
            raise WhyrankError("http: options must be plain JSON") from None
        object.__setattr__(self, "options", hide_options(options))

    def _check_key(self) -> None:
        """Raise an error, which does not repeat it, for a key in the call string."""
        remedy = "put the key in an environment variable and name that with key_env=VARIABLE"
        for spelled, value in query_items(self.url_parts.query):
            name = spelled.rstrip("=")
            if _SECRET.search(name) and not REFERENCE.fullmatch(value):
                raise WhyrankError(f"ranker 'http': the URL holds a {name}; {remedy}, or write {name}=$VARIABLE")
        if self.url_parts.username is not None or self.url_parts.password is not None:
            raise WhyrankError(f"ranker 'http': the URL holds a password; {remedy}")
        if self.key_env is not None and not (isinstance(self.key_env, str) and VARIABLE.fullmatch(self.key_env)):
            raise WhyrankError(f"ranker 'http': key_env names no environment variable; {remedy}")

    @property
    def url_parts(self) -> SplitResult:
        """The parts of the URL as it was given, as they may be shown."""
        text = f"{self.registered}:{self.resource}" if self.resource.startswith("//") else self.resource
        try:
            parts = urlsplit(text)
            if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
                return parts._replace(fragment="")
        except ValueError:
            pass
        shown, example = re.sub(r"//[^/]*@", "//***@", text), "http://localhost:8080/rerank"
        raise WhyrankError(f"ranker 'http': {shown!r} is no URL; write http:URL, such as {example}")

    @property
    def url(self) -> str:
        """The whole address, as it may be shown."""
        parts = self.url_parts
        return parts._replace(path="/rerank").geturl() if parts.path in ("", "/") else parts.geturl()

    @property
    def address(self) -> str:
        """The address that requests go to, secrets included."""
        items = [(name, value, str(reveal(value, self.url))) for name, value in query_items(self.url_parts.query)]
        spelled = [name + (quote(new, safe="%") if REFERENCE.fullmatch(old) else new) for name, old, new in items]
        return urlsplit(self.url)._replace(query="&".join(spelled)).geturl()

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        return self.version is not None and not any(map(MARK.fullmatch, self._values()))

    @property
    def batch_size(self) -> int:
        """Pairs that keep all connections busy."""
        return self.batch * self.parallel

    def __repr__(self) -> str:
        request = f"api={self.api} model={self.model!r} batch={self.batch} options={dict(self.options)!r}"
        return f"http {self.url} {request} version={self.version!r}"

    def __getstate__(self) -> dict[str, Any]:
        """The configuration and what it hides: a worker has connections of its own."""
        return super().__getstate__() | {"_hidden": {mark: HIDDEN[mark] for mark in self._values() if mark in HIDDEN}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HIDDEN.update(state.pop("_hidden"))
        self.__dict__.update(state)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Ask the service, one request per query and `batch` texts."""
        if len(queries) != len(docs):
            raise WhyrankError(f"{len(queries)} queries for {len(docs)} texts; give one query per text")
        texts, codes = distinct(queries)
        requests = []
        for query, rows in zip(texts, rows_by_code(codes, len(texts)), strict=True):
            for some in (rows[start : start + self.batch] for start in range(0, len(rows), self.batch)):
                requests.append(Request(query, [docs[i] for i in some.tolist()], some))
        scores, reasons = np.full(len(docs), np.nan), dict[int, str]()
        for request, answer in zip(requests, self._service.answers(requests) if requests else [], strict=True):
            scores[request.positions] = answer.scores
            reasons |= {int(request.positions[i]): reason for i, reason in answer.reasons.items()}
        return Answered(scores, reasons).scores_or_raise()

    def secrets(self) -> list[str]:
        """What must not be repeated: the key, and the values behind variables and marks, however they are spelled."""
        key = os.environ.get(self.key_env or "", "").strip()
        found = [str(reveal(value, self.url)) for value in self._values() if reveal(value, self.url) != value]
        spelled = {each for value in found for each in (value, unquote(value), quote(value, safe=""))}
        return sorted({key} - {""} | {each for each in spelled if len(each) > 2}, key=len, reverse=True)

    def _values(self) -> Iterator[str]:
        """All values of the URL's query and of the options that are strings."""
        yield from (value for _, value in query_items(self.url_parts.query))
        yield from strings_in(self.options)

    @cached_property
    def _service(self) -> Service:
        return Service(self)


@dataclass(frozen=True, repr=False)
class HttpsRanker(HttpRanker):
    """A rerank service over an encrypted connection, by its URL: the same as `http:https://...`."""

    registered: ClassVar[str] = "https"
