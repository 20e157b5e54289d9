"""Two heaps of rows, equal or not, in a memory that does not grow with them.

Every row is hashed to 128 bits (MD5) and falls into one of 4096 buckets, by its key where there is one. The counts
and sums per bucket are a table's fingerprint: a multiset's, because sums don't care for order and count repetitions.
Only rows of buckets that differ are kept, on a second reading, and compared one by one. DuckDB does the counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    import duckdb

BUCKETS = 4096
_BUCKET_SHIFT = 64 - 12

Kind = Literal["missing", "extra", "different"]
Sums = npt.NDArray[np.uint64]

# NumPy has no integers of 128 bits.
_LOW = f"(hash & {2**64 - 1})::ubigint"
_HIGH = "(hash >> 64)::ubigint"

_FEW_COLUMNS = 50
"""An expression per column is fastest; planning it takes DuckDB seconds where columns are many, for each batch."""
_ENCODED = "coalesce(strlen({0}) || ':' || {0}, '-')"

_DIFFERENCES = """
with
  missing as (select * from source_rows except all select * from lake_rows),
  extra as (select * from lake_rows except all select * from source_rows),
  left_over as (select *, row_number() over (partition by key order by row) as n from missing),
  too_much as (select *, row_number() over (partition by key order by row) as n from extra)
select
  case when t.row is null then 'missing' when l.row is null then 'extra' else 'different' end as kind,
  coalesce(l.key, t.key) as key,
  l.columns as wanted,
  t.columns as got
from left_over l full join too_much t on l.key = t.key and l.n = t.n
"""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Name one row by the MD5 of its key, never by a value, and the columns that differ.

    `key` is None where the table has no key.
    To find the row at the source: md5(octet_length(k::text) || ':' || k::text), for a key of several columns
    with their parts concatenated in the table's order.
    """

    kind: Kind
    key: str | None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Hold three figures per bucket: its rows, and the sums of the low and the high halves of their hashes."""

    sums: Sums = field(default_factory=lambda: np.zeros((3, BUCKETS), np.uint64))

    @property
    def counts(self) -> Sums:
        """Return the rows of each bucket."""
        counts: Sums = self.sums[0]
        return counts

    @property
    def rows(self) -> int:
        """Count all rows."""
        return int(self.counts.sum())

    def add(self, buckets: npt.NDArray[np.int64], lows: Sums, highs: Sums) -> None:
        """Take in one batch's rows; sums wrap around, which loses nothing."""
        for sums, values in zip(self.sums, (np.ones_like(lows), lows, highs), strict=True):
            np.add.at(sums, buckets, values)

    def differing(self, other: Fingerprint) -> npt.NDArray[np.int64]:
        """Return the buckets in which two heaps differ."""
        return np.flatnonzero((self.sums != other.sums).any(axis=0))


@dataclass(frozen=True, slots=True)
class RowHasher:
    """Hash batches whose columns are the texts of rows, of the columns of these names; `key` are the positions of the key's.

    The SQL below is made of positions, never of names or values.
    """

    database: duckdb.DuckDBPyConnection
    names: Sequence[str]
    key: Sequence[int]

    def fingerprint(self, batches: Iterable[pa.Table]) -> Fingerprint:
        """Read all rows once."""
        found = Fingerprint()
        hashes = f"select {self._bucket} as bucket, md5_number({self._row}) as hash from batch"  # noqa: S608
        query = f"select bucket, {_LOW} as low, {_HIGH} as high from ({hashes})"  # noqa: S608
        for batch in batches:
            with self._batch(batch):
                hashed = self.database.execute(query).fetchnumpy()
            found.add(hashed["bucket"], hashed["low"], hashed["high"])
        return found

    def differences(
        self, source: Iterable[pa.Table], lake: Iterable[pa.Table], buckets: npt.NDArray[np.int64], first: int
    ) -> tuple[dict[str, int], tuple[RowDifference, ...]]:
        """Read all rows a second time, keep the hashes of those in `buckets`, and separate them; return counts by kind, and the first ones."""
        self._keep("source_rows", source, buckets)
        self._keep("lake_rows", lake, buckets)
        self.database.execute(f"create or replace temp table differences as {_DIFFERENCES}")
        counts = dict(self.database.execute("select kind, count(*) from differences group by kind").fetchall())
        shown = self.database.execute("from differences order by kind, key limit ?", [first]).fetchall()
        return counts, tuple(RowDifference(kind, key, self._unlike(wanted, got)) for kind, key, wanted, got in shown)

    def _unlike(self, wanted: Sequence[int] | None, got: Sequence[int] | None) -> tuple[str, ...]:
        if wanted is None or got is None:
            return ()
        return tuple(name for name, *pair in zip(self.names, wanted, got, strict=True) if pair[0] != pair[1])

    def _keep(self, table: str, batches: Iterable[pa.Table], buckets: npt.NDArray[np.int64]) -> None:
        definition = "key varchar, row varchar, columns ubigint[]"
        self.database.execute(f"create or replace temp table {table} ({definition})")
        self.database.execute("create or replace temp table chosen as select unnest(?::bigint[]) as bucket", [buckets])
        columns = ", ".join(f"hash(c{number})" for number in range(len(self.names)))
        key = f"md5({_encoded(self.key)})" if self.key else "null"
        hashes = f"{key}, md5({self._row}), [{columns}]::ubigint[]"
        chosen = f"{self._bucket} in (select bucket from chosen)"  # noqa: S608
        for batch in batches:
            with self._batch(batch):
                self.database.execute(f"insert into {table} select {hashes} from batch where {chosen}")  # noqa: S608

    @property
    def _row(self) -> str:
        return _encoded(range(len(self.names)))

    @property
    def _bucket(self) -> str:
        keyed = _encoded(self.key) if self.key else self._row
        return f"(hash({keyed}) >> {_BUCKET_SHIFT})::bigint"

    @contextmanager
    def _batch(self, batch: pa.Table) -> Iterator[None]:
        names = [f"c{number}" for number in range(batch.num_columns)]
        self.database.register("batch", batch.rename_columns(names))
        try:
            yield
        finally:
            self.database.unregister("batch")


def _encoded(columns: Sequence[int]) -> str:
    """Return SQL for columns as one text that no other values have: the length goes before each, NULL is a dash."""
    if len(columns) > _FEW_COLUMNS:
        names = ", ".join(f"c{number}" for number in columns)
        return f"array_to_string(list_transform([{names}], lambda c: {_ENCODED.format('c')}), '')"
    return f"concat({', '.join(['NULL', *(_ENCODED.format(f'c{number}') for number in columns)])})"
