"""Changes of one relation, as `scan` found them, into one record batch of the landing contract.

Everything is a view of arrays that a compiled pass or NumPy has filled; Python runs once per column, never per row.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.contract.schema import landing_schema
from penstock.errors import ProtocolError
from penstock.wire.arrays import LARGE, NONE, Bits, Bytes, Gathered, Int64s, Rows, Sizes, Transactions
from penstock.wire.messages import POSTGRES_EPOCH_US, Relation
from penstock.wire.passes import gather
from penstock.wire.readers import NEXT_STEP

INT64 = np.iinfo(np.int64)
TRANSACTION_FIELDS = [landing_schema(()).field(name) for name in ("commit_lsn", "committed_at", "xid", "origin")]

_block_schema = lru_cache(maxsize=256)(landing_schema)


def transaction_batch(transactions: Transactions, origins: list[str], horizon: int) -> pa.RecordBatch:
    """Return the columns of TRANSACTION_FIELDS, a row per transaction; raises ProtocolError for an impossible xid.

    A time that an origin has forged beyond what 64 bits of microseconds since 1970 hold, such as infinity, becomes null.
    """
    time = transactions.commit_time
    beyond = (time > INT64.max - POSTGRES_EPOCH_US) | (time == INT64.min)
    since_1970 = np.where(beyond, 0, time) + POSTGRES_EPOCH_US
    origin = transactions.origin
    columns = [
        pa.array(transactions.final_lsn),
        pa.array(since_1970.view("M8[us]"), pa.timestamp("us", tz="UTC"), mask=beyond),
        pa.array(full_xids(transactions.xid, horizon)),
        pa.array(origins, pa.string()).take(pa.array(origin, mask=origin == NONE)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(TRANSACTION_FIELDS))


def full_xids(xids: NDArray[np.uint32], horizon: int) -> Int64s:
    """Extend 32-bit transaction ids to 64 bits, each to the one nearest to `horizon`, the xmax of a snapshot.

    The server keeps all xids that decoding can meet within 2^31 of the next one, so the nearest is the right one, also
    for a transaction that began just after `horizon` was read. Raises ProtocolError for one before the first epoch.
    """
    behind = (np.uint32(horizon & 0xFFFFFFFF) - xids).astype(np.int32)
    full = np.int64(horizon) - behind.astype(np.int64)
    if full.min(initial=0) < 0:
        expected = f"expected transaction ids within 2^31 of the snapshot's xmax {horizon}"
        raise ProtocolError("protocol-sequence", f"{expected}, got {xids[full.argmin()]} instead; {NEXT_STEP}")
    return full


def record_batch(
    relation: Relation,
    data: Bytes,
    rows: Rows,
    *,
    ordinals: Int64s,
    transactions: pa.RecordBatch,
    sizes: Sizes,
) -> pa.RecordBatch:
    """Build the block of `rows`, all of one shape of `relation`.

    `transactions` comes from `transaction_batch`; `sizes` are those of this shape, at least what the rows hold.
    Raises ProtocolError for text that is not UTF-8.
    """
    schema = _block_schema(tuple(column.name for column in relation.columns))
    row_type = schema.field("new").type
    new, gathered = _structs(relation, row_type, data, rows.new, sizes=sizes.new, unchanged=int(sizes.unchanged[0]))
    old, _ = _structs(relation, row_type, data, rows.old, sizes=sizes.old, unchanged=0)
    of_transaction = transactions.take(pa.array(rows.transaction))
    columns = {
        **dict(zip(of_transaction.schema.names, of_transaction.columns, strict=True)),
        "ordinal": pa.array(ordinals),
        "op": _letters(rows.op),
        "new": new,
        "old": old,
        "old_kind": _letters(rows.old_kind),
        "unchanged": _lists(gathered, row_type, schema.field("unchanged").type, len(rows.op)),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _structs(
    relation: Relation,
    row_type: pa.StructType,
    data: Bytes,
    starts: Int64s,
    *,
    sizes: Int64s,
    unchanged: int,
) -> tuple[pa.Array, Gathered | None]:
    """Return the tuples at `starts` as structs of strings, and what `gather` noted next to them."""
    present = starts != NONE
    count = len(starts)
    if not present.any():
        return pa.nulls(count, row_type), None
    if count == 1 and sizes.sum() >= LARGE:
        into = Gathered.view(data, int(starts[0]), len(sizes))
    else:
        into = Gathered.allocate(count, sizes, unchanged)
        gather(data, starts, into)
    children = list(_strings(relation, into, sizes, count)) or [pa.nulls(count, pa.string())]
    buffers = [_bitmap(present)]
    return pa.Array.from_buffers(row_type, count, buffers, -1, 0, children), into


def _strings(relation: Relation, into: Gathered, sizes: Int64s, count: int) -> Iterator[pa.Array]:
    for number, column in enumerate(relation.columns):
        start = into.base[number]
        values = into.values[start : start + sizes[number]]
        buffers = [pa.py_buffer(each) for each in (into.validity[number], into.offsets[number], values)]
        strings = pa.Array.from_buffers(pa.string(), count, buffers)
        if not _is_utf8(strings):
            expected = f'expected UTF-8 text in column "{column.name}" of {relation}, got other bytes instead'
            raise ProtocolError("protocol-unknown", f"{expected}; {NEXT_STEP}")
        yield strings


def _is_utf8(strings: pa.StringArray) -> bool:
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _bitmap(present: Bits) -> pa.Buffer:
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _letters(codes: Bytes) -> pa.Array:
    """Return strings of one ASCII letter each, null where the code is 0."""
    present = codes != 0
    offsets = np.zeros(len(codes) + 1, np.int32)
    np.cumsum(present, out=offsets[1:])
    buffers = [_bitmap(present), pa.py_buffer(offsets), pa.py_buffer(codes[present])]
    return pa.Array.from_buffers(pa.string(), len(codes), buffers)


def _lists(gathered: Gathered | None, row_type: pa.StructType, list_type: pa.ListType, count: int) -> pa.Array:
    """Return the names of each row's unchanged columns, null where there are none."""
    if gathered is None or not gathered.unchanged_offsets[-1]:
        return pa.nulls(count, list_type)
    offsets = gathered.unchanged_offsets
    names = pa.array([row_type.field(number).name for number in range(row_type.num_fields)], pa.string())
    elements = names.take(pa.array(gathered.unchanged[: offsets[-1]]))
    buffers = [_bitmap(np.diff(offsets) > 0), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(list_type, count, buffers, -1, 0, [elements])
