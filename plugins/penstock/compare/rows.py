"""Source and lake, row by row: the server's own text of each row against the lake's values.

Nothing here is shared with the way by which rows came into the lake: the source is read by COPY instead of
decoding, the lake by PyIceberg instead of Spark, and the lake's values are written back as texts by code of their
own. Reports name rows by hashes of their keys, never by a value.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.compare.fingerprint import Fingerprint, RowDifference, RowHasher
from penstock.compare.key_ranges import outside, within
from penstock.compare.lake_reader import LakeTable
from penstock.compare.pg_text import MISFITS, row_texts
from penstock.compare.report import ComparedTable, TableComparison

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
    common = [column for column in table.columns if column in known]
    found = _compared(table, common, source, lake, here if len(common) == len(table.columns) else None)
    steady = [column for column in common if column not in table.naming_objects]
    if found.same_rows or len(steady) == len(common):
        return found
    rest = _compared(table, steady, source, lake, None)
    # names that changed since, and nothing else; what else differs is shown with all columns
    renamed = tuple(column for column in common if column in table.naming_objects)
    return replace(rest, columns_missing=found.columns_missing, renamed=renamed) if rest.same_rows else found


def _compared(
    table: ComparedTable,
    columns: Sequence[str],
    source: SourceRows,
    lake: LakeTable,
    known: Fingerprint | None,
) -> TableComparison:
    """Read both sides once, and those buckets a second time in which they differ."""
    counts: dict[str, int] = {}
    first: tuple[RowDifference, ...] = ()
    with _hashing(table, columns) as hasher:
        here = known or _source_fingerprint(hasher, table, source)
        there = hasher.fingerprint(_lake(table, columns, lake))
        unlike = here.differing(there)
        buckets = _affordable(unlike, here, there)
        if len(unlike):
            with closing(source(table, columns)) as rows:
                counts, first = hasher.differences(rows, _lake(table, columns, lake), buckets, EXAMPLES)
    return TableComparison(
        schema=table.schema,
        name=table.name,
        target=table.target,
        source_rows=here.rows,
        lake_rows=there.rows,
        whole=len(buckets) == len(unlike),
        columns_missing=tuple(name for name in table.columns if name not in columns),
        columns_extra=tuple(name for name in lake.columns if name not in {*table.columns, MISFITS, *table.kept}),
        first=first,
        unpromised=table.unpromised,
        missing=counts.get("missing", 0),
        extra=counts.get("extra", 0),
        different=counts.get("different", 0),
    )


def fingerprint(table: ComparedTable, source: SourceRows) -> Fingerprint:
    """Read the source's side of one table, while the lake is still on its way; raises SourceError."""
    with _hashing(table, table.columns) as hasher:
        return _source_fingerprint(hasher, table, source)


def _source_fingerprint(hasher: RowHasher, table: ComparedTable, source: SourceRows) -> Fingerprint:
    """Hash the source's rows, which are closed in any case: a COPY that is left half read holds its connection."""
    with closing(source(table, hasher.names)) as rows:
        return hasher.fingerprint(rows)


@contextmanager
def _hashing(table: ComparedTable, columns: Sequence[str]) -> Iterator[RowHasher]:
    import duckdb  # noqa: PLC0415  # DAG files need not pay for it

    with duckdb.connect() as database:
        yield RowHasher(database, columns, [n for n, column in enumerate(columns) if column in table.key])


def _lake(table: ComparedTable, names: Sequence[str], lake: LakeTable) -> Iterator[pa.Table]:
    numbers = [str(number) for number in range(len(names))]
    for batch in lake.batches():
        for part in _slices(outside(within(batch, table.part), table.archive)):
            columns = row_texts(part, names)
            yield pa.table(columns, numbers) if numbers else pa.table({"none": pa.nulls(part.num_rows)})


def _affordable(unlike: npt.NDArray[np.int64], here: Fingerprint, there: Fingerprint) -> npt.NDArray[np.int64]:
    """Choose the buckets to look into: all of them, or the first ones while memory allows; one at least."""
    rows = np.cumsum(np.maximum(here.counts[unlike], there.counts[unlike]))
    return unlike[: max(1, int(np.searchsorted(rows, EXAMINED_ROWS, side="right")))]


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch whose texts would be too large at once."""
    rows = max(1, batch.num_rows * _SLICE_BYTES // max(1, batch.nbytes))
    return (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))
