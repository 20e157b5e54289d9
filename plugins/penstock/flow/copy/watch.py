"""How far a copy is while Spark reads: each range that is done has a file in the landing zone, whose footer says how many rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.flow.context import Context
from penstock.flow.watching import watching
from penstock.jobs.copy_plan import CopyPlan
from penstock.quantities import several


@contextmanager
def watched(ctx: Context, plan: CopyPlan) -> Iterator[None]:
    """Tell `ctx.stage` how many of a plan's ranges are landed, with how many rows, for as long as the block runs."""
    if not ctx.is_watched:
        yield
        return
    tables, paths = len({each.oid for each in plan.ranges}), {each.path for each in plan.ranges}
    what = f"copying {several(tables, 'table')}"
    rows: dict[str, int] = {}

    def look() -> None:
        landed = paths & set(ctx.landing.list(plan.result_folder))
        for path in landed - rows.keys():
            rows[path] = ctx.landing.rows(path)
        ctx.stage(what, len(landed), len(paths), sum(rows.values()))

    ctx.stage(what, 0, len(paths))
    with watching(look, "penstock-copy-watch"):
        yield
    ctx.stage(what, len(paths), len(paths), sum(rows.values()))
