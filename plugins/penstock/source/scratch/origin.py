"""What a migration may count on at the source besides its tables: names of roles, and what unqualified names mean."""

from __future__ import annotations

from penstock.source.scratch.server import SUPERUSER
from penstock.source.session import SourceSession


def roles(conn: SourceSession) -> tuple[str, ...]:
    """Name the roles that a scratch server of our own lacks; raises SourceError."""
    return tuple(name for (name,) in conn.rows("scratch/roles", superuser=SUPERUSER))


def search_path(conn: SourceSession) -> str | None:
    """Return the database's own search_path in the form that set_config takes, None where it has none; raises SourceError."""
    found = conn.rows("scratch/search_path")
    return found[0][0] if found else None


def extensions(conn: SourceSession) -> tuple[tuple[str, str], ...]:
    """Name the database's extensions with their schemas; raises SourceError."""
    return tuple((name, schema) for name, schema in conn.rows("scratch/extensions"))


def running_server(conn: SourceSession) -> tuple[object, ...]:
    """Return what distinguishes a running server from any other; raises SourceError."""
    return conn.row("scratch/server_start")
