"""How far a copy is while Spark reads: each range that is done has a file in the landing zone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.jobs.copy_plan import CopyPlan

EVERY_SECONDS = 2.0


@contextmanager
def watched(ctx: Context, plan: CopyPlan) -> Iterator[None]:
    """Tell `ctx.stage` how many of a plan's ranges are landed, for as long as the block runs; a zone that does not answer stops nothing."""
    if not ctx.is_watched:
        yield
        return
    over = threading.Event()
    tables, paths = len({each.oid for each in plan.ranges}), {each.path for each in plan.ranges}
    what = f"copying {tables} table{'s' if tables > 1 else ''}"

    def look() -> None:
        while True:
            with suppress(LakeError):
                landed = len(paths & set(ctx.landing.list(plan.result_folder)))
                ctx.stage(what, landed, len(paths))
            if over.wait(EVERY_SECONDS):
                return

    ctx.stage(what, 0, len(paths))
    watcher = threading.Thread(target=look, name="penstock-copy-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        ctx.stage(what, len(paths), len(paths))
