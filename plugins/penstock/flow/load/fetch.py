"""Fetch values of some columns, or rows of some partitions, where they are all that a table lacks, under one exact snapshot.

The snapshot sees what was committed before a position. What is read belongs into the stream right before it, and the
table goes on from there: its next merge brings the changes up to the position, what was read, and what came since, in one cut.
Whatever is not exact this way is left to the copy of the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import SourceError
from penstock.flow.context import Context, on_change
from penstock.flow.load.copy import published
from penstock.flow.load.fetch_order import Order, order_of
from penstock.flow.load.spark_copy import TRIES, copied_files, copy_tables, tables_at
from penstock.flow.spark_job import Submit
from penstock.ledger import new_attempt
from penstock.ledger.loads import LandedFetch
from penstock.ledger.table_records import TableRecord
from penstock.shapes.reads import sends_all
from penstock.source import server_info, session
from penstock.source.slot import exact_snapshot

_WITHOUT_SLOT = frozenset({"no-free-slot", "slot-creation-blocked"})
"""What hinders a temporary slot and no copy."""


def fetch(ctx: Context, records: Sequence[TableRecord], submit: Submit) -> frozenset[int]:
    """Fetch what these paused tables lack, where that is exact; return the oids of those that go on with it.

    Raises SourceError, LakeError, LedgerError for what concerns all of them.
    """
    waiting, done = candidates(ctx, records), set[int]()
    for _ in range(TRIES):
        if not waiting:
            break
        try:
            tried = _fetch(ctx, waiting, submit)
        except SourceError as error:
            if error.slug not in _WITHOUT_SLOT:
                raise
            ctx.progress(f"nothing less than whole tables can be copied: {error}")
            break
        done |= {oid for oid, landed in tried.items() if landed}
        waiting = [record for record in waiting if tried.get(record.oid) is False]
    return frozenset(done)


def candidates(ctx: Context, records: Sequence[TableRecord]) -> list[TableRecord]:
    """Return the tables that are paused for nothing but values of columns, or rows of partitions."""
    waiting = [
        record
        for record in records
        if record.remedy == "read" and on_change(ctx.pipeline, record.schema, record.name) == "follow"
    ]
    publishing = ctx.ledger.pipelines.get(ctx.name).publishing if waiting else None
    if publishing is None or not sends_all(publishing.sent):
        return []
    skipped = {oid for each in ctx.ledger.skips.all(ctx.name) for oid in each.oids}
    rebuilt = {each.oid for each in ctx.ledger.loads.builds(ctx.name)}
    return [record for record in waiting if record.oid not in skipped | rebuilt]


def _fetch(ctx: Context, records: Sequence[TableRecord], submit: Submit) -> dict[int, bool]:
    """Read what these tables lack under one snapshot; say of each that was tried, by oid, whether it goes on with it."""
    run = new_attempt()
    timeout = ctx.pipeline.source.slot_timeout
    with exact_snapshot(
        ctx.source, f"penstock_fetch_{run[-12:]}", timeout=timeout, what=f"{ctx.name}:fetch"
    ) as exported:
        sources = tables_at(ctx, exported, sizes=True)
        orders = {record.oid: each for record in records if (each := order_of(ctx, record, sources.get(record.oid)))}
        if not orders:
            return {}
        ctx.ledger.loads.start_fetch(
            ctx.name,
            copy_id=run,
            snapshot=exported.snapshot,
            lsn=exported.lsn,
            orders=[each.new for each in orders.values()],
        )
        for each in orders.values():
            ctx.progress(f"{each.record.qualified}: fetching {each.said} as of {exported.lsn}")
        failures = copy_tables(
            ctx,
            exported,
            run,
            [each.source for each in orders.values()],
            submit,
            order=lambda whole: orders[whole.oid].part(whole, exported.lsn),
        )
    landed = {oid: copied_files(ctx, run, oid, orders[oid].source.qualified) for oid in orders.keys() - failures.keys()}
    return dict.fromkeys(failures, False) | {
        oid: _land(ctx, run, orders[oid], orders[oid].landed(files, exported.lsn))
        for oid, files in landed.items()
        if files is not None
    }


def _land(ctx: Context, run: str, order: Order, landed: LandedFetch) -> bool:
    """Take in what was read if the table is still as the snapshot showed it, as far as capture has come; say whether it is."""
    record = order.record
    for _ in range(TRIES):
        with session.connect(ctx.source, what=f"{ctx.name}:fetch") as conn:
            seen = server_info.flushed(conn)
        now = published(ctx).by_oid.get(record.oid)
        if now is None or now.shape != order.now.shape:
            ctx.progress(f"{record.qualified} was changed while a part of it was fetched")
            return False
        if ctx.ledger.loads.land(ctx.name, run, landed, seen=seen):
            ctx.progress(f"{record.qualified}: {landed.changes[-1].message}")
            return True
    return False
