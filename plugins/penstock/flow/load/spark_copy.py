"""Spark's part of a read under an exported snapshot: ranges of the requested tables, landed as files.

A finished table is proved by a small result file next to its data, whatever becomes of the run that made it. Meanwhile each range
that is done has a file, whose footer says how many rows.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from penstock.contract.manifest import FileEntry
from penstock.errors import PenstockError, SourceError
from penstock.flow import landing_mark
from penstock.flow.context import Context
from penstock.flow.spark_job import Done, Submit, carried_out, describe, watched
from penstock.jobs import driver
from penstock.jobs.plans import CopyPlan, CopyRange
from penstock.landing import layout
from penstock.ledger.loads import NewRead
from penstock.lsn import Lsn
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, session
from penstock.source.copy import plan_ranges
from penstock.source.reading import Heap, TableError, generated, of_one_table, unplannable
from penstock.source.slot import Exported
from penstock.units import several


# a repair of some hash buckets of the key is to be one more cause: a `where`, and rows that take the place of the buckets'
@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Ask for rows of a table as the snapshot shows it, with the leaves to read; `new` says what they are to the lake's table.

    Of a fetch of columns their values are read by key, else whole rows. `where` is a condition beside the row filter of the publication,
    which spares what need not be read. `texts` names the columns that land as texts whatever their types.
    """

    table: SourceTable
    new: NewRead
    where: str | None = None
    texts: frozenset[str] = frozenset()

    def order(self, rows: CopyRange, lsn: Lsn) -> CopyRange:
        """Order what is read of a range of whole rows: values by key land as changes right before the position."""
        conditions = [each for each in (rows.where, None if rows.plain else self.where) if each]
        wanted = replace(
            rows,
            where=" and ".join(f"({each})" for each in conditions)
            if len(conditions) > 1
            else next(iter(conditions), None),
            typed=tuple(pair for pair in rows.typed if pair[0] not in self.texts),
        )
        if self.new.cause != "columns":
            return wanted
        read = [column for column in self.table.columns if column.key or column.attnum in (self.new.attnums or ())]
        by_key: dict[str, Any] = {"columns": tuple(column.name for column in read), "typed": ()}
        attnums = tuple(column.attnum for column in read)
        return replace(
            wanted, **by_key, attnums=attnums, commit_lsn=lsn - 1
        )  # no commit begins there: its record is longer


@dataclass(frozen=True, slots=True)
class Earlier:
    """Hold what earlier tries of the same work have copied: how far it is counts over all of its tables."""

    tables: int = 0
    files: int = 0
    rows: int = 0


def copy_tables(
    ctx: Context,
    exported: Exported,
    copy_id: str,
    requests: Sequence[ReadRequest],
    submit: Submit,
    *,
    earlier: Earlier,
) -> dict[int, SourceError]:
    """Have Spark land what is asked for, of tables as the snapshot shows them with sizes, while it is held.

    `earlier` is what tries before this one have copied. Return why tables could not be read, by oid; the others are copied.
    Raises SourceError, LakeError for what concerns all.
    """
    landing_mark.require(ctx)
    folder = layout.copy_folder(ctx.name, copy_id)
    settings = ctx.pipeline.copy_
    filtered, unread = _with_filters(ctx, exported, [each.table for each in requests])
    readable, plain, unplanned = _by_query(ctx, filtered)
    failures = unread | unplanned
    ranges = plan_ranges(readable, range_bytes=settings.range_bytes, folder=folder, plain=plain)
    by_oid = {each.table.oid: each for each in requests}
    plan = CopyPlan(
        pipeline=ctx.name,
        attempt=copy_id,
        landing_uri=ctx.pipeline.landing.uri,
        landing_options=dict(ctx.pipeline.landing.options),
        result_folder=folder,
        snapshot_name=exported.snapshot_name,
        parallel=settings.parallel,
        batch_bytes=ctx.pipeline.capture.batch_bytes,
        seconds=ctx.pipeline.source.read_timeout,
        ranges=tuple(by_oid[each.oid].order(each, exported.lsn) for each in ranges),
    )
    ctx.landing.write_text(f"{folder}/plan.json", plan.dumps())
    ctx.landing.delete(driver.error_file(f"{folder}/plan.json"))  # of an earlier try
    for oid in {table.oid for table in readable} - {each.oid for each in plan.ranges}:
        # nothing holds rows that the stream carries: no partition yet, or only foreign and unlogged ones
        ctx.landing.write_text(f"{folder}/{oid}.json", json.dumps({"files": [], "rows": 0}))
    if not plan.ranges:
        return failures
    ctx.progress(
        f"copying {several(len(readable), 'table')} in {several(len(plan.ranges), 'range')}, {settings.parallel} at once"
    )
    with _watched(ctx, plan, earlier):
        job = describe(ctx, "copy_tables", f"{folder}/plan.json", ctx.reader.environment("SOURCE"))
        carried_out(ctx, submit, job)
    return failures | _failures(ctx, folder, readable)


def _with_filters(
    ctx: Context, exported: Exported, sources: Sequence[SourceTable]
) -> tuple[list[SourceTable], dict[int, SourceError]]:
    """Ask for the tables' row filters in the snapshot; return the tables, and why some of them cannot be read, by oid."""
    if not any(table.filter for table in sources):
        return list(sources), {}
    found: list[SourceTable] = []
    failures: dict[int, SourceError] = {}
    with session.connect(ctx.source, what=f"{ctx.name}:copy") as conn, conn.snapshot(exported.snapshot_name):
        for table in sources:
            try:
                with of_one_table(), conn.transaction():
                    found.append(catalog.with_filter(conn, ctx.pipeline.publication, table))
            except TableError as error:
                failures[table.oid] = error
                ctx.progress(f"{table.qualified} was not copied: {error}")
    return found, failures


def _by_query(
    ctx: Context, sources: Sequence[SourceTable]
) -> tuple[list[SourceTable], Mapping[Heap, SourceError], dict[int, SourceError]]:
    """Return the tables that can be read, their relations over which no query can be planned, and why others cannot be read."""
    heaps = [
        (leaf.schema, leaf.name)
        for table in sources
        for leaf in table.leaves
        if (leaf.kind, leaf.persistence) == ("r", "p")
    ]
    with session.connect(ctx.source, what=f"{ctx.name}:copy") as conn:
        plain = unplannable(conn, ctx.reader, heaps, what=f"{ctx.name}:copy")
        failures: dict[int, SourceError] = {}
        for table in sources if plain else ():
            hit = [heap for leaf in table.leaves if (heap := (leaf.schema, leaf.name)) in plain]
            names = [column.name for column in table.columns]
            if hit and (table.where or not names or any(generated(conn, heap, names) for heap in hit)):
                failures[table.oid] = plain[hit[0]]
                ctx.progress(f"{table.qualified} was not copied: {plain[hit[0]]}")
            else:
                for heap in hit:
                    ctx.progress(f"{table.qualified} is copied by one COPY, not in parallel: {plain[heap]}")
    return [table for table in sources if table.oid not in failures], plain, failures


def together(failures: Sequence[PenstockError]) -> PenstockError:
    """Return one error for the tables that could not be copied: the only one's own, or the first one's with all messages."""
    if len(failures) == 1:
        return failures[0]
    reasons = "; ".join(map(str, failures))
    return SourceError(failures[0].slug, f"expected every table to be copied, but {len(failures)} were not: {reasons}")


def copied_files(ctx: Context, copy_id: str, oid: int, name: str) -> list[FileEntry] | None:
    """Return the files of a table that was copied to its end; None where no result proves that.

    Spark's driver has said so when it was, but for a table of which nothing is to be read.
    """
    path = f"{layout.copy_folder(ctx.name, copy_id)}/{oid}.json"
    if not ctx.landing.exists(path):
        return None
    files = [FileEntry.from_json(entry) for entry in json.loads(ctx.landing.read_text(path))["files"]]
    if not files:
        ctx.progress(f"{name}: nothing of it is to be read; the table is copied, 0 rows")
    return files


def _failures(ctx: Context, folder: str, sources: Sequence[SourceTable]) -> dict[int, SourceError]:
    found: dict[int, SourceError] = {}
    for table in sources:
        path = f"{folder}/{table.oid}.failed"
        if ctx.landing.exists(path):
            found[table.oid] = TableError(**json.loads(ctx.landing.read_text(path)))
            ctx.progress(f"{table.qualified} was not copied: {found[table.oid]}")
    return found


def _watched(ctx: Context, plan: CopyPlan, earlier: Earlier) -> AbstractContextManager[None]:
    """Tell `ctx.stage` how many of a work's ranges are landed, with how many rows, for as long as the block runs."""
    tables, paths = len({each.oid for each in plan.ranges}), {each.path for each in plan.ranges}
    rows: dict[str, int] = {}

    def ranges_landed() -> Done:
        landed = paths & set(ctx.landing.list(plan.result_folder))
        for path in landed - rows.keys():
            rows[path] = ctx.landing.rows(path)
        return earlier.files + len(landed), earlier.files + len(paths), earlier.rows + sum(rows.values()) or None

    return watched(ctx, f"copying {several(tables + earlier.tables, 'table')}", ranges_landed)
