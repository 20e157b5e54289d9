"""A database for one trial on a server of nobody's data: made with the source's schema, dropped at the end.

The schema is what `pg_dump --schema-only` says of the source, or a file that holds that. Owners, rights and subscriptions
stay out: they change nothing that capture looks at, and a subscription would connect. Whoever owns an object at the source has
written what runs here, so it runs as a role without rights; statements of anybody else are made of quoted names and literals.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import ConfigError, SourceError
from penstock.source.scratch.programs import Programs, unavailable
from penstock.source.scratch.server import SUPERUSER
from penstock.source.session import SourceSession, connect, translating

_CUSTOM = b"PGDMP"
_LEAVES = re.compile(rb"^\s*\\(c|connect)\b", re.M)
_VERSION = re.compile(rb"^-- Dumped from database version (\d+)", re.M)
_HEAD_BYTES = 4096
_THERE = re.compile(r"(role|schema|extension) .+ already exists|must be owner of extension .+")
_HARMLESS_CREATEROLE = 160_000
_COMMAND = "Command was: "
_SHOWN = 100
_LOCK_WAIT = "10s"  # a table under DDL must not let the dump stand in its owner's way


@dataclass(frozen=True, slots=True)
class Scratch:
    """Hold the ways to one scratch database: `user` has no rights beyond it, `admin` those of whoever made it."""

    user: Connection
    admin: Connection


@contextmanager
def scratch_database(
    server: Connection, *, encoding: str, search_path: str | None = None, roles: Sequence[str] | None = None
) -> Iterator[Scratch]:
    """Make an empty database next to the one that `server` names, lend the ways to it, and drop it; raises SourceError.

    `search_path` is that of the source's database. `roles` are those of the source, for a server of our own: a migration may
    name them. Raises ConfigError("scratch-unavailable") for a role that reaches the server's files or programs.
    """
    name = f"penstock_trial_{secrets.token_hex(6)}"
    with _session(server) as conn:
        user, made = _without_rights(conn, server, name, roles)
        owner = made[-1] if made else user.user
        conn.run(
            sql.SQL("create database {} template template0 encoding {} lc_collate 'C' lc_ctype 'C' owner {}").format(
                sql.Identifier(name), sql.Literal(encoding), sql.Identifier(owner)
            )
        )
        if search_path:
            conn.run(sql.SQL("select pg_catalog.set_config('search_path', {}, false)").format(sql.Literal(search_path)))
            conn.run(sql.SQL("alter database {} set search_path from current").format(sql.Identifier(name)))
    try:
        yield Scratch(replace(user, database=name), replace(server, database=name))
    finally:
        with _session(server) as conn:
            conn.run(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
            for each in made:
                conn.run(sql.SQL("drop role {}").format(sql.Identifier(each)))


def _without_rights(
    conn: SourceSession, server: Connection, name: str, roles: Sequence[str] | None
) -> tuple[Connection, list[str]]:
    """Return how what comes from the source logs in, and the roles that were made for it: a login, and the owner of all."""
    superuser, beyond = conn.row("scratch/rights")
    if not superuser:
        if beyond:
            raise unavailable(
                f"expected a role without rights on the server of connection {server.id!r}, got a member of {', '.join(beyond)}",
                "what the source's schema holds would have them: name a role that has CREATEDB and nothing else",
            )
        return server, []
    login, owner, password = name, f"{name}_owner", secrets.token_urlsafe(24)
    verifier = conn.pgconn.encrypt_password(password.encode(), login.encode(), b"scram-sha-256").decode()
    ours = roles is not None
    # from 16 on such a role can hand out no more than what it has made
    may_make_roles = ours and conn.info.server_version >= _HARMLESS_CREATEROLE
    conn.run(
        sql.SQL("create role {} {}").format(sql.Identifier(owner), sql.SQL("createrole" if may_make_roles else ""))
    )
    conn.run(sql.SQL("create role {} login password {}").format(sql.Identifier(login), sql.Literal(verifier)))
    conn.run(sql.SQL("grant {} to {}").format(sql.Identifier(owner), sql.Identifier(login)))
    for each in map(sql.Identifier, roles or ()):
        conn.run(sql.SQL("create role {}").format(each))
        conn.run(sql.SQL("grant {} to {}").format(sql.Identifier(owner), each))
        conn.run(sql.SQL("grant {} to {}").format(each, sql.Identifier(login)))
    words = f"-c role={owner}" + (" -c createrole_self_grant=set,inherit" if may_make_roles else "")
    options = {**server.options, "options": f"{server.options.get('options', '')} {words}".strip()}
    return replace(server, user=login, password=password, renew=None, options=options), [login, owner]


def make_extensions(place: Scratch, extensions: Sequence[tuple[str, str]]) -> None:
    """Make the source's extensions in a database that is empty yet, by whoever may; restoring it says what is missing.

    Their scripts are those of the scratch server: only names come from the source.
    """
    if place.admin == place.user:
        return
    with _session(place.admin) as conn:
        (owner,) = conn.execute(
            "select datdba::regrole::text from pg_database where datname = current_database()"
        ).fetchone() or ("",)
        for name, schema in extensions:
            with suppress(SourceError), translating(conn.place), conn.transaction():
                make = sql.SQL("create schema if not exists {} authorization {}")
                conn.execute(make.format(sql.Identifier(schema), sql.SQL(owner)))
                make = sql.SQL("create extension if not exists {} with schema {} cascade")
                conn.execute(make.format(sql.Identifier(name), sql.Identifier(schema)))


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
    """Return the server's errors among what a program said, with the head of the command where pg_restore says it."""
    found: dict[str, str] = {}
    for line in said.splitlines():
        if "ERROR:" in line:
            error = line.partition("ERROR:")[2].strip()
            found[error] = found.get(error, "")
        elif line.startswith(_COMMAND) and found and not found[error]:
            found[error] = f"{line.removeprefix(_COMMAND)[:_SHOWN]}: "
    return [f"{command}{error}" for error, command in found.items() if not _THERE.fullmatch(error)]


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
