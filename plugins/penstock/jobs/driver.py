"""What a Spark driver and whoever submitted it tell one another besides plan and result, in small files of the landing zone.

The error by which the driver ended lies next to the plan, where it has a name: whoever submitted the application learns only that it
failed. An application that is kept follows a file of orders, rewritten by whoever orders, read in turn: it carries out each plan
once, and ends by itself when it is told to, or when the file is not renewed for a while. No clock is compared with another: a
sign of life is a number that changes.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.codec import JsonForm
from penstock.errors import ConfigError, LakeError, LedgerError, PenstockError, ProtocolError, SourceError

_KINDS: dict[str, type[PenstockError]] = {
    kind.__name__: kind for kind in (ConfigError, SourceError, ProtocolError, LedgerError, LakeError)
}
UNWRITTEN = 74
"""The exit status of a driver that could write neither its result nor its error (EX_IOERR of sysexits.h)."""


def unwritten(plan: str) -> LakeError:
    """Return the error of a driver that ended with UNWRITTEN."""
    return LakeError(
        "landing-unwritable",
        f"expected Spark's driver to write its result next to {plan}, but it could write nothing there; make room, or give its user "
        "the right to write, then run again: nothing of this attempt is used",
    )


def error_file(plan: str) -> str:
    """Name the file of the error by which the application of a plan ended."""
    return f"{plan}.error"


def dump_error(error: PenstockError) -> str:
    """Return an error as JSON text; one of a kind that only its room knows as the kind that it is of."""
    kind = next(name for name, each in _KINDS.items() if isinstance(error, each))
    return json.dumps({"kind": kind, "slug": error.slug, "message": error.message})


def load_error(text: str) -> PenstockError:
    """Read what `dump_error` wrote."""
    known = json.loads(text)
    return _KINDS[known["kind"]](known["slug"], known["message"])


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
