"""Partitions that are attached with rows: these alone are read, and enter the lake's table in one cut with the stream's changes."""

from typing import Any

import pytest

from penstock.flow.load import read as reading
from penstock.flow.load import run as rebuild
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

LEAVES = "(0) to (100)", "(100) to (200)", "(200) to (300)"
TABLES = {"keyed": ("primary key (id, s)", "default"), "bag": ("constraint above check (id > -5)", "full")}


def made(table: str) -> str:
    constraint, identity = TABLES[table]
    return (
        f"create table {table} (id int, s text, n int, {constraint}) partition by range (id);"
        + "".join(
            f"create table {table}_{n} partition of {table} for values from {leaf};" for n, leaf in enumerate(LEAVES)
        )
        + f"alter table {table} replica identity {identity};"
        + "".join(f"alter table {table}_{n} replica identity {identity};" for n in range(len(LEAVES)))
        + f"insert into {table} select i, 's' || i, i from generate_series(0, 299) i"
    )


def aside(table: str, name: str, first: int, last: int) -> str:
    """Return statements that make a table of other columns, and of other numbers, with rows of its own."""
    constraint, identity = TABLES[table]
    return (
        f"create table {name} (gone int, n int, id int, s text, {constraint}); alter table {name} drop column gone;"
        f"alter table {name} replica identity {identity};"
        f"insert into {name} (id, s, n) select i, 'a' || i, -i from generate_series({first}, {last}) i"
    )


def attach(table: str, name: str, bound: str) -> str:
    return f"alter table {table} attach partition {name} for values from {bound}"


def test_only_the_rows_of_an_attached_partition_are_read(env: PipelineEnv) -> None:
    for table in TABLES:
        env.sql(made(table))
    env.bootstrap()
    copied, files = env.copies(), {table: env.data_files(table) for table in TABLES}

    for table in TABLES:
        env.sql(aside(table, f"{table}_new", 300, 349))
        env.sql(f"update {table} set n = n + 1 where id % 10 = 0; delete from {table} where id = 7")
        env.sql(
            f"begin; {attach(table, f'{table}_new', '(300) to (400)')}; update {table} set n = 5 where id in (8, 310); "
            f"insert into {table} values (360, 'x', 1); delete from {table} where id = 311; commit"
        )
    env.capture()
    assert {table.name: table.remedy == "read" for table in env.tables} == dict.fromkeys(TABLES, True), env.tables
    env.each(TABLES, "update {t} set n = 6 where id in (9, 312); delete from {t} where id = 313")
    assert env.wake()

    assert equal(env)
    assert states(env) == dict.fromkeys(TABLES, "ready")
    assert env.copies() == copied, "no table was copied"
    assert {each.rows for each in env.ctx.ledger.loads.fetches(env.name)} == {49}
    assert all(files[table] <= env.data_files(table) for table in TABLES), "no file was rewritten"

    for table in TABLES:
        env.sql(f"update {table} set n = 7 where id in (9, 312, 320); delete from {table} where id = 314")
        env.sql(f"insert into {table} values (361, 'y', 1)")
    env.follow()
    assert equal(env)


def states(env: PipelineEnv) -> dict[str, str]:
    return {table.name: table.state for table in env.tables}


def equal(env: PipelineEnv, but: str = "") -> bool:
    compared = [table for table in compare(env.ctx).tables if table.name != but]
    assert all(table.equal for table in compared), [line for table in compared for line in table.lines()]
    return True


FILLED = "insert into {0} (id, s, n) select i, 'f' || i, i from generate_series({1}, {2}) i"
BEFORE = {
    "again": "alter table again detach partition again_1; delete from again_1 where id < 120; update again_1 set n = -9 where id > 180;"
    "alter table again attach partition again_1 for values from (100) to (200); update again set n = 8 where id = 150",
    "defaulted": "create table defaulted_rest partition of defaulted default;" + FILLED.format("defaulted", 900, 910),
    "below": "create table below_new (s text, id int not null, n int, primary key (id, s)) partition by list (s);"
    "create table below_new_a partition of below_new for values in ('a'); create table below_new_b (n int, id int not null, s text "
    "not null); insert into below_new_b select i, 300 + i, 'b' from generate_series(1, 9) i; alter table below_new attach "
    "partition below_new_b for values in ('b', 'c'); insert into below_new values ('a', 301, 1);"
    "alter table below attach partition below_new for values from (300) to (400); update below set n = 7 where id > 300 and n < 4",
    "moved": "create table moved_new (id int not null, s text not null, n int);"
    + FILLED.format("moved_new", 300, 320)
    + ";"
    "alter table moved attach partition moved_new for values from (300) to (400);"
    + FILLED.format("moved", 330, 340)
    + ";"
    "alter table moved detach partition moved_new; update moved_new set id = id + 500;"
    "alter table moved attach partition moved_new for values from (800) to (900); update moved set n = 0 where id = 835",
    "vanished": "create table vanished_new partition of vanished for values from (300) to (400);"
    + FILLED.format("vanished", 300, 320)
    + "; update vanished set n = 0 where id < 30; drop table vanished_new",
    "emptied": "create table emptied_new (id int not null, s text not null, n int);"
    + FILLED.format("emptied_new", 300, 320)
    + "; alter table emptied attach partition emptied_new for values from (300) to (400)",
    "dropped": "create table dropped_new (id int not null, s text not null, n int);"
    + FILLED.format("dropped_new", 300, 320)
    + "; alter table dropped attach partition dropped_new for values from (300) to (400); update dropped set n = 1 where id = 300",
    "wider": "begin; create table wider_new (id int not null, s text not null, n int);"
    + FILLED.format("wider_new", 300, 320)
    + "; alter table wider attach partition wider_new for values from (300) to (400); alter table wider add column more text;"
    "update wider set more = 'm' where id in (5, 305); commit; alter table wider rename column n to m",
    "refilled": "begin; truncate refilled_1;" + FILLED.format("refilled", 110, 115) + "; commit",
    "published": "alter table published attach partition apart for values from (300) to (400); update published set n = 0 where id = 305",
    "empty": "create table empty_new (id int not null, s text not null, n int); "
    "alter table empty attach partition empty_new for values from (300) to (400);" + FILLED.format("empty", 300, 305),
}
AFTER = {
    "defaulted": "drop table defaulted_0; insert into defaulted values (50, 'rest', 1); update defaulted set n = 1 where id = 901",
    "emptied": "truncate emptied;" + FILLED.format("emptied", 290, 310),
    "dropped": "drop table dropped_new; delete from dropped where id = 3",
    "wider": "alter table wider drop column more",
    "vanished": "create table vanished_again partition of vanished for values from (310) to (330);"
    + FILLED.format("vanished", 315, 325),
}
WHOLE = {"emptied"}


@pytest.mark.slow
def test_whatever_became_of_partitions_their_rows_alone_are_read(env: PipelineEnv) -> None:
    env.settings["lake"] = {"on_dropped_partition": "follow"}
    for table in BEFORE:
        env.sql(made("keyed").replace("keyed", table))
    env.bootstrap("create table apart (s text, id int, n int, primary key (id, s));" + FILLED.format("apart", 300, 310))
    copied = env.copies()

    for statements in BEFORE.values():
        env.sql(statements)
    env.land()
    env.merge()
    for statements in AFTER.values():
        env.sql(statements)
    env.land()
    env.each(BEFORE, "delete from {t} where id in (4, 305)")
    assert env.wake()
    env.flush()
    env.come_to_rest(3)

    left = {table.name: (table.state, table.paused_reason) for table in env.tables if table.state != "ready"}
    assert left.keys() == {"apart"}, left
    assert equal(env, but="apart")
    names = {table.oid: table.name for table in env.tables}
    assert {names[oid] for _, oid in env.copies() - copied} == WHOLE
    rows = {names[each.oid]: each.rows for each in env.ctx.ledger.loads.fetches(env.name)}
    assert rows.keys() == BEFORE.keys() - WHOLE
    assert all(count < 120 for count in rows.values()), rows


@pytest.mark.slow
def test_a_partition_bounded_outside_its_parent_keeps_no_row_of_another_in_the_lake(env16: PipelineEnv) -> None:
    for table in TABLES:
        identity = TABLES[table][1]
        env16.sql(made(table))
        env16.sql(
            f"create table {table}_rest partition of {table} default;"
            f"create table {table}_deep partition of {table} for values from (300) to (400) partition by range (id);"
            f"create table {table}_far partition of {table}_deep for values from (900) to (1000);"
            f"alter table {table}_rest replica identity {identity}; alter table {table}_far replica identity {identity};"
        )
        env16.sql(FILLED.format(table, 895, 910))
    env16.bootstrap()

    for table in TABLES:
        env16.sql(
            f"alter table {table} detach partition {table}_rest; delete from {table}_rest where id % 3 = 0;"
            f"update {table}_rest set n = -1 where id % 3 = 1; alter table {table} attach partition {table}_rest default"
        )
    env16.capture()
    assert env16.wake()
    env16.come_to_rest(3)

    assert states(env16) == dict.fromkeys(TABLES, "ready")
    assert equal(env16)
    assert {each.rows for each in env16.ctx.ledger.loads.fetches(env16.name)} == {11}


@pytest.mark.slow
def test_a_second_partition_attached_while_the_first_is_read_is_read_with_it(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.bootstrap(made("keyed"))
    copied = env16.copies()
    env16.land(aside("keyed", "first", 300, 310) + ";" + attach("keyed", "first", "(300) to (400)"))
    meanwhile = iter(
        [
            aside("keyed", "second", 400, 405)
            + ";"
            + attach("keyed", "second", "(400) to (500)")
            + "; update keyed set n = 0 where id in (301, 401); delete from keyed where id = 302; truncate first",
            "update keyed set n = 1 where id in (302, 402)",
        ]
    )
    whole = reading.copy_tables

    def copy_tables(*arguments: Any, **options: Any) -> Any:
        found = whole(*arguments, **options)
        env16.land(next(meanwhile))
        return found

    monkeypatch.setattr(reading, "copy_tables", copy_tables)
    assert env16.wake()

    assert equal(env16)
    assert next(meanwhile, None) is None, "read twice"
    assert (states(env16), env16.copies()) == ({"keyed": "ready"}, copied)
    assert [each.rows for each in env16.ctx.ledger.loads.fetches(env16.name) if each.state == "landed"] == [6]

    # two that are landed one after the other, and merged together
    monkeypatch.undo()
    for number in (600, 700):
        env16.sql(aside("keyed", f"at_{number}", number, number + 9))
        env16.sql(attach("keyed", f"at_{number}", f"({number}) to ({number + 100})"))
        env16.land(f"update keyed set n = n + 1 where id % 100 < 5; delete from keyed where id = {number}")
        rebuild.resync(env16.ctx, None, env16.submit)
        env16.sql("update keyed set n = n + 1 where id % 100 < 7; delete from keyed where id % 100 = 3")
    env16.come_to_rest(3)
    assert equal(env16)
    assert (states(env16), env16.copies()) == ({"keyed": "ready"}, copied)


@pytest.mark.slow
def test_a_partition_that_the_lake_kept_is_attached_again_and_is_there_once(env16: PipelineEnv) -> None:
    env16.settings |= {"lake": {"on_dropped_partition": "keep"}, "tables": {"include": [f"public.{t}" for t in TABLES]}}
    for table in TABLES:
        env16.sql(made(table))
    env16.bootstrap()
    copied = env16.copies()
    env16.each(TABLES, "alter table {t} detach partition {t}_0; alter table {t} detach partition {t}_2")
    env16.come_to_rest(3)
    for table in TABLES:
        env16.sql(
            f"update {table}_0 set n = -1 where id < 9; delete from {table}_0 where id = 12; insert into {table}_0 values (99, 'x', 1)"
        )
        env16.sql(f"{attach(table, f'{table}_0', '(0) to (100)')}; update {table} set n = -2 where id in (3, 120)")
    env16.capture()
    assert env16.wake()
    env16.come_to_rest(3)

    for table in TABLES:
        assert env16.lake_rows(table, "count(*)") == [(301 - 1,)], "what is gone still is kept"
        rows = env16.lake_rows(table, "count_if(id < 200), sum(case when id < 200 then n end)")
        assert rows == env16.sql(f"select count(*), sum(n) from {table}")
    assert (states(env16), env16.copies()) == (dict.fromkeys(TABLES, "ready"), copied)
    assert equal(env16)

    # bounds of rows that only the lake has are not taken by another partition unasked
    env16.land(aside("keyed", "other", 250, 260) + ";" + attach("keyed", "other", "(240) to (300)"))
    rebuild.resync(env16.ctx, None, env16.submit)
    assert states(env16) == {"bag": "ready", "keyed": "paused"}
    assert env16.lake_rows("keyed", "count(*)") == [(300,)]
