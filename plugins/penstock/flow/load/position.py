"""Places in the stream as a person gives them: an LSN, or a time of the source's clock, which names a commit.

A place means everything that was committed before it, as a cut does. A time means everything up to the last commit at or
before it, so commits whose clock went back a little stay in their order.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc

from penstock.errors import ConfigError
from penstock.flow.context import Context
from penstock.ledger.records import WindowRecord
from penstock.lsn import Lsn

_SLACK = timedelta(minutes=1)
"""A commit takes its time of the clock, then its place in the WAL: so long it may rest in between."""


def resolve_position(ctx: Context, what: str, text: str, windows: Sequence[WindowRecord], position: Lsn) -> Lsn:
    """Return the LSN that a text names, `16/B374D848` or ISO 8601 (UTC unless it says otherwise).

    Raises ConfigError("range-invalid") for another text, or for a place that is not landed yet.
    """
    found = _lsn(text)
    if found is not None:
        if found > position:
            raise _future(what, text, f"everything is landed through {position}")
        return found
    at = _time(what, text)
    newest = max((window.source_time for window in windows if window.source_time), default=None)
    if newest is None or at > newest:
        landed = f"everything is landed through {newest:%F %T} UTC" if newest else "no window is landed yet"
        raise _future(what, text, landed)
    return _commit_at(ctx, at, windows)


def _lsn(text: str) -> Lsn | None:
    try:
        return Lsn.parse(text.strip())
    except ValueError:
        return None


def _time(what: str, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(
            "range-invalid",
            f"expected `{what}` to be an LSN such as 16/B374D848 or a time such as 2026-11-21T09:30:00Z, got {text!r}",
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _future(what: str, text: str, landed: str) -> ConfigError:
    return ConfigError(
        "range-invalid",
        f"expected `{what}` to be in the past of the landing zone, got {text}; {landed}: capture, or name an earlier place",
    )


def _commit_at(ctx: Context, at: datetime, windows: Sequence[WindowRecord]) -> Lsn:
    """Return the place after the last commit at or before a time; only the windows around it are read."""
    around = list(_around(at, windows))
    last = max((_last_commit(ctx, window, at) for window in around), default=0)
    return Lsn(last + 1) if last else around[0].from_lsn


def _around(at: datetime, windows: Sequence[WindowRecord]) -> Iterator[WindowRecord]:
    for window in windows:
        if window.source_time is None or window.source_time < at:
            continue
        yield window
        if window.source_time > at + _SLACK:
            return


def _last_commit(ctx: Context, window: WindowRecord, at: datetime) -> int:
    last = 0
    for entry in window.files:
        if entry.rows:
            commits = ctx.landing.read(entry.path, ["commit_lsn", "committed_at"])
            early = commits.filter(pc.less_equal(commits.column("committed_at"), at))
            last = max(last, pc.max(early.column("commit_lsn")).as_py() or 0)
    return last
