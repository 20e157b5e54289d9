"""How far a copy is while Spark reads: each range that is done has a file in the landing zone, whose footer says how many rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.flow.context import Context
from penstock.flow.watching import watching
from penstock.jobs.copy_plan import CopyPlan
from penstock.units import several


@dataclass(frozen=True, slots=True)
class Earlier:
    """Hold what earlier tries of the same work have copied: how far it is counts over all of its tables."""

    tables: int = 0
    files: int = 0
    rows: int = 0


NOTHING = Earlier()


@contextmanager
def watched(ctx: Context, plan: CopyPlan, earlier: Earlier = NOTHING) -> Iterator[None]:
    """Tell `ctx.stage` how many of a work's ranges are landed, with how many rows, for as long as the block runs."""
    if not ctx.is_watched:
        yield
        return
    tables, paths = len({each.oid for each in plan.ranges}), {each.path for each in plan.ranges}
    what = f"copying {several(tables + earlier.tables, 'table')}"
    total = earlier.files + len(paths)
    rows: dict[str, int] = {}

    def look() -> None:
        landed = paths & set(ctx.landing.list(plan.result_folder))
        for path in landed - rows.keys():
            rows[path] = ctx.landing.rows(path)
        ctx.stage(what, earlier.files + len(landed), total, earlier.rows + sum(rows.values()))

    ctx.stage(what, earlier.files, total, earlier.rows or None)
    with watching(look, "penstock-copy-watch"):
        yield
    ctx.stage(what, total, total, earlier.rows + sum(rows.values()))
