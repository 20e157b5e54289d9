"""A database for one trial on a server of nobody's data: made with the source's schema, dropped at the end.

The schema is what `pg_dump --schema-only` says of the source, or a file that holds that. Owners, rights and subscriptions
stay out: they change nothing that capture looks at, and a subscription would connect.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from psycopg import sql

from penstock.connections import Connection
from penstock.errors import ConfigError
from penstock.source.scratch.programs import Programs, unavailable
from penstock.source.session import SourceSession, connect

_CUSTOM = b"PGDMP"
_LEAVES = re.compile(rb"^\s*\\(c|connect)\b", re.M)
_VERSION = re.compile(rb"^-- Dumped from database version (\d+)", re.M)
_HEAD_BYTES = 4096
_THERE = re.compile(r"(role|schema|extension) .+ already exists")
_LOCK_WAIT = "10s"  # a table under DDL must not let the dump stand in its owner's way


@contextmanager
def scratch_database(server: Connection, *, encoding: str, search_path: str | None = None) -> Iterator[Connection]:
    """Make an empty database next to the one that `server` names, lend the way to it, and drop it; raises SourceError.

    `search_path` is that of the source's database, as it is written in SQL.
    """
    name = f"penstock_trial_{secrets.token_hex(6)}"
    with _session(server) as conn:
        conn.run(
            sql.SQL("create database {} template template0 encoding {} lc_collate 'C' lc_ctype 'C'").format(
                sql.Identifier(name), sql.Literal(encoding)
            )
        )
        if search_path:
            change = sql.SQL("alter database {} set search_path to ").format(sql.Identifier(name))
            conn.run(change + sql.SQL(search_path))  # the catalog has it in SQL's own form
    try:
        yield replace(server, database=name)
    finally:
        with _session(server) as conn:
            conn.run(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def make_roles(server: Connection, names: Sequence[str]) -> None:
    """Give a server of our own the roles of the source, which a migration may name; raises SourceError."""
    with _session(server) as conn:
        for name in names:
            # superusers without login: what a role may do is not what is tried
            conn.run(sql.SQL("create role {} superuser nologin").format(sql.Identifier(name)))


@contextmanager
def dumped(programs: Programs, source: Connection) -> Iterator[Path]:
    """Dump the schema of a database into a file and lend it; raises ConfigError("scratch-unavailable")."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        file = Path(folder) / "schema.dump"
        said = programs.run(
            "pg_dump",
            *("--format=custom", "--schema-only", "--no-owner", "--no-privileges", "--no-subscriptions"),
            *("--no-tablespaces", "--no-security-labels", "--no-password", f"--lock-wait-timeout={_LOCK_WAIT}"),
            *("--file", file),
            place=source,
        )
        if said.returncode != 0:
            raise unavailable(
                f"expected pg_dump {programs.major} to read the schema at {source.address}, got: {_first(said.stderr)}",
                "name a connection of a role that may read every table by --schema-connection, or a dump by --schema-file",
            )
        yield file


def restore(programs: Programs, scratch: Connection, file: Path) -> list[str]:
    """Build what a file holds, a dump or SQL, as far as it can be built; return what the server said against the rest."""
    if file.read_bytes().startswith(_CUSTOM):
        said = programs.run(
            "pg_restore", "--no-owner", "--no-password", "--dbname", scratch.database, file, place=scratch
        )
    else:
        said = programs.run("psql", "-X", "-q", "-w", "-v", "VERBOSITY=terse", "-f", file, place=scratch)
    return complaints(said.stderr)


def dumped_from(files: Sequence[Path]) -> int | None:
    """Return the major version of the server that files of SQL say they were dumped from, None where none says it."""
    for file in files:
        with file.open("rb") as opened:
            if found := _VERSION.search(opened.read(_HEAD_BYTES)):
                return int(found[1])
    return None


def complaints(said: str) -> list[str]:
    """Return the server's errors among what a program said, without what it adds to each."""
    found = [line.partition("ERROR:")[2].strip() for line in said.splitlines() if "ERROR:" in line]
    return [each for each in dict.fromkeys(found) if not _THERE.fullmatch(each)]


def require_file(path: Path) -> None:
    """Raise ConfigError("config-invalid") unless a file can be read, and stays in the database that it is run in."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "config-invalid", f"expected a file {path}, got: {error.strerror}; name one that is there"
        ) from None
    if not content.startswith(_CUSTOM) and (found := _LEAVES.search(content)):
        line = content.count(b"\n", 0, found.end()) + 1
        raise ConfigError(
            "config-invalid",
            f"expected {path.name} to stay in the database that it is run in, but line {line} connects to another; "
            "take that line out (of a dump: leave out --create)",
        )


def _session(server: Connection) -> SourceSession:
    return connect(server, what="trial", lock_timeout=0)


def _first(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0] if lines else "no message"
