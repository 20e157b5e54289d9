"""What all tables need, tried for a file of nobody's: only if it works is a table's failure the table's own, however many fail."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from penstock.engine.probe import probe
from penstock.lake.locations import is_place
from penstock_spark import stores
from penstock_spark.iceberg_table import IcebergTable


def require(session: SparkSession, catalog: str, environment: Mapping[str, str], there: IcebergTable | None) -> None:
    """See that Spark computes, the engine works, and the lake's store takes and gives a file; raises what fails.

    The file is written into the folder of the table that is `there`, as the catalog has shown it, or into the warehouse's.
    """
    session.range(2).count()
    folder = there.folder if there else session.conf.get(f"spark.sql.catalog.{catalog}.warehouse", "")
    if is_place(folder):
        probe(stores.lake_files(session, catalog, environment, folder), folder)
