"""The next window of a backlog: how much WAL it takes, and reading it while the one before is written.

It takes as much as the last ones show to fit into `capture.window_seconds`. A window grows as long as it fits, to twice the last one at
most, and shrinks at once where it did not. The server reads WAL from the slot's restart point on, which an open transaction holds back:
what is read again counts too. Where that alone takes long, a smaller window would only read it more often, so a window is never smaller
than that.

What was read ahead is used only where the ledger, after this window is staged and everything was judged again, plans exactly
that window; else it is forgotten, and the window is peeked.
"""

import math
from collections.abc import Iterator, Sequence
from time import monotonic

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.flow.context import Context
from penstock.ledger.windows import WindowPace
from penstock.lsn import Lsn
from penstock.source import read_ahead
from penstock.source.peek import Request
from penstock.source.read_ahead import ReadAhead
from penstock.source.session import SourceSession

MIB = 1 << 20
FIRST = 128 * MIB
"""What is read for a window of which nothing is known: little enough for a slow source, and doubled after each window."""
LEAST = MIB
_FIXED = 0.25
"""A window that takes less than this part of its time says nothing of its size: most of it is the same for each window."""


def window_bytes(recent: Sequence[WindowPace], *, reread: int, ceiling: int, seconds: float) -> int:
    """Return how many bytes of WAL beyond the position the next window takes, `ceiling` at most.

    `recent` are the last windows, the newest first; `reread` is how far the slot's restart point lies behind the position.
    """
    fits = FIRST
    for window in reversed(recent):
        if window.read_bytes:
            fits = _after(fits, window.read_bytes, window.seconds / seconds)
    return min(max(fits - reread, reread, LEAST), ceiling)


def _after(fits: int, read: int, share: float) -> int:
    """Return how many bytes fit into a window after one more was seen, which read so many in a `share` of its time."""
    if read * 2 >= fits:  # one that only reached the end of the WAL shows nothing of a longer one
        fits = 2 * max(fits, read)
    limit = read / share if share > _FIXED else math.inf
    return max(LEAST, int(min(fits, limit)))


class NextWindow:
    """Hold what one run of capture reads ahead; after `deadline` (of the monotonic clock) no window follows."""

    def __init__(self, ctx: Context, deadline: float) -> None:
        self._ctx = ctx
        self._deadline = deadline
        self._is_on = ctx.pipeline.capture.read_ahead
        self._planned: ReadAhead | None = None
        self._reading: ReadAhead | None = None

    @property
    def end(self) -> Lsn | None:
        """Return where the window ends that is read ahead."""
        return None if self._reading is None else self._reading.request.upto

    def plan(self, conn: SourceSession, after: Lsn, request: Request) -> None:
        """Note the window that follows the one that ends at `after`, as far as there is WAL for it and a slot to spare."""
        self._planned = None
        if self._is_on and request.upto > after and read_ahead.has_room(conn):
            self._planned = ReadAhead(self._ctx.source, after, request, self._ctx.pipeline.capture)

    def take(self, from_lsn: Lsn, request: Request) -> tuple[Iterator[pa.BinaryArray], float] | None:
        """Return the messages of a planned window where they were read ahead, and since when; the slot stands at its beginning."""
        reading, self._reading = self._reading, None
        if reading is None:
            return None
        if (reading.from_lsn, reading.request) != (from_lsn, request):
            reading.stop()
            return None
        messages = reading.messages()
        if messages is None:  # whatever it is, the usual way has it too, or does not mind
            self._is_on = False
            why = reading.error if isinstance(reading.error, PenstockError) else type(reading.error).__name__
            self._ctx.progress(f"window {from_lsn}-{request.upto} was not read ahead: {why}")
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
        planned, self._planned = self._planned, None
        if planned is not None and monotonic() < self._deadline:
            self._reading = planned
            planned.start()
