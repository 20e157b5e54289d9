"""Rebuild tables next to the ones that readers see, and let them take their names in one cut.

`resync` copies tables again under a snapshot of their own; `replay` begins with a copy that is there, in place or as
a shadow at a place of its own, as of any position. Nothing of it is part of a merge but the switch, so all other
tables continue, and so do these. Every step looks at what is there: run the same verb again to continue.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from penstock.compare.lake_reader import Target, lake_reader
from penstock.conditions import Directive
from penstock.errors import LakeError, LedgerError, PenstockError
from penstock.flow import table_status
from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.guards import require_named
from penstock.flow.load import build, replay_request
from penstock.flow.load import resync as requests
from penstock.flow.load.fetch import fetch
from penstock.flow.load.read import read_tables, retried
from penstock.flow.load.replay_request import Replay
from penstock.flow.load.spark_copy import together
from penstock.flow.merge import run as merge
from penstock.flow.merge.attempts import about_to_publish
from penstock.flow.spark_job import Submit
from penstock.jobs.maintenance_plan import TableFolder
from penstock.jobs.pointers import place_of
from penstock.lake.properties import folder_of
from penstock.ledger import iceberg_pointers, new_attempt
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.polling import poll

_PAUSE_SECONDS = 2.0
_FLUSH_SECONDS = 0.2
_IDLE_SECONDS = 10.0
_POLITE_SECONDS = 60.0


def resync(ctx: Context, tables: Sequence[str] | None, submit: Submit, *, woken: bool = False) -> list[str]:
    """Copy tables, given as `schema.table`, again and build them; return their rebuilds, which wait for the next merge.

    None means all tables of a running pipeline that wait for a copy (`waiting.due`). The lake's tables stay as they are
    until they are switched. A table that cannot be copied keeps no other waiting: it is raised when the others are built.
    Raises ConfigError("table-unknown"), LedgerError("table-not-ready" | "rebuild-open" | "work-under-way" | ...),
    SourceError("table-unpublished" | ...), LakeError("rebuild-given-up" | ...).
    """
    records = requests.to_copy(ctx, tables, woken=woken)
    with _held(ctx, records):
        if tables is None:
            fetched = fetch(ctx, records, submit)
            records = [record for record in records if record.oid not in fetched]
        going_on = requests.open_rebuilds(ctx, [record.oid for record in records], "resync")
        _say_continued(ctx, going_on.values())
        copies = requests.Copies(ctx, records, going_on, named=tables is not None)
        failed = copies.final(read_tables(ctx, copies, submit)) if records else {}
        _note(ctx, records, failed)
        build.build(ctx, [id_ for oid, id_ in copies.ids.items() if oid not in failed], submit)
        if failed:
            raise together(list(failed.values()))
    return list(copies.ids.values())


def replay(ctx: Context, request: Replay, submit: Submit) -> list[str]:
    """Rebuild tables from a copy and the windows since; return the rebuilds.

    In place they wait for the next merge; shadows are done. Raises what `replay_request.sources` raises, and
    LedgerError("work-under-way"), LakeError("rebuild-given-up").
    """
    found = replay_request.sources(ctx, request)
    records = require_named(ctx.ledger.tables.all(ctx.name), request.tables)
    with _held(ctx, records):
        there = _going_on(ctx, found, request.upto)
        new = [each for each in found if each.place not in there]
        orders = [each.order(new_attempt(), ctx.pipeline.namespace) for each in new]
        started = ctx.ledger.loads.start(ctx.name, orders) if orders else []
        _say_continued(ctx, there.values())
        ids = [each.id for each in (*there.values(), *started)]
        build.build(ctx, ids, submit)
    return ids


def switch(ctx: Context, ids: Sequence[str], submit: Submit) -> bool:
    """Merge until the rebuilt tables have taken their names; return whether all have.

    What was fetched is merged, too. Another run's merge may perform the swap; if one is about to publish, wait for it. Captures first where
    the pipeline has not come as far as a copy's snapshot. What cannot be switched yet, because a cut is wanted at an
    earlier place first, is left to the next merge. Raises LakeError("rebuild-given-up"), and what capture and merge
    raise, after some tries.
    """
    held = False  # another cut has to come first

    def merge_once(_: Collection[str]) -> Mapping[str, PenstockError]:
        nonlocal held
        try:
            _capture_through(ctx, max(_needed(ctx, ids)))
            _let_publish(ctx)
            held = merge.merge(ctx, submit) is None
        except PenstockError as error:
            if error.directive is Directive.RETRY:
                ctx.progress(f"{error}; trying again")
                time.sleep(_PAUSE_SECONDS)
            return {"switch": error}
        return {}

    failed = retried(lambda but: not but and not held and bool(_needed(ctx, ids)), merge_once)
    for error in failed.values():
        raise error
    return _all_done(ctx, ids)


def abandon(ctx: Context, tables: Sequence[str], *, dry_run: bool = False) -> None:
    """End the open rebuilds of these tables and drop what they have built; the tables stay as they are.

    With `dry_run` only say which they are.

    Raises ConfigError("table-unknown"), LedgerError("work-under-way") while a run is at work on one.
    """
    records = require_named(ctx.ledger.tables.all(ctx.name), tables)
    oids = {record.oid for record in records}
    with _held(ctx, records):
        for each in ctx.ledger.loads.builds(ctx.name):
            if each.oid in oids and dry_run:
                ctx.progress(f"would give up the {each.cause} {each.id} of {each.qualified}, which is {each.state}")
            elif each.oid in oids:
                reason = "a person has given it up"
                table_status.give_up(ctx, each, reason)
                discard(ctx, each.place)
                ctx.progress(f"gave up the {each.cause} {each.id} of {each.qualified}")


def _all_done(ctx: Context, ids: Sequence[str]) -> bool:
    """Return whether all of these rebuilds are done; raises LakeError("rebuild-given-up") for those that never will be."""
    ended = [each for each in ctx.ledger.loads.builds(ctx.name, states=["done", "given_up"]) if each.id in ids]
    lost = [f"{each.qualified}: {each.reason}" for each in ended if each.state == "given_up"]
    if lost:
        raise LakeError(
            "rebuild-given-up", f"expected every table to be switched to its new one, but {'; '.join(lost)}"
        )
    if len(ended) < len(ids):
        ctx.progress("what is left is switched by the next merge that can hold it")
    return len(ended) == len(ids)


def _let_publish(ctx: Context) -> None:
    """Wait a little for a merge whose Spark run has ended: ours would take its right to publish."""
    for _ in poll(_POLITE_SECONDS, pause=1):
        if not about_to_publish(ctx, within=_POLITE_SECONDS):
            return


def _needed(ctx: Context, ids: Sequence[str]) -> list[Lsn]:
    """Return the positions of the rebuilt tables that wait for their names, and of what was fetched and no merge has taken yet."""
    ready = [each.lsn for each in ctx.ledger.loads.builds(ctx.name, states=["ready"]) if each.id in ids]
    through = {each.oid: each.complete_through for each in ctx.ledger.tables.all(ctx.name) if each.state == "ready"}
    landed = (each for each in ctx.ledger.loads.fetches(ctx.name) if each.state == "landed")
    return ready + [each.lsn for each in landed if each.lsn > (through.get(each.oid) or each.lsn)]


def _capture_through(ctx: Context, needed: Lsn) -> None:
    """Capture as far as snapshots have seen; a source that flushes nothing meanwhile is waited for a while only."""
    idle = poll(_IDLE_SECONDS, _FLUSH_SECONDS)  # for what was committed asynchronously
    while (ctx.ledger.pipelines.get(ctx.name).position or 0) < needed:
        if capture.capture_window(ctx).behind:
            idle = poll(_IDLE_SECONDS, _FLUSH_SECONDS)
        elif next(idle):
            return


def _note(ctx: Context, records: Sequence[TableRecord], failed: Mapping[int, PenstockError]) -> None:
    """Note with each table, once, why it could not be copied."""
    names = {record.oid: record.qualified for record in records}
    for oid, error in failed.items():
        message = f"{names[oid]} was not copied: {error}"
        ctx.ledger.events.add_on_change(ctx.name, slug=error.slug, level="warning", table_oid=oid, message=message)
        ctx.progress(message)


def _going_on(
    ctx: Context, found: Sequence[replay_request.Source], upto: str | None
) -> dict[tuple[str, ...], LoadRecord]:
    """Return the rebuilds that an earlier run of the same request began, by the place that it is to fill at last."""
    oids = {each.facts.oid for each in found}
    open_ = [each for each in ctx.ledger.loads.builds(ctx.name) if each.oid in oids]
    by_place = {each.place if each.cause == "shadow" else each.target: each for each in open_}
    going_on = {each.place: by_place[each.place] for each in found if each.place in by_place}
    for each in found:
        known = going_on.get(each.place)
        if known is not None and upto is not None and known.goal_lsn != each.goal:
            raise LedgerError(
                "rebuild-open",
                f"expected the open shadow {known.id} of {known.qualified} to be as of {each.goal}, but it is as of "
                f"{known.goal_lsn}; leave `upto` out to end it, or abandon it, then start over",
            )
    return going_on


def _say_continued(ctx: Context, going_on: Collection[LoadRecord]) -> None:
    for each in going_on:
        ctx.progress(f"continuing with the {each.cause} {each.id} of {each.qualified}, which is {each.state}")


@contextmanager
def _held(ctx: Context, records: Sequence[TableRecord]) -> Iterator[None]:
    """Keep other runs from rebuilding these tables meanwhile; raises LedgerError("work-under-way")."""
    if not records:
        yield
        return
    with ctx.ledger.locks.hold(ctx.name, *(f"rebuild of {record.schema}.{record.name}" for record in records)):
        yield


def discard(ctx: Context, target: Target) -> None:
    """Drop a table from the catalog, if it is there, without reading it: its files may be gone. Raises LakeError."""
    place = place_of(target)
    shown = iceberg_pointers.shown(ctx.catalog, ctx.pipeline.lake.catalog, [place])
    if place in shown:
        ctx.ledger.maintenance.see_old_tables(ctx.name, [TableFolder(*place, folder_of(shown[place]))])
        with lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake:
            lake.drop(target)


__all__ = ["Replay", "abandon", "discard", "replay", "resync", "switch"]
