"""One rerank service on the network: requests with a deadline and retries, behind a circuit breaker.

Requests go out concurrently on one event loop in a thread of its own, so that a ranker can be called from anywhere, a
notebook included, and a run that is interrupted ends at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import weakref
from collections.abc import Sequence
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from whyrank.core import Answered, Ints, MissingExtra, WhyrankError
from whyrank.rankers.http.secrets import reveal

if TYPE_CHECKING:
    import httpx

    from whyrank.rankers.http.ranker import HttpRanker

APIS = ("jina", "tei", "cohere")
BREAKER_LIMIT = 10  # failed requests in a row after which the circuit breaker ends the run
FIRST_WAIT = 0.5  # seconds before the second attempt; doubled each time
MAX_BYTES = 2**26  # of one answer
_API_OF_HOST = {"api.jina.ai": "jina", "api.cohere.com": "cohere", "api.cohere.ai": "cohere"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Request(NamedTuple):
    """One query, some of its texts, and their positions among the pairs."""

    query: str
    texts: list[str]
    positions: Ints


class _Rejected(Exception):
    """The service does not take this request (4xx); it may take a part of it, or want another key (403)."""

    def __init__(self, what: str, forbidden: bool = False) -> None:
        super().__init__(what)
        self.forbidden = forbidden


class _Failed(Exception):
    """The request failed and may be tried again; `answered` says whether the service answered at all."""

    def __init__(self, what: str, answered: bool = False, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.answered, self.retry_after = answered, retry_after


class Service:
    """The connections to one service, and how it has behaved so far; all requests run on one event loop."""

    def __init__(self, ranker: HttpRanker) -> None:
        self._ranker, self._client = ranker, _open_client(ranker)
        host = ranker.url_parts.hostname or ""
        by_host = (_API_OF_HOST[host],) if host in _API_OF_HOST else APIS[:2]  # an unknown host is tried both ways
        self.apis: tuple[str, ...] = by_host if ranker.api == "auto" else (ranker.api,)
        self._worked, self._failures, self._rejections = False, 0, 0
        weakref.finalize(self, _close, self._client)

    def answers(self, requests: Sequence[Request]) -> list[Answered]:
        """The answers to all requests, some at a time; the first error ends them all."""
        limit = asyncio.Semaphore(self._ranker.parallel)

        async def answer(request: Request) -> Answered:
            async with limit:
                return await self._answer(request.query, request.texts)

        async def answer_all() -> list[Answered]:
            tasks = [asyncio.create_task(answer(request)) for request in requests]
            try:
                return await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()

        found = asyncio.run_coroutine_threadsafe(answer_all(), _loop())
        try:
            return found.result()
        finally:
            found.cancel()  # does nothing unless the wait was interrupted

    async def _answer(self, query: str, texts: list[str]) -> Answered:
        """Scores and reasons for the texts of one request; a request that is rejected is halved."""
        try:
            found = await self._ask(query, texts)
        except _Failed as error:
            return self._break_circuit(error, len(texts))
        except _Rejected as error:
            if error.forbidden and not self._worked:
                raise self._wrong_key(str(error)) from None
            takes_nothing = not self._worked and self._rejections >= BREAKER_LIMIT
            if len(texts) == 1 or takes_nothing:
                self._rejections += 1
                return _no_scores(str(error), len(texts))
        else:
            self._worked, self._failures = True, 0
            return found
        middle = len(texts) // 2
        first = await self._answer(query, texts[:middle])
        return first.concatenate(await self._answer(query, texts[middle:]))

    def _break_circuit(self, error: _Failed, size: int) -> Answered:
        """The circuit breaker: a failure costs its pairs; too many in a row, or nothing but failures, end the run."""
        url, reason = self._ranker.url, self._redact(str(error))
        if not error.answered and not self._worked:
            raise WhyrankError(f"{url} does not answer: {reason}; see that the service runs there")
        self._failures += 1
        if self._failures >= BREAKER_LIMIT:
            raise WhyrankError(f"{url} failed {BREAKER_LIMIT} requests in a row, the last with: {reason}")
        return _no_scores(reason, size)

    async def _ask(self, query: str, texts: list[str]) -> Answered:
        """The answer to one request, put in each of the ways that may be the right one."""
        rejection: _Rejected | None = None
        for api in self.apis:
            try:
                content = await self._post(_request_body(api, query, texts, self._ranker))
            except _Rejected as error:
                rejection = rejection or error
                continue
            found = _read_answer(content, len(texts))
            self.apis = (api,)
            return found
        assert rejection is not None
        raise rejection

    async def _post(self, body: bytes) -> bytes:
        """The content of the answer, after as many attempts as it takes."""
        attempts = self._ranker.retries + 1
        for attempt in range(attempts):
            try:
                return await self._post_once(body)
            except _Failed as error:
                failure = error
            if attempt + 1 < attempts:
                jitter, after = random.random(), failure.retry_after  # no result depends on when a request is sent
                wait = FIRST_WAIT * 2**attempt * (0.5 + jitter) if after is None else after + FIRST_WAIT * jitter
                await asyncio.sleep(min(wait, self._ranker.longest_wait))
        raise _Failed(f"{failure} (attempts: {attempts})", failure.answered)

    async def _post_once(self, body: bytes) -> bytes:
        import httpx

        address, headers, content = self._ranker.address, self._headers(), bytearray()
        try:
            async with (
                asyncio.timeout(self._ranker.timeout),
                self._client.stream("POST", address, content=body, headers=headers) as response,
            ):
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > MAX_BYTES:
                        raise _Failed(f"an answer of more than {MAX_BYTES:,} bytes", answered=True)
        except TimeoutError:
            raise _Failed(f"no answer within {self._ranker.timeout:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            what = self._redact(str(error))
            raise WhyrankError(f"{self._ranker.url} is no address of a service ({what})") from None
        except httpx.HTTPError as error:
            raise _Failed(self._redact(f"{type(error).__name__}: {error}")) from None
        if not response.is_success:
            raise self._error_of(response, bytes(content))
        return bytes(content)

    def _error_of(self, response: httpx.Response, content: bytes) -> Exception:
        """What a status other than success means."""
        status, url = response.status_code, self._ranker.url
        what = self._redact(f"status {status} {response.reason_phrase}: {_error_message(content)}".strip(": "))
        if status in (408, 425, 429) or status >= 500:
            return _Failed(what, answered=True, retry_after=retry_after(response.headers.get("retry-after")))
        if status in (401, 402, 407):
            return self._wrong_key(what)
        if status in (404, 405, 410):
            return WhyrankError(f"{url} is no address of a rerank service ({what})")
        if response.is_redirect:
            target = self._redact(str(response.headers.get("location")).partition("?")[0])
            return WhyrankError(f"{url} has moved to {target!r}; give that address")
        return _Rejected(what, forbidden=status == 403)

    def _wrong_key(self, what: str) -> WhyrankError:
        remedy = "name its variable with key_env=VARIABLE"
        return WhyrankError(f"{self._ranker.url} asks for another key ({what}); {remedy}")

    def _headers(self) -> dict[str, str]:
        """The headers of a request; the key is read when it is used, and an error does not show it."""
        headers, variable = {"Content-Type": "application/json"}, self._ranker.key_env
        if variable is None:
            return headers
        key = os.environ.get(variable, "").strip()
        if not re.fullmatch(r"[!-~]+", key):
            what = "holds no key that can be sent" if key else "is not set"
            raise WhyrankError(f"the environment variable {variable} {what}; put the key of {self._ranker.url} there")
        return headers | {"Authorization": f"Bearer {key}"}

    def _redact(self, text: str) -> str:
        """A text from outside without the key and other secrets, which a service may repeat."""
        for secret in self._ranker.secrets():
            text = text.replace(secret, "…")
        return text


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all services; its thread is a daemon, so that nothing waits for it at the end."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="whyrank http", daemon=True).start()
    return loop


def _open_client(ranker: HttpRanker) -> httpx.AsyncClient:
    """A client that keeps connections open; requests to this machine go through no proxy."""
    try:
        import httpx
    except ImportError:
        raise MissingExtra("ranker 'http'", "http") from None
    # httpx logs the whole address of each request, secrets included
    logging.getLogger("httpx").addFilter(_above_info)
    host = ranker.url_parts.hostname or ""
    direct: dict[str, Any] = {f"all://{f'[{host}]' if ':' in host else host}": None} if host in _LOOPBACK else {}
    limits = httpx.Limits(max_connections=ranker.parallel)
    return httpx.AsyncClient(timeout=None, limits=limits, mounts=direct, headers={"User-Agent": "whyrank"})


def _close(client: httpx.AsyncClient) -> None:
    asyncio.run_coroutine_threadsafe(client.aclose(), _loop())


def _above_info(record: logging.LogRecord) -> bool:
    return record.levelno > logging.INFO


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for; None where it names none, as one with a date."""
    try:
        return max(0.0, float(value or ""))
    except ValueError:
        return None


# The rerank request that many services share, and its answer.
#
# | api | request | answer |
# | --- | --- | --- |
# | `jina` | query, documents, top_n, return_documents | results: [{index, relevance_score}] |
# | `cohere` | query, documents, top_n | results: [{index, relevance_score}] |
# | `tei` | query, texts, raw_scores, truncate, return_text | [{index, score}] |
#
# `jina` is also what vLLM, Infinity and llama.cpp read; `tei` is Text Embeddings Inference.


class _Result(BaseModel, strict=True):
    """The score of one text; None where the service has none."""

    index: int
    relevance_score: float | None = None
    score: float | None = None


_RESULTS = TypeAdapter(list[_Result])


def _request_body(api: str, query: str, texts: Sequence[str], ranker: HttpRanker) -> bytes:
    """The request as JSON in plain ASCII, so that any text can be sent; options add to it or replace parts."""
    body: dict[str, Any] = {"query": query, "texts" if api == "tei" else "documents": list(texts)}
    if ranker.model is not None:
        body["model"] = ranker.model
    if api == "tei":  # raw scores do not saturate as probabilities do; a text that is too long is cut
        body |= {"raw_scores": True, "truncate": True, "return_text": False}
    else:
        body |= {"top_n": len(texts)} | ({"return_documents": False} if api == "jina" else {})
    return json.dumps(body | reveal(dict(ranker.options), ranker.url)).encode("ascii")


def _read_answer(content: bytes, size: int) -> Answered:
    """The scores of `size` texts in the order of the request; a text that the answer leaves out has a reason."""
    try:
        found = json.loads(content)
        results = _RESULTS.validate_python(found.get("results") if isinstance(found, dict) else found)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"])) or "results"
        what = f"the answer is no list of scores ({where}: {first['msg']}): {_shorten(str(found))}"
        raise _Failed(what, answered=True) from None
    except (ValueError, RecursionError):
        raise _Failed(f"the answer is no JSON but {_excerpt(content) or 'empty'}", answered=True) from None
    scores, reasons = np.full(size, np.nan), dict.fromkeys(range(size), "the answer has no score for this text")
    for result in results:
        score = result.score if result.relevance_score is None else result.relevance_score
        if not 0 <= result.index < size:
            raise _Failed(f"the answer has a score for text {result.index} of {size}", answered=True)
        if score is not None:
            if result.index not in reasons:
                raise _Failed(f"the answer has two scores for text {result.index}", answered=True)
            scores[result.index] = score
            del reasons[result.index]
    return Answered(scores, reasons)


def _no_scores(reason: str, size: int) -> Answered:
    return Answered(np.full(size, np.nan), dict.fromkeys(range(size), reason))


def _error_message(content: bytes) -> str:
    """What a service says in an error: the message of a JSON answer, else the beginning of the text."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return _excerpt(content)
    known = [found[key] for key in ("message", "detail", "error") if isinstance(found, dict) and key in found]
    return _shorten(str(known[0] if known else found))


def _excerpt(content: bytes) -> str:
    text = content[:2000].decode("utf-8", "replace")
    return "an HTML page" if re.search("<html|<!doctype", text, re.IGNORECASE) else _shorten(text)


def _shorten(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 160 else one_line[:160] + "…"
