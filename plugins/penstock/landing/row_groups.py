"""Arrow batches in, row groups of zstd Parquet out, in memory that stays bounded.

A window may touch a thousand relations at once, so open files share one budget: the fullest one writes a row
group when they hold too much together. The file appears under its name only when it is whole and durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.landing.atomic_file import Draft
from penstock.landing.io_errors import unwritable

# Small groups keep the end short: the last one is encoded when the server has nothing more to do.
ROW_GROUP_BYTES = 8 << 20
COPY_GROUP_BYTES = 32 << 20  # a copy's file may become the lake's, where short groups cost every reader
BUFFERED_BYTES = 64 << 20


class Budget:
    """Share memory among the open files of one thread."""

    def __init__(self, limit: int = BUFFERED_BYTES) -> None:
        self.limit = limit
        self._held: dict[RowGroups, int] = {}
        self._total = 0

    def hold(self, writer: RowGroups, size: int) -> None:
        """Note that a file buffers `size` bytes now, then let the fullest ones write until all fit."""
        self._total += size - self._held.get(writer, 0)
        self._held[writer] = size
        while self._total > self.limit:
            max(self._held, key=self._held.__getitem__).flush()

    def release(self, writer: RowGroups) -> None:
        """Note that a file buffers nothing any more."""
        self._total -= self._held.pop(writer, 0)


class RowGroups:
    """Hold one Parquet file in the making; `uri` names it in messages, `options` are Parquet's."""

    def __init__(  # noqa: PLR0917
        self,
        draft: Draft,
        uri: str,
        schema: pa.Schema,
        budget: Budget,
        options: Mapping[str, Any],
        group_bytes: int,
    ) -> None:
        self.is_open = True
        self._draft = draft
        self._uri = uri
        self._schema = schema
        self._budget = budget
        self._options = options
        self._group_bytes = group_bytes
        self._buffer: list[pa.RecordBatch] = []
        self._buffered = 0
        self._parquet: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch in the file's schema; raises LakeError("landing-unwritable")."""
        self._buffer.append(batch)
        self._buffered += batch.nbytes
        if self._buffered >= self._group_bytes:
            self.flush()
        else:
            self._budget.hold(self, self._buffered)

    def flush(self) -> pq.ParquetWriter:
        """Write what is buffered as one row group; return the open file."""
        table = pa.Table.from_batches(self._buffer, self._schema)
        with unwritable(self._uri):
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._draft.open(), self._schema, **self._options)
            if table.num_rows:
                self._parquet.write_table(table, row_group_size=table.num_rows)
        self._buffer.clear()
        self._buffered = 0
        self._budget.release(self)
        return self._parquet

    def publish(self) -> int:
        """Make the file durable under its name; return its bytes. Raises LakeError("landing-unwritable")."""
        parquet = self.flush()
        with unwritable(self._uri):
            parquet.close()
            size = self._draft.publish()
        self.is_open = False
        return size

    def abort(self) -> None:
        """Forget the file; nothing of it stays. Does nothing to a file that was published."""
        if not self.is_open:
            return
        self.is_open = False
        self._buffer.clear()
        self._budget.release(self)
        if self._parquet is not None:
            with suppress(Exception):  # a footer that cannot be written is no loss to a file that goes away
                self._parquet.close()
            self._parquet.is_open = False  # else its finaliser tries again, where the error cannot be caught
        self._draft.discard()
