"""Write one landing file: Arrow batches in, zstd Parquet out, in memory that stays bounded.

A window may touch a thousand relations at once, so open files share one budget: the fullest one writes a row
group when they hold too much together. The file appears under its name only when it is whole and durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.landing.draft import Draft
from penstock.landing.manifest import FileEntry
from penstock.landing.schema import NO_COLUMNS_FIELD, landing_schema
from penstock.landing.trouble import unwritable

# Small groups keep the end short: the last one is encoded when the server has nothing more to do.
ROW_GROUP_BYTES = 8 << 20
BUFFERED_BYTES = 64 << 20

_Span = tuple[int, int]

# Measured on 8 text columns: a dictionary for the values costs a third of the time and saves 3 % of the size,
# deltas of the four integers save both. Nobody prunes by a value's text, so its statistics are left out.
_PARQUET = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["op", "origin", "old_kind"],
    "column_encoding": dict.fromkeys(("commit_lsn", "ordinal", "committed_at", "xid"), "DELTA_BINARY_PACKED"),
    "write_statistics": ["commit_lsn", "ordinal", "op", "committed_at"],
}


class Budget:
    """Share memory among the open files of one thread."""

    def __init__(self, limit: int = BUFFERED_BYTES) -> None:
        self.limit = limit
        self._held: dict[FileWriter, int] = {}
        self._total = 0

    def hold(self, writer: FileWriter, size: int) -> None:
        """Note that a file buffers `size` bytes now, then let the fullest ones write until all fit."""
        self._total += size - self._held.get(writer, 0)
        self._held[writer] = size
        while self._total > self.limit:
            max(self._held, key=self._held.__getitem__).flush()

    def release(self, writer: FileWriter) -> None:
        """Note that a file buffers nothing any more."""
        self._total -= self._held.pop(writer, 0)


class FileWriter:
    """Collect the changes of one relation shape; `close` makes the file and says what is in it."""

    def __init__(self, draft: Draft, path: str, uri: str, columns: Sequence[str], budget: Budget) -> None:
        self.rows = 0
        self._path = path
        self._uri = uri
        self._columns = tuple(columns)
        self._schema = landing_schema(columns)
        self._draft = draft
        self._budget = budget
        self._buffer: list[pa.RecordBatch] = []
        self._buffered = 0
        self._parquet: pq.ParquetWriter | None = None
        self._lsns: _Span | None = None
        self._times: _Span | None = None
        self._timeless = False
        self._max_xid: int | None = None
        self._open = True

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch in the landing schema, its texts dictionary-encoded or not.

        Raises LakeError("landing-unwritable"); the file is then only good for `abort`.
        """
        if not self._open:
            raise ValueError(f"expected an open landing file, got {self._path}, which is closed")
        if batch.num_rows == 0:
            return
        self._note(batch)
        batch = self._conform(batch)
        self._buffer.append(batch)
        self._buffered += batch.nbytes
        if self._buffered >= ROW_GROUP_BYTES:
            self.flush()
        else:
            self._budget.hold(self, self._buffered)

    def flush(self) -> pq.ParquetWriter:
        """Write what is buffered as one row group; return the open file."""
        table = pa.Table.from_batches(self._buffer, self._schema)
        with unwritable(self._uri):
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._draft.open(), self._schema, **_PARQUET)
            if table.num_rows:
                self._parquet.write_table(table, row_group_size=table.num_rows)
        self._buffer.clear()
        self._buffered = 0
        self._budget.release(self)
        return self._parquet

    def close(
        self,
        *,
        oid: int,
        version: int,
        inserts: int = 0,
        updates: int = 0,
        deletes: int = 0,
        truncates: int = 0,
        unchanged: int = 0,
        old_key: int = 0,
        old_full: int = 0,
    ) -> FileEntry:
        """Make the file durable under its name and return its manifest entry.

        The kinds of change must add up to the rows written (ValueError); raises LakeError("landing-unwritable").
        """
        if inserts + updates + deletes + truncates != self.rows:
            raise ValueError(f"expected counts of {self.rows} rows for {self._path}, got others; this is a bug")
        parquet = self.flush()
        with unwritable(self._uri):
            parquet.close()
            size = self._draft.publish()
        self._open = False
        times = None if self._timeless else self._times
        return FileEntry(
            path=self._path,
            oid=oid,
            version=version,
            rows=self.rows,
            bytes=size,
            min_commit_lsn=self._lsns and self._lsns[0],
            max_commit_lsn=self._lsns and self._lsns[1],
            columns=self._columns,
            inserts=inserts,
            updates=updates,
            deletes=deletes,
            truncates=truncates,
            unchanged=unchanged,
            old_key=old_key,
            old_full=old_full,
            max_xid=self._max_xid,
            min_committed_at=times and times[0],
            max_committed_at=times and times[1],
        )

    def abort(self) -> None:
        """Forget the file; nothing of it stays. Does nothing to a file that was closed."""
        if not self._open:
            return
        self._open = False
        self._buffer.clear()
        self._budget.release(self)
        if self._parquet is not None:
            with suppress(Exception):  # a footer that cannot be written is no loss to a file that goes away
                self._parquet.close()
            self._parquet.is_open = False  # else its finaliser tries again, where nobody can catch the error
        self._draft.discard()

    def _note(self, batch: pa.RecordBatch) -> None:
        self._lsns = _wider(self._lsns, batch.column("commit_lsn"))
        times = batch.column("committed_at").cast(pa.timestamp("us", tz="UTC"))
        self._timeless = self._timeless or times.null_count > 0
        self._times = _wider(self._times, times)
        xid = pc.max(batch.column("xid")).as_py()
        self._max_xid = max((known for known in (self._max_xid, xid) if known is not None), default=None)
        self.rows += batch.num_rows

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._columns:
            for name in ("new", "old"):
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, name, _with_placeholder(batch.column(name)))
        return batch.cast(self._schema)


def _wider(span: _Span | None, values: pa.Array) -> _Span | None:
    """Widen the span of numbers, or of microseconds, that a column has had so far."""
    found = pc.min_max(values.cast(pa.int64())).as_py()
    if found["min"] is None:
        return span
    low, high = span or (found["min"], found["max"])
    return min(low, found["min"]), max(high, found["max"])


def _with_placeholder(rows: pa.StructArray) -> pa.StructArray:
    """Give structs without fields the placeholder field; whether a row is there stays what it was."""
    nothing = pa.nulls(len(rows), pa.string())
    return pa.StructArray.from_arrays([nothing], [NO_COLUMNS_FIELD], mask=rows.is_null())
