"""Names that are paths, patterns, variables or other names' neighbours: the lake has them as they are, each table apart."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pytest
from psycopg import sql

from penstock.compare.lake_reader import LakeReader, lake_reader
from penstock.lake.ddl import path
from penstock_spark.session import java
from tests.conftest import LakeCatalog
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

VARIABLES = (
    "${env:PENSTOCK_CATALOG_PASSWORD}",
    "${env:SPARK_CONF_DIR}",
    "${spark.app.id}",
    "${spark.sql.catalog.lake.jdbc.password}",
)
COLUMNS = (  # Spark's variables, and Hadoop's
    "${env:PENSTOCK_CATALOG_PASSWORD}",
    "${env.SPARK_CONF_DIR}",
    "${spark.sql.catalog.lake.jdbc.password}",
    "${java.class.path}",
)
NEIGHBOURS = ("nest", "nest/data", "nest/metadata", "../nest", "..")
PATTERNS = ("new\nline\ttab", "what?#[*50%2F", "Üml🙂ut \\`'\"")


def create(env: PipelineEnv, schema: str, table: str, column: str = "v") -> None:
    """Make a table of three rows at the source, one of which is its own name."""
    name, named = sql.Identifier(schema, table), sql.Identifier(column)
    with env.source.connect() as conn:
        conn.execute(sql.SQL("create table {} (id int primary key, {} text)").format(name, named))
        conn.execute(sql.SQL("insert into {} values (1, {}), (2, 'b'), (3, 'c')").format(name, sql.Literal(table)))
        conn.commit()


def change(env: PipelineEnv, schema: str, table: str, column: str = "v") -> None:
    """Update, delete and insert."""
    name, named = sql.Identifier(schema, table), sql.Identifier(column)
    with env.source.connect() as conn:
        conn.execute(sql.SQL("update {} set {} = 'changed' where id = 2").format(name, named))
        conn.execute(sql.SQL("delete from {} where id = 3").format(name))
        conn.execute(sql.SQL("insert into {} values (4, 'new')").format(name))
        conn.commit()


def equal(env: PipelineEnv) -> None:
    """Assert that every table is ready, and by PyIceberg equal to the source."""
    assert env.unlike() == []
    assert {table.state for table in env.tables} == {"ready"}


def read_by_all(env: PipelineEnv, reader: LakeReader, target: tuple[str, ...]) -> list[str]:
    """Return a table's rows as texts, which Spark, PyIceberg and, file by file, DuckDB agree on."""
    found = reader.table(target)
    assert found is not None
    by_iceberg = pa.Table.from_batches(list(found.batches())).drop_columns("_misfits")
    rows = sorted(str(tuple(row.values())) for row in by_iceberg.to_pylist())
    env.spark.sql(f"refresh table {path('lake', *target)}")
    by_spark = env.spark.table(path("lake", *target)).drop("_misfits").collect()
    assert sorted(str(tuple(row)) for row in by_spark) == rows
    files = [urlsplit(task.file.file_path).path for task in found.table.scan().plan_files()]
    assert files
    assert [file for file in files if not re.fullmatch(r"[-\w./]+", file, re.ASCII)] == []
    with duckdb.connect() as db:
        (count,) = db.execute("select count(*) from read_parquet(?)", [files]).fetchone() or (0,)
    assert count >= len(rows)
    return rows


def all_bytes(*folders: Path) -> bytes:
    """Return all files below some folders, names included."""
    found = [path for folder in folders for path in folder.rglob("*")]
    return b"\n".join(
        [*(str(path).encode() for path in found), *(path.read_bytes() for path in found if path.is_file())]
    )


def values(files: Path) -> str:
    """Return what every Parquet file below a folder holds, as text."""
    with duckdb.connect() as db:
        return "\n".join(
            str(db.execute("select * from read_parquet(?)", [str(file)]).fetchall())
            for file in files.rglob("*.parquet")
        )


@pytest.mark.slow
def test_variables_in_names_stay_as_they_are_and_no_value_of_the_environment_is_anywhere(
    env16: PipelineEnv, lake: LakeCatalog, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = "${env:HOME}"
    env16.settings["tables"] = {"include": ["public.*", f'"{schema}".*']}
    env16.settings["changelog"] = {"slack": 0, "tables": {"include": ["public.*", f'"{schema}".*']}}
    label = "${HOME}"
    env16.sql(f'create schema "{schema}"; create type "{schema}"."{label}" as enum (\'{label}\', \'b\')')
    for place, name in enumerate(VARIABLES):
        create(env16, schema if place % 2 else "public", name, column=COLUMNS[place])
    env16.sql(f'create table labels (id int, "{label}" "{schema}"."{label}" not null, primary key (id, "{label}"))')
    env16.sql(f"insert into labels values (1, '{label}')")
    env16.sql(
        f"create table bag (\"{label}\" text); alter table bag replica identity full; insert into bag values ('{label}')"
    )
    ((start,),) = env16.sql("select clock_timestamp()")

    env16.bootstrap()
    for place, name in enumerate(VARIABLES):
        change(env16, schema if place % 2 else "public", name, column=COLUMNS[place])
    env16.sql(f"insert into labels values (2, '{label}'); delete from labels where id = 1")
    env16.sql(f"alter table labels add column \"{VARIABLES[0]}\" text default '{VARIABLES[1]}'")
    env16.sql(f"insert into labels values (3, 'b'); update bag set \"{label}\" = 'b'")
    ((end,),) = env16.sql("select clock_timestamp()")
    env16.follow()
    env16.capture()
    env16.changelog(start, end)

    equal(env16)
    with lake_reader("lake", env16.ctx.catalog) as reader:
        for table in env16.tables:
            if table.name in VARIABLES:
                found = reader.table(table.target)
                assert found is not None
                assert found.columns == ("id", COLUMNS[VARIABLES.index(table.name)], "_misfits")
                assert table.target[1:] == (
                    schema if schema == table.schema else "public",
                    table.name.replace(".", "_"),
                )
    said = capfd.readouterr()
    reported = [
        env16.ledger.execute(f"select t::text from penstock.{table} t")
        for table in ("event", "table", "cut", "relation")
    ]
    folders = lake.warehouse / env16.name, env16.landing
    places = [
        all_bytes(*folders),
        *(values(folder).encode() for folder in folders),
        said.out.encode(),
        said.err.encode(),
    ]
    places.append(str([reported, env16.lines]).encode())
    for value in values_named(lake):
        assert not [place[:80] for place in places if value.encode() in place]


def values_named(lake: LakeCatalog) -> list[str]:
    """Return what Spark or Hadoop would put in place of some of the names; the application's id is Iceberg's to note."""
    system: Any = java("java.lang.System")
    environment, class_path = str(system.getenv("SPARK_CONF_DIR")), str(system.getProperty("java.class.path"))
    assert environment == os.environ["SPARK_CONF_DIR"]
    return [environment, class_path, lake.database.server.password]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "again"),
    [(NEIGHBOURS, ("nest", "nest/data")), (PATTERNS, PATTERNS)],
    ids=["neighbours", "patterns"],
)
def test_tables_named_as_each_others_folders_stay_whole_when_one_is_copied_again_and_its_old_files_are_purged(
    env16: PipelineEnv, lake: LakeCatalog, names: tuple[str, ...], again: tuple[str, ...]
) -> None:
    env16.settings["maintain"] = {"patience": "1s"}
    for name in names:
        create(env16, "public", name)
    env16.bootstrap()
    for name in names:
        change(env16, "public", name)
    env16.follow()
    equal(env16)

    assert env16.resync(*(f"public.{name}" for name in again))
    env16.maintain()
    env16.ledger.execute("update penstock.old_table set seen_at = seen_at - interval '8 days'")
    for folder, _, files in os.walk(lake.warehouse / env16.name):  # every file is old enough to be an orphan
        for file in files:
            os.utime(Path(folder) / file, (0, 0))
    report = env16.maintain()

    assert report is not None
    assert len(report.lake.dropped) == len(again)
    assert all(table.left is None and table.orphans == 0 for table in report.lake.tables)
    equal(env16)
    with lake_reader("lake", env16.ctx.catalog) as reader:
        for table in env16.tables:
            assert len(read_by_all(env16, reader, table.target)) == 3
    assert not any(Path(old.location.removeprefix("file://")).exists() for old in report.lake.dropped)
