"""Orders to an application that is kept: a small file in the landing zone, rewritten by whoever orders, read in turn.

The application carries out each plan once, and ends by itself when it is told to, or when the file is not renewed for a
while. No clock is compared with another: a sign of life is a number that changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.codec import JsonForm

RENEWED_SECONDS = 5.0
"""Whoever orders renews the file so often."""
PATIENCE_SECONDS = 60.0
"""An application ends when its file was not renewed for so long: whoever ordered is gone."""
POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Orders(JsonForm):
    """Hold the newest order: plan `number` is to be carried out, and its result written; `sign` changes while we live."""

    sign: int = 0
    number: int = 0
    plan: str = ""
    result: str = ""
    end: bool = False


def follow(
    read: Callable[[], str],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Orders]:
    """Yield each order that `read` brings, until it says the end or brings no sign of life for PATIENCE_SECONDS.

    What cannot be read is no sign of life. The time that the caller takes for an order does not count.
    """
    done, last, signed_at = 0, -1, clock()
    while True:
        found = _read_orders(read)
        if found is not None and found.end:
            return
        if found is not None and found.number > done:
            yield found
            done, signed_at = found.number, clock()
        elif found is not None and found.sign != last:
            last, signed_at = found.sign, clock()
        elif clock() - signed_at >= PATIENCE_SECONDS:
            return
        sleep(POLL_SECONDS)


def _read_orders(read: Callable[[], str]) -> Orders | None:
    try:
        return Orders.loads(read())
    except Exception:  # whatever kept it from being read: the next try may succeed, or patience ends
        return None
