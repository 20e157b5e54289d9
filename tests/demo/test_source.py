"""The demo's source is made the same every time, from whatever was left, with no more rights than needed."""

import os
from pathlib import Path

import psycopg
import pytest

from demo import source
from demo.every_type import TYPES
from penstock.config.model import load_pipeline
from stack.paths import Project
from stack.servers.databases import READER
from stack.servers.postgres import Database
from tests.demo.conftest import PASSWORD


def contents(shop: Database) -> dict[str, str]:
    """Return a digest per published table; what pgbench fills at random and what says `now` is left out."""
    with shop.connect() as connection:
        tables = [table.as_string() for table in source.published(connection)]
    digest = "select md5(string_agg(t::text, '' order by t::text)) from {} t"
    return {
        table: shop.execute(digest.format(table))[0][0] for table in tables if table not in ('"shop"."import_batches"',)
    }


@pytest.mark.slow
def test_a_second_demo_finds_what_the_first_one_found_whatever_was_left(shop: Database):
    first = contents(shop)
    shop.execute("select pg_create_logical_replication_slot('left_over', 'pgoutput')")
    shop.execute("truncate shop.customers cascade")
    shop.execute("create table shop.left_over (id int)")
    with shop.connect(autocommit=False) as preparing:
        preparing.execute("insert into shop.left_over values (1)")
        preparing.execute("prepare transaction 'left over'")
    still_open = shop.connect()

    size = source.create(shop, scale=1)

    assert contents(shop) == first
    assert size.tables == len(first) + 1
    assert size.rows > 100_000
    assert shop.execute("select from pg_replication_slots where database = %s", shop.name) == []
    with pytest.raises(psycopg.OperationalError):
        still_open.execute("select 1")


def test_the_publication_holds_the_tables_that_the_pipeline_file_names(shop: Database):
    root = Project.here().root
    pipeline = load_pipeline(
        root / "include" / "pipelines" / "shop.yaml", dict(os.environ) | {"PENSTOCK_HOME": str(root)}
    )
    listed = shop.execute(
        "select schemaname, tablename from pg_publication_tables where pubname = %s", pipeline.publication
    )

    assert pipeline.publication == source.PUBLICATION
    assert {f"{schema}.*" if schema == "shop" else f"{schema}.pgbench_*" for schema, _ in listed} == set(
        pipeline.tables.include
    )
    assert {tuple(name.split(".")) for name in pipeline.tables.exclude} == {("shop", "session_cache")}
    assert ("shop", "session_cache") not in listed


def test_no_table_of_the_application_refuses_a_delete_because_it_is_published(shop: Database):
    accepted = []
    with shop.connect(autocommit=False) as connection:
        tables = source.published(connection)
        for table in tables:
            statement = psycopg.sql.SQL("delete from {} where false").format(table)
            with connection.transaction(force_rollback=True):
                accepted.append(connection.execute(statement).statusmessage)

    assert len(tables) > 10
    assert accepted == ["DELETE 0"] * len(tables)


def test_the_reader_reads_every_published_table_and_writes_none(shop: Database):
    with shop.connect() as connection:
        tables = source.published(connection)
    with psycopg.connect(shop.dsn(READER, PASSWORD), autocommit=True) as reader:
        for table in tables:
            reader.execute(psycopg.sql.SQL("select from {} limit 1").format(table))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(psycopg.sql.SQL("delete from {}").format(table))


def test_every_value_of_every_type_that_the_server_knows_is_in_some_row(shop: Database):
    columns = [
        name
        for (name,) in shop.execute(
            "select attname from pg_attribute where attrelid = 'shop.every_type'::regclass and attnum > 1"
        )
    ]
    optional = {"xml_", "hstore_", "vector_"}

    assert set(TYPES) - set(columns) <= optional
    for column in columns:
        type_, values = TYPES[column]
        stored = {text for (text,) in shop.execute(f"select {column}::text from shop.every_type")}
        cast = psycopg.sql.SQL(f"select {{}}::{type_}::text")
        with shop.connect() as connection:
            expected = {connection.execute(cast.format(value)).fetchone()[0] for value in values}
        assert stored == expected | {None}, column


def test_wide_columns_are_stored_out_of_line_on_both_sides_of_a_copy(shop: Database):
    wide = {
        "customers": "biography",
        "products": "description",
        "ranking": "portrait",
        "coupons": "terms",
        "contracts": "body",
        "long_links": "url",
        "clicks": "trace",
        "orders": "note",
    }
    for table, column in wide.items():
        ((widest, compression),) = shop.execute(
            f"select max(octet_length({column})), max(pg_column_compression({column})) from shop.{table}"
        )
        ((chunks,),) = shop.execute(
            f"select pg_relation_size(reltoastrelid) from pg_class where oid = 'shop.{table}'::regclass"
        )
        assert widest > 2000, table
        assert compression is None, table
        assert chunks > 0, table


def test_no_statement_of_the_schema_names_this_machine():
    for name in ("schema.sql", "content.sql"):
        assert str(Path.cwd()) not in (Path(source.__file__).parent / name).read_text()
