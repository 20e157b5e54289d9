"""How much WAL the next window takes: as much as the last ones show to fit into `capture.window_seconds`. Pure.

A window grows as long as it fits, to twice the last one at most, and shrinks at once where it did not. The server reads
WAL from the slot's restart point on, which an open transaction holds back: what is read again counts too. Where
that alone takes long, a smaller window would only read it more often, so a window is never smaller than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIB = 1 << 20
FIRST = 128 * MIB
"""What is read for a window of which nothing is known: little enough for a slow source, and doubled after each window."""
LEAST = MIB
_FIXED = 0.25
"""A window that takes less than this part of its time says nothing of its size: most of it is the same for each window."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Hold what a window took: the bytes of WAL that the server read for it, from its restart point, and seconds."""

    read: int
    seconds: float


def window_bytes(recent: Sequence[Taken], *, reread: int, ceiling: int, seconds: float) -> int:
    """Return how many bytes of WAL beyond the position the next window takes, `ceiling` at most.

    `recent` are the last windows, the oldest first; `reread` is how far the slot's restart point lies behind the position.
    """
    fits = FIRST
    for taken in recent:
        fits = _after(fits, taken, seconds)
    return min(max(fits - reread, reread, LEAST), ceiling)


def _after(fits: int, taken: Taken, seconds: float) -> int:
    """Return how many bytes fit into a window after one more was seen."""
    if taken.read * 2 >= fits:  # one that only reached the end of the WAL shows nothing of a longer one
        fits = 2 * max(fits, taken.read)
    limit = taken.read * seconds / taken.seconds if taken.seconds > _FIXED * seconds else math.inf
    return max(LEAST, int(min(fits, limit)))
