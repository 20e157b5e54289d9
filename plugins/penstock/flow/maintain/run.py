"""Maintenance: tables are compacted, and what is old is forgotten and deleted, on the lake, in the landing zone and in
the ledger.

It changes how things are stored, never what a table shows. It takes turns with merges, and begins an attempt as a merge
does: whatever was prepared before can no longer be published onto tables that have moved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

from penstock.errors import LakeError, LedgerError, PenstockError
from penstock.flow import landing_mark
from penstock.flow.changelog import run as changelog
from penstock.flow.context import Context
from penstock.flow.guards import require_named
from penstock.flow.maintain import retention
from penstock.flow.maintain.retention import Released
from penstock.flow.merge.attempts import maintenance_lock
from penstock.flow.merge.publish import adopt_half_published, cuts_snapshot
from penstock.flow.spark_job import SparkJob, Submit, answer, carried_out, catalog_secrets, describe, plan_frame
from penstock.jobs.maintenance_plan import MaintenanceOrder, MaintenancePlan, MaintenanceResult, TableFolder
from penstock.jobs.pointers import Place, is_left_behind, place_of
from penstock.lake.ddl import CUTS_TABLE
from penstock.lake.properties import folder_of
from penstock.landing import layout
from penstock.landing.zone import LandingZone
from penstock.ledger import iceberg_pointers, new_attempt
from penstock.ledger.records import CutRecord
from penstock.ledger.table_records import TableRecord
from penstock.units import several


@dataclass(frozen=True, slots=True)
class MaintenanceRun:
    """Report one run."""

    attempt: str
    dry_run: bool
    lake: MaintenanceResult
    landing: Released

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the ledger."""
        return {"lake": self.lake.to_json(), "landing": asdict(self.landing)}


def maintain(
    ctx: Context, submit: Submit, *, tables: Sequence[str] = (), dry_run: bool = False
) -> MaintenanceRun | None:
    """Maintain a pipeline's tables, all or those named `schema.table`; None where a copy is under way.

    A dry run measures and lists, and changes nothing. What frees room comes before what takes some. Raises
    ConfigError("table-unknown"), LedgerError("work-under-way"), and at the end LakeError for tables that could not be maintained.
    """
    if ctx.ledger.pipelines.get(ctx.name).state in ("new", "bootstrapping"):
        ctx.progress("the pipeline's tables are being copied: nothing to maintain yet")
        return None
    landing_mark.require(ctx)
    chosen = _chosen(ctx, tables)
    if not dry_run:
        _trim_history(ctx)
    with ExitStack() as begun, maintenance_lock(ctx), _changelogs(ctx) as changelogs:
        if not dry_run:
            adopt_half_published(ctx)
        attempt = new_attempt() if dry_run else ctx.ledger.merges.begin(ctx.name, halted=True)
        ctx.ledger.maintenance.begin(ctx.name, attempt, dry_run=dry_run)
        begun.enter_context(_noting_its_error(ctx, attempt))
        landing = retention.outlook(ctx) if dry_run else retention.release(ctx)
        plan = _plan(ctx, attempt, chosen, whole=not tables, changelogs=changelogs, dry_run=dry_run)
        with _orders(ctx, plan) as zone:
            carried_out(ctx, submit, _job(ctx, attempt, zone), zone)
            lake = _adopt_result(ctx, plan, zone)
    report = MaintenanceRun(attempt, dry_run, lake, landing)
    ctx.ledger.maintenance.end(ctx.name, attempt, report.to_json(), summary(report))
    ctx.progress(summary(report))
    _require_all(lake)
    return report


@contextmanager
def _noting_its_error(ctx: Context, attempt: str) -> Iterator[None]:
    """Note the condition that ends this run, so that it is not taken for one that is at work."""
    try:
        yield
    except PenstockError as error:
        with suppress(LedgerError):  # it may be the ledger that does not answer
            ctx.ledger.maintenance.fail(ctx.name, attempt, error.slug)
        raise


@contextmanager
def _orders(ctx: Context, plan: MaintenancePlan) -> Iterator[LandingZone]:
    """Write the plan, and yield the zone that has it and takes the result: a folder of this machine where the landing zone is full.

    Maintenance of the lake may be what makes room, where both share a disk.
    """
    path, text = _plan_file(ctx.name, plan.attempt), plan.dumps()
    try:
        ctx.landing.write_text(path, text)
    except LakeError as error:
        if error.slug != "landing-unwritable":
            raise
        with TemporaryDirectory(prefix="penstock-maintain-") as folder:
            zone = LandingZone.open(folder, {})
            zone.write_text(path, text)
            ctx.progress(f"{error}; the plan of this run, and its result, go to {folder} instead")
            yield zone
        return
    yield ctx.landing


def _require_all(lake: MaintenanceResult) -> None:
    """Raise LakeError under the name of the first error that left a table as it was."""
    failed = [table for table in lake.tables if table.slug]
    if failed:
        reasons = "; ".join(f"{'.'.join(table.target)}: {table.left}" for table in failed)
        raise LakeError(
            str(failed[0].slug),
            f"expected all tables to be maintained; {len(failed)} of {len(lake.tables)} were not: {reasons}",
        )


@contextmanager
def _changelogs(ctx: Context) -> Iterator[bool]:
    """Hold the changelogs, too, and return whether it does; where they are being filled they are left for the next time."""
    with ExitStack() as held:
        try:
            held.enter_context(ctx.ledger.locks.hold(ctx.name, changelog.WORK))
        except LedgerError as error:
            if error.slug != "work-under-way":
                raise
            ctx.progress("changelogs are being filled: they are left for the next time")
            yield False
            return
        yield True


def summary(report: MaintenanceRun) -> str:
    """Return a run in one line."""
    done, landing = [table for table in report.lake.tables if table.before and table.after], report.landing
    before, after = [table.before for table in done if table.before], [table.after for table in done if table.after]
    return (
        f"{'looked at' if report.dry_run else 'maintained'} {several(len(done), 'table')}: "
        f"files {sum(f.files for f in before)} -> {sum(f.files for f in after)}, "
        f"delete files {sum(f.delete_files for f in before)} -> {sum(f.delete_files for f in after)}, "
        f"bytes {sum(f.bytes for f in before)} -> {sum(f.bytes for f in after)}; "
        f"landing zone: {several(landing.windows, 'window')} and {landing.copies} copies {'are old' if report.dry_run else 'went'}, "
        f"{landing.bytes} bytes; {landing.folders} orphan folders, {landing.files} orphan files"
    )


def _chosen(ctx: Context, names: Sequence[str]) -> list[TableRecord]:
    there = [table for table in ctx.ledger.tables.all(ctx.name) if table.state != "dropped"]
    return require_named(there, names) if names else there


def _trim_history(ctx: Context) -> None:
    settings, now = ctx.pipeline.maintain, ctx.ledger.health.clock()
    ctx.ledger.maintenance.trim_history(
        ctx.name,
        before=now - timedelta(seconds=settings.history),
        cuts_before=now - timedelta(seconds=settings.cuts),
        daily_before=now - timedelta(seconds=max(settings.cuts, settings.daily_cuts)),
    )


def _plan(
    ctx: Context, attempt: str, tables: Sequence[TableRecord], *, whole: bool, changelogs: bool, dry_run: bool
) -> MaintenancePlan:
    """Order these tables, which are the `whole` pipeline's or some, and their `changelogs` where they are free to work on."""
    settings, now = ctx.pipeline.maintain, ctx.ledger.health.clock()
    there = [
        TableFolder(namespace, name, folder_of(location))
        for namespace, name, location in iceberg_pointers.listed(ctx.catalog, ctx.pipeline.lake.catalog)
    ]
    kept = _named_by_cuts(ctx.ledger.merges.cuts(ctx.name, limit=1 << 31))
    orders = [
        MaintenanceOrder(table.target, table.snapshot_id, tuple(sorted(kept.get(table.oid, ()))), table.oid)
        for table in tables
        if table.snapshot_id is not None
    ]
    listed = {each.place for each in there}
    histories = [ctx.pipeline.changelog_target(table.target) for table in tables if changelogs]
    orders += [MaintenanceOrder(target, None, (), watched=False) for target in histories if place_of(target) in listed]
    cuts = MaintenanceOrder((*ctx.pipeline.namespace.split("."), CUTS_TABLE), cuts_snapshot(ctx), ())
    return MaintenancePlan(
        planned_at=_milliseconds(now),
        read_since=_milliseconds(now - timedelta(seconds=settings.cuts)),
        orphans_before=_milliseconds(now - timedelta(seconds=settings.orphans)),
        tables=(*_longest_ago_first(ctx, orders), cuts) if cuts.expected_snapshot else tuple(orders),
        old_tables=tuple(_old_tables(ctx, there, now)) if whole else (),
        folders=tuple(there),
        deleted_share=settings.deleted_share,
        small_files=settings.small_files,
        file_bytes=settings.file_bytes,
        time_budget=settings.time_budget,
        dry_run=dry_run,
        **plan_frame(ctx, attempt),
    )


def _named_by_cuts(cuts: Iterable[CutRecord]) -> Mapping[int, set[int]]:
    """Return, per table, the snapshots that cuts show, whatever the lake called it then."""
    kept: dict[int, set[int]] = {}
    for cut in cuts:
        for table in cut.tables:
            if table["snapshot_id"] is not None:
                kept.setdefault(table["oid"], set()).add(table["snapshot_id"])
    return kept


def _longest_ago_first(ctx: Context, tables: Sequence[MaintenanceOrder]) -> list[MaintenanceOrder]:
    """Put those first that the last run had no time for."""
    runs = ctx.ledger.maintenance.all(ctx.name, limit=2)
    last = next((run.report for run in runs if run.report and not run.dry_run), None)
    done = {tuple(table["target"]) for table in last["lake"]["tables"] if table["after"]} if last else set()
    return sorted(tables, key=lambda table: table.target in done)


def _old_tables(ctx: Context, there: Sequence[TableFolder], now: datetime) -> Iterator[TableFolder]:
    """Yield the tables that are to go and were seen long ago, or what is left of them.

    They are not read or filled any more, or their source table has left and the policy is to drop them.
    """
    era, rebuilds = ctx.ledger.pipelines.get(ctx.name).era, {each.id for each in ctx.ledger.loads.builds(ctx.name)}
    listed, discarded = {each.place for each in there}, _discarded(ctx)
    left = {
        each.place: each
        for each in there
        if each.place in discarded or is_left_behind(ctx.pipeline.namespace, each.namespace, era, rebuilds)
    }
    before = now - timedelta(seconds=ctx.pipeline.maintain.old_tables)
    for old, seen_at in ctx.ledger.maintenance.see_old_tables(ctx.name, [*left.values()]).items():
        if old.place in listed and old.place not in left:  # its source table came back, or the name is another table's
            ctx.ledger.maintenance.forget_old_tables(ctx.name, [old])
        elif seen_at < before:
            yield replace(old, listed=old.place in listed)


def _discarded(ctx: Context) -> dict[Place, int]:
    """Name the lake tables of tables that left and are to be dropped, with their oids."""
    return {place_of(table.target): table.oid for table in ctx.ledger.membership.to_discard(ctx.name)}


def _adopt_result(ctx: Context, plan: MaintenancePlan, zone: LandingZone) -> MaintenanceResult:
    """Take over what Spark did."""
    result = answer(zone, _result_file(ctx.name, plan.attempt), MaintenanceResult)
    if not plan.dry_run:
        expected = {order.target: order.expected_snapshot for order in plan.tables}
        moved = [(t, expected[t.target]) for t in result.tables if t.oid and t.snapshot_id != expected[t.target]]
        ctx.ledger.maintenance.move_compacted(ctx.name, plan.attempt, [pair for pair in moved if pair[0].after])
        discarded = _discarded(ctx)
        for old in result.dropped:
            if old.place in discarded:
                ctx.ledger.membership.discarded(ctx.name, discarded[old.place])
        ctx.ledger.maintenance.forget_old_tables(ctx.name, result.dropped)
    return result


def _job(ctx: Context, attempt: str, zone: LandingZone) -> SparkJob:
    plan, result = _plan_file(ctx.name, attempt), _result_file(ctx.name, attempt)
    return describe(ctx, "maintain_tables", plan, catalog_secrets(ctx), result=result, zone=zone)


def _plan_file(pipeline: str, attempt: str) -> str:
    # not the name of a merge's: maintenance takes the merge's attempt, and must not be taken for one that can be published
    return f"{layout.run_folder(pipeline, attempt)}/maintenance.plan.json"


def _result_file(pipeline: str, attempt: str) -> str:
    return f"{layout.run_folder(pipeline, attempt)}/maintenance.json"


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
