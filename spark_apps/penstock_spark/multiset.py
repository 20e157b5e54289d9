"""Tables without a key: a bag of rows, in which equal rows are counted, not distinguished.

Within a batch the order of changes does not matter: what counts is how many copies of a row came or went. A
delete takes any of the equal rows, so exactly as many places as needed are chosen in the lake and deleted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from penstock.lake.columns import MISFITS
from penstock.lake.equality import distinguishable
from penstock.lake.quoting import path
from penstock_spark.casts import cast_rows
from penstock_spark.resolve import Mirror


def net_rows(changes: DataFrame, mirror: Mirror) -> DataFrame:
    """Return each distinct row that the batch changes, typed, with `net`: copies that came less copies that went.

    PostgreSQL prints equal values alike, -0 and 0 apart, so texts distinguish rows exactly.
    """
    after = [mirror.text(i) for i in range(len(mirror.columns))]
    before = [path("old", column.name) for column in mirror.columns]
    came = _texts(changes.where("op in ('I', 'U')"), after, 1)
    went = _texts(changes.where("op in ('U', 'D')"), before, -1)
    names = {i: f"x{i}" for i in range(len(mirror.columns))}
    counted = came.unionByName(went).groupBy(*names.values()).agg(F.sum("net").alias("net")).where("net <> 0")
    return cast_rows(counted, mirror, names, [F.col("net"), F.monotonically_increasing_id().alias("id")])


def copies(net: DataFrame) -> DataFrame:
    """Return the rows to append, each as often as it came."""
    return net.where("net > 0").withColumn("copy", F.explode(F.sequence(F.lit(1), F.col("net"))))


def places(net: DataFrame, lake: DataFrame, mirror: Mirror) -> DataFrame:
    """Return the places (`file`, `pos`) of the rows to delete: of each row as many as went, or as the lake has."""
    gone = net.where("net < 0")
    ours = [distinguishable(f"s.c{i}", column.type) for i, column in enumerate(mirror.lake)]
    theirs = [distinguishable(path("t", column.name), column.type) for column in mirror.lake]
    ours.append(distinguishable("s.misfits", MISFITS.type))
    theirs.append(distinguishable(path("t", MISFITS.name), MISFITS.type))
    same = F.expr(" and ".join(f"{t} <=> {s}" for t, s in zip(theirs, ours, strict=True)))
    stored = lake.select("*", F.col("_file"), F.col("_pos"))
    found = stored.alias("t").join(gone.alias("s"), same, how="inner")
    order = Window.partitionBy("id").orderBy("file", "pos").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        found.select("s.id", "s.net", F.col("t._file").alias("file"), F.col("t._pos").alias("pos"))
        .withColumn("nth", F.row_number().over(order))
        .where("nth <= -net")
        .select("file", "pos")
    )


def _texts(changes: DataFrame, texts: list[str], sign: int) -> DataFrame:
    return changes.select(*(F.expr(text).alias(f"x{i}") for i, text in enumerate(texts)), F.lit(sign).alias("net"))
