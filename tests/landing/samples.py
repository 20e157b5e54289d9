"""Batches of changes as the decoder hands them over, made by hand."""

from collections.abc import Sequence

import pyarrow as pa

from penstock.contract.schema import landing_schema

COLUMNS = ("id", "Note", "a.b")


def inserts(count: int, *, first_lsn: int = 1000, text: str = "x", xid: int | None = 7) -> pa.RecordBatch:
    """`count` inserts into a relation of three columns; the third is NULL, the second `text`."""
    new = [{"id": str(number), "Note": text, "a.b": None} for number in range(count)]
    return batch(["I"] * count, new, [None] * count, first_lsn=first_lsn, xid=xid)


def batch(
    ops: Sequence[str],
    new: Sequence[dict[str, str | None] | None],
    old: Sequence[dict[str, str | None] | None],
    *,
    columns: Sequence[str] = COLUMNS,
    first_lsn: int = 1000,
    xid: int | None = 7,
    unchanged: Sequence[list[str] | None] | None = None,
) -> pa.RecordBatch:
    count = len(ops)
    schema = landing_schema(columns)
    arrays = {
        "commit_lsn": pa.array(range(first_lsn, first_lsn + count), pa.int64()),
        "ordinal": pa.array(range(count), pa.int64()),
        "op": pa.array(ops, pa.string()).dictionary_encode(),
        "committed_at": pa.array([1_763_000_000_000_000] * count, pa.timestamp("us", tz="UTC")),
        "xid": pa.array([xid] * count, pa.int64()),
        "origin": pa.array(["elsewhere"] * count).dictionary_encode(),
        "new": pa.array(new, schema.field("new").type),
        "old": pa.array(old, schema.field("old").type),
        "old_kind": pa.array([None if image is None else "K" for image in old], pa.string()),
        "unchanged": pa.array(unchanged or [None] * count, schema.field("unchanged").type),
    }
    return pa.RecordBatch.from_pydict(arrays)
