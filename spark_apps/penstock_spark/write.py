"""Writing on the branch: delete what a batch touches, append what is left of it. Each returns Iceberg's own count."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.lake import merge
from penstock.lake.columns import LakeColumn
from penstock.lake.merge import Bounds
from penstock_spark.lake_table import LakeTable

BROADCAST_ROWS = 2_000_000
"""So many keys or places are sent to every task; more are joined by a shuffle."""

_SOURCE = "penstock_source"
_MATCHED_DELETED = "spark.merge-into.num-target-rows-matched-deleted"


def delete_keys(table: LakeTable, keys: DataFrame, count: int, columns: list[LakeColumn], bounds: Bounds) -> int:
    """Delete the rows under these keys; returns how many there were."""
    return _delete(table, merge.delete_keys(table.branch_sql_name, _SOURCE, columns, bounds), keys, count)


def delete_places(table: LakeTable, places: DataFrame, count: int) -> int:
    """Delete the rows at these places; returns how many there were."""
    return _delete(table, merge.delete_places(table.branch_sql_name, _SOURCE), places, count)


def append(table: LakeTable, rows: DataFrame) -> int:
    """Append rows; returns how many."""
    rows.writeTo(table.branch_sql_name).append()
    (added,) = table.counted("added-records")
    return added


def replace_all(table: LakeTable, rows: DataFrame) -> tuple[int, int]:
    """Replace every row by these, in one commit; returns how many went and how many came."""
    rows.writeTo(table.branch_sql_name).overwrite(F.lit(True))
    return table.replaced()


def _delete(table: LakeTable, statement: str, source: DataFrame, count: int) -> int:
    """Run a delete; the view's name is private to the session, which works on one table at a time."""
    if count <= BROADCAST_ROWS:
        source = F.broadcast(source)
    source.createOrReplaceTempView(_SOURCE)
    table.session.sql(statement)
    (deleted,) = table.counted(_MATCHED_DELETED)
    return deleted
