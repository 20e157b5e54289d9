"""Three readers that share no code see the same rows after every merge: Spark, PyIceberg, and DuckDB over the files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from penstock.compare.lake_reader import lake_reader, sql_catalog
from penstock.engine import duck, vectors
from penstock.engine.files import Files
from penstock.engine.order import Resources, Vector
from tests.conftest import LakeCatalog
from tests.pipeline_env import connection
from tests.spark.histories import KeyedJudge
from tests.spark.random_histories import KeyedHistories
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("h", "int4", key=True), column("k", key=True), column("a"), column("b"), column("c", "int4"))
Rows = Counter[tuple[Any, ...]]


def by_pyiceberg(lake: LakeCatalog, table: Table) -> Rows:
    with lake_reader(lake.name, sql_catalog(connection(lake.database, "lake"))) as reader:
        found = reader.table(table.target)
        assert found is not None
        names = [each.name for each in table.columns]
        return Counter(tuple(row[name] for name in names) for row in found.table.scan().to_arrow().to_pylist())


def by_duckdb(bench: Workbench, table: Table) -> Rows:
    """Read each data file bare, without the rows that the manifest's own vector of it names."""
    session = bench.session()
    data = [row["file_path"] for row in session.sql(f"select file_path from {bench.name(table)}.data_files").collect()]
    deletes = session.sql(
        "select file_path, referenced_data_file, content_offset, content_size_in_bytes, record_count "
        f"from {bench.name(table)}.delete_files"
    ).collect()
    gone = {
        row["referenced_data_file"]: vectors.read_vector(
            Files().lake,
            Vector(row["file_path"], row["content_offset"], row["content_size_in_bytes"], row["record_count"]),
        )
        for row in deletes
    }
    assert gone.keys() <= set(data)
    names = ", ".join(duck.identifier(each.name) for each in table.columns)
    with duck.connect(Resources(), Files()) as db:
        return Counter(
            tuple(values)
            for path in data
            for at, *values in db.rows(f"select file_row_number, {names} from read_parquet({db.stored([path])})")
            if at not in gone.get(path, ())
        )


def by_spark(bench: Workbench, table: Table) -> Rows:
    names = [each.name for each in table.columns]
    return Counter(tuple(row[name] for name in names) for row in bench.session().table(bench.name(table)).collect())


def test_every_reader_sees_the_same_rows_after_each_merge(workbench: Workbench, lake: LakeCatalog) -> None:
    history, judge, table = KeyedHistories(77, 200), KeyedJudge(("h", "k")), workbench.table(*COLUMNS)
    for _ in range(4):
        transactions = history.transactions(300)
        workbench.land(table, *transactions)
        judge.apply(event for transaction in transactions for event in transaction.events)
        [result] = workbench.merge()

        expected = Counter(
            (int(row["h"]), row["k"], row["a"], row["b"], None if row["c"] is None else int(row["c"]))
            for row in judge.rows.values()
        )
        assert result.paused_slug is None
        assert by_spark(workbench, table) == by_pyiceberg(lake, table) == by_duckdb(workbench, table) == expected
