"""Source and lake, row by row: the server's own text of each row against the lake's values.

Nothing here is shared with the way by which rows came into the lake: the source is read by COPY instead of
decoding, the lake by PyIceberg instead of Spark, and the lake's values are written back as texts by code of their
own. Reports name rows by hashes of their keys, never by a value.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.compare.fingerprint import Difference, Differences, Fingerprint, RowHasher
from penstock.compare.key_ranges import outside, within
from penstock.compare.lake_reader import LakeTable
from penstock.compare.pg_text import MISFITS, row_texts
from penstock.compare.report import ComparedColumn, ComparedTable, RowDifference, TableComparison

EXAMPLES = 10
EXAMINED_ROWS = 2_000_000
"""Rows of one side that are compared singly at most, once two tables differ."""

_SLICE_BYTES = 64 << 20

SourceRows = Callable[[ComparedTable, Sequence[str]], Generator[pa.Table, None, None]]
"""Read some columns of a table at the source, as often as asked, each time the same rows."""


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
