"""Large reads of the source as streams of Arrow batches, by ADBC: no Python per row, memory bounded by the batch.

The driver runs a query as `COPY (query) TO STDOUT (FORMAT binary)`, so nothing can be bound: every value in a
statement is a literal that psycopg has quoted. A stream that is left early is cancelled on the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import adbc_driver_manager
import adbc_driver_postgresql
import pyarrow as pa

# The same reader that the driver's own DB-API uses; only it gives the SQLSTATE of an error in the middle of a stream.
from adbc_driver_manager._reader import AdbcRecordBatchReader
from adbc_driver_postgresql import dbapi
from psycopg import sql

from penstock.connections import Connection
from penstock.source.failures import translate, translating
from penstock.source.session import KEEPALIVE, assert_pinned, pinning, showing

_BATCH_BYTES = adbc_driver_postgresql.StatementOptions.BATCH_SIZE_HINT_BYTES.value
# Without it the driver reads all of pg_type on every connection; our queries return text, bytea and integers only.
_DATABASE_OPTIONS = {"adbc.postgresql.type_resolver_mode": "builtin"}


class ArrowSession:
    """Hold one ADBC connection with pinned settings; its methods raise SourceError."""

    def __init__(self, connection: Any, place: str) -> None:
        self._connection = connection
        self.place = place

    def run(self, statement: sql.Composable) -> None:
        """Run a statement that returns nothing."""
        with translating(self.place), self._connection.cursor() as cursor:
            cursor.execute(statement.as_string(None))

    def rows(self, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
        """Run a small query with parameters `$1`, ... and return its rows."""
        with translating(self.place), self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def stream(self, query: sql.Composable, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the query's result in batches of about `batch_bytes`, at least one row each."""
        finished = False
        with self._connection.cursor() as cursor:
            try:
                cursor.adbc_statement.set_options(**{_BATCH_BYTES: str(batch_bytes)})
                with _translating_arrow(self.place):
                    cursor.execute(query.as_string(None))
                    handle = cursor.fetch_arrow()  # must outlive the import, which empties it
                    yield from AdbcRecordBatchReader._import_from_c(handle.address)
                finished = True
            finally:
                if not finished:
                    with suppress(adbc_driver_manager.Error):  # the connection is about to be closed anyway
                        cursor.adbc_cancel()


@contextmanager
def connect_arrow(source: Connection, *, what: str, settings: Mapping[str, str]) -> Iterator[ArrowSession]:
    """Open an ADBC session with the pinned settings and `settings`, named `penstock:<what>`; closes it in every case."""
    words = {**KEEPALIVE, **source.options, "application_name": f"penstock:{what}"}
    with translating(source.address):
        connection = dbapi.connect(source.uri(**words), _DATABASE_OPTIONS, autocommit=True)
    try:
        session = ArrowSession(connection, source.address)
        session.rows(pinning(settings).as_string(None))
        (shown,) = session.rows(showing().as_string(None))
        assert_pinned(shown, session.place)
        yield session
    finally:
        connection.close()


@contextmanager
def _translating_arrow(place: str) -> Iterator[None]:
    with translating(place):
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise translate(error, place) from None
