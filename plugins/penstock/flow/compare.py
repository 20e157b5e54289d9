"""Source and lake, row by row: the server's own text of each row against the lake's values.

Nothing here is shared with the way by which rows came into the lake: the source is read by COPY instead of
decoding, the lake by PyIceberg instead of Spark, and the lake's values are written back as texts by code of their
own. Reports name rows by hashes of their keys, never by a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.connections import Connection
from penstock.flow.fingerprint import Difference, Fingerprint, RowHasher
from penstock.flow.lake_reader import LakeReader, LakeTable, Target, lake_reader
from penstock.flow.lake_texts import MISFITS, row_texts
from penstock.source.rendered import RenderedSource, rendered

EXAMPLES = 10
EXAMINED_ROWS = 2_000_000
"""Rows of one side that are told apart at most, once two tables differ."""

_SLICE_BYTES = 64 << 20

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """Name one source column, and say whether it is part of the key."""

    name: str
    key: bool = False


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """Say what to compare: a source table, its published columns and rows, and its target.

    `heaps` are (schema, name) of the relations that hold its rows: the leaves of a partitioned table.
    """

    schema: str
    name: str
    target: Target
    columns: tuple[ComparedColumn, ...]
    where: str | None = None
    heaps: tuple[tuple[str, str], ...] | None = None

    @property
    def relations(self) -> tuple[tuple[str, str], ...]:
        """Return what to read at the source."""
        return ((self.schema, self.name),) if self.heaps is None else self.heaps


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Name one differing row by the MD5 of its key (see `Difference`), and the columns that differ."""

    kind: str
    key: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableComparison:
    """Report one table.

    `missing` rows are in the source only, `extra` ones in the lake only, `different` ones have the same key in both.
    Where `whole` is false, so much differs that only a part was counted.
    """

    schema: str
    name: str
    target: Target
    in_lake: bool = True
    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    whole: bool = True
    columns_missing: tuple[str, ...] = ()
    columns_extra: tuple[str, ...] = ()
    first: tuple[RowDifference, ...] = field(default=())

    @property
    def equal(self) -> bool:
        """Tell whether both sides have the same columns and the same rows."""
        rows = self.missing or self.extra or self.different
        return self.in_lake and not (rows or self.columns_missing or self.columns_extra)

    def lines(self) -> Iterator[str]:
        """Describe the table in sentences, without a value."""
        name = f"{self.schema}.{self.name}"
        if not self.in_lake:
            yield f"{name}: the lake has no table {'.'.join(self.target)}"
            return
        yield f"{name}: {'equal' if self.equal else 'differs'}, {self.source_rows} rows in the source, {self.lake_rows} in the lake"
        yield from (f"  column {column} is not in the lake" for column in self.columns_missing)
        yield from (f"  column {column} is in the lake only" for column in self.columns_extra)
        if self.missing or self.extra or self.different:
            least = "" if self.whole else "at least "
            yield f"  {least}{self.missing} missing, {self.extra} extra, {self.different} different"
        for row in self.first:
            columns = f" in {', '.join(row.columns)}" if row.columns else ""
            yield f"  {row.kind}{columns}{f', md5 of the key {row.key}' if row.key else ''}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Report all tables."""

    tables: tuple[TableComparison, ...]

    @property
    def equal(self) -> bool:
        """Tell whether every table is equal."""
        return all(table.equal for table in self.tables)

    @property
    def rows(self) -> int:
        """Count the source's rows."""
        return sum(table.source_rows for table in self.tables)


def compare_tables(
    source: Connection,
    tables: Sequence[ComparedTable],
    catalog: str,
    catalog_properties: Mapping[str, str],
    *,
    snapshots: Mapping[Target, int] | None = None,
    source_snapshot: str | None = None,
    progress: Progress = lambda _: None,
) -> Comparison:
    """Compare tables as of one moment of the source with the lake's current, or the named, snapshots.

    `catalog` is the name that Spark has for it; `catalog_properties` are PyIceberg's and hold secrets.
    Raises SourceError or LakeError when a side cannot be read; a difference is no error.
    """
    snapshots = snapshots or {}
    with rendered(source, snapshot_name=source_snapshot) as texts, lake_reader(catalog, catalog_properties) as lake:
        found = []
        for table in tables:
            found.append(_compare(table, texts, lake, snapshots.get(table.target)))
            progress("\n".join(found[-1].lines()))
        return Comparison(tuple(found))


def _compare(table: ComparedTable, source: RenderedSource, lake: LakeReader, snapshot: int | None) -> TableComparison:
    there = lake.table(table.target, snapshot)
    if there is None:
        return TableComparison(table.schema, table.name, table.target, in_lake=False)
    known = set(there.columns)
    common = [column for column in table.columns if column.name in known]
    with duckdb.connect() as database:
        pair = _Pair(table, [column.name for column in common], source, there)
        hasher = RowHasher(database, len(common), [n for n, column in enumerate(common) if column.key])
        return pair.compare(hasher)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Read both sides of one table, as often as need be."""

    table: ComparedTable
    columns: Sequence[str]
    source: RenderedSource
    lake: LakeTable

    def compare(self, hasher: RowHasher) -> TableComparison:
        here, there = hasher.fingerprint(self._source()), hasher.fingerprint(self._lake())
        unlike = here.differing(there)
        buckets = _affordable(unlike, here, there)
        rows = hasher.differences(self._source(), self._lake(), buckets, EXAMPLES) if len(unlike) else None
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
            columns_extra=tuple(name for name in self.lake.columns if name not in {*names, MISFITS}),
            first=tuple(map(self._named, rows.first)) if rows else (),
        )

    def _source(self) -> Iterator[pa.Table]:
        return self.source.rows(self.table.relations, self.columns, self.table.where)

    def _lake(self) -> Iterator[pa.Table]:
        names = [str(number) for number in range(len(self.columns))]
        for batch in self.lake.batches():
            for part in _slices(batch):
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
