"""Do in small what our Spark applications do, so that the classes that they need are loaded once; see class_archive.py."""

import sys

from pyspark.sql import SparkSession, Window, functions


def main(scratch: str) -> None:
    """Write Parquet and Iceberg tables below a scratch folder, and merge one into the other."""
    spark = (
        SparkSession.builder.appName("training")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", scratch)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.t", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.t.type", "hadoop")
        .config("spark.sql.catalog.t.warehouse", f"{scratch}/lake")
        .getOrCreate()
    )
    landed = f"{scratch}/landed"
    text = functions.col("id").cast("string")
    image = functions.struct(
        text.alias("id"), functions.current_timestamp().cast("string").alias("at"), functions.lit("1.5").alias("price")
    )
    spark.range(200).select((functions.col("id") % 50).alias("key"), "id", image.alias("new")).write.parquet(landed)
    spark.sql(
        "create table t.db.mirror (id bigint, at timestamp, price decimal(10,2)) using iceberg "
        "tblproperties ('format-version' = '3', 'write.merge.mode' = 'merge-on-read')"
    )
    last = Window.partitionBy("key").orderBy("id")
    rows = (
        spark.read.parquet(landed)
        .withColumn("after", functions.lead("id").over(last))
        .where("after is null")
        .selectExpr(
            "try_cast(new.id as bigint) id",
            "try_cast(new.at as timestamp) at",
            "cast(new.price as decimal(10,2)) price",
        )
        .persist()
    )
    rows.agg(functions.count("*"), functions.max("id")).collect()
    rows.writeTo("t.db.mirror").append()
    functions.broadcast(rows.where("id % 2 = 0").select("id")).createOrReplaceTempView("keys")
    spark.sql("merge into t.db.mirror m using keys k on m.id = k.id when matched then delete")
    spark.table("t.db.mirror").count()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
