"""A store that has bad moments: a proxy in front of the real one, which answers some requests as a store in trouble does.

A fault holds for a number of requests, never for a time. All others go to the store and back as they are: the signature
covers the host that the client named, and that is handed on.
"""

import http.client
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

RESET = (0, "")
"""The answer of a store that closes the connection in the middle."""
SLOW_DOWN, INTERNAL, TOO_MANY, EXPIRED, DENIED, FULL = (
    (503, "SlowDown"),
    (500, "InternalError"),
    (429, "TooManyRequests"),
    (403, "ExpiredToken"),
    (403, "AccessDenied"),
    (507, "InsufficientStorage"),
)
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect"})


@dataclass
class Fault:
    """Answer requests of these methods, whose path has `part`, by a status and a code of S3's; `met` counts them."""

    status: int
    code: str = ""
    part: str = ""
    methods: Sequence[str] = ("PUT", "POST", "GET", "HEAD", "DELETE")
    times: int = 1 << 30
    met: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def meets(self, method: str, path: str) -> bool:
        with self.lock:
            if method not in self.methods or self.part not in path or self.met >= self.times:
                return False
            self.met += 1
            return True


class FaultyStore:
    """The proxy; `faults` may be changed at any time."""

    def __init__(self, behind: str) -> None:
        self.behind = urlsplit(behind)
        self.faults: list[Fault] = []
        self.asked: list[str] = []
        handler = type("Handler", (_Handler,), {"store": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    @contextmanager
    def trouble(self, answer: tuple[int, str], part: str = "", **which: object) -> Iterator[Fault]:
        fault = Fault(*answer, part, **which)  # type: ignore[arg-type]
        self.faults.append(fault)
        try:
            yield fault
        finally:
            self.faults.remove(fault)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: FaultyStore

    def handle_any(self) -> None:
        body = self._body()
        self.store.asked.append(f"{self.command} {self.path}")
        fault = next((each for each in self.store.faults if each.meets(self.command, self.path)), None)
        if fault is None:
            self._pass_on(body)
        elif fault.status == RESET[0]:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
        else:
            self._answer(fault)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # names of http.server

    def _answer(self, fault: Fault) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{fault.code}</Code><Message>as a test wants it</Message></Error>"
        self.send_response(fault.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def _pass_on(self, body: bytes) -> None:
        behind = http.client.HTTPConnection(str(self.store.behind.hostname), self.store.behind.port, timeout=60)
        try:
            behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP:
                    behind.putheader(name, value)
            if body and "content-length" not in self.headers:
                behind.putheader("Content-Length", str(len(body)))
            behind.endheaders(body or None)
            answer = behind.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP | {"date", "server", "content-length"}:
                    self.send_header(name, value)
            known = answer.getheader("Content-Length")
            self.send_header("Content-Length", known if self.command == "HEAD" and known else str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
        finally:
            behind.close()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: object) -> None:  # its name there
        """Say nothing."""
