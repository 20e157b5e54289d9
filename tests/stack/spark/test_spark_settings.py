"""Spark as the local stack sets it up: Iceberg tables in a JDBC catalog, and no secret in any file."""

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from stack.servers.lake_catalog import create_tables, sqlalchemy_url
from stack.servers.postgres import Database

pytestmark = pytest.mark.spark


def read_by_pyiceberg(lake, table):
    uri = sqlalchemy_url(lake.database.dsn()).render_as_string(hide_password=False)
    catalog = SqlCatalog(lake.name, uri=uri, init_catalog_tables="false")
    try:
        return catalog.load_table(table).scan().to_arrow().sort_by("id")
    finally:
        catalog.engine.dispose()


def test_a_merge_on_read_table_of_format_3_is_written_merged_and_read_by_another_engine(spark, lake):
    spark.sql("create namespace if not exists lake.setup")
    spark.sql(
        "create table lake.setup.t (id int, v string) using iceberg tblproperties "
        "('format-version' = '3', 'write.merge.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql("insert into lake.setup.t values (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(
        "merge into lake.setup.t t using (select 2 id, 'B' v union all select 4, 'd') s on t.id = s.id "
        "when matched then update set * when not matched then insert *"
    )

    expected = [(1, "a"), (2, "B"), (3, "c"), (4, "d")]
    assert [tuple(row) for row in spark.table("lake.setup.t").orderBy("id").collect()] == expected
    assert [tuple(row.values()) for row in read_by_pyiceberg(lake, "setup.t").to_pylist()] == expected
    (pointer,) = lake.database.execute(
        "select catalog_name, table_namespace, table_name, iceberg_type from iceberg_tables "
        "where table_namespace = 'setup'"
    )
    assert pointer == ("lake", "setup", "t", "TABLE")


def test_making_the_catalog_tables_twice_changes_nothing(database16: Database):
    create_tables(database16.dsn())
    create_tables(database16.dsn())

    columns = "select column_name from information_schema.columns where table_name = 'iceberg_tables'"
    assert ("iceberg_type",) in database16.execute(columns)


def test_the_address_of_the_catalog_hides_its_password_when_printed(database16: Database):
    assert database16.server.password not in str(sqlalchemy_url(database16.dsn()))


def test_spark_keeps_utc_and_runs_on_the_jars_of_the_project(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sql("select current_timezone()").collect()[0][0] == "UTC"
    assert "iceberg-spark-runtime" in spark.conf.get("spark.driver.extraClassPath")
