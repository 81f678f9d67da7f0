"""The server of the explorer: one socket, by default of this machine alone."""

from __future__ import annotations

import errno
import socket
import webbrowser
from collections.abc import Callable
from secrets import token_urlsafe
from threading import Thread

from whyrank.core import MissingExtra, WhyrankError
from whyrank.explorer.live import Explorer

LOCAL = ("127.0.0.1", "localhost", "::1")


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address; an error in one line where it cannot be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        made = socket.socket(found[0], socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(found[4])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise WhyrankError(f"port {port} of {host} is in use; choose another one with --port N") from None
        raise WhyrankError(f"cannot listen at {host}, port {port}: {error.strerror}; see --host and --port") from None
    return made


def serve(explorer: Explorer, made: socket.socket, host: str, tell: Callable[[str], None], browser: bool) -> None:
    """Serve until Ctrl-C; beyond this machine the address has a token, without which nothing is answered."""
    try:
        import uvicorn

        from whyrank.explorer.app import make_app
    except ImportError:
        raise MissingExtra("explore", "web") from None
    token = None if host in LOCAL else token_urlsafe(24)
    port, name = made.getsockname()[1], f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/" + (f"?token={token}" if token else "")
    settings = uvicorn.Config(
        app := make_app(explorer, token), log_level="error", access_log=False, ws="none", server_header=False,
        timeout_graceful_shutdown=1,
    )  # fmt: skip

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            tell(f"the explorer is at {address} (Ctrl-C ends it)")
            Thread(target=explorer.warm_up).start()
            if browser:
                Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        Server(settings).run(sockets=[made])
    finally:
        app.sessions.end()
