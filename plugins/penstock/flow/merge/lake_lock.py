"""The lock on the lake's tables: merges and maintenance wait for each other, so that no work is wasted.

Nothing depends on it for safety: an attempt that was overtaken cannot publish, and a pointer that has moved is noticed.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from penstock.flow.context import Context
from penstock.flow.merge.attempts import prepared
from penstock.polling import poll

WORK = "lake"
_POLL_SECONDS = 2.0


def merge_lock(ctx: Context) -> AbstractContextManager[None]:
    """Hold the lake for a step of a merge; raises LedgerError("work-under-way") after waiting for `lake.wait`."""
    return ctx.ledger.locks.hold(ctx.name, WORK, wait=ctx.pipeline.lake.wait)


@contextmanager
def maintenance_lock(ctx: Context) -> Iterator[None]:
    """Hold the lake for maintenance, after a merge that is prepared was published, or did not come to it in time.

    Raises LedgerError("work-under-way") after waiting for `lake.wait`.
    """
    for is_last in poll(ctx.pipeline.maintain.patience, _POLL_SECONDS):
        with ctx.ledger.locks.hold(ctx.name, WORK, wait=ctx.pipeline.lake.wait):
            waiting = prepared(ctx)
            if waiting is None or is_last:
                yield
                return
        ctx.progress(f"merge {waiting} is prepared: letting it be published first")
