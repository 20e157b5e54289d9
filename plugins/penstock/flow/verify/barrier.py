"""A position at which source and lake can both be read exactly: a snapshot on one side, a cut on the other.

The source's side is the snapshot of a temporary slot's first position, which sees exactly what the stream brings up to
there. A barrier at that position makes the ordinary captures and merges bring the lake there.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex

from penstock.errors import LakeError, LedgerError, PenstockError
from penstock.flow.capture.run import capture
from penstock.flow.context import Context
from penstock.flow.guards import running
from penstock.ledger.merges import Reached
from penstock.ledger.records import CutRecord
from penstock.lsn import Lsn
from penstock.source.slot import Exported, exact_snapshot

Merge = Callable[[], str | None]
"""Bring a merge about, now or soon; say what hinders it, for the log."""

_ATTEMPTS = 5
ANOTHER_RUN = ("slot-in-use", "ledger-conflict", "publish-conflict", "work-under-way")
_POLL_SECONDS = 2.0
_STEP_SECONDS = 0.05
_SAID_EVERY = 60.0


@contextmanager
def marked_snapshot(ctx: Context, reason: str) -> Iterator[Exported]:
    """Hold an exported snapshot of the source at a position that has a barrier; the barrier goes with the block.

    A capture that goes past the position before it is marked costs another try, under another temporary slot.
    Raises SourceError ("no-free-slot", "slot-creation-blocked") and LedgerError.
    """
    for lsn, made_for in ctx.ledger.barriers.all(ctx.name).items():
        if made_for == reason:  # by one that was killed: whoever calls us holds the right to this reason
            ctx.ledger.barriers.remove(ctx.name, lsn)
    for _ in range(_ATTEMPTS):
        with exact_snapshot(
            ctx.source,
            f"penstock_{reason}_{token_hex(6)}",
            timeout=ctx.pipeline.source.slot_timeout,
            what=f"{ctx.name}:{reason}",
        ) as exported:
            if not ctx.ledger.barriers.add(ctx.name, exported.lsn, reason=reason):
                ctx.progress(f"a capture has gone past {exported.lsn} already: taking a later position")
                continue
            try:
                yield exported
            finally:
                ctx.ledger.barriers.remove(ctx.name, exported.lsn)
            return
    raise LedgerError(
        "ledger-conflict",
        f"expected to set a barrier before capture passes it, but {_ATTEMPTS} positions were passed; run again",
    )


def cut_at(ctx: Context, lsn: Lsn, merge: Merge) -> CutRecord:
    """Capture to a marked position, bring a merge about, and wait for the cut that lies exactly there.

    Raises LakeError("verify-late") after `verify.wait`, and what capture and merge raise.
    """
    started, said = time.monotonic(), float("-inf")
    while True:
        running(ctx)
        reached = ctx.ledger.barriers.reached(ctx.name, lsn)
        if reached.cut is not None:
            return reached.cut
        if not reached.reachable:
            raise LedgerError(
                "ledger-conflict", f"expected a window of {ctx.name} to end at {lsn}, but it was passed; run again"
            )
        blocker = _approach(ctx, lsn, reached, merge)
        waited = time.monotonic() - started
        if waited > ctx.pipeline.verify.wait:
            raise LakeError("verify-late", _late(ctx, lsn, reached, blocker))
        if blocker is not None and waited - said >= _SAID_EVERY:
            ctx.progress(f"waiting for a cut at {lsn}, the pipeline stands at {reached.position}: {blocker}")
            said = waited
        time.sleep(_POLL_SECONDS if blocker is not None else _STEP_SECONDS)


def _approach(ctx: Context, lsn: Lsn, reached: Reached, merge: Merge) -> str | None:
    """Take the next step towards the position; return what hinders it, None if there was a step."""
    try:
        if reached.position is not None and reached.position >= lsn:
            return merge()
        capture(ctx)
    except PenstockError as error:
        if error.slug not in ANOTHER_RUN:
            raise
        return f"a scheduled run is at work, which stops at the barrier, too ({error.slug})"
    return None


def _late(ctx: Context, lsn: Lsn, reached: Reached, blocker: str | None) -> str:
    return (
        f"expected a cut of {ctx.name} at {lsn} within {ctx.pipeline.verify.wait} s, but the pipeline stands at "
        f"{reached.position} and no cut lies there: {blocker or 'capture and merge take too long'}; "
        "see that capture and merge run, then verify again, or raise verify.wait"
    )
