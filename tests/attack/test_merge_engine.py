"""Tables that a merge by DuckDB could misread: numbers equal but not alike, very wide rows, names that DuckDB uses itself."""

import pytest

from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark


def change(env: PipelineEnv, *statements: str) -> None:
    """Run each statement in a transaction of its own, capture them as one window, and merge them."""
    for statement in statements:
        env.sql(statement)
    env.follow()


@pytest.mark.slow
def test_a_key_that_becomes_minus_zero_and_back_is_one_row(env16: PipelineEnv) -> None:
    for name, type_ in (("wide", "float8"), ("narrow", "float4")):
        env16.sql(
            f"create table {name} (k {type_} primary key, s text);"
            f"insert into {name} values (0, 'zero'), (1, 'one'), ('NaN', 'nan'), ('-Infinity', 'low')"
        )
    env16.bootstrap()

    change(env16, "update wide set k = '-0' where k = 0", "update narrow set k = '-0', s = 'minus' where k = 0")
    assert env16.unlike() == []
    change(env16, "update wide set s = 'still' where k = 0", "update narrow set k = 0 where k = 0")
    assert env16.unlike() == []
    change(
        env16,
        "delete from wide where k = 0",
        "update narrow set s = 'x' where k = 'NaN'",
        "delete from narrow where k = 0",
    )
    assert env16.unlike() == []

    assert set(env16.states().values()) == {("ready", None)}


@pytest.mark.slow
def test_a_table_of_as_many_columns_as_postgresql_allows_is_merged_beside_others(env16: PipelineEnv) -> None:
    dates = ", ".join(f"d{n} date" for n in range(1500))
    env16.sql(f"create table broad (id int primary key, {dates}); create table other (id int primary key, s text)")
    env16.bootstrap(
        "insert into broad (id, d7) values (1, '2024-02-29'), (2, 'infinity'); insert into other values (1, 'a')"
    )

    change(
        env16,
        "update broad set d1499 = '-infinity' where id = 1",
        "insert into broad (id, d0) values (3, '2024-01-01')",
        "update other set s = 'b'",
    )

    assert env16.states() == {"broad": ("ready", None), "other": ("ready", None)}
    assert env16.unlike() == []


@pytest.mark.slow
def test_columns_named_as_duckdb_names_its_own_are_merged(env16: PipelineEnv) -> None:
    names = ("file_row_number", "file_index", "filename", "rowid", "penstock_partition", "place", "k0", "misfits", "c1")
    columns = ", ".join(f'"{name}" text' for name in names)
    env16.sql(f"create table named (id int primary key, {columns}); create table bag ({columns})")
    env16.sql("alter table bag replica identity full")
    values = ", ".join(f"'{name}'" for name in names)
    env16.bootstrap(
        f"insert into named values (1, {values}), (2, {values}); insert into bag values ({values}), ({values})"
    )

    for _ in range(2):
        change(
            env16,
            "update named set file_row_number = file_row_number || '+', k0 = null where id = 1",
            f"insert into bag values ({values})",
            "delete from bag where ctid = (select min(ctid) from bag)",
        )
        assert env16.unlike() == []

    env16.spark.sql(f"alter table lake.{env16.name}.public.named add partition field bucket(2, id)")
    change(env16, "update named set rowid = 'x'", f"insert into named values (3, {values})")
    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_table_without_columns_is_merged(env16: PipelineEnv) -> None:
    env16.sql("create table bare (); alter table bare replica identity full; create table other (id int primary key)")
    env16.bootstrap("insert into bare default values; insert into other values (1)")

    change(env16, "insert into bare default values", "insert into bare default values", "insert into other values (2)")
    change(env16, "delete from bare where ctid = (select min(ctid) from bare)", "delete from other where id = 1")

    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []
