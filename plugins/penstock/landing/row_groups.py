"""Arrow batches in, row groups of zstd Parquet out, in memory that stays bounded.

A window may touch a thousand relations at once, so open files share one budget: the fullest one writes a row
group when they hold too much together. The file appears under its name only when it is whole and durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.landing.atomic_file import Draft, show_all
from penstock.landing.store import unwritable

# Small groups keep the end short: the last one is encoded when the server has nothing more to do.
ROW_GROUP_BYTES = 8 << 20
COPY_GROUP_BYTES = 32 << 20  # a copy's file may become the lake's, where short groups cost every reader
BUFFERED_BYTES = 64 << 20
SMALL_BYTES = 16 << 10
AT_ONCE = 8
"""So many files are made durable at once: disks and stores answer slowly, but several at a time."""


@dataclass(frozen=True, slots=True)
class Coding:
    """Say how a file's row groups are written: Parquet's options, and how much is collected for one.

    `small` are the options for a file that ends below SMALL_BYTES: half of its time would go into making the
    compressors of its column chunks.
    """

    options: Mapping[str, Any]
    group_bytes: int
    small: Mapping[str, Any]


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
    """Hold one Parquet file in the making; `uri` names it in messages."""

    def __init__(self, draft: Draft, uri: str, schema: pa.Schema, budget: Budget, coding: Coding) -> None:
        self.is_open = True
        self.draft = draft
        self.uri = uri
        self._schema = schema
        self._budget = budget
        self._options = coding.options
        self._coding = coding
        self._buffer: list[pa.RecordBatch] = []
        self._buffered = 0
        self._parquet: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch in the file's schema; raises LakeError("landing-unwritable")."""
        self._buffer.append(batch)
        self._buffered += batch.nbytes
        if self._buffered >= self._coding.group_bytes:
            self.flush()
        else:
            self._budget.hold(self, self._buffered)

    def flush(self) -> pq.ParquetWriter:
        """Write what is buffered as one row group; return the open file."""
        table = pa.Table.from_batches(self._buffer, self._schema)
        with unwritable(self.uri):
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self.draft.open(), self._schema, **self._options)
            if table.num_rows:
                self._parquet.write_table(table, row_group_size=table.num_rows)
        self._buffer.clear()
        self._buffered = 0
        self._budget.release(self)
        return self._parquet

    def encode(self) -> None:
        """Write the file to its end; what is left is to make it durable. Raises LakeError("landing-unwritable")."""
        if self._parquet is None and self._buffered < SMALL_BYTES:
            self._options = self._coding.small
        parquet = self.flush()
        with unwritable(self.uri):
            parquet.close()

    def persist(self) -> int:
        """Make the encoded file durable; return its bytes. Raises LakeError("landing-unwritable")."""
        with unwritable(self.uri):
            return self.draft.persist()

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
        self.draft.discard()


def publish_all(files: Sequence[RowGroups]) -> list[int]:
    """Make files durable under their names; return their bytes. Raises LakeError("landing-unwritable"): abort them all then.

    One is encoded while others are on their way to the disk or the store.
    """
    if not files:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(files)), thread_name_prefix="landing") as workers:
        try:
            sizes = list(_persisted(files, workers))
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise
    with unwritable(files[0].uri):
        show_all(file.draft for file in files)
    for file in files:
        file.is_open = False
    return sizes


def _persisted(files: Iterable[RowGroups], workers: Executor) -> Iterator[int]:
    """Encode one file after the other, and yield what each came to; a few wait, since each that does is open."""
    waiting: deque[Future[int]] = deque()
    for file in files:
        file.encode()
        waiting.append(workers.submit(file.persist))
        if len(waiting) > 2 * AT_ONCE:
            yield waiting.popleft().result()
    for each in waiting:
        yield each.result()
