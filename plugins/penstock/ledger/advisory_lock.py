"""One at a time: work on a pipeline that must not run twice at once, such as merge and maintenance on the lake.

A hold is an advisory lock of a session with the control database, so it ends with the process that has it, however
that ends. It keeps work from being wasted; what keeps it from doing damage are attempts and compared pointers. An attempt has a name
that is short, sorted by time, and safe in paths and in SQL.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from secrets import token_hex

import psycopg

from penstock.errors import LedgerError
from penstock.ledger.session import Part, Transaction, connect
from penstock.polling import poll

_POLL_SECONDS = 1.0
_ATTEMPT = re.compile(r"\d{8}t\d{9}_[0-9a-f]{8}")


class AdvisoryLocks(Part):
    """Let one process at a time do a kind of work on a pipeline."""

    @contextmanager
    def hold(self, name: str, *works: str, wait: float = 0) -> Iterator[None]:
        """Hold the right to `works` (each a word or two, such as `lake`) on a pipeline, after at most `wait` seconds.

        Raises LedgerError("work-under-way") that says who has it and since when.
        """
        with self.named_failures(), connect(self.connection, f"penstock {name} {works[0]}") as opened:
            waiting = poll(wait, _POLL_SECONDS)
            for work in sorted(works):  # in one order, so that two who want the same never wait for each other
                _take(Transaction(opened), name, work, waiting)
            try:
                yield
            finally:  # before the connection closes: the server notices that some time later, when the next run may have asked
                with suppress(psycopg.OperationalError):  # a session that is gone holds nothing any more
                    Transaction(opened).rows("advisory_lock/release_holds")


def _take(session: Transaction, name: str, work: str, waiting: Iterator[bool]) -> None:
    key = f"penstock:{name}:{work}"
    while not session.rows("advisory_lock/take_hold", key=key)[0][0]:
        if next(waiting, True):
            holders = [
                f"{who}, connected since {since:%F %T} UTC"
                for who, since in session.rows("advisory_lock/hold_holders", key=key)
            ]
            raise LedgerError(
                "work-under-way",
                f"expected no other run to work on the {work} of {name}, but this is held by "
                f"{'; '.join(holders) or 'a session that has just ended'}; wait for it to end, then run again",
            )


def new_attempt() -> str:
    """Return a name such as `20261121t091500123_3f9a1c2d`: milliseconds of UTC, and digits against coincidence."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dt%H%M%S}{now.microsecond // 1000:03d}_{token_hex(4)}"


def made_before(name: str, at: datetime) -> bool:
    """Return whether a name is that of an attempt which was begun before a time."""
    return _ATTEMPT.fullmatch(name) is not None and name < f"{at.astimezone(UTC):%Y%m%dt%H%M%S}"
