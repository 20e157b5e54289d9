"""Source and lake, row by row: the server's own text of each row against the lake's values.

Nothing here is shared with the way by which rows came into the lake: the source is read by COPY instead of
decoding, the lake by PyIceberg instead of Spark, and the lake's values are written back as texts by code of their
own. Reports name rows by hashes of their keys, never by a value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.compare.fingerprint import Difference, Differences, Fingerprint, RowHasher
from penstock.compare.key_ranges import outside, within
from penstock.compare.lake_reader import LakeReader, LakeTable, Target, lake_reader, sql_catalog
from penstock.compare.pg_text import MISFITS, row_texts
from penstock.compare.report import (
    ComparedColumn,
    ComparedTable,
    Comparison,
    RowDifference,
    TableComparison,
    unpromised,
)
from penstock.config.connections import Connection
from penstock.errors import LakeError
from penstock.flow.context import Context, Progress
from penstock.ledger.table_records import TableRecord
from penstock.shapes import partition_bounds
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, catalog_snapshot, key_range, session
from penstock.source.reading import TableError, of_one_table
from penstock.source.slot import export_snapshot
from penstock.source.text_rows import RenderedSource, rendered

__all__ = ["ComparedColumn", "ComparedTable", "Comparison", "TableComparison", "compare", "compare_tables"]

TRIES = 3
"""So often a table is compared that is truncated or rewritten before it is read."""

EXAMPLES = 10
EXAMINED_ROWS = 2_000_000
"""Rows of one side that are compared singly at most, once two tables differ."""

_SLICE_BYTES = 64 << 20

SourceRows = Callable[[ComparedTable, Sequence[str]], Generator[pa.Table, None, None]]
"""Read some columns of a table at the source, as often as asked, each time the same rows."""


def compare(
    ctx: Context, records: Sequence[TableRecord] | None = None, *, lake_properties: Mapping[str, str] | None = None
) -> Comparison:
    """Compare tables of a pipeline, or every one, paused ones too, with the source as it is now.

    Rows not yet merged are reported as missing. `lake_properties` are further ones of PyIceberg's,
    such as an object store's. A table that cannot be read is reported, and the others are compared. Raises SourceError,
    LedgerError or LakeError for what concerns all of them.
    """
    if records is None:
        records = [record for record in ctx.ledger.tables.all(ctx.name) if record.state != "dropped"]
    with session.connect(ctx.source, what=f"{ctx.name}:compare") as conn:
        snapshot = catalog_snapshot.read_catalog(conn, ctx.pipeline.publication)
        published = snapshot.by_oid
        there: list[ComparedTable] = []
        found: dict[Target, TableComparison] = {}
        for record in records:
            if record.oid not in published:
                continue
            try:
                with of_one_table():
                    table = catalog.with_filter(conn, ctx.pipeline.publication, published[record.oid])
                there.append(compared(table, record, snapshot.sent))
            except TableError as error:
                found[record.target] = TableComparison(record.schema, record.name, record.target, trouble=error)
    gone = [
        TableComparison(record.schema, record.name, record.target, in_source=False)
        for record in records
        if record.oid not in published
    ]
    properties = {**sql_catalog(ctx.catalog), **(lake_properties or {})}
    for _ in range(TRIES):
        again = [table for table in there if table.target not in found or _rewritten(found[table.target])]
        if not again:
            break
        said = _counted(ctx, len(again))
        some = compare_tables(
            ctx.reader,
            again,
            ctx.pipeline.lake.catalog,
            properties,
            seconds=ctx.pipeline.source.read_timeout,
            progress=said,
        )
        found |= {table.target: table for table in some.tables}
    return Comparison((*found.values(), *gone))


def _counted(ctx: Context, total: int) -> Progress:
    """Return how each table is reported, and counted."""
    done = itertools.count(1)

    def said(line: str) -> None:
        ctx.progress(line)
        ctx.stage("comparing tables", next(done), total)

    ctx.stage("comparing tables", 0, total)
    return said


def _rewritten(found: TableComparison) -> bool:
    return found.trouble is not None and found.trouble.slug == "table-rewritten"


def compared(table: SourceTable, record: TableRecord, sent: Collection[str]) -> ComparedTable:
    """Say how a published table is compared with its target: what the stream carries of it, by the kinds that are `sent`."""
    names = {column.attnum: column.name for column in table.columns}
    kept = [each.bound for each in record.accepted.kept]
    bounds = [partition_bounds.named(bound, names) for bound in kept if partition_bounds.found_in_lake(bound)]
    where = [f"({each})" for each in (table.where, *map(key_range.outside_bound, bounds)) if each]
    lacking = unpromised(sent, keyed=bool(table.key))
    return ComparedTable(
        schema=table.schema,
        name=table.name,
        target=record.target,
        columns=tuple(
            ComparedColumn(column.name, column.name in table.key, column.names_objects is not None)
            for column in table.columns
        ),
        where=" and ".join(where) or None,
        # rows of foreign and unlogged partitions are not in the WAL
        heaps=tuple((leaf.schema, leaf.name) for leaf in table.leaves if (leaf.kind, leaf.persistence) == ("r", "p")),
        # rows that the lake keeps, and cannot tell from others
        unpromised=lacking if len(bounds) == len(kept) else tuple(dict.fromkeys([*lacking, "extra"])),
        kept=frozenset(column.name for column in record.columns if column.dropped),
        archive=tuple(bounds),
    )


def compare_tables(
    source: Connection,
    tables: Sequence[ComparedTable],
    catalog_name: str,
    catalog_properties: Mapping[str, str],
    *,
    seconds: int,
    snapshots: Mapping[Target, int] | None = None,
    progress: Progress = lambda _: None,
) -> Comparison:
    """Compare tables as of one moment of the source with the lake's current, or the named, snapshots.

    `catalog_name` is the name that Spark has for it; `catalog_properties` are PyIceberg's and hold secrets. A table is read
    for so many seconds at most.
    Raises SourceError or LakeError for what concerns all tables; a difference is no error, nor is a table that cannot be
    read: the report names it.
    """
    snapshots = snapshots or {}
    with export_snapshot(source, what="compare") as exported, lake_reader(catalog_name, catalog_properties) as lake:
        found = []
        for table in tables:
            reading = partial(rendered, source, seconds=seconds, snapshot_name=exported.snapshot_name)
            found.append(_tried(table, reading, lake, snapshots.get(table.target)))
            for line in found[-1].lines():
                progress(line)
        return Comparison(tuple(found))


def _tried(
    table: ComparedTable,
    reading: Callable[[], AbstractContextManager[RenderedSource]],
    lake: LakeReader,
    snapshot: int | None,
) -> TableComparison:
    """Compare one table, or say why it could not be read."""
    try:
        with of_one_table(), reading() as texts:
            return compare_table(table, partial(_all_rows, texts), lake.table(table.target, snapshot))
    except (TableError, LakeError) as error:
        if isinstance(error, LakeError) and error.slug != "lake-unreadable":
            raise
        return TableComparison(table.schema, table.name, table.target, trouble=error)


def compare_table(
    table: ComparedTable, source: SourceRows, lake: LakeTable | None, here: Fingerprint | None = None
) -> TableComparison:
    """Compare one table, or a part of it; `here` is what `fingerprint` returned of the same rows, if it was asked.

    Raises SourceError or LakeError when a side cannot be read.
    """
    if lake is None:
        return TableComparison(table.schema, table.name, table.target, in_lake=False)
    known = set(lake.columns)
    common = [column for column in table.columns if column.name in known]
    found = _compared(table, common, source, lake, here if len(common) == len(table.columns) else None)
    steady = [column for column in common if not column.names_objects]
    if found.same_rows or len(steady) == len(common):
        return found
    rest = _compared(table, steady, source, lake, None)
    # names that changed since, and nothing else; what else differs is shown with all columns
    renamed = tuple(column.name for column in common if column.names_objects)
    return replace(rest, columns_missing=found.columns_missing, renamed=renamed) if rest.same_rows else found


def _compared(
    table: ComparedTable,
    columns: Sequence[ComparedColumn],
    source: SourceRows,
    lake: LakeTable,
    here: Fingerprint | None,
) -> TableComparison:
    with _hashing(columns) as hasher:
        return _Pair(table, [column.name for column in columns], source, lake).compare(hasher, here)


def fingerprint(table: ComparedTable, source: SourceRows) -> Fingerprint:
    """Read the source's side of one table, while the lake is still on its way; raises SourceError."""
    names = [column.name for column in table.columns]
    with _hashing(table.columns) as hasher, closing(source(table, names)) as rows:
        return hasher.fingerprint(rows)


@contextmanager
def _hashing(columns: Sequence[ComparedColumn]) -> Iterator[RowHasher]:
    import duckdb  # noqa: PLC0415  # DAG files need not pay for it

    with duckdb.connect() as database:
        yield RowHasher(database, len(columns), [n for n, column in enumerate(columns) if column.key])


def _all_rows(texts: RenderedSource, table: ComparedTable, columns: Sequence[str]) -> Generator[pa.Table, None, None]:
    yield from texts.rows(table.relations, columns, table.where, table.part)
    texts.require_same(table.relations)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Read both sides of one table, as often as need be."""

    table: ComparedTable
    columns: Sequence[str]
    source: SourceRows
    lake: LakeTable

    def compare(self, hasher: RowHasher, known: Fingerprint | None) -> TableComparison:
        here, there = known or self._source_fingerprint(hasher), hasher.fingerprint(self._lake())
        unlike = here.differing(there)
        buckets = _affordable(unlike, here, there)
        rows = self._differences(hasher, buckets) if len(unlike) else None
        names = [column.name for column in self.table.columns]
        return TableComparison(
            schema=self.table.schema,
            name=self.table.name,
            target=self.table.target,
            source_rows=here.rows,
            lake_rows=there.rows,
            missing=rows.missing if rows else 0,
            extra=rows.extra if rows else 0,
            different=rows.different if rows else 0,
            whole=len(buckets) == len(unlike),
            columns_missing=tuple(name for name in names if name not in self.columns),
            columns_extra=tuple(name for name in self.lake.columns if name not in {*names, MISFITS, *self.table.kept}),
            first=tuple(map(self._named, rows.first)) if rows else (),
            unpromised=self.table.unpromised,
        )

    def _source_fingerprint(self, hasher: RowHasher) -> Fingerprint:
        with self._source() as rows:
            return hasher.fingerprint(rows)

    def _differences(self, hasher: RowHasher, buckets: npt.NDArray[np.int64]) -> Differences:
        with self._source() as rows:
            return hasher.differences(rows, self._lake(), buckets, EXAMPLES)

    def _source(self) -> closing[Generator[pa.Table, None, None]]:
        """Return the source's rows, to be closed: a COPY that is left half read holds its connection."""
        return closing(self.source(self.table, self.columns))

    def _lake(self) -> Iterator[pa.Table]:
        names = [str(number) for number in range(len(self.columns))]
        for batch in self.lake.batches():
            for part in _slices(outside(within(batch, self.table.part), self.table.archive)):
                columns = row_texts(part, self.columns)
                yield pa.table(columns, names) if names else pa.table({"none": pa.nulls(part.num_rows)})

    def _named(self, difference: Difference) -> RowDifference:
        return RowDifference(difference.kind, difference.key, tuple(self.columns[n] for n in difference.columns))


def _affordable(unlike: npt.NDArray[np.int64], here: Fingerprint, there: Fingerprint) -> npt.NDArray[np.int64]:
    """Choose the buckets to look into: all of them, or the first ones while memory allows; one at least."""
    rows = np.cumsum(np.maximum(here.counts[unlike], there.counts[unlike]))
    return unlike[: max(1, int(np.searchsorted(rows, EXAMINED_ROWS, side="right")))]


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch whose texts would be too large at once."""
    rows = max(1, batch.num_rows * _SLICE_BYTES // max(1, batch.nbytes))
    return (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))
