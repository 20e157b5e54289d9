"""Transactions on the control database: how one is opened, what it sends, and what its failures are called.

Every call of the ledger is one transaction on a connection of its own, or on the thread's shared one within
`session()`. Errors name the address and what PostgreSQL said of itself, never a value or a password.
"""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.adapt import Dumper, Loader
from psycopg.types.json import Jsonb

from penstock import sql
from penstock.codec import plain, record_of
from penstock.config.connections import Connection
from penstock.errors import LedgerError, NoLedgerError, PenstockError
from penstock.ledger.records import Level
from penstock.lsn import Lsn

Record = TypeVar("Record")

REVISION = "r0001"
"""The revision of the schema that this code reads and writes: the last one in `migrations/versions`."""

UNRELEASED = "A ledger of before the first release is not migrated: drop its schema penstock and bootstrap again"

_NETWORK = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_NOT_SET_UP = (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName, pg.InsufficientPrivilege)
_TAKEN = (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)
_AWAY = (pg.OperationalError, pg.IdleInTransactionSessionTimeout, pg.ReadOnlySqlTransaction)


class _LsnLoader(Loader):
    def load(self, data: Any) -> Lsn:
        return Lsn.parse(bytes(data).decode())


class _LsnDumper(Dumper):
    oid = psycopg.adapters.types["pg_lsn"].oid

    def dump(self, obj: Lsn) -> bytes:
        return str(obj).encode()


def connect(connection: Connection, application: str, task: Mapping[str, str] | None = None) -> psycopg.Connection:
    """Open a connection in autocommit, with pinned settings and LSNs as `Lsn`; raises psycopg.Error.

    What it writes is signed by the task of Airflow that is at work, if one is.
    """
    words = {name: value for name, value in _NETWORK.items() if name not in connection.options}
    opened = psycopg.connect(connection.conninfo(application_name=application, **words), autocommit=True)
    opened.adapters.register_loader("pg_lsn", _LsnLoader)
    opened.adapters.register_dumper(Lsn, _LsnDumper)
    opened.execute(sql.load("ledger/session/session").encode(), {"task": json.dumps(task) if task else ""})
    return opened


class Statements(ABC):
    """Run the ledger's statements by name; a collection is sent as an array."""

    @abstractmethod
    def _run(self, statement: str, values: Mapping[str, Any]) -> AbstractContextManager[psycopg.Cursor]: ...

    def change(self, statement: str, **values: Any) -> int:
        """Run a statement and return how many rows it touched."""
        with self._run(statement, values) as cursor:
            return cursor.rowcount

    def rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        with self._run(statement, values) as cursor:
            return cursor.fetchall()

    def records(self, record: type[Record], statement: str, **values: Any) -> list[Record]:
        """Run a query and return its rows as records, whose fields are named as its columns."""
        return [record_of(record, row) for row in self.shown(statement, **values)]

    def shown(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """Run a query and return its rows by the names of its columns."""
        with self._run(statement, values) as cursor:
            names = [each.name for each in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def columns(self, statement: str, **values: Any) -> dict[str, list[Any]]:
        """Run a query and return its columns by name; each is there where there is no row, too."""
        with self._run(statement, values) as cursor:
            rows = cursor.fetchall()
            return {each.name: [row[place] for row in rows] for place, each in enumerate(cursor.description or ())}


class Transaction(Statements):
    """Run statements inside one transaction."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def _run(self, statement: str, values: Mapping[str, Any]) -> psycopg.Cursor:
        sent = {name: list(each) if isinstance(each, (tuple, Set)) else each for name, each in values.items()}
        return self.connection.execute(sql.load(f"ledger/{statement}").encode(), sent)

    def note(
        self,
        name: str,
        slug: str,
        message: str,
        *,
        level: Level = "info",
        oid: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Note something that happened to a pipeline, or to one of its tables, as an event under its runbook's name."""
        facts = {"slug": slug, "level": level, "table_oid": oid, "message": message, "details": Jsonb(details or {})}
        self.change("events/add_event", name=name, **facts)

    def lock(self, name: str) -> None:
        """Keep every other change of a pipeline waiting until this transaction ends; raises LedgerError("not-bootstrapped")."""
        if not self.rows("pipelines/lock_pipeline", name=name):
            raise unknown(name)


class Sessions:
    """Open transactions on one control database."""

    def __init__(self, connection: Connection, task: Mapping[str, str] | None = None) -> None:
        self.connection = connection
        self.task = task
        self._shared = threading.local()
        self._checked = False

    def version(self) -> str:
        """Return the schema's revision; raises LedgerError("ledger-not-migrated") unless it is this code's."""
        with self.named_failures(), self._opened() as opened:
            return self._require_revision(opened)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Let this thread's calls inside the block share one connection; each is still its own transaction."""
        if getattr(self._shared, "connection", None) is not None:
            yield
            return
        with self.named_failures(), connect(self.connection, "penstock ledger", self.task) as opened:
            self._shared.connection = opened
            try:
                yield
            finally:
                self._shared.connection = None

    @contextmanager
    def transaction(self, *, frozen: bool = False, lock: str | None = None) -> Iterator[Transaction]:
        """Run the block in one transaction; with `frozen` everything is read as of one moment, and only read.

        With `lock` every other change of that pipeline waits until it ends; raises LedgerError("not-bootstrapped") for one that is unknown.
        """
        with self.named_failures(), self._opened() as opened:
            if not self._checked:
                self._require_revision(opened)
            with opened.transaction():
                if frozen:
                    opened.execute("set transaction isolation level repeatable read, read only")
                transaction = Transaction(opened)
                if lock is not None:
                    transaction.lock(lock)
                yield transaction

    @contextmanager
    def together(self, name: str) -> Iterator[None]:
        """Let this thread's calls inside the block happen all or none: each is part of one transaction, which keeps the pipeline's row."""
        with self.session(), self.transaction(lock=name):
            yield

    @contextmanager
    def _opened(self) -> Iterator[psycopg.Connection]:
        with self.session():
            yield self._shared.connection

    def _require_revision(self, opened: psycopg.Connection) -> str:
        try:
            found = [row[0] for row in Transaction(opened).rows("session/version")]
        except (pg.UndefinedTable, pg.InvalidSchemaName):
            raise NoLedgerError(
                "ledger-not-migrated",
                f"expected the ledger at {self.connection.address}, found none; the first bootstrap makes it (penstock start <pipeline>). "
                "Where pipelines have run before, this connection leads to another database than then",
            ) from None
        if found != [REVISION]:
            raise LedgerError(
                "ledger-not-migrated",
                f"expected revision {REVISION} of the ledger at {self.connection.address}, got {found} instead; "
                f"use one Penstock everywhere, and let its bootstrap migrate the ledger. {UNRELEASED}",
            )
        self._checked = True
        return REVISION

    @contextmanager
    def named_failures(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise named(error, self.connection) from None


class Part(Statements):
    """One subject of the ledger: it opens its transactions where the whole ledger does, for one statement or for more."""

    def __init__(self, sessions: Sessions) -> None:
        self.connection = sessions.connection
        self.transaction = sessions.transaction
        self.named_failures = sessions.named_failures

    @contextmanager
    def _run(self, statement: str, values: Mapping[str, Any]) -> Iterator[psycopg.Cursor]:
        with self.transaction() as transaction, transaction._run(statement, values) as cursor:
            yield cursor


def unknown(name: str) -> LedgerError:
    """Return the error of a pipeline that is not registered."""
    return LedgerError("not-bootstrapped", f"expected the ledger to know pipeline {name}, it does not; bootstrap it")


def recordset(records: Iterable[Any]) -> Jsonb:
    """Return records, or plain data, as the one parameter of a statement that takes many: its `jsonb_to_recordset`."""
    return Jsonb([each if isinstance(each, dict) else plain(each) for each in records])


def named(error: psycopg.Error, connection: Connection) -> PenstockError | psycopg.Error:
    """Return the error of ours that a failure of the control database means; our own bugs stay what they are."""
    where = f"the control database at {connection.address}"
    if isinstance(error, _NOT_SET_UP):
        return LedgerError(
            "ledger-not-migrated",
            f"expected the ledger's schema in {where}, got: {server_message(error)}; migrate the ledger, "
            "or grant this role the schema penstock",
        )
    if isinstance(error, _TAKEN):
        return LedgerError(
            "ledger-conflict",
            f"expected the pipeline's row in {where} to be free, got: {server_message(error)}; run again",
        )
    if isinstance(error, pg.IntegrityError):
        return LedgerError(
            "ledger-conflict",
            f"expected a change that {where} allows, got a violation of {error.diag.constraint_name}; "
            "run again, and report a bug if it comes back",
        )
    if isinstance(error, _AWAY):
        return LedgerError(
            "ledger-unreachable",
            f"expected {where} to answer, got: {server_message(error)}; "
            "check that it runs and accepts this role, then run again: nothing half-done was kept",
        )
    return error


def server_message(error: psycopg.Error) -> str:
    """Return what PostgreSQL said, in one line: its primary message, or the client's reason."""
    primary = error.diag.message_primary
    if primary:
        return primary
    last = str(error).strip().splitlines()[-1:] or ["no reason given"]
    return last[0].rpartition("FATAL:")[2].strip()
