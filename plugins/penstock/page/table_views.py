"""From the ledger's rows of one table to what its page shows of them: panels in, view models out, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from penstock.ledger.page import EventPanel, RebuildPanel, SchemaChangePanel
from penstock.ledger.table_page import FetchPanel, FindingPanel, TableCutPanel, TableFactsPanel
from penstock.page import views
from penstock.page.advice import table_advice
from penstock.page.maintenance import MaintainedTable
from penstock.page.models import Pipeline
from penstock.page.table_models import Column, Copy, Fetch, Finding, Identity, TableCut, TablePage
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.lake_types import STRING, element_type
from penstock.values.pgtype import type_name

_IDENTITIES: dict[str, Identity] = {"d": "key", "i": "key", "f": "whole rows", "n": "nothing"}


def page(
    now: datetime,
    pipeline: Pipeline,
    facts: TableFactsPanel,
    *,
    maintained: MaintainedTable | None,
    cuts: Sequence[TableCutPanel],
    findings: Sequence[FindingPanel],
    fetches: Sequence[FetchPanel],
    rebuilds: Sequence[RebuildPanel],
    schema_changes: Sequence[SchemaChangePanel],
    events: Sequence[EventPanel],
) -> TablePage:
    """Show a table."""
    table, through = views.table(facts), as_of(facts, pipeline.as_of)
    compared_at, said = compared(facts, findings)
    return TablePage(
        at=now,
        pipeline=pipeline,
        table=table,
        identity=_IDENTITIES[facts.identity],
        key=[each.name for each in facts.columns if each.key],
        as_of=through,
        freshness_seconds=None if through is None else max((now - through).total_seconds(), 0.0),
        paused_at=facts.paused_at,
        moved_at=facts.moved_at,
        compared_at=compared_at,
        compared=said,
        files=facts.files,
        snapshots=maintained.snapshots[1] if maintained and maintained.snapshots else None,
        delete_files=maintained.delete_files[1] if maintained and maintained.delete_files else None,
        advice=table_advice(pipeline, table),
        columns=[column(each) for each in facts.columns],
        copy=copy(facts),
        cuts=[cut(each) for each in cuts],
        findings=[finding(each) for each in findings],
        fetches=[fetch(each, facts.columns) for each in fetches],
        rebuilds=[views.rebuild(each) for each in rebuilds],
        schema_changes=[views.schema_change(each) for each in schema_changes],
        events=[views.event(each) for each in events],
    )


def column(each: MirrorColumn) -> Column:
    """Show a column."""
    return Column(
        number=each.attnum,
        name=each.name,
        source_type=None if each.dropped else type_name(each.type),
        lake_type=each.lake_type,
        exact_text=each.lake_type == STRING,
        key=each.key,
        dropped=each.dropped,
        later=each.missing_text is not None,
        dimensions=each.dimensions if element_type(each.lake_type) else 0,
    )


def copy(row: TableFactsPanel) -> Copy | None:
    """Show the last copy, if the ledger still has it."""
    if row.copy_started_at is None or row.copied_lsn is None:
        return None
    ended = row.copy_finished_at
    return Copy(
        rows=row.copied_rows or 0,
        bytes=row.copied_bytes or 0,
        lsn=str(row.copied_lsn),
        started_at=row.copy_started_at,
        finished_at=ended,
        seconds=None if ended is None else (ended - row.copy_started_at).total_seconds(),
    )


def cut(row: TableCutPanel) -> TableCut:
    """Show what a cut did."""
    return TableCut(
        lsn=str(row.lsn),
        published_at=row.published_at,
        inserts=row.inserts,
        updates=row.updates,
        deletes=row.deletes,
        truncates=row.truncates,
        rows_written=row.rows_written,
        rows_deleted=row.rows_deleted,
        seconds=row.seconds,
        rows=row.rows,
        files=row.files,
        bytes=row.bytes,
    )


def finding(row: FindingPanel) -> Finding:
    """Show what a comparison found."""
    return Finding(
        lsn=None if row.lsn is None else str(row.lsn),
        verified_at=row.verified_at,
        share=row.share,
        shares=row.shares,
        outcome=row.outcome,
        reason=row.reason,
        source_rows=row.source_rows,
        lake_rows=row.lake_rows,
        missing=row.missing,
        extra=row.extra,
        different=row.different,
    )


def compared(row: TableFactsPanel, findings: Sequence[FindingPanel]) -> tuple[datetime | None, str]:
    """Say when and how far the table was compared: through where all rows were equal, else what the newest comparison came to."""
    if row.verified_through is not None:
        return row.verified_at, f"through {row.verified_through}"
    if not findings:
        return None, "by no comparison with the source"
    newest = findings[0]
    part = "all rows of the table before" if newest.shares == 1 else f"share {newest.share} of {newest.shares}"
    return newest.verified_at, f"{newest.outcome}: {part}; not all of its rows yet"


def fetch(row: FetchPanel, columns: tuple[MirrorColumn, ...]) -> Fetch:
    """Show a fetch; a column that is gone by now is shown by its number."""
    names = {each.attnum: each.name for each in columns}
    return Fetch(
        columns=[] if row.of_rows else [names.get(attnum, f"column {attnum}") for attnum in row.attnums],
        partitions=row.leaves,
        state=row.state,
        rows=row.rows,
        bytes=row.bytes,
        lsn=str(row.lsn),
        started_at=row.started_at,
        landed_at=row.landed_at,
    )


def as_of(row: TableFactsPanel, pipeline_as_of: datetime | None) -> datetime | None:
    """Return the source's time through which the table is complete: that of the cut, or of where it stays behind."""
    return pipeline_as_of if row.state == "ready" else row.paused_as_of
