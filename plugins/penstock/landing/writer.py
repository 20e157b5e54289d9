"""Write one landing file, of changes or of a copy's rows, and say what is in it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.contract.manifest import ChangeCounts, FileEntry
from penstock.contract.schema import copy_file_schema, landing_schema
from penstock.landing.atomic_file import Draft
from penstock.landing.row_groups import COPY_GROUP_BYTES, ROW_GROUP_BYTES, Budget, Coding, RowGroups, publish_all

_Span = tuple[int, int]

# Measured on 8 text columns: a dictionary for the values costs a third of the time and saves 3 % of the size,
# deltas of the four integers save both. No reader prunes by a value's text, so its statistics are left out.
_PARQUET = {"compression": "zstd", "compression_level": 1}
_PLAIN = {"compression": "none"}
_DESCRIBED = {
    "use_dictionary": ["op", "origin", "old_kind"],
    "column_encoding": dict.fromkeys(("commit_lsn", "ordinal", "committed_at", "xid"), "DELTA_BINARY_PACKED"),
    "write_statistics": ["commit_lsn", "ordinal", "op", "committed_at"],
}
_CHANGES = Coding(_PARQUET | _DESCRIBED, ROW_GROUP_BYTES, small=_PLAIN | _DESCRIBED)
# What the lake's readers are to find in a data file, at a tenth more CPU: bounds of every column, dictionaries where
# a few values recur (a small limit, for trying one costs a third), and decimals as the Iceberg specification has them.
_ROW_OPTIONS = _PARQUET | {"dictionary_pagesize_limit": 64 << 10, "store_decimal_as_integer": True}
_ROWS = Coding(_ROW_OPTIONS, COPY_GROUP_BYTES, small=_ROW_OPTIONS)


class FileWriter:
    """Collect the changes of one relation shape; `close` makes the file and says what is in it."""

    def __init__(self, draft: Draft, path: str, uri: str, columns: Sequence[str], budget: Budget) -> None:
        self.rows = 0
        self.path = path
        self._columns = tuple(columns)
        self.schema = landing_schema(columns)
        self.groups = RowGroups(draft, uri, self.schema, budget, _CHANGES)
        self._lsns: _Span | None = None
        self._times: _Span | None = None
        self._timeless = False
        self._max_xid: int | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch in the landing schema, its texts dictionary-encoded or not.

        Raises LakeError("landing-unwritable"); the file is then only good for `abort`.
        """
        if not self.groups.is_open:
            raise ValueError(f"expected an open landing file, got {self.path}, which is closed")
        if batch.num_rows == 0:
            return
        self._note(batch)
        self.groups.write(batch.cast(self.schema))

    def close(self, *, oid: int, version: int, counts: ChangeCounts) -> FileEntry:
        """Make the file durable under its name and return its manifest entry.

        The kinds of change must add up to the rows written (ValueError); raises LakeError("landing-unwritable").
        """
        (entry,) = close_all([(self, oid, version, counts)])
        return entry

    def abort(self) -> None:
        """Forget the file; nothing of it stays. Does nothing to a file that was closed."""
        self.groups.abort()

    def entry(self, size: int, oid: int, version: int, counts: ChangeCounts) -> FileEntry:
        """Return the manifest entry of the file, which has so many bytes."""
        times = None if self._timeless else self._times
        return FileEntry(
            path=self.path,
            oid=oid,
            version=version,
            rows=self.rows,
            bytes=size,
            min_commit_lsn=self._lsns and self._lsns[0],
            max_commit_lsn=self._lsns and self._lsns[1],
            columns=self._columns,
            counts=counts,
            max_xid=self._max_xid,
            min_committed_at=times and times[0],
            max_committed_at=times and times[1],
        )

    def _note(self, batch: pa.RecordBatch) -> None:
        self._lsns = _wider(self._lsns, batch.column("commit_lsn"))
        times = batch.column("committed_at").cast(pa.timestamp("us", tz="UTC"))
        self._timeless = self._timeless or times.null_count > 0
        self._times = _wider(self._times, times)
        xid = pc.max(batch.column("xid")).as_py()
        self._max_xid = max((known for known in (self._max_xid, xid) if known is not None), default=None)
        self.rows += batch.num_rows


def close_all(files: Sequence[tuple[FileWriter, int, int, ChangeCounts]]) -> list[FileEntry]:
    """Make files durable under their names, many at once, and return their manifest entries.

    Each is that of a relation, by oid and version of its shape, with the kinds of its changes, which must add up to the rows written
    (ValueError). Raises LakeError("landing-unwritable"): then all of them are only good for `abort`.
    """
    for writer, _, _, counts in files:
        if counts.rows != writer.rows:
            raise ValueError(f"expected counts of {writer.rows} rows for {writer.path}, got others; this is a bug")
    sizes = publish_all([writer.groups for writer, *_ in files])
    pairs = zip(files, sizes, strict=True)
    return [writer.entry(size, oid, version, counts) for (writer, oid, version, counts), size in pairs]


class CopyWriter:
    """Collect the rows of a copy; `typed` gives the lake types of the columns that come as values, not as texts."""

    def __init__(
        self, draft: Draft, path: str, uri: str, columns: Sequence[str], typed: Mapping[str, str], budget: Budget
    ) -> None:
        self._path = path
        self._columns = tuple(columns)
        self._typed = tuple(typed.items())
        self._rows = 0
        self._schema = copy_file_schema(columns, typed)
        self._groups = RowGroups(draft, uri, self._schema, budget, _ROWS)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch in the copy's schema (`copy_schema`).

        Raises LakeError("landing-unwritable"); the file is then only good for `abort`.
        """
        self._rows += batch.num_rows
        misfits = pa.nulls(batch.num_rows, self._schema.types[-1])
        self._groups.write(pa.record_batch([*batch.columns, misfits], schema=self._schema))

    def close(self, *, oid: int) -> FileEntry:
        """Make the file durable under its name and return its manifest entry; raises LakeError("landing-unwritable")."""
        return FileEntry(
            path=self._path,
            oid=oid,
            version=0,
            rows=self._rows,
            bytes=publish_all([self._groups])[0],
            min_commit_lsn=None,
            max_commit_lsn=None,
            columns=self._columns,
            counts=ChangeCounts(inserts=self._rows),
            typed=self._typed,
        )

    def abort(self) -> None:
        """Forget the file; nothing of it stays. Does nothing to a file that was closed."""
        self._groups.abort()


def _wider(span: _Span | None, values: pa.Array) -> _Span | None:
    """Widen the span of numbers, or of microseconds, that a column has had so far."""
    found = pc.min_max(values.cast(pa.int64())).as_py()
    if found["min"] is None:
        return span
    low, high = span or (found["min"], found["max"])
    return min(low, found["min"]), max(high, found["max"])


class FetchedWriter:
    """Write rows of texts, as a copy reads them, to one file of changes that were committed at `commit_lsn`.

    Fetched values are updates at one position, which say nothing of the columns that were not fetched.
    """

    def __init__(self, writer: FileWriter, attnums: Sequence[int], commit_lsn: int) -> None:
        self._writer = writer
        self._attnums = tuple(attnums)
        self._commit_lsn = commit_lsn

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch of rows; raises LakeError("landing-unwritable"): the file is then only good for `abort`."""
        count, first = batch.num_rows, self._writer.rows
        known = {
            "commit_lsn": pa.repeat(self._commit_lsn, count),
            # no two of them have the same key, so their order says nothing
            "ordinal": pa.array(range(first, first + count), pa.int64()),
            "op": pa.repeat("U", count),
            "new": pa.StructArray.from_arrays(batch.columns, fields=list(self._writer.schema.field("new").type)),
        }
        columns = [known.get(field.name, pa.nulls(count, field.type)) for field in self._writer.schema]
        self._writer.write(pa.record_batch(columns, schema=self._writer.schema))

    def close(self, *, oid: int) -> FileEntry:
        """Make the file durable under its name and return its manifest entry; raises LakeError("landing-unwritable")."""
        rows = self._writer.rows
        counts = ChangeCounts(updates=rows, unchanged=rows)
        return replace(self._writer.close(oid=oid, version=0, counts=counts), attnums=self._attnums)

    def abort(self) -> None:
        """Forget the file; nothing of it stays."""
        self._writer.abort()
