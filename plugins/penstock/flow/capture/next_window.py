"""The next window of a backlog, read while this one is written: when that begins, and whether it is the one that is planned then.

What was read ahead is used only where the ledger, after this window is staged and everything was judged again, plans exactly
that window; else it is forgotten, and the window is peeked.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.flow.context import Context
from penstock.flow.expected_state import ExpectedState
from penstock.ledger.records import WindowRecord
from penstock.lsn import Lsn
from penstock.source import read_ahead
from penstock.source.peek import Logical
from penstock.source.read_ahead import ReadAhead, Wanted
from penstock.source.session import SourceSession


class NextWindow:
    """Hold what one run of capture reads ahead; after `deadline` (of the monotonic clock) no window follows."""

    def __init__(self, ctx: Context, deadline: float) -> None:
        self._ctx = ctx
        self._deadline = deadline
        self._is_on = ctx.pipeline.capture.read_ahead
        self._wanted: Wanted | None = None
        self._reading: ReadAhead | None = None

    @property
    def end(self) -> Lsn | None:
        """Return where the window ends that is read ahead."""
        return None if self._reading is None else self._reading.wanted.upto

    def plan(self, conn: SourceSession, known: ExpectedState, after: Lsn, upto: Lsn, logical: Logical) -> None:
        """Note the window that follows the one that ends at `after`, as far as there is WAL for it and a slot to spare."""
        self._wanted = None
        if self._is_on and upto > after and read_ahead.has_room(conn):
            origin_none = self._ctx.pipeline.source.origin == "none"
            self._wanted = Wanted(known.slot, known.publication, after, upto, origin_none, logical)

    def take(self, window: WindowRecord, logical: Logical) -> tuple[Iterator[pa.BinaryArray], float] | None:
        """Return the messages of a planned window where they were read ahead, and since when; the slot stands at its beginning."""
        reading, self._reading = self._reading, None
        if reading is None:
            return None
        wanted = reading.wanted
        if (wanted.from_lsn, wanted.upto, wanted.logical) != (window.from_lsn, window.upto_lsn, logical):
            reading.stop()
            return None
        messages = reading.messages()
        if messages is None:  # whatever it is, the usual way has it too, or does not mind
            self._is_on = False
            why = reading.error if isinstance(reading.error, PenstockError) else type(reading.error).__name__
            self._ctx.progress(f"window {window.from_lsn}-{window.upto_lsn} was not read ahead: {why}")
            return None
        return messages, reading.started

    def starting(self, batches: Iterator[pa.BinaryArray]) -> Iterator[pa.BinaryArray]:
        """Yield the messages of this window, and begin with the next one when the server has decoded this one."""
        for batch in batches:
            self._start()
            yield batch
            del batch

    def close(self) -> None:
        """Forget what was read ahead."""
        if self._reading is not None:
            self._reading.stop()

    def _start(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is None or monotonic() >= self._deadline:
            return
        settings = self._ctx.pipeline.capture
        self._reading = ReadAhead(
            self._ctx.source,
            wanted,
            statement_timeout=settings.statement_timeout,
            work_mem=settings.work_mem,
            batch_bytes=settings.batch_bytes,
        )
        self._reading.start()
