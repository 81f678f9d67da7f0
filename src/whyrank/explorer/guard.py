"""What stands before every request: who may ask, how much they may send, and what a page may do in the browser."""

from __future__ import annotations

from secrets import compare_digest
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl

from fastapi import HTTPException, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from whyrank.explorer.jobs import Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "[::1]")
MOST_BYTES = 1_000_000  # of the body of a request
MOST_FIELDS = 50
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # fmt: skip


class Guard:
    """Refuses what does not come from a page of the explorer, and gives each browser its session.

    Without a token only names of this machine are accepted as Host, so that no other site can point its own name
    here. Whatever changes something has to come from the same origin.

    Args:
        app: the application behind it.
        token: what a browser from elsewhere has to know; None where only this machine can connect.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.app, self.token, self.sessions = app, token, Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        port = (scope.get("server") or ("", 0))[1]
        cookies, name = cookie_parser(headers.get("cookie", "")), f"whyrank-{port}"  # ports share their cookies
        given = cookies.get(f"{name}-token", "")
        shown = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        refusal = self._refusal(scope["method"], headers)
        if refusal:
            await PlainTextResponse(refusal, 403)(scope, receive, send)
            return
        if self.token is not None and not _same(given, self.token):
            answer: Response = PlainTextResponse("open the address with the token that the command printed", 403)
            if scope["method"] == "GET" and _same(shown, self.token):
                answer = RedirectResponse("/", 303)
                answer.set_cookie(f"{name}-token", self.token, httponly=True, samesite="strict")
            await answer(scope, receive, send)
            return
        known, session = self.sessions.find(cookies.get(name, ""))
        scope.setdefault("state", {})["session"] = session

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                own.update(HEADERS)
                if known != cookies.get(name):
                    own.append("Set-Cookie", f"{name}={known}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> str:
        """Why a request is refused, in words; empty where it is not."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.token is None and host.rpartition(":")[0] not in LOCAL and host not in LOCAL:
            return f"Host {host!r} is not this machine"
        own = (f"http://{host}", f"https://{host}")  # a proxy may add TLS
        if (origin is not None or method not in ("GET", "HEAD")) and origin not in own:
            return f"Origin {origin or 'nowhere'!r} is not the explorer"
        return ""


def _same(given: str, token: str) -> bool:
    return compare_digest(given.encode(), token.encode())


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, urlencoded; a body that is too large is refused before it is read whole."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"the texts are too long: {MOST_BYTES:,} bytes at most")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(400, "the request is not an urlencoded form") from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}
