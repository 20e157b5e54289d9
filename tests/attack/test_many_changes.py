"""Migrations that come in masses, in halves, or with types that capture never sees: each ends in an equal lake."""

import psycopg
import pytest

from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

CHANGES = 200
MADE = (
    "create table {t} (id int primary key, code text not null unique, a text, n int); "
    "insert into {t} select i, 'c' || i, repeat(i::text, 3000), 0 from generate_series(1, 300) i"
)
KEYS = ("id", "code")


@pytest.mark.slow
def test_two_hundred_changes_of_the_key_in_one_window_are_followed(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE.format(t="t"))
    copied = env16.copies()

    with env16.source.connect() as conn:
        for n in range(1, CHANGES + 1):
            key = KEYS[n % 2]
            value, moved = (f"{n}", "-id") if key == "id" else (f"'c{n}'", "'x' || code")
            conn.execute(
                f"alter table t drop constraint t_pkey, add constraint t_pkey primary key ({key}); "
                f"update t set n = {n}, code = code || '' where {key} = {value}; update t set n = n + 1 where id = {n} + 50; "
                f"update t set {key} = {moved} where id = {n} + 90".encode()
            )
    env16.follow()

    assert env16.wrong(copied) == []


@pytest.mark.slow
def test_two_hundred_changes_of_the_columns_in_one_window_are_followed_without_the_trigger(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE.format(t="t"))
    copied = env16.copies()

    with env16.source.connect() as conn:
        for n in range(1, CHANGES + 1):
            renamed = f"a{n - 1}" if n > 1 else "a"
            conn.execute(
                f"alter table t rename {renamed} to a{n}; update t set a{n} = 'at {n}' where id = {n}".encode()
            )
            if n % 5 == 0:
                conn.execute(f"alter table t add b{n} int default {n}; update t set b{n} = 0 where id = 7".encode())
    env16.follow()

    assert env16.wrong(copied) == []


HALVES = {
    "fails": (
        "begin; alter table {t} rename a to z; update {t} set z = 'never'; alter table {t} drop column nothing",
        None,
    ),
    "undone": (
        "begin; update {t} set n = 1 where id = 1; savepoint s; alter table {t} rename a to z; update {t} set z = 'never'; "
        "alter table {t} drop constraint {t}_pkey, add constraint {t}_pkey primary key (code); update {t} set n = 2; "
        "rollback to s; update {t} set a = 'kept' where id = 2; commit",
        None,
    ),
    "committed": (
        "begin; update {t} set a = 'old name' where id = 1; alter table {t} rename a to z; alter table {t} add b date default "
        "'2026-01-01'; update {t} set z = 'new name' where id = 2; insert into {t} values (400, 'c400', 'x', 1, null); "
        "prepare transaction '{t}'",
        "commit prepared '{t}'",
    ),
    "refused": (
        "begin; update {t} set a = 'never' where id = 1; alter table {t} rename a to z; alter table {t} drop column n; "
        "update {t} set z = 'never' where id = 2; prepare transaction '{t}'",
        "rollback prepared '{t}'",
    ),
    "keyed": (
        "begin; update {t} set n = 5 where id = 1; alter table {t} drop constraint {t}_pkey, add constraint {t}_pkey "
        "primary key (code); update {t} set n = 6 where code = 'c2'; update {t} set code = 'moved' where id = 3; "
        "prepare transaction '{t}'",
        "commit prepared '{t}'",
    ),
    "unkeyed": (
        "begin; update {t} set n = 5 where id = 1; alter table {t} drop constraint {t}_pkey, add constraint {t}_pkey "
        "primary key (code); update {t} set code = 'never' where id = 3; prepare transaction '{t}'",
        "rollback prepared '{t}'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "trigger",
    [False, True],
    ids=["without the trigger", "with the trigger"],
)
def test_ddl_that_fails_is_undone_or_is_prepared_over_windows_shows_what_was_committed(
    env16: PipelineEnv, *, trigger: bool
) -> None:
    env16.each(HALVES, MADE)
    env16.bootstrap(trigger=trigger)
    copied = env16.copies()

    for name, (begun, _) in HALVES.items():
        with env16.source.connect() as conn:
            for statement in (
                begun.format(t=name).replace("transaction '", f"transaction '{env16.source.name}_").split("; ")
            ):
                try:
                    conn.execute(statement.encode())
                except psycopg.Error:
                    conn.execute("rollback")
    for _ in range(2):  # windows that end while the transactions are prepared
        env16.follow("update fails set n = n + 1 where id = 9; update undone set n = n + 1 where id = 9")
    for name, (_, end) in HALVES.items():
        if end is not None:
            env16.sql(end.format(t=name).replace("prepared '", f"prepared '{env16.source.name}_"))
            env16.sql(f"update {name} set n = n + 1 where id = 9; delete from {name} where id = 10")
    env16.follow()

    assert env16.wrong(copied) == []


@pytest.mark.slow
def test_types_that_are_made_in_a_window_or_gone_at_its_end_are_followed(env16: PipelineEnv) -> None:
    env16.each(("stays", "goes", "another"), MADE)
    env16.bootstrap()
    copied = env16.copies()

    env16.sql(
        "create type mood as enum ('sad', 'ok'); alter table stays add m mood; update stays set m = 'ok' where id = 1; "
        "create domain amount as numeric(8,2); alter table stays add d amount; update stays set d = 1.5 where id = 2"
    )
    env16.sql(
        "create type brief as enum ('x'); alter table goes add b brief; update goes set b = 'x', n = 3 where id = 1"
    )
    env16.sql("alter table goes drop column b; drop type brief; update goes set n = 4 where id = 2")
    env16.sql("create type one as enum ('x'); alter table another add b one; update another set b = 'x' where id = 1")
    env16.sql("create type two as enum ('x', 'y'); alter table another alter b type two using 'y'; drop type one")
    env16.follow("update another set n = 8 where id = 3")

    assert {"another"} <= set(env16.paused()) <= {"goes", "another"}, (
        "a column came and went unseen, and rows were rewritten"
    )
    assert {each.name.rpartition(".")[2] for each in compare(env16.ctx).tables if each.equal} >= {"stays"}
    assert env16.wake()
    assert env16.wrong() == []
    names = {table.oid: table.name for table in env16.tables}
    assert {names[oid] for _, oid in env16.copies() - copied} <= {"goes"}


@pytest.mark.slow
def test_a_table_of_fifteen_hundred_columns_is_changed_as_any_other(env16: PipelineEnv) -> None:
    env16.sql(f"create table wide (id int primary key, {', '.join(f'c{n} int default {n}' for n in range(1500))})")
    env16.bootstrap("insert into wide (id) select generate_series(1, 5)")
    copied = env16.copies()

    with env16.source.connect() as conn:
        conn.execute("begin; update wide set c7 = 0 where id = 1")
        for n in range(0, 1500, 3):
            conn.execute(f"alter table wide rename c{n} to d{n}".encode())
        conn.execute(
            "update wide set d9 = 0 where id = 2; alter table wide drop column c1, add column late text default 1; commit"
        )
    env16.follow("update wide set d12 = 0, late = 2 where id = 3")

    assert env16.wrong(copied) == []
