"""A publication and a slot on each real server, and what a peek at it says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from penstock.wire import messages as m
from penstock.wire.columnar import ChangeBlock, Totals
from penstock.wire.pgoutput import Decoder
from stack.servers.postgres import Database
from tests.wire.rows import NO_ORIGINS, Row, batches, feed, rows_of, scalar_rows

PEEK = sql.SQL("select data from pg_logical_slot_peek_binary_changes({slot}, null, null, {options})")
BATCH_OPTIONS = {"proto_version": "1", "publication_names": "pub", "messages": "true"}


@dataclass
class Peek:
    """What both decoders made of one peek; they have been found equal."""

    messages: list[bytes]
    rows: list[Row]
    blocks: list[ChangeBlock]
    totals: Totals


class Source:
    """An empty database with a publication of all tables and a slot; one connection that others do not disturb."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.connection = database.connect()
        self.execute("set synchronous_commit = on")  # a peek sees flushed commits only
        self.execute("create publication pub for all tables")
        self.create_slot("s")

    @property
    def major(self) -> int:
        return self.connection.info.server_version // 10_000

    def create_slot(self, name: str, *, two_phase: bool = False) -> None:
        self.execute("select pg_create_logical_replication_slot(%s, 'pgoutput', false, %s)", name, two_phase)

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement, or several without parameters, and return the rows of the first."""
        cursor = self.connection.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def transaction(self, *statements: str) -> None:
        """Run statements in one transaction."""
        with self.connection.transaction():
            for statement in statements:
                self.execute(statement)

    def messages(self, slot: str = "s", **options: str) -> list[bytes]:
        """Peek and return the messages as they came."""
        words = (word for option in (BATCH_OPTIONS | options).items() for word in option)
        query = PEEK.format(slot=sql.Literal(slot), options=sql.SQL(", ").join(map(sql.Literal, words)))
        with self.connection.cursor(binary=True) as cursor:
            return [data for (data,) in cursor.execute(query).fetchall()]

    def decoded(self, slot: str = "s", *, parallel: bool = False, **options: str) -> list[m.Message]:
        """Peek and return what the scalar decoder says."""
        decoder = Decoder(parallel_streaming=parallel)
        return [decoder.decode(data) for data in self.messages(slot, **options)]

    def xmax(self) -> int:
        return int(self.execute("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")[0][0])

    def peek(self, *, skip_origins: frozenset[str] = NO_ORIGINS, **options: str) -> Peek:
        """Peek and decode with both decoders, the columnar one in one batch and again in some forty."""
        horizon = self.xmax()
        messages = self.messages(**options)
        blocks, totals = feed(batches(messages), horizon, skip_origins)
        in_pieces, _ = feed(batches(messages, range(0, len(messages), 1 + len(messages) // 40)), horizon, skip_origins)
        rows = scalar_rows(messages, horizon, skip_origins)
        assert rows == rows_of(blocks)
        assert rows == rows_of(in_pieces)
        return Peek(messages, rows, blocks, totals)


@pytest.fixture
def source(database: Database) -> Iterator[Source]:
    source = Source(database)
    yield source
    source.connection.close()


@pytest.fixture
def other(source: Source) -> Iterator[psycopg.Connection]:
    """A second connection to the same database."""
    with source.database.connect() as connection:
        yield connection
