"""Changes of a table's columns: the lake follows by metadata, with rows written before, within and after the change's transaction."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

MADE = """
create table t (id int primary key, a text, b text, n numeric(10,2), v varchar(20), at timestamp(0));
alter table t alter column b set storage external;
create table other (id int primary key);
insert into other values (1);
insert into t select i, 'a' || i, repeat(i::text, 3000), i / 100.0, 'v' || i, '2026-01-01'::timestamp + i * interval '1 h'
from generate_series(1, 40) i
"""
BEFORE = "update t set a = 'before' where id between 1 and 10; delete from t where id = 11; update t set id = 112 where id = 12"
AFTER = (
    "update t set n = n + 1 where id between 5 and 15; delete from t where id = 21; update t set id = 122 where id = 22"
)


@dataclass(frozen=True)
class Case:
    """A change, what rows are written within its transaction, and what the lake's table looks like then."""

    name: str
    change: str
    within: str = "update t set n = 0 where id between 13 and 16; insert into t (id) values (200)"
    files: int = 0


CASES = (
    Case("rename", "alter table t rename column a to c"),
    Case(
        "swap",
        "alter table t rename column a to x; alter table t rename column b to a; alter table t rename column x to b",
    ),
    Case("rename a key", "alter table t rename column id to key", "update t set n = 0 where key between 13 and 16"),
    Case("drop", "alter table t drop column a"),
    Case("drop the column of large values", "alter table t drop column b"),
    Case("drop and add under the same name", "alter table t drop column a; alter table t add column a int default 7"),
    Case("drop, rename and add", "alter table t drop column a; alter table t rename b to a; alter table t add b date"),
    Case("longer varchar", "alter table t alter column v type varchar(50)"),
    Case("varchar to text", "alter table t alter column v type text"),
    Case(
        "text to varchar", "alter table t alter column a type varchar", "update t set n = 0 where id between 13 and 16"
    ),
    Case(
        "wider numeric",
        "alter table t alter column n type numeric(14,2)",
        "update t set n = 99999999999.99 where id = 13",
    ),
    Case(
        "finer timestamp",
        "alter table t alter column at type timestamp(3)",
        "update t set at = '2026-05-05 01:02:03.456' where id = 13",
    ),
    Case(
        "everything else",
        "alter table t alter column a set not null, alter v set default 'x', alter b set statistics 7, add check (n > -1)",
        "update t set n = 0 where id = 13",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_change_of_columns_is_followed_by_metadata_alone(env: PipelineEnv, case: Case) -> None:
    after = AFTER.replace("id", "key") if case.name == "rename a key" else AFTER
    env.sql(MADE)
    env.bootstrap()
    copied = copies(env)

    env.sql(BEFORE)
    env.sql(f"begin; update t set n = 1 where id = 14; {case.change}; {case.within}; commit")
    env.sql(after)
    env.capture()
    env.merge()

    assert states(env) == {"other": ("ready", None), "t": ("ready", None)}
    compared = compare(env.ctx)
    assert compared.equal, compared
    assert copies(env) == copied, "nothing was copied"

    env.sql("update t set v = 'later' where n > 0; update other set id = 2")
    env.capture()
    env.merge()
    assert compare(env.ctx).equal


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_change_of_columns_alone_writes_no_data_file(env16: PipelineEnv, case: Case) -> None:
    env16.sql(MADE)
    env16.bootstrap()
    files = data_files(env16)

    env16.sql(case.change)
    env16.capture()
    env16.merge()

    assert compare(env16.ctx).equal
    assert data_files(env16) == files
    assert env16.merge() is None, "nothing is left to do"


def states(env: PipelineEnv) -> dict[str, tuple[str, str | None]]:
    return {table.name: (table.state, table.paused_reason) for table in env.ctx.ledger.tables.all(env.name)}


def copies(env: PipelineEnv) -> set[tuple[str, int]]:
    return {(copy.id, copy.oid) for copy in env.ctx.ledger.tables.copies(env.name)}


def data_files(env: PipelineEnv) -> set[str]:
    assert env.spark is not None
    env.spark.sql(f"refresh table lake.{env.name}.public.t")
    return {row[0] for row in env.spark.sql(f"select file_path from lake.{env.name}.public.t.files").collect()}
