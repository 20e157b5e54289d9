"""Those who receive alerts and metrics: an HTTP server, an SMTP server, a StatsD socket and an OpenTelemetry receiver, all on loopback."""

import gzip
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

    with serving(Handler) as port:
        hook.port = port
        yield hook


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Serve on a free port until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Mailbox:
    """What an SMTP server took: subject and text of each mail."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []
        self.html: list[str] = []
        self.port = 0

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        mail = message_from_bytes(envelope.content, policy=policy.default)
        body = mail.get_body(("plain", "html"))
        self.mails.append((str(mail["subject"]), "" if body is None else str(body.get_content())))
        shown = mail.get_body(("html",))
        self.html.append("" if shown is None else str(shown.get_content()))
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


class Collector:
    """What came over OTLP: the points of each metric, as its kind, its attributes and its value."""

    def __init__(self) -> None:
        self.points: dict[str, list[tuple[str, dict[str, str], float]]] = {}
        self.port = 0

    def take(self, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
            ExportMetricsServiceRequest,
        )

        request = ExportMetricsServiceRequest.FromString(body)
        scopes = (scope for each in request.resource_metrics for scope in each.scope_metrics)
        for metric in (metric for scope in scopes for metric in scope.metrics):
            kind = metric.WhichOneof("data")
            if kind in ("sum", "gauge"):
                points = getattr(metric, kind).data_points
                self.points.setdefault(metric.name, []).extend(
                    (
                        kind,
                        {each.key: each.value.string_value for each in point.attributes},
                        getattr(point, point.WhichOneof("value")),
                    )
                    for point in points
                )


@contextmanager
def otlp_receiver() -> Iterator[Collector]:
    """An OpenTelemetry collector's door: OTLP over HTTP, in protobuf, at /v1/metrics."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/metrics":
                collector.take(body)
            self.send_response(200 if self.path == "/v1/metrics" else 404)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with serving(Handler) as port:
        collector.port = port
        yield collector
