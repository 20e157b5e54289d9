"""A session on the source whose settings are pinned, so that every value has one text wherever it is rendered.

Many settings leak into the bytes of decoding and of casts: a role, a database or an environment may set
them. They are set on each fresh connection and read back. Nothing is pooled or reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import psycopg
from psycopg import sql
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.rows import TupleRow, class_row

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source.server_errors import translating
from penstock.sql import load

if TYPE_CHECKING:
    from penstock.source.arrow import ArrowSession

PINNED = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "search_path": "",
    "quote_all_identifiers": "off",  # regclass and its kin
    "standard_conforming_strings": "on",  # how our own literals are read
    "row_security": "off",  # decoding ignores policies; a read that they would narrow must fail instead
}
"""Session settings that change rendered values, or which rows are seen."""

LIMITS = {
    "idle_in_transaction_session_timeout": "0",  # a role's own limit would end the holder of a snapshot
    "idle_session_timeout": "0",
    "transaction_timeout": "0",  # 17
}
"""Limits that a role may have and that would end our sessions; set where the server knows them."""

MODES = {
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "array_nulls": "on",  # how our own arrays are read
}
"""What transactions are where nothing else is said: a role or a database may have set another default."""

KEEPALIVE = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "6"}
"""libpq's keywords that notice a dead network, also on a connection that holds a snapshot for hours."""

BEGIN = sql.SQL("begin isolation level repeatable read, read only")

_LSN_OID = 3220

Row = TypeVar("Row")


class SourceSession(psycopg.Connection[TupleRow]):
    """Hold one connection in autocommit, and where it leads."""

    source: Connection

    @property
    def place(self) -> str:
        """Say where it leads, without the secret."""
        return self.source.address

    def ask(self, query: bytes | sql.SQL | sql.Composed, **parameters: object) -> list[TupleRow]:
        """Run a query and return its rows; raises SourceError."""
        with translating(self.place):
            return self.execute(query, parameters or None).fetchall()

    def rows(self, statement: str, **parameters: object) -> list[TupleRow]:
        """Run `include/sql/source/<statement>.sql` and return its rows; raises SourceError."""
        return self.ask(_text(statement), **parameters)

    def row(self, statement: str, **parameters: object) -> TupleRow:
        """Run a statement that returns exactly one row; raises SourceError."""
        (row,) = self.rows(statement, **parameters)
        return row

    def records(self, record: type[Row], statement: str | sql.Composed, **parameters: object) -> list[Row]:
        """Run a statement whose columns are the fields of `record`; raises SourceError."""
        query = _text(statement) if isinstance(statement, str) else statement
        with translating(self.place), self.cursor(row_factory=class_row(record)) as cursor:
            return cursor.execute(query, parameters or None).fetchall()

    def record(self, record: type[Row], statement: str, **parameters: object) -> Row:
        """Run a statement that returns exactly one row, whose columns are the fields of `record`; raises SourceError."""
        (found,) = self.records(record, statement, **parameters)
        return found

    def run(self, statement: bytes | sql.SQL | sql.Composed) -> None:
        """Run a statement that returns nothing; raises SourceError."""
        with translating(self.place):
            self.execute(statement)

    @contextmanager
    def snapshot(self, name: str | None = None) -> Iterator[None]:
        """Read all inside as one snapshot sees it, an exported one if it is named, and write nothing; raises SourceError.

        Whatever was done to the session inside is rolled back with it. "snapshot-gone" is raised for one that has ended.
        """
        self.run(BEGIN)
        try:
            if name is not None:
                self.run(taking(name))
            yield
        finally:
            with suppress(SourceError):  # a session that was ended has nothing to take back
                self.run(sql.SQL("rollback"))

    @classmethod
    def open(cls, source: Connection, application: str, **options: Any) -> Self:
        """Connect without pinning anything; raises SourceError."""
        words = {**KEEPALIVE, **source.options, "application_name": application}
        with translating(source.address):
            session = cls.connect(source.conninfo(**words), autocommit=True, prepare_threshold=None, **options)
        session.source = source
        session.adapters.register_loader(_LSN_OID, _LsnLoader)
        session.adapters.register_dumper(Lsn, _LsnDumper)
        return session


def connect(source: Connection, *, what: str, statement_timeout: int = 60, lock_timeout: int = 10) -> SourceSession:
    """Open a session with pinned settings, named `penstock:<what>` on the server; a context manager.

    The timeouts are in seconds, 0 means none. Raises SourceError.
    """
    session = SourceSession.open(source, f"penstock:{what}")
    try:
        pin(session, {"statement_timeout": f"{statement_timeout}s", "lock_timeout": f"{lock_timeout}s"})
    except BaseException:
        session.close()
        raise
    return session


def pin(session: SourceSession | ArrowSession, settings: Mapping[str, str]) -> None:
    """Set the pinned settings and `settings`, and read the pinned ones back; raises SourceError."""
    session.ask(pinning(settings))
    require_pinned(session)


def pinning(settings: Mapping[str, str]) -> sql.Composed:
    """Compose the one statement that sets the pinned settings, the limits and `settings` for the session.

    Each name in it has its schema: until it has run, the database's own `search_path` says what others mean.
    """
    return sql.SQL("select {}").format(
        sql.SQL(", ").join(
            [
                *(_set(name, value) for name, value in {**PINNED, **MODES, **settings}.items()),
                *(_set_if_known(name, value) for name, value in LIMITS.items()),
                # the server notices that we are gone while it decodes, and does not hold the slot until the end
                sql.SQL("case when pg_catalog.version() operator(pg_catalog.~) 'linux' then {} end").format(
                    _set_if_known("client_connection_check_interval", "5s")
                ),
            ]
        )
    )


def require_pinned(session: SourceSession | ArrowSession) -> None:
    """Raise SourceError unless the server shows the pinned settings as they were set."""
    settings = (sql.SQL("pg_catalog.current_setting({})").format(sql.Literal(name)) for name in PINNED)
    (shown,) = session.ask(sql.SQL("select {}").format(sql.SQL(", ").join(settings)))
    for (name, wanted), got in zip(PINNED.items(), shown, strict=True):
        if got != wanted:
            raise SourceError(
                "source-error",
                f"expected {session.place} to take {name} = {wanted!r} for the session, got {got!r} instead; "
                "connect to the server itself: a pooler between us may refuse or reset settings",
            )


def pinned_digest() -> str:
    """Return 16 hex digits that change when the pinned settings do."""
    return hashlib.sha256(json.dumps(PINNED, sort_keys=True).encode()).hexdigest()[:16]


def taking(snapshot_name: str) -> sql.Composed:
    """Compose the statement that takes an exported snapshot."""
    return sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot_name))


def composed(statement: str, **parts: sql.Composable) -> sql.Composed:
    """Return a statement that is composed around parts of others, or of values where none can be bound."""
    return sql.SQL(load(f"source/{statement}")).format(**parts)


def _set(name: str, value: str) -> sql.Composed:
    return sql.SQL("pg_catalog.set_config({}, {}, false)").format(sql.Literal(name), sql.Literal(value))


def _set_if_known(name: str, value: str) -> sql.Composed:
    known = sql.SQL("pg_catalog.current_setting({}, true) is not null").format(sql.Literal(name))
    return sql.SQL("case when {} then {} end").format(known, _set(name, value))


def _text(statement: str) -> bytes:
    # bytes: psycopg's types take a text only when it is a literal of the program, and this one is (kept in a file)
    return load(f"source/{statement}").encode()


class _LsnLoader(Loader):
    def load(self, data: Buffer) -> Lsn:
        return Lsn.parse(bytes(data).decode())


class _LsnDumper(Dumper):
    oid = _LSN_OID

    def dump(self, obj: Lsn) -> Buffer:
        return str(obj).encode()
