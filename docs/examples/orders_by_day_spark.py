"""The same read with Spark: sales per day of orders and their lines, both at the snapshots that one cut names.

    spark-submit orders_by_day_spark.py <catalog> <pipeline> <day> <folder>

The catalog is configured as in docs/spark-and-iceberg.md.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

FIRST_CUT = """
select snapshots
from (
    select
        era, cut_lsn, published_at,
        map_from_entries(transform(filter(tables, t -> t.state = 'ready'), t -> struct(t.name, t.snapshot_id))) as snapshots
    from {cuts}
    where source_time >= timestamp '{day} 00:00:00+00' + interval 1 day 1 minute
)
order by era, cut_lsn, published_at
limit 1
"""
SALES = """
select o.id, o.customer_id, count(l.line_no) as lines, sum(l.quantity * l.price) as amount
from {orders} as o left join {lines} as l on l.order_id = o.id
where o.placed_at >= timestamp '{day} 00:00:00+00' and o.placed_at < timestamp '{day} 00:00:00+00' + interval 1 day
group by o.id, o.customer_id
order by o.id
"""


def sales(spark: SparkSession, catalog: str, pipeline: str, day: str) -> DataFrame | None:
    """Return one day's sales at the first cut past its end; None while the day is not complete.

    The tables are read by Spark's `version as of`; a snapshot that maintenance has expired is an error of Spark's.
    """
    cuts = f"{catalog}.{pipeline}._penstock_cuts"
    spark.sql(f"refresh table {cuts}")
    rows: list[Any] = spark.sql(FIRST_CUT.format(cuts=cuts, day=day)).collect()
    if not rows:
        return None
    places = {name: f"{catalog}.{pipeline}.shop.{name}" for name in ("orders", "order_lines")}
    for name, place in places.items():
        spark.sql(f"refresh table {place}")
        snapshot = rows[0].snapshots[f"{pipeline}.shop.{name}"]
        spark.read.option("versionAsOf", snapshot).table(place).createOrReplaceTempView(f"{name}_at_the_cut")
    return spark.sql(SALES.format(orders="orders_at_the_cut", lines="order_lines_at_the_cut", day=day))


def main() -> None:
    """Write one day's sales."""
    catalog, pipeline, day, folder = sys.argv[1:]
    spark = SparkSession.builder.appName("orders by day").getOrCreate()
    found = sales(spark, catalog, pipeline, day)
    if found is None:
        raise SystemExit(f"expected {day} to be complete in the lake, but no cut is past its end yet; run again later")
    found.write.mode("overwrite").parquet(f"{folder}/{day}")
    spark.stop()


if __name__ == "__main__":
    main()
