"""Large reads of the source as streams of Arrow batches, by ADBC: no Python per row, memory bounded by the batch.

The driver runs a query as `COPY (query) TO STDOUT (FORMAT binary)`, so nothing can be bound: every value in a
statement is a literal that psycopg has quoted. A stream that is left early is cancelled on the server.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import adbc_driver_manager
import adbc_driver_postgresql
import pyarrow as pa

# The reader of the driver's own DB-API, which gives the SQLSTATE of an error in the middle of a stream. The DB-API
# itself is not used: it imports pandas, and a Spark task would wait for that.
from adbc_driver_manager._reader import AdbcRecordBatchReader
from psycopg import sql

from penstock.config.connections import Connection
from penstock.source.server_errors import translate, translating
from penstock.source.session import KEEPALIVE, pin

_BATCH_BYTES = adbc_driver_postgresql.StatementOptions.BATCH_SIZE_HINT_BYTES.value
# Without it the driver reads all of pg_type on every connection; our queries return text, bytea and integers only.
_DATABASE_OPTIONS = {"adbc.postgresql.type_resolver_mode": "builtin"}

_SMALL = 1 << 20


class ArrowSession:
    """Hold one ADBC connection with pinned settings; its methods raise SourceError."""

    def __init__(self, connection: Any, source: Connection) -> None:
        self._connection = connection
        self.source = source
        self.place = source.address

    def run(self, statement: sql.Composable) -> None:
        """Run a statement that returns nothing."""
        with self._statement(statement) as prepared, translating(self.place):
            prepared.execute_update()

    def ask(self, query: sql.Composable) -> list[tuple[Any, ...]]:
        """Run a small query and return its rows."""
        batches = self.stream(query, _SMALL)
        return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]

    def stream(self, query: sql.Composable, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the query's result in batches of about `batch_bytes`, at least one row each."""
        finished = False
        with self._statement(query) as prepared, _translating_arrow(self.place):
            try:
                prepared.set_options(**{_BATCH_BYTES: str(batch_bytes)})
                handle, _ = prepared.execute_query()
                # the handle must outlive the import, which empties it
                yield from AdbcRecordBatchReader._import_from_c(handle.address)
                finished = True
            finally:
                if not finished:
                    with suppress(adbc_driver_manager.Error):  # the connection is about to be closed anyway
                        prepared.cancel()

    @contextmanager
    def _statement(self, text: sql.Composable) -> Iterator[Any]:
        with translating(self.place), closing(adbc_driver_manager.AdbcStatement(self._connection)) as statement:
            statement.set_sql_query(text.as_string(None))
            yield statement


@contextmanager
def connect_arrow(source: Connection, *, what: str, settings: Mapping[str, str]) -> Iterator[ArrowSession]:
    """Open an ADBC session with the pinned settings and `settings`, named `penstock:<what>`; closes it in every case."""
    words = {**KEEPALIVE, **source.options, "application_name": f"penstock:{what}"}
    with translating(source.address):
        database = adbc_driver_postgresql.connect(source.conninfo(**words), _DATABASE_OPTIONS)
    with closing(database):
        with translating(source.address):
            connection = adbc_driver_manager.AdbcConnection(database)
        with closing(connection):
            session = ArrowSession(connection, source)
            pin(session, settings)
            yield session


@contextmanager
def _translating_arrow(place: str) -> Iterator[None]:
    with translating(place):
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise translate(error, place) from None
