"""A rerank service on this machine that does what a test tells it to."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def true_score(query: str, text: str) -> float:
    """A number that only this pair of texts has."""
    mixed = f"{query}\x1f{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(mixed).digest()[:6], "big") / 2**40


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 2**16  # head and content in one packet, or the two sides wait for each other

    def do_POST(self):
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.log.append((self.path, dict(self.headers), self.body))
        with suppress(BrokenPipeError, ConnectionResetError):
            self.server.behave(self)

    @property
    def texts(self):
        return self.body.get("texts", self.body.get("documents"))

    def answer(self, content, status=200, kind="application/json", **headers):
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, behave):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave, self.log, self.lock = behave, [], threading.Lock()
        self.ended, self.connections = threading.Event(), []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def bodies(self):
        return [body for _, _, body in self.log]

    def get_request(self):
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def hang_up(self):
        """Close the connections that clients keep open."""
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_):
        pass


@contextmanager
def serving(behave):
    server = Server(behave)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        server.hang_up()
        thread.join(5)


def rows(handler, name="relevance_score"):
    """The right results, best first, as services give them."""
    query = handler.body["query"]
    found = [{"index": i, name: true_score(query, text)} for i, text in enumerate(handler.texts)]
    return sorted(found, key=lambda row: -row[name])


def jina(handler):
    if "documents" not in handler.body:
        return handler.answer({"detail": "field required: documents"}, 422)
    return handler.answer({"model": "m", "results": rows(handler)})


def tei(handler):
    if "texts" not in handler.body:
        return handler.answer(b"Failed to deserialize: missing field `texts`", 422, "text/plain")
    return handler.answer(rows(handler, "score"))
