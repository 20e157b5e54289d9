"""Fetch the values of some columns where they are all that a table lacks: key and columns, under one exact snapshot.

The snapshot sees what was committed before a position. The values are landed as changes that come right before it, and the
table goes on from there: its next merge brings the changes up to the position, the values, and what came since, in one cut.
Whatever is not exact this way is left to the copy of the whole table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.contract.manifest import FileEntry
from penstock.errors import SourceError
from penstock.flow import table_policy
from penstock.flow.capture import column_fetch
from penstock.flow.capture.column_changes import Following
from penstock.flow.capture.column_fetch import Fetch
from penstock.flow.capture.table_verdict import Verdict, verdict
from penstock.flow.capture.verdict_effects import followed_changes
from penstock.flow.context import Context
from penstock.flow.copy.run import TRIES, copied_files, copy_tables, tables_at
from penstock.flow.rebuild.copy import published
from penstock.flow.spark_job import Submit
from penstock.flow.table_facts import facts_of
from penstock.jobs.copy_plan import CopyRange
from penstock.ledger import new_attempt
from penstock.ledger.fetches import LandedFetch, NewFetch
from penstock.ledger.records import SchemaChange
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.source import server_info, session
from penstock.source.copy import having_labels
from penstock.source.slot import Exported, exact_snapshot
from penstock.source.tables import SourceTable

_WITHOUT_SLOT = frozenset({"no-free-slot", "slot-creation-blocked"})
"""What hinders a temporary slot and no copy."""


@dataclass(frozen=True, slots=True)
class _Order:
    """Hold one table that is fetched from: what it was, what it is in the snapshot, and what to read of it."""

    record: TableRecord
    now: SourceTable
    decided: Verdict
    fetch: Fetch

    @property
    def attnums(self) -> tuple[int, ...]:
        """Return the numbers of the columns to read: the key's and the fetched ones."""
        return tuple(column.attnum for column in self.now.columns if column.key or column.attnum in self.fetch.attnums)

    @property
    def columns(self) -> list[str]:
        """Return the names of the fetched columns."""
        return [self.names[attnum] for attnum in sorted(self.fetch.attnums)]

    @property
    def names(self) -> dict[int, str]:
        """Return the names of the table's columns."""
        return {column.attnum: column.name for column in self.now.columns}


def fetch(ctx: Context, records: Sequence[TableRecord], submit: Submit) -> frozenset[int]:
    """Fetch what these paused tables lack, where that is exact; return the oids of those that go on with it.

    Raises SourceError, LakeError, LedgerError for what concerns all of them.
    """
    waiting, done = _candidates(ctx, records), set[int]()
    for _ in range(TRIES):
        if not waiting:
            break
        try:
            tried = _fetch(ctx, waiting, submit)
        except SourceError as error:
            if error.slug not in _WITHOUT_SLOT:
                raise
            ctx.progress(f"columns cannot be fetched, whole tables are copied instead: {error}")
            break
        done |= {oid for oid, landed in tried.items() if landed}
        waiting = [record for record in waiting if tried.get(record.oid) is False]
    return frozenset(done)


def _candidates(ctx: Context, records: Sequence[TableRecord]) -> list[TableRecord]:
    """Return the tables that are paused for nothing but values of columns, and whose lake has the source's rows."""
    waiting = [
        record
        for record in records
        if record.fetchable
        and record.state == "paused"
        and table_policy.on_change(ctx.pipeline, record.schema, record.name) == "follow"
    ]
    publishing = ctx.ledger.pipelines.get(ctx.name).publishing if waiting else None
    if publishing is None or not column_fetch.sends_all(publishing.sent):
        return []
    skipped = {oid for each in ctx.ledger.skips.all(ctx.name) for oid in each.oids}
    rebuilt = {each.oid for each in ctx.ledger.rebuilds.all(ctx.name)}
    return [record for record in waiting if record.oid not in skipped | rebuilt]


def _fetch(ctx: Context, records: Sequence[TableRecord], submit: Submit) -> dict[int, bool]:
    """Read what these tables lack under one snapshot; say of each that was tried, by oid, whether it goes on with it."""
    run = new_attempt()
    timeout = ctx.pipeline.source.slot_timeout
    with exact_snapshot(
        ctx.source, f"penstock_fetch_{run[-12:]}", timeout=timeout, what=f"{ctx.name}:fetch"
    ) as exported:
        sources = tables_at(ctx, exported, sizes=True)
        orders = {record.oid: each for record in records if (each := _order(ctx, record, sources.get(record.oid)))}
        if not orders:
            return {}
        ctx.ledger.fetches.start(
            ctx.name,
            run,
            exported.lsn,
            [NewFetch(oid, each.fetch.attnums, each.fetch.whole) for oid, each in orders.items()],
        )
        for each in orders.values():
            ctx.progress(f"{each.record.qualified}: fetching {_said(each)} as of {exported.lsn}")
        failures = _copy(ctx, exported, run, orders, submit)
    landed = {oid: copied_files(ctx, run, oid) for oid in orders.keys() - failures.keys()}
    return dict.fromkeys(failures, False) | {
        oid: _land(ctx, run, orders[oid], files, exported.lsn) for oid, files in landed.items() if files is not None
    }


def _order(ctx: Context, record: TableRecord, now: SourceTable | None) -> _Order | None:
    following = Following(keep_dropped=ctx.pipeline.lake.on_dropped_column == "keep")
    decided = verdict(record.columns, record.identity, record.catalog_digest, now, following=following)
    if now is None or decided.fetch is None:
        ctx.progress(f"{record.qualified} needs more than values of columns: {decided.reason or 'it is as it was'}")
        return None
    return _Order(record, now, decided, decided.fetch)


def _copy(
    ctx: Context, exported: Exported, run: str, orders: Mapping[int, _Order], submit: Submit
) -> dict[int, SourceError]:
    """Land what is ordered, as changes right before the snapshot's position; return what could not be read, by oid."""
    commit = exported.lsn - 1  # no commit begins there: its record is longer

    def part(whole: CopyRange) -> CopyRange:
        order = orders[whole.oid]
        fetch, names = order.fetch, order.names
        return replace(
            whole,
            columns=tuple(names[attnum] for attnum in order.attnums),
            where=None if fetch.labels is None else having_labels(order.columns, fetch.labels),
            typed=(),
            attnums=order.attnums,
            commit_lsn=commit,
        )

    return copy_tables(ctx, exported, run, [each.now for each in orders.values()], submit, order=part)


def _land(ctx: Context, run: str, order: _Order, files: Sequence[FileEntry], lsn: Lsn) -> bool:
    """Take the values in if the table is still as the snapshot showed it, as far as capture has come; say whether it is."""
    record = order.record
    columns = column_fetch.refilled(order.decided.columns, record.columns, order.fetch)
    facts = replace(facts_of(record), identity=order.now.identity, columns=columns, catalog_digest=order.now.digest())
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    message = f"{_said(order)} were fetched as of {lsn}: {rows} rows, {size} bytes"
    details = {"columns": order.columns, "lsn": str(lsn), "rows": rows, "bytes": size}
    changes = [
        *followed_changes(record.oid, order.decided),
        SchemaChange(record.oid, "fetch-columns", message, details),
    ]
    for _ in range(TRIES):
        with session.connect(ctx.source, what=f"{ctx.name}:fetch") as conn:
            seen = server_info.flushed(conn)
        now = published(ctx).by_oid.get(record.oid)
        if now is None or now.digest() != order.now.digest():
            ctx.progress(f"{record.qualified} was changed while its columns were fetched")
            return False
        if ctx.ledger.fetches.land(ctx.name, run, LandedFetch(facts, files, changes), seen=seen):
            ctx.progress(f"{record.qualified}: {message}")
            return True
    return False


def _said(order: _Order) -> str:
    rows = "" if order.fetch.whole else " of rows that hold a renamed label"
    return f"the key and {', '.join(order.columns)}{rows}"
