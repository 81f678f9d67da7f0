"""One service on the network: a request with a deadline, tried again while there is hope.

Requests go through httpx: its client keeps connections open for several threads at once, knows proxies and
certificates, and tells a refused connection from a late answer. There is no second way without it, so that what the
tests cover is what users run.
"""

from __future__ import annotations

import logging
import os
import random
import re
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from whyrank.core.errors import MissingExtra, WhyrankError

if TYPE_CHECKING:
    import httpx

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
