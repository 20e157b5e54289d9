"""A batch onto a table without a key: under REPLICA IDENTITY FULL a bag of rows, else one that only grows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from penstock.lake.quoting import path
from penstock_spark import casts, multiset, write
from penstock_spark.batch import Batch


def apply(batch: Batch) -> None:
    """Write the batch on the branch: as many copies of each row come and go as the changes say."""
    net = batch.keep(multiset.net_rows(batch.changes, batch.mirror))
    facts = net.agg(
        F.coalesce(F.sum(F.when(F.col("net") > 0, F.col("net"))), F.lit(0)).alias("came"),
        F.coalesce(F.sum(F.when(F.col("net") < 0, -F.col("net"))), F.lit(0)).alias("went"),
        casts.count_misfits(F.col("net") > 0).alias("misfits"),
    ).collect()[0]
    batch.note_misfits(facts["misfits"])
    found = 0
    if facts["went"] and not batch.onto_nothing:
        places = batch.keep.pinned(multiset.places(net, batch.table.rows(), batch.mirror))
        found = places.count()
    batch.note_conflicts(delete_missing=facts["went"] - found)
    if found:
        batch.counts["rows_deleted"] += write.delete_places(batch.table, places, found)
    batch.add(casts.named(multiset.copies(net), batch.mirror), any_rows=facts["came"] > 0)


def append(batch: Batch) -> None:
    """Write the batch's inserts on the branch."""
    load(batch, [(frozenset(), batch.changes.where("op = 'I'"))])


def load(batch: Batch, parts: Sequence[tuple[Collection[str], DataFrame]]) -> None:
    """Write new images on the branch, each part with the names of its columns that hold values, not texts."""
    rows = reduce(DataFrame.unionByName, (_cast(batch, images, names) for names, images in parts))
    if not any(_may_misfit(batch, names) for names, _ in parts):  # looking at every row costs a twentieth of the load
        batch.add(casts.named(rows, batch.mirror), any_rows=True)
        return
    seen = Observation()
    rows = rows.observe(seen, casts.count_misfits().alias("misfits"))
    batch.add(casts.named(rows, batch.mirror), any_rows=True)
    batch.note_misfits(seen.get["misfits"])


def _may_misfit(batch: Batch, values: Collection[str]) -> bool:
    columns = zip(batch.mirror.columns, batch.mirror.lake, strict=True)
    return any(column.name not in values and not lake.always_fits for column, lake in columns)


def _cast(batch: Batch, images: DataFrame, values: Collection[str]) -> DataFrame:
    fields = {i: path("new", column.name) for i, column in enumerate(batch.mirror.columns)}
    ready = {i: field for i, field in fields.items() if batch.mirror.columns[i].name in values}
    texts = {i: field for i, field in fields.items() if i not in ready}
    return casts.cast_rows(images, batch.mirror, texts, [], ready)
