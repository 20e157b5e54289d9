"""A database for one trial, on a server of nobody's data that is there or is started for it, and dropped at the end.

A server for the time has a folder of its own, a socket in it and no port. The local stack starts it, as it starts the servers of a
demo; the library alone, without the project's folder `stack`, has to be given one. It is stopped and deleted whatever happens.

The schema is what `pg_dump --schema-only` says of the source, or a file that holds that. Owners, rights and subscriptions
stay out: they change nothing that capture looks at, and a subscription would connect. Whoever owns an object at the source has
written what runs here, so it runs as a role without rights; statements of anybody else are made of quoted names and literals.
"""

import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import LiteralString

from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import ConfigError, SourceError
from penstock.source.scratch.programs import inherited, unavailable
from penstock.source.server_errors import translating
from penstock.source.session import SourceSession, connect

_SETTINGS = {
    "fsync": "off",
    "max_prepared_transactions": "10",
    "shared_buffers": "32MB",
    "autovacuum": "off",  # it would not change a verdict, only the versions of catalog rows
}
SUPERUSER = "postgres"
_PORT = 5432  # names the socket's file only

_HARMLESS_CREATEROLE = 160_000


@dataclass(frozen=True, slots=True)
class Needs:
    """Hold what a schema and a migration count on besides tables; `running` distinguishes the server from any other.

    Extensions come with their schemas; a `search_path` is the database's own, in the form that set_config takes.
    """

    encoding: str = "UTF8"
    search_path: str | None = None
    roles: Sequence[str] = ()
    extensions: Sequence[tuple[str, str]] = ()
    running: str | None = None


def read_needs(conn: SourceSession) -> Needs:
    """Ask a database what its migrations count on; raises SourceError."""
    return conn.record(Needs, "scratch/needs", superuser=SUPERUSER)


def serves(folder: Path) -> bool:
    """Return whether the programs of a server are in a folder, and the account that would run it can start them."""
    try:
        from stack.errors import StackError  # noqa: PLC0415
        from stack.servers.binaries import Binaries  # noqa: PLC0415
    except ImportError:
        raise unavailable(
            "expected the project's folder `stack`, which starts servers, to be installed beside the library, but it is not there",
            "name a server by --scratch-connection, or run this in a checkout",
        ) from None
    try:
        return bool(Binaries.at(folder).version)
    except (StackError, OSError):
        return False


@contextmanager
def throw_away(folder: Path) -> Iterator[Connection]:
    """Start a server of the programs in a folder that `serves`, and lend the way to it; raises ConfigError("scratch-unavailable")."""
    from stack.errors import StackError  # noqa: PLC0415
    from stack.servers.binaries import Binaries  # noqa: PLC0415
    from stack.servers.postgres import Server  # noqa: PLC0415
    from stack.servers.postgres_user import Account  # noqa: PLC0415

    with _terminable():
        home = Path(tempfile.mkdtemp(prefix="penstock-"))
        account, password = Account.for_postgres(inherited()), secrets.token_urlsafe(24)
        server = Server(home, Binaries.at(folder), _PORT, password, _SETTINGS, account, host=str(home))
        try:
            try:
                server.start()
            except StackError as error:
                raise _failed(error.came) from None
            yield Connection("scratch", str(home), _PORT, SUPERUSER, password, SUPERUSER)
        finally:
            with suppress(StackError):
                server.remove()


def _failed(came: str) -> ConfigError:
    return unavailable(
        f"expected the scratch server to start, got: {' / '.join(came.splitlines()) or 'nothing'}",
        "name another installation by --programs, or a server by --scratch-connection; TMPDIR is where it is made, and for root a "
        "folder that `nobody` may enter",
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a SIGTERM end the block as an exception does, so that no server stays behind a CI job that was cancelled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the shape that `signal` asks for
        raise SystemExit(128 + signum)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def scratch_database(server: Connection, needs: Needs, *, ours: bool) -> Iterator[tuple[Connection, Connection]]:
    """Make a database without tables next to the one that `server` names, lend the ways to it, and drop it; raises SourceError.

    These are that of a user without rights beyond it, and that of whoever made it. On a server of `ours` the source's roles are made, which a migration may name. Raises ConfigError("scratch-unavailable") for
    a role that reaches the server's files or programs.
    """
    name = f"penstock_trial_{secrets.token_hex(6)}"
    with _session(server) as conn:
        user, made = _without_rights(conn, server, name, needs.roles if ours else None)
        owner = made[-1] if made else user.user
        made_of = "create database {} template template0 encoding {} lc_collate 'C' lc_ctype 'C' owner {}"
        _run(conn, made_of, name, sql.Literal(needs.encoding), owner)
        if needs.search_path:
            _run(conn, "select pg_catalog.set_config('search_path', {}, false)", sql.Literal(needs.search_path))
            _run(conn, "alter database {} set search_path from current", name)
    try:
        admin = replace(server, database=name)
        if made:
            _make_extensions(admin, owner, needs.extensions)
        yield replace(user, database=name), admin
    finally:
        with _session(server) as conn:
            _run(conn, "drop database {} with (force)", name)
            for each in made:
                _run(conn, "drop role {}", each)


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
    _run(conn, "create role {} {}", owner, sql.SQL("createrole" if may_make_roles else ""))
    _run(conn, "create role {} login password {}", login, sql.Literal(verifier))
    _run(conn, "grant {} to {}", owner, login)
    for each in roles or ():
        _run(conn, "create role {}", each)
        _run(conn, "grant {} to {}", owner, each)
        _run(conn, "grant {} to {}", each, login)
    words = f"-c role={owner}" + (" -c createrole_self_grant=set,inherit" if may_make_roles else "")
    options = {**server.options, "options": f"{server.options.get('options', '')} {words}".strip()}
    return replace(server, user=login, password=password, renew=None, options=options), [login, owner]


def _make_extensions(admin: Connection, owner: str, extensions: Sequence[tuple[str, str]]) -> None:
    """Make the source's extensions in a database that is empty yet, by whoever may; restoring it says what is missing.

    Their scripts are those of the scratch server: only names come from the source.
    """
    with _session(admin) as conn:
        for name, schema in extensions:
            with suppress(SourceError), translating(conn.place), conn.transaction():
                _run(conn, "create schema if not exists {} authorization {}", schema, owner)
                _run(conn, "create extension if not exists {} with schema {} cascade", name, schema)


def _run(conn: SourceSession, statement: LiteralString, *parts: str | sql.Composable) -> None:
    """Run a statement with names, which are quoted, and with what is composed already."""
    conn.run(sql.SQL(statement).format(*(sql.Identifier(each) if isinstance(each, str) else each for each in parts)))


def _session(server: Connection) -> SourceSession:
    return connect(server, what="trial", lock_timeout=0)
