"""What may go wrong around a pipeline: its processes killed between any two steps, its servers stopped hard.

A killed process is a real one, started for it, that ends by SIGKILL at a named step; a merge is abandoned between its parts.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

from penstock.errors import PenstockError
from penstock.flow.merge import run as merge
from tests import clocks
from tests.faults.harness import run
from tests.faults.steps import Step
from torture.driven import Driven

CAPTURE = (
    Step.WINDOW_PLANNED,
    Step.ROWS_WRITTEN,
    Step.FILE_PERSISTED,
    Step.WINDOW_STAGED,
    Step.SLOT_ADVANCED,
    Step.WINDOW_CONFIRMED,
)
PUBLISH = (
    Step.MERGE_PUBLISHED,
    Step.MERGE_TABLES_ADVANCED,
    Step.CUT_RECORDED,
    Step.POINTERS_MOVED_BY_MERGE,
)
RESYNC = (
    Step.READ_STARTED,
    Step.RANGE_LANDED,
    Step.COPY_FINISHED,
    Step.REBUILD_RUN_NOTED,
    Step.POINTERS_MOVED_BY_REBUILD,
    Step.REBUILD_ADVANCED,
    Step.MERGE_BEGUN,
    Step.MERGE_PUBLISHED,
    Step.POINTERS_MOVED_BY_MERGE,
)

FETCH = (
    Step.READ_STARTED,
    Step.RANGE_LANDED,
    Step.FETCH_LANDED,
)

Fault = Callable[[random.Random, Driven], str]


def capture_killed(dice: random.Random, driven: Driven) -> str:
    """Kill a capture at a step, and stop the source hard as well now and then."""
    step, when = dice.choice(CAPTURE), dice.choice(("before", "after"))
    ended = run(driven.env, "capture", step, when, "1").returncode
    crash = dice.random() < 0.3
    if crash:
        driven.env.source.server.restart("immediate")
    return f"capture {when} {step.spoken}{', source stopped' if crash else ''}{_reached(ended)}"


def merge_abandoned(dice: random.Random, driven: Driven) -> str:
    """Leave a merge planned, or prepared by Spark and not published, or published by half."""
    ctx = driven.ctx
    try:
        with merge.merge_lock(ctx):
            attempt = merge.plan(ctx, force=True)
            if attempt is None:
                return "no merge to abandon"
            chosen = dice.random()
            if chosen < 0.3:
                return "merge planned only"
            driven.env.submit(merge.job(ctx, attempt))
            if chosen < 0.55:
                return "merge prepared only"
    except PenstockError as error:
        return f"no merge to abandon: {error.slug}"
    step, when = dice.choice(PUBLISH), dice.choice(("before", "after"))
    ended = run(driven.env, f"publish:{attempt}", step, when, "1").returncode
    return f"publish {when} {step.spoken}{_reached(ended)}"


def resync_killed(dice: random.Random, driven: Driven) -> str:
    """Kill a resync of one table at a step; it is asked for again later, and never given up."""
    found = driven.ctx.ledger.tables.all(driven.env.name)
    tables = [table.qualified for table in found if table.state in ("ready", "paused") and table.left_lsn is None]
    plain = [table for table in tables if "," not in table]
    if not plain:
        return "no table to copy"
    table, step, when = dice.choice(plain), dice.choice(RESYNC), dice.choice(("before", "after"))
    ended = run(driven.env, f"resync:{table}", step, when, "1").returncode
    return f"resync of {table} {when} {step.spoken}{_reached(ended)}"


def answer_killed(dice: random.Random, driven: Driven) -> str:
    """Kill what answers a change of tables by itself, in the fetch of columns or the copy."""
    step, when = dice.choice((*FETCH, *FETCH, *RESYNC)), dice.choice(("before", "after"))
    ended = run(driven.env, "resync", step, when, "1").returncode
    return f"resync of what waits {when} {step.spoken}{_reached(ended)}"


def source_stopped(dice: random.Random, driven: Driven) -> str:
    """Stop the source as a power cut does."""
    del dice
    driven.env.source.server.restart("immediate")
    return "source stopped"


def control_stopped(dice: random.Random, driven: Driven) -> str:
    """Stop the server of ledger and catalog as a power cut does."""
    del dice
    driven.env.ledger.server.restart("immediate")
    return "control server stopped"


def slot_consumed(dice: random.Random, driven: Driven) -> str:
    """Take changes from the slot by hand."""
    pipeline = driven.ctx.pipeline
    options = f"'proto_version', '1', 'publication_names', '{pipeline.publication}'"
    taken = f"pg_logical_slot_get_binary_changes('{pipeline.slot}', null, null, {options})"
    moved = f"pg_replication_slot_advance('{pipeline.slot}', pg_current_wal_flush_lsn())"
    driven.env.sql(f"select count(*) from {taken}" if dice.random() < 0.5 else f"select {moved}")
    driven.consumed = True
    return "slot consumed by hand"


def clock_jumped(dice: random.Random, driven: Driven) -> str:
    """Let a driver's clock be wrong, or jump while it works, or leave in the lake what one has written whose clock was ahead."""
    env, chosen = driven.env, dice.random()
    assert env.lake is not None
    if chosen < 0.4:
        with merge.merge_lock(driven.ctx):
            names = sorted(clocks.metadata_files(env.lake.database.connect, env.name))
            some = dice.sample(names, dice.randint(1, len(names)))
            clocks.move_into_the_future(env.lake.database.connect, env.name, some)
        return f"times of {len(some)} tables are yet to come"
    by = dice.choice((90_000, clocks.HOUR, 24 * clocks.HOUR))
    try:
        if chosen < 0.7:
            by *= dice.choice((-1, 1))
            with clocks.driver_clock(by):
                attempt = merge.merge(driven.ctx, env.submit, force=True)
        else:  # after it was looked at
            attempt = merge.merge(driven.ctx, clocks.jumping(env.submit, by), force=True)
    except PenstockError as error:
        return f"a clock {by / 1000:.0f} s ahead: {error.slug}"
    if attempt is not None:
        driven.report.find("stuck", "clock", (f"attempt {attempt} was published by a clock {by / 1000:.0f} s ahead",))
    return "no merge is possible"


FAULTS: dict[Fault, int] = {
    capture_killed: 6,
    merge_abandoned: 6,
    resync_killed: 3,
    answer_killed: 4,
    source_stopped: 3,
    control_stopped: 1,
    slot_consumed: 1,
    clock_jumped: 4,
}
WITHOUT_LAKE: dict[Fault, int] = {capture_killed: 2, source_stopped: 1}


def _reached(returncode: int) -> str:
    return "" if returncode == -signal.SIGKILL else " (never reached)"
