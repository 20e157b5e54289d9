"""Merge of 200,000 or two million changed rows at random keys into a large table: casts, one row per key, delete and append.

What is timed is the application's own work from plan to result, the record of the cut included. No result is
published and the tables' metadata is set back, so every run of one kind does the same work on the same table. The keys are spread over the whole table,
the worst case: no file can be left unread.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench import cpu
from bench.figures import Figure
from bench.lake import workbench
from penstock.contract.manifest import ChangeCounts, FileRef
from penstock.contract.schema import landing_schema
from penstock.landing.zone import LandingZone
from tests.spark.workbench import Table, Workbench, column

SMALL, LARGE = 2_000_000, 10_000_000
CHANGES, MANY = 200_000, 2_000_000
RUNS = 5
WARM_UPS = 3
PART = 500_000
BATCH = 20_000

COLUMNS = (
    column("id", "int8", key=True),
    column("customer", "int4"),
    column("status"),
    column("amount", "numeric(12,2)"),
    column("created_at", "timestamptz"),
    column("active", "bool"),
    column("note"),
    column("document", "jsonb"),
)
NAMES = [each.name for each in COLUMNS]


def measure() -> list[Figure]:
    """Return the speed of 200 k changes into 2 M rows, its CPU seconds, and that of 2 M changes; two ratios beside.

    `merge_10x_ratio` is 10 M rows against 2 M, that of `merge_unchanged_toast_changes_per_s` plain changes against such
    that leave a column out in a tenth of the updates.
    """
    with workbench() as bench:
        small, large = loaded(bench, SMALL), loaded(bench, LARGE)
        zone = LandingZone.open(str(bench.folder), {})
        plain = changed(zone, SMALL, CHANGES), changed(zone, LARGE, CHANGES)
        toasted, many = changed(zone, SMALL, CHANGES, 0.1), changed(zone, SMALL, MANY)
        for changes in (plain[0], toasted) * WARM_UPS:
            _seconds(bench, small, changes)
        spent = cpu.seconds(os.getpid())
        alone = [_seconds(bench, small, plain[0]) for _ in range(RUNS)]
        spent = cpu.seconds(os.getpid()) - spent
        pairs = [(_seconds(bench, small, plain[0]), _seconds(bench, large, plain[1])) for _ in range(RUNS)]
        holes = [(_seconds(bench, small, plain[0]), _seconds(bench, small, toasted)) for _ in range(RUNS)]
        at_many = statistics.median(_seconds(bench, small, many) for _ in range(RUNS))
    return [
        Figure("merge_changes_per_s", CHANGES / statistics.median(alone), "changes/s"),
        Figure("merge_cpu_s", spent / RUNS, "s"),
        Figure("merge_10x_ratio", _ratio(pairs), "x"),
        Figure(
            "merge_unchanged_toast_changes_per_s",
            CHANGES / statistics.median(after for _, after in holes),
            "changes/s",
            1 / _ratio(holes),
        ),
        Figure("merge_2m_changes_per_s", MANY / at_many, "changes/s"),
    ]


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """Return by how much the second of a pair took longer: within a pair the machine is equally busy."""
    return statistics.median(after / before for before, after in pairs)


def _seconds(bench: Workbench, table: Table, changes: FileRef) -> float:
    table.files = [changes]
    bench.tables = [table]
    with set_back(bench):
        started = time.perf_counter()
        result = bench.prepare()
        seconds = time.perf_counter() - started
    table.files = []
    counts = result.tables[0].counts
    assert result.tables[0].paused_slug is None
    assert (counts["update_missing"], counts["delete_missing"], counts["insert_existing"]) == (0, 0, 0)
    return seconds


@contextmanager
def set_back(bench: Workbench) -> Iterator[None]:
    """Let every table show the metadata that it showed before: each run left a branch there, for the next to carry."""
    with bench.connect() as connection:
        shown = connection.execute(
            "select table_namespace, table_name, metadata_location from iceberg_tables"
        ).fetchall()
        yield
        for namespace, table, place in shown:
            connection.execute(
                "update iceberg_tables set metadata_location = %s where (table_namespace, table_name) = (%s, %s)",
                (place, namespace, table),
            )


def loaded(bench: Workbench, rows: int) -> Table:
    """Bring a table of so many rows into the lake by a copy, and publish it."""
    table = bench.table(*COLUMNS)
    bench.tables = [table]
    parts = range(0, rows, PART)
    table.copy_files = [
        table.copied(str(start), pa.RecordBatch.from_struct_array(_row(np.arange(start, min(start + PART, rows)), 1)))
        for start in parts
    ]
    bench.merge()
    for file in bench.folder.glob(f"{table.oid}-*.parquet"):
        file.unlink()
    return table


def changed(zone: LandingZone, rows: int, count: int, unchanged: float = 0.0) -> FileRef:
    """Land 80 % updates, 10 % deletes and 10 % inserts; a part of the updates leave `document` out."""
    rng = np.random.default_rng(1)
    touched = rng.choice(rows, count * 9 // 10, replace=False)
    updated, deleted = touched[: count * 8 // 10], touched[count * 8 // 10 :]
    left_out = rng.random(len(updated)) < unchanged
    kinds = [_updates(updated, left_out), _deletes(deleted), _inserts(rows + np.arange(count // 10))]
    changes = pa.concat_tables(kinds)
    ordinals = pa.array(rng.permutation(len(changes)))
    changes = changes.set_column(1, changes.schema.field("ordinal"), ordinals)
    return _write(zone, f"changes.{rows}.{count}.{unchanged}.parquet", changes.sort_by("ordinal"))


def _row(ids: np.ndarray, salt: int) -> pa.StructArray:
    """Return rows as PostgreSQL's texts."""
    rng = np.random.default_rng((salt, int(ids[0])))
    count = len(ids)
    cents = pc.utf8_lpad(pa.array(rng.integers(0, 100, count)).cast(pa.string()), 2, "0")
    moments = pa.array(rng.integers(1_500_000_000, 1_700_000_000, count)).cast(pa.timestamp("s"))
    words = pa.array(rng.integers(0, 1 << 60, count)).cast(pa.string())
    columns = [
        pa.array(ids).cast(pa.string()),
        pa.array(rng.integers(0, 100_000, count)).cast(pa.string()),
        pa.array(["new", "paid", "shipped", "returned"]).take(pa.array(rng.integers(0, 4, count))),
        pc.binary_join_element_wise(pa.array(rng.integers(0, 1_000_000, count)).cast(pa.string()), cents, "."),
        pc.binary_join_element_wise(pc.strftime(moments, "%Y-%m-%d %H:%M:%S"), "+00", ""),
        pa.array(["t", "f"]).take(pa.array(rng.integers(0, 2, count))),
        pc.binary_join_element_wise("note", words, words, " "),
        pc.binary_join_element_wise('{"words": "', words, words, words, '"}', " "),
    ]
    return pa.StructArray.from_arrays(columns, NAMES)


def _inserts(ids: np.ndarray) -> pa.Table:
    return _landed("I", len(ids), new=_row(ids, 1))


def _updates(ids: np.ndarray, left_out: np.ndarray) -> pa.Table:
    new = _row(ids, 2)
    fields = [new.field(name) for name in NAMES]
    fields[-1] = pc.if_else(pa.array(left_out), pa.scalar(None, pa.string()), fields[-1])
    ends = np.concatenate([[0], np.cumsum(left_out)]).astype(np.int32)
    names = pa.array(["document"] * int(left_out.sum()), pa.string())
    lists = pa.ListArray.from_arrays(pa.array(ends), names, mask=pa.array(~left_out))
    return _landed("U", len(ids), new=pa.StructArray.from_arrays(fields, NAMES), unchanged=lists)


def _deletes(ids: np.ndarray) -> pa.Table:
    nothing = pa.nulls(len(ids), pa.string())
    old = pa.StructArray.from_arrays([pa.array(ids).cast(pa.string()), *[nothing] * (len(NAMES) - 1)], NAMES)
    return _landed("D", len(ids), old=old, old_kind=pa.array(["K"] * len(ids)))


def _landed(op: str, count: int, **columns: pa.Array) -> pa.Table:
    schema = landing_schema(NAMES)
    given = {
        "commit_lsn": pa.array(np.full(count, 1)),
        "ordinal": pa.array(np.arange(count)),
        "op": pa.array([op]).take(pa.array(np.zeros(count, np.int64))),
        **columns,
    }
    arrays = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(count, field.type) for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _write(zone: LandingZone, name: str, rows: pa.Table) -> FileRef:
    """Land the rows as capture does, in batches that grow to row groups."""
    writer = zone.writer(name, NAMES)
    for batch in rows.to_batches(max_chunksize=BATCH):
        writer.write(batch)
    ops = {entry["values"]: entry["counts"] for entry in pc.value_counts(rows["op"]).to_pylist()}
    counts = ChangeCounts(
        inserts=ops.get("I", 0),
        updates=ops.get("U", 0),
        deletes=ops.get("D", 0),
        unchanged=len(rows) - rows["unchanged"].null_count,
        old_key=len(rows) - rows["old_kind"].null_count,
    )
    landed = writer.close(oid=1, version=1, counts=counts)
    return FileRef(zone.uri(name), landed.rows, landed.bytes, landed.columns, counts)
