"""Land fetched values as changes: updates at one position, which say nothing of the columns that were not fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.contract.manifest import ChangeCounts, FileEntry
from penstock.contract.schema import landing_schema
from penstock.landing.writer import FileWriter


class FetchedWriter:
    """Write rows of texts, as a copy reads them, to one file of changes that were committed at `commit_lsn`."""

    def __init__(self, writer: FileWriter, columns: Sequence[str], attnums: Sequence[int], commit_lsn: int) -> None:
        self._writer = writer
        self._schema = landing_schema(columns)
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
            "new": pa.StructArray.from_arrays(batch.columns, fields=list(self._schema.field("new").type)),
        }
        columns = [known.get(field.name, pa.nulls(count, field.type)) for field in self._schema]
        self._writer.write(pa.record_batch(columns, schema=self._schema))

    def close(self, *, oid: int) -> FileEntry:
        """Make the file durable under its name and return its manifest entry; raises LakeError("landing-unwritable")."""
        rows = self._writer.rows
        counts = ChangeCounts(updates=rows, unchanged=rows)
        return replace(self._writer.close(oid=oid, version=0, counts=counts), attnums=self._attnums)

    def abort(self) -> None:
        """Forget the file; nothing of it stays."""
        self._writer.abort()
