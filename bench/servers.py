"""The servers that the measurements run on: embedded PostgreSQL with ordinary, durable settings."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.config.connections import Connection
from stack import ports
from stack.servers.binaries import from_wheel
from stack.servers.postgres import SUPERUSER, Server
from stack.servers.postgres_user import Account, reachable_folder

SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
}


class Address(Protocol):
    """Where a server answers."""

    @property
    def port(self) -> int: ...

    @property
    def password(self) -> str: ...


@dataclass(frozen=True)
class RunningServer:
    """A server that another process started."""

    port: int
    password: str


@contextmanager
def source_server() -> Iterator[Server]:
    """Start a server of our own and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        home = reachable_folder(Path(made), Account.for_postgres())
        server = Server(home / "source", from_wheel(home), ports.choose(), "only-for-the-bench", SETTINGS)
        try:
            server.start()
            yield server
        finally:
            server.remove()


def source_connection(server: Address, database: str = SUPERUSER) -> Connection:
    """Return a server's address as the pipeline would get it from Airflow."""
    return Connection(
        id="bench",
        host=ports.LOOPBACK,
        port=server.port,
        user=SUPERUSER,
        password=server.password,
        database=database,
        options={},
    )


@contextmanager
def two_servers() -> Iterator[tuple[Server, Server, Path]]:
    """Start a source and a control server below a folder, which they share with whatever else is measured; remove all."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)
        home = reachable_folder(folder, Account.for_postgres())
        binaries = from_wheel(home)
        source = Server(home / "source", binaries, ports.choose(), "only-for-the-bench", SETTINGS)
        control = Server(home / "control", binaries, ports.choose(), "only-for-the-bench", {"shared_buffers": "64MB"})
        try:
            source.start()
            control.start()
            yield source, control, folder
        finally:
            source.remove()
            control.remove()
