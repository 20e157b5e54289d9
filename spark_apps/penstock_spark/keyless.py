"""A batch onto a table without a key: under REPLICA IDENTITY FULL a bag of rows, else one that only grows."""

from __future__ import annotations

from pyspark.sql import Observation
from pyspark.sql import functions as F

from penstock.lake.quoting import path
from penstock_spark import multiset, typed, write
from penstock_spark.batch import Batch


def apply(batch: Batch) -> None:
    """Write the batch on the branch: as many copies of each row come and go as the changes say."""
    net = batch.keep(multiset.net_rows(batch.changes, batch.mirror))
    facts = net.agg(
        F.coalesce(F.sum(F.when(F.col("net") > 0, F.col("net"))), F.lit(0)).alias("came"),
        F.coalesce(F.sum(F.when(F.col("net") < 0, -F.col("net"))), F.lit(0)).alias("went"),
        typed.count_misfits(F.col("net") > 0).alias("misfits"),
    ).collect()[0]
    batch.note_misfits(facts["misfits"])
    found = 0
    if facts["went"] and not batch.onto_nothing:
        places = batch.keep.pinned(multiset.places(net, batch.table.rows(), batch.mirror))
        found = places.count()
    batch.note_conflicts(delete_missing=facts["went"] - found)
    if found:
        batch.counts["rows_deleted"] += write.delete_places(batch.table, places, found)
    batch.add(typed.named(multiset.copies(net), batch.mirror), any_rows=facts["came"] > 0)


def append(batch: Batch) -> None:
    """Write the batch's inserts on the branch."""
    texts = {i: path("new", column.name) for i, column in enumerate(batch.mirror.columns)}
    rows = typed.cast_rows(batch.changes.where("op = 'I'"), batch.mirror, texts, [])
    seen = Observation()
    rows = rows.observe(seen, typed.count_misfits().alias("misfits"))
    batch.add(typed.named(rows, batch.mirror), any_rows=True)
    batch.note_misfits(seen.get["misfits"])
