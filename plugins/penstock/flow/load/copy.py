"""The copy of a resync: under a snapshot of its own, next to a table that stays as it is, resumable table by table.

No slot has a part in it, so no WAL is kept for it, and capture continues. What a table looks like is read before and in
the snapshot, and once more when the copy is done: a table that was changed meanwhile is copied again. A table that
cannot be copied keeps no other waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.errors import PenstockError, SourceError
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.flow.load.spark_copy import TRIES, copied_files, copy_tables, passes, tables_at
from penstock.flow.load.waiting import wait_for_open_transactions
from penstock.flow.schema import apply_plan
from penstock.flow.schema.names import table_facts
from penstock.flow.schema.run import added_only
from penstock.flow.spark_job import Submit
from penstock.jobs.pointers import rebuilt
from penstock.ledger import new_attempt
from penstock.ledger.table_records import LoadRecord
from penstock.shapes.plan import plan
from penstock.shapes.source_table import SourceTable
from penstock.shapes.table_facts import TableFacts
from penstock.source import catalog_snapshot, session, slot, types
from penstock.source.catalog_snapshot import CatalogSnapshot


def copy(ctx: Context, ids: Sequence[str], submit: Submit) -> dict[str, PenstockError]:
    """Copy the tables of these rebuilds that have no whole copy yet; return why some could not be, by rebuild.

    Raises SourceError, LakeError, LedgerError for what concerns all of them.
    """
    collect(ctx, ids)
    failed: dict[str, PenstockError] = {}
    for _ in range(TRIES):
        pending = [each for each in _pending(ctx, ids) if each.id not in failed or _worth_a_try(failed[each.id])]
        if not pending:
            break
        for each in pending:
            if each.id in failed:
                ctx.progress(f"{each.qualified} is copied again: {failed[each.id]}")
        failed |= _copy(ctx, pending, submit)
    left = {each.id: _final(each, failed.get(each.id)) for each in _pending(ctx, ids)}
    ended = [each for each in ctx.ledger.loads.builds(ctx.name, states=["given_up"]) if each.id in ids]
    return left | {each.id: SourceError("rebuild-given-up", each.reason or "") for each in ended}


def published(ctx: Context, *, sizes: bool = False) -> CatalogSnapshot:
    """Return the publication and its tables as they are now."""
    with session.connect(ctx.source, what=f"{ctx.name}:resync") as conn:
        found = catalog_snapshot.read_catalog(conn, ctx.pipeline.publication, sizes=sizes)
    return replace(found, tables=tuple(types.as_chosen(ctx.pipeline, table) for table in found.tables))


def collect(ctx: Context, ids: Sequence[str]) -> None:
    """Record the copies that are proved by their results, and leave those to be made again that cannot be trusted."""
    results = {
        each.id: copied_files(ctx, each.copy_id, each.oid, each.qualified)
        for each in _pending(ctx, ids)
        if each.copy_id
    }
    if not any(files is not None for files in results.values()):
        return
    now = published(ctx).by_oid
    for rebuild in _pending(ctx, ids):
        files = results.get(rebuild.id)
        if files is None or _changed(ctx, rebuild, now.get(rebuild.oid)):
            continue
        ctx.ledger.loads.finish_copy(ctx.name, copy_id=rebuild.copy_id or "", oid=rebuild.oid, files=files)


def _pending(ctx: Context, ids: Sequence[str]) -> list[LoadRecord]:
    return [each for each in ctx.ledger.loads.builds(ctx.name, states=["copying"]) if each.id in ids]


def _worth_a_try(error: PenstockError) -> bool:
    return passes(error) and error.slug != "table-joining"  # which has been waited for already


def _final(rebuild: LoadRecord, error: PenstockError | None) -> PenstockError:
    """Return why a table has no copy after all tries."""
    if error is not None and error.slug != "table-rewritten":
        return error
    return SourceError(
        "table-rewritten",
        f"expected {rebuild.qualified} to stay as it is while it is copied, but it was changed in each of {TRIES} tries; "
        "run again when that is over",
    )


def _copy(ctx: Context, pending: Sequence[LoadRecord], submit: Submit) -> dict[str, PenstockError]:
    """Copy what can be copied under one snapshot; return why the rest could not be, by rebuild."""
    hindered = _hindered(ctx, pending)
    before = published(ctx).by_oid
    with slot.export_snapshot(ctx.source, what=f"{ctx.name}:resync") as exported:
        sources = tables_at(ctx, exported, sizes=True)
        for each in pending:
            if each.oid not in sources:
                _left(ctx, each)
        free = [each for each in pending if each.id not in hindered]
        steady = [each for each in free if _same(ctx, before.get(each.oid), sources.get(each.oid))]
        if not steady:
            return hindered
        copy_id = new_attempt()
        facts = {each.id: table_facts(ctx, sources[each.oid]) for each in steady}
        ctx.ledger.loads.copy_again(
            ctx.name,
            copy_id=copy_id,
            snapshot=exported.snapshot,
            lsn=exported.lsn,
            facts=facts,
            places=_places(ctx, facts),
        )
        try:
            unread = copy_tables(ctx, exported, copy_id, [sources[each.oid] for each in steady], submit)
        finally:
            collect(ctx, [each.id for each in steady])
    return hindered | {each.id: unread[each.oid] for each in steady if each.oid in unread}


def _hindered(ctx: Context, pending: Sequence[LoadRecord]) -> dict[str, PenstockError]:
    """Wait for the transactions that were open when tables joined; return which tables must wait longer, and why."""
    tables = {table.oid: table for table in ctx.ledger.tables.all(ctx.name)}
    try:
        wait_for_open_transactions(ctx, [tables[each.oid] for each in pending])
    except SourceError as error:
        if error.slug != "table-joining":
            raise
    else:
        return {}
    found: dict[str, PenstockError] = {}
    for each in pending:
        try:
            wait_for_open_transactions(ctx, [tables[each.oid]], wait=0)
        except SourceError as error:
            if error.slug != "table-joining":
                raise
            found[each.id] = error
    return found


def _places(ctx: Context, facts: Mapping[str, TableFacts]) -> dict[str, tuple[str, ...]]:
    return {id_: rebuilt(ctx.pipeline.namespace, table.target, id_) for id_, table in facts.items()}


def _same(ctx: Context, before: SourceTable | None, now: SourceTable | None) -> bool:
    """Return whether a table is the same in the snapshot as before it: the publication's part of it is always as of now."""
    return before is not None and now is not None and table_facts(ctx, before) == table_facts(ctx, now)


def _left(ctx: Context, rebuild: LoadRecord) -> None:
    reason = f"{rebuild.qualified} was dropped, or left the publication, while it was copied"
    table_status.give_up(ctx, rebuild, reason)
    ctx.progress(reason)


def _changed(ctx: Context, rebuild: LoadRecord, now: SourceTable | None) -> bool:
    """Return whether a table was altered since its copy's snapshot in a way that the stream does not carry."""
    if now is None:
        _left(ctx, rebuild)
        return True
    decided = plan(rebuild, now, policy=added_only(ctx, now))
    if decided.reason is not None:
        ctx.progress(f"{rebuild.qualified}: {decided.reason} while it was copied; copying it again")
        return True
    if decided.events:
        ctx.ledger.loads.reshape(ctx.name, rebuild.id, apply_plan.facts_after(rebuild, decided, now))
    return False
