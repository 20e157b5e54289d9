"""Those who receive alerts and gauges: an HTTP server, an SMTP server and a StatsD socket, all on loopback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


class Hook:
    """An HTTP receiver; `refusing` lets it answer with an error, `refusals` only as many times."""

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.refusing = False
        self.refusals = 0
        self.port = 0


@contextmanager
def http_receiver() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            refused = hook.refusing or hook.refusals > 0
            hook.refusals = max(0, hook.refusals - 1)
            if not refused:
                hook.paths.append(self.path)
                hook.posts += [json.loads(body)] if body else []
            self.send_response(500 if refused else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Mailbox:
    """What an SMTP server took: subject and text of each mail."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []
        self.port = 0

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        mail = message_from_bytes(envelope.content, policy=policy.default)
        body = mail.get_body(("plain", "html"))
        self.mails.append((str(mail["subject"]), "" if body is None else str(body.get_content())))
        return "250 OK"


@contextmanager
def smtp_receiver(port: int) -> Iterator[Mailbox]:
    box = Mailbox()
    box.port = port
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


@contextmanager
def statsd_receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(30)
        yield listening
