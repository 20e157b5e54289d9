"""Source and lake, row by row: the server's own text of each row against the lake's values.

Nothing here is shared with the way by which rows came into the lake: the source is read by COPY instead of
decoding, the lake by PyIceberg instead of Spark, and the lake's values are written back as texts by code of their
own. Reports name rows by hashes of their keys, never by a value.

Of a part of a table those rows of the lake are compared that `KeyRange.condition` chooses at the source. Values that the lake's
type cannot hold are NULL there and lie beyond every value that it holds: below those with a minus sign or before Christ, above
the rest.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.compare.fingerprint import Fingerprint, RowDifference, RowHasher
from penstock.compare.lake_reader import LakeTable
from penstock.compare.pg_text import MISFITS, row_texts
from penstock.compare.report import ComparedTable, TableComparison
from penstock.shapes.partition_bounds import Bound, Condition
from penstock.source.text_rows import KeyRange

EXAMPLES = 10
EXAMINED_ROWS = 2_000_000
"""Rows of one side that are compared singly at most, once two tables differ."""

_SLICE_BYTES = 64 << 20
_BELOW = "^-| BC$"

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


def within(batch: pa.RecordBatch, part: KeyRange | None) -> pa.RecordBatch:
    """Return the rows of a batch that lie in the range; a row whose key is NULL, which no source has, lies in the first."""
    if part is None or (part.lower is None and part.upper is None):
        return batch
    if not part.indexed:
        (rendered,) = row_texts(batch, [part.column])
        return batch.filter(pc.fill_null(_between(rendered, part.lower, part.upper), part.lower is None))
    values = batch.column(part.column)
    inside = _between(values, part.lower, part.upper)
    return batch.filter(inside if not values.null_count else pc.coalesce(inside, _beyond(batch, part)))


def outside(batch: pa.RecordBatch, bounds: Sequence[Bound]) -> pa.RecordBatch:
    """Return the rows of a batch that are within none of these bounds, as `text_rows.outside_bound` says it to the source."""
    for bound in bounds:
        inside = pc.fill_null(reduce(pc.and_kleene, (_met(batch, each) for each in bound)), False)
        batch = batch.filter(pc.invert(inside))
    return batch


def _met(batch: pa.RecordBatch, condition: Condition) -> pa.Array:
    values = batch.column(str(condition.column))
    if condition.values is None:
        return _between(values, condition.low, condition.high)
    wanted = [_value(each, values.type).as_py() for each in condition.values if each is not None]
    return pc.is_in(values, value_set=pa.array(wanted, values.type))


def _between(values: pa.Array, lower: str | None, upper: str | None) -> pa.Array:
    """Compare, NULL for NULL."""
    above = pc.is_valid(values) if lower is None else pc.greater_equal(values, _value(lower, values.type))
    below = pc.is_valid(values) if upper is None else pc.less(values, _value(upper, values.type))
    return pc.if_else(values.is_valid(), pc.and_(above, below), pa.scalar(None, pa.bool_()))


def _beyond(batch: pa.RecordBatch, part: KeyRange) -> pa.Array:
    """Return whether a row whose key the lake cannot hold belongs to this range, for it is an outermost one."""
    (rendered,) = row_texts(batch, [part.column])
    low = pc.fill_null(pc.match_substring_regex(rendered, _BELOW), True)
    nowhere = pa.array([False] * batch.num_rows)
    return pc.or_(
        low if part.lower is None else nowhere,
        pc.invert(low) if part.upper is None else nowhere,
    )


def _value(text: str, type: pa.DataType) -> pa.Scalar:
    """Read PostgreSQL's text of a value that the lake holds."""
    if pa.types.is_timestamp(type):
        return pa.scalar(text.removesuffix("+00")).cast(pa.timestamp("us")).cast(type)
    return pa.scalar(text).cast(type)
