"""Partitions that are rewritten for a wider type: from file to file it is told that none was truncated by itself meanwhile."""

from collections.abc import Iterable

import pytest

from penstock.source import ddl_trigger
from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import spelt

SHOWN = ("wider", "in_one", "empty_filled_after")


@pytest.mark.slow
def test_a_rewrite_of_partitions_is_believed_unless_one_may_have_lost_rows(env: PipelineEnv) -> None:
    made(env, KEPT | LOST)
    env.begin()
    env.ledger.execute("update penstock.table set state = 'ready', complete_through = '0/1'")  # as if readers saw them
    env.capture()

    for name in KEPT | LOST:
        change(env, name)
    env.capture()

    reasons = env.paused()
    assert {name: reasons[name] for name in KEPT if name in reasons} == {}
    assert LOST.keys() - reasons.keys() == set()


@pytest.mark.spark
@pytest.mark.slow
def test_wider_columns_of_partitioned_tables_are_metadata(env16: PipelineEnv) -> None:
    made(env16, SHOWN)
    env16.bootstrap()
    env16.capture()
    copied, files = env16.copies(), {name: env16.data_files(name) for name in SHOWN}

    for name in SHOWN:
        change(env16, name)
    env16.follow()

    assert env16.wrong(copied) == []
    assert all(files[name] <= env16.data_files(name) for name in SHOWN), "no old file was written again"


# Partitioned tables whose partitions are rewritten for a wider type, and what may have happened to one of them beside it.

MADE = """
create table {t} (id int, k int, n int default 3, b text, s smallint, primary key (id, k)) partition by range (k);
create table {t}_1 partition of {t} for values from (0) to (10);
create table {t}_2 partition of {t} for values from (10) to (20) partition by list (k);
create table {t}_2a partition of {t}_2 for values in (10, 11, 12, 13, 14);
create table {t}_2b partition of {t}_2 for values in (15, 16, 17, 18, 19);
create table {t}_3 partition of {t} for values from (20) to (30);
create table {t}_5 (s smallint default 9, gone int, b text, n int default 7, k int not null, id int not null, primary key (id, k));
alter table {t}_5 drop column gone;
alter table {t} attach partition {t}_5 for values from (50) to (60);
insert into {t} select i, i % 20, i, 'b' || i, i from generate_series(1, 100) i;
insert into {t} select i, 50 + i % 10, i, 'b' || i, i from generate_series(1, 20) i;
insert into {t} (id, k) values (3, 25)
"""
FIRST = {
    "empty": "create table {t}_6 partition of {t} for values from (60) to (70)",
    "other": "create table {t}_0 partition of {t} default; insert into {t} (id, k) values (6, 99)",
    "silent": "alter table {t}_1 set unlogged; insert into {t} (id, k) values (2000, 5)",
}
"""What is done of tables with such a beginning of their name, too, before the first look at them."""
ROWS = (
    "update {t} set n = n + 1 where id between {0} and {0} + 9; delete from {t} where id = {0}; "
    "insert into {t} (id, k) values (1000 + {0}, 1), (1000 + {0}, 11); update {t} set k = 19 where id = {0} + 1 and k < 20"
)
KEY = "alter table {t} alter column id type bigint"
WIDER = "alter table {t} alter n type bigint, alter column id type bigint, alter s type int"
BIG = "update {t} set n = 9000000000000000000 where id = 77; update {t} set id = 9000000000000000001 where id = 78"

WORDS = {
    "WIDER": WIDER,
    "BIG": BIG,
    "KEY": KEY,
    "REFILL": "insert into {t} (id, k) values (5, 5)",
    "DEFAULT_8": "alter table {t} alter n set default 8",
}
KEPT = {
    "key": "update {t} set n = 0 where id = 1 / KEY",
    "wider": "WIDER / BIG",
    "in_one": "begin / update {t} set n = n + 1 where id between 41 and 41 + 9; delete from {t} where id = 41; "
    "insert into {t} (id, k) values (1000 + 41, 1), (1000 + 41, 11); "
    "update {t} set k = 19 where id = 41 + 1 and k < 20 / WIDER / BIG / commit",
    "savepoint": "begin / savepoint a / WIDER / release a / BIG / commit",
    "undone": "begin / truncate {t}_1 / WIDER / rollback / WIDER",
    "undone_part": "begin / savepoint a / WIDER / rollback to a / commit / WIDER / BIG",
    "undone_truncate": "begin / WIDER / savepoint a / truncate {t}_1 / rollback to a / commit",
    "prepared": "begin / WIDER / BIG / prepare transaction '{t}' / commit prepared '{t}'",
    "frozen": "WIDER / vacuum freeze {t}",
    "other": "begin / WIDER / insert into {t} (id, k) values (7, 98) / commit",
    "with_not_null": "alter table {t} alter s type bigint, alter n set not null, alter n type bigint",
    "made_after": "WIDER / create table {t}_4 partition of {t} for values from (30) to (40) / "
    "insert into {t} (id, k) values (5, 30)",
    "default_after": "WIDER / DEFAULT_8",
    "empty": "WIDER",
    "empty_filled_after": "WIDER / insert into {t} (id, k) values (7, 60), (8, 61)",
    "granted": "WIDER / grant select on {t}_1 to public",
    "one": "alter table {t} alter s type int",
}
LOST = {
    "empty_in_one": "begin / WIDER / BIG / commit",
    "before": "truncate {t}_1 / WIDER",
    "before_refilled": "truncate {t}_1 / REFILL / WIDER",
    "other_before": "truncate {t}_0 / WIDER",
    "prepared_lost": "begin / WIDER / truncate {t}_1 / REFILL / prepare transaction '{t}' / commit prepared '{t}'",
    "vacuumed": "WIDER / vacuum full {t}_1",
    "updated": "WIDER / update {t} set n = 0 where k < 10",
    "branch_before": "truncate {t}_2 / insert into {t} (id, k) values (5, 15), (5, 11) / WIDER",
    "branch_after": "WIDER / truncate {t}_2",
    "after": "WIDER / truncate {t}_2a",
    "after_told_again": "WIDER / truncate {t}_2a / DEFAULT_8",
    "in_it_before": "begin / truncate {t}_1 / WIDER / commit",
    "in_it_after": "begin / WIDER / truncate {t}_1 / commit",
    "in_it_refilled": "begin / WIDER / truncate {t}_1 / REFILL / commit",
    "in_it_refilled_told": "begin / WIDER / truncate {t}_1 / REFILL / DEFAULT_8 / "
    "alter table {t}_1 set (fillfactor = 90) / commit",
    "in_it_twice": "begin / KEY / truncate {t}_1 / REFILL / alter table {t} alter n type bigint / commit",
    "empty_refilled": "begin / WIDER / insert into {t} (id, k) values (5, 65) / truncate {t}_6 / commit",
    "empty_before": "insert into {t} (id, k) values (5, 65) / truncate {t}_6 / WIDER",
    "in_it_clustered": "begin / WIDER / truncate {t}_1 / REFILL / cluster {t}_1 using {t}_1_pkey / DEFAULT_8 / commit",
    "in_it_part": "begin / WIDER / savepoint a / truncate {t}_1 / release a / REFILL / "
    "alter table {t}_1 set (fillfactor = 90) / commit",
    "silent": "insert into {t} (id, k) values (2001, 5) / begin / alter table {t}_1 set logged / "
    "alter table {t} rename b to c / commit",
    "silent_to_the_end": "insert into {t} (id, k) values (2001, 5) / WIDER",
    "released": "begin / savepoint a / WIDER / release a / truncate {t}_1 / REFILL / commit",
    "twice": "begin / KEY / truncate {t}_1 / commit / alter table {t} alter n type bigint",
    "between": "KEY / truncate {t}_1 / alter table {t} alter n type bigint",
    "computed": "alter table {t} alter n type bigint using n + 1",
    "in_a_block": "do $$ begin alter table {t} alter n type bigint; end $$",
    "detached": "alter table {t} detach partition {t}_5 / WIDER",
    "dropped": "WIDER / drop table {t}_5",
    "attached_again": "alter table {t} detach partition {t}_1 / delete from {t}_1 where id = 2 / WIDER / "
    "alter table {t}_1 alter n type bigint, alter column id type bigint, alter s type int / "
    "alter table {t} attach partition {t}_1 for values from (0) to (10)",
    "attached_filled": "create table {t}_4 (like {t} including all) / insert into {t}_4 values (5, 31) / "
    "alter table {t} attach partition {t}_4 for values from (30) to (40) / WIDER",
    "unlogged": "alter table {t}_1 set unlogged / insert into {t} (id, k) values (2000, 5) / "
    "alter table {t}_1 set logged / WIDER",
    "clustered": "begin / cluster {t}_1 using {t}_1_pkey / WIDER / truncate {t}_1 / commit",
}
"""What shows no more than `KEPT` in the stream, or is not told; it costs what it did."""


def made(env: PipelineEnv, names: Iterable[str]) -> None:
    env.settings["source"] = {**env.settings["source"], "ddl_trigger": True}
    for name in names:
        env.sql(MADE.format(t=name))
        env.sql("; ".join(text.format(t=name) for start, text in FIRST.items() if name.startswith(start)) or "select")
    env.sql(ddl_trigger.install_statement())


def change(env: PipelineEnv, name: str) -> None:
    with env.source.connect() as conn:
        for text in (ROWS.format(21, t=name), *spelt((KEPT | LOST)[name], WORDS), ROWS.format(61, t=name)):
            conn.execute(text.format(t=name).encode())
