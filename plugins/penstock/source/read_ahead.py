"""The window after the one that is under way, decoded by the server while the client is busy with that one.

A slot can be read by one session at a time, so this one reads a temporary copy of it, moved on to where the window under
way ends: what lies behind that place is the same from either slot, message by message. The copy ends with its session,
whatever becomes of us; it holds no more WAL than the slot. Off where the server has few slots left.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from threading import Event, Lock, Thread
from time import monotonic

import pyarrow as pa

from penstock.config.connections import Connection
from penstock.config.model import Capture
from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source import peek, slot
from penstock.source.arrow import connect_arrow
from penstock.source.peek import Request
from penstock.source.session import SourceSession

SPARE_SLOTS = 2
"""So many slots are left to others."""


class ReadAhead:
    """Read the window of a request ahead of time, from `from_lsn` on, which is flushed already.

    Nothing is asked of the server before `start`, at `started` of the monotonic clock.
    """

    def __init__(self, source: Connection, from_lsn: Lsn, request: Request, limits: Capture) -> None:
        self.from_lsn, self.request = from_lsn, request
        self._source = source
        self._limits = limits
        self._ready, self._taken, self._stopped = Event(), Event(), Event()
        self._closing = Lock()  # `stop` and the end of the decoding may both come to it
        self._batches = self._read()
        self._first: list[pa.BinaryArray] = []
        self.started = 0.0
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, name="read-ahead", daemon=True)

    def start(self) -> None:
        """Let the server decode, in a session of its own."""
        self.started = monotonic()
        self._thread.start()

    def messages(self) -> Iterator[pa.BinaryArray] | None:
        """Wait for the first messages and return all, as `peek` does; None, with the `error`, where the server could not be asked.

        Once: the slot itself must stand at `from_lsn` by now, because messages that are large by themselves are read from it.
        """
        self._taken.set()
        self._ready.wait()
        return self._all() if self.error is None else None

    def stop(self) -> None:
        """Forget the window; the server notices at the end of its decoding at the latest."""
        self._stopped.set()
        self._taken.set()
        if self._ready.is_set():
            self._close()

    def _all(self) -> Iterator[pa.BinaryArray]:
        try:
            yield from self._first
            self._first.clear()
            yield from self._batches
        finally:
            self._close()

    def _run(self) -> None:
        try:
            self._first = list(islice(self._batches, 1))
        except BaseException as raised:  # handed to whoever waits: the window is read in the usual way then
            self.error = raised
        finally:
            self._ready.set()
            if self._stopped.is_set():
                self._close()

    def _close(self) -> None:
        with self._closing:
            self._batches.close()

    def _read(self) -> Generator[pa.BinaryArray, None, None]:
        settings = peek.settings(self._limits)
        with connect_arrow(self._source, what="read-ahead", settings=settings) as session:
            if not peek.was_always_there(session, self.request):
                raise self._refused("a publication that is older than what is decoded")
            with (
                slot.copied(session, self.request.slot) as copy,
                closing(peek.large(self._source, self.request, "read-ahead", settings)) as large,
            ):
                if (reached := slot.advance(session, copy, self.from_lsn)) != self.from_lsn:
                    raise self._refused(f"a copy of slot {self.request.slot} at {self.from_lsn}, not {reached},")
                own, batch_bytes = replace(self.request, slot=copy), self._limits.batch_bytes
                yield from peek.with_large(session, own, batch_bytes, self._apart(large))

    def _apart(self, large: Iterator[pa.BinaryArray]) -> Iterator[pa.BinaryArray]:
        """Yield the large messages, which the slot itself gives, once it stands where the window begins."""
        self._taken.wait()
        if self._stopped.is_set():
            raise self._refused("the window to be wanted")
        yield from large

    def _refused(self, expected: str) -> SourceError:
        return SourceError(
            "source-error", f"expected {expected} at {self._source.address}; the window is not read ahead"
        )


def has_room(conn: SourceSession) -> bool:
    """Return whether the server has slots to spare; raises SourceError."""
    (spare,) = conn.row("read_ahead/spare_slots")
    return bool(spare > SPARE_SLOTS)
