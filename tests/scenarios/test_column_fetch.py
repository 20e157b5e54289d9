"""Changes that leave only some columns' values open: these are fetched under a snapshot, and the table goes on in one cut."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.flow.load import read as reading
from penstock.ledger.loads import Loads
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin
from tests.scenarios.recovery import equal

TYPES = """
create type mood as enum ('sad', 'ok', 'happy');
create type shade as enum ('dark', 'light');
create domain stamped as timestamptz default clock_timestamp();
create domain word as text
"""
MADE = """
create table {t} (id int primary key, a text, b text, n numeric(10,2), i int, at timestamp, c char(8), m mood, ms shade[],
    g int generated always as (id * 2) stored);
alter table {t} alter column b set storage external;
insert into {t} select i, 'a' || i, repeat(i::text, 3000), i / 100.0, i, '2026-01-01'::timestamp + i * interval '1 h', 'c' || i,
    case when i % 2 = 0 then 'ok' else 'sad' end::mood, array['dark']::shade[]
from generate_series(1, 40) i
"""
BEFORE = """
update {t} set a = 'before' where id between 1 and 10; delete from {t} where id = 11; update {t} set id = 112 where id = 12;
insert into {t} (id, a, i, c, at) values (101, 'new', 5, 'x', '2026-02-02')
"""
WITHIN = "update {t} set a = 'within' where id between 13 and 16; insert into {t} (id, a) values (200, 'within')"
AFTER = """
update {t} set a = 'after' where id between 5 and 15; delete from {t} where id = 21; update {t} set id = 122 where id = 22;
insert into {t} (id, a) values (201, 'after')
"""
LATER = "update {t} set a = 'later' where id between 8 and 18; delete from {t} where id = 23; update {t} set id = 124 where id = 24"


@dataclass(frozen=True)
class Case:
    """A change of table t, and the columns that are read again besides the key."""

    change: str
    columns: tuple[str, ...]


CASES = {
    "added": Case(
        "alter table {t} add column u uuid default gen_random_uuid(), add column s bigserial, add column d stamped, "
        "add column k int generated always as identity",
        ("u", "s", "d", "k"),
    ),
    "plain_at_last": Case("alter table {t} alter column g drop expression", ("g",)),
    "rewritten": Case(
        "alter table {t} alter column a type text using upper(a), alter column b type text using b || 'x', "
        "alter column i type bigint, alter column c type char(12)",
        ("a", "b", "i", "c"),
    ),
    "retyped": Case(
        "alter table {t} alter column i type text using 'i' || i, alter column c type text, "
        "alter column n type numeric(6,1), alter column at type timestamptz",
        ("i", "c", "n", "at"),
    ),
    "text_to_int": Case("alter table {t} alter column a type int using length(a)", ("a",)),
    "not_rewritten": Case("alter table {t} alter column n type numeric", ("n",)),
    "several": Case(
        "alter table {t} rename column a to x; alter table {t} drop column c; alter table {t} add column c uuid default "
        "gen_random_uuid(), alter column i type date using '2026-01-01'::date + i",
        ("x", "i", "c"),
    ),
}


def test_columns_whose_values_changed_are_fetched_and_nothing_else(env: PipelineEnv) -> None:
    env.sql(TYPES)
    for table in CASES:
        env.sql(MADE.format(t=table))
    env.bootstrap()
    copied = env.copies()

    for table, case in CASES.items():
        env.sql(BEFORE.format(t=table))
        env.sql(f"begin; {case.change.format(t=table)}; {dml(table, WITHIN)}; commit")
    for table in CASES:
        env.sql(dml(table, AFTER))
    env.capture()
    assert {table.name: table.remedy == "read" for table in env.tables} == dict.fromkeys(sorted(CASES), True)
    env.merge()
    assert env.wake()

    assert {table.name: (table.state, table.paused_reason) for table in env.tables} == dict.fromkeys(
        sorted(CASES), ("ready", None)
    )
    equal(env)
    assert env.copies() == copied, "no table was copied"
    found, wanted = read(env), {table: {"id", *case.columns} for table, case in CASES.items()}
    if env.source.server.major == 16:
        assert found == wanted
    else:  # a server may write the catalog's rows of other columns anew with a change of type: these are in doubt, too
        assert found.keys() == wanted.keys()
        assert all(found[table] >= columns for table, columns in wanted.items())

    for table in CASES:
        env.sql(dml(table, LATER))
    env.follow()
    equal(env)


def dml(table: str, statements: str) -> str:
    found = statements.format(t=table)
    if table == "several":
        return found.replace("a = ", "x = ").replace("(id, a)", "(id, x)")
    if table == "text_to_int":
        return re.sub("'(within|after|later)'", "77", found)
    return found


def read(env: PipelineEnv) -> dict[str, set[str]]:
    """Return the columns that were read from the source again, by table."""
    names = {table.oid: table.name for table in env.tables}
    return {
        names[each.oid]: {column for file in each.files for column in file.columns}
        for each in env.ctx.ledger.loads.fetches(env.name)
    }


LABELLED = """
create table one (id int primary key, m mood, a text);
create table two (id int primary key, ms mood[]);
create table three (id int primary key, m mood, kept text);
insert into one select i, (array['sad', 'ok', 'happy'])[1 + i % 3]::mood, 'a' from generate_series(1, 30) i;
insert into two select i, array['sad', 'ok']::mood[] from generate_series(1, 30) i;
insert into three select i, 'sad', 'k' from generate_series(1, 30) i
"""


@pytest.mark.slow
def test_a_renamed_label_costs_the_rows_that_hold_it(env: PipelineEnv) -> None:
    env.sql(TYPES)
    env.bootstrap(LABELLED)
    copied = env.copies()

    env.sql("update one set a = 'b' where id < 10; delete from one where id = 3")
    env.sql("alter type mood rename value 'sad' to 'blue'; update one set m = 'blue' where id = 5")
    env.sql("alter type mood add value 'new'; update three set m = 'ok' where id = 7")
    env.land("insert into one values (50, 'new', 'n'), (51, 'blue', 'n'); insert into two values (50, '{blue,new}')")
    assert env.wake()

    equal(env)
    assert env.copies() == copied, "no table was copied"
    names = {table.oid: table.name for table in env.tables}
    rows = {names[each.oid]: each.rows for each in env.ctx.ledger.loads.fetches(env.name)}
    (held,) = env.sql("select count(*) from one where m in ('blue', 'new')")[0]
    assert rows == {"one": held, "two": 31, "three": 29}


KEPT_WHOLE = {
    "keyless": (
        "create table {t} (id int, a text); alter table {t} replica identity full",
        "alter column a type int using 1",
    ),
    "its_key": ("create table {t} (id int primary key, a text)", "alter column id type bigint using id * 2"),
    "parts": (
        "create table {t} (id int primary key, a text) partition by range (id); "
        "create table {t}_1 partition of {t} for values from (0) to (100)",
        "alter column a type int using 1",
    ),
}


def test_what_is_not_exact_by_columns_waits_for_a_whole_copy(landing_env16: PipelineEnv) -> None:
    begin(landing_env16, "; ".join(made.format(t=table) for table, (made, _) in KEPT_WHOLE.items()))

    for table, (_, change) in KEPT_WHOLE.items():
        landing_env16.sql(f"alter table {table} {change}")
    landing_env16.capture()

    assert {table.name: table.paused_slug for table in landing_env16.tables} == dict.fromkeys(
        KEPT_WHOLE, "schema-change"
    )
    assert {table.name: table.remedy == "read" for table in landing_env16.tables} == dict.fromkeys(KEPT_WHOLE, False)


class KilledError(Exception):
    """Stand for the end of a process."""


STEPS = (
    (Loads, "start_reads", "before"),
    (Loads, "start_reads", "after"),
    (reading, "copy_tables", "after"),
    (Loads, "land", "before"),
    (Loads, "land", "after"),
)
MOVED = """
update t set id = -id where id % 5 = {0}; update t set a = a || '+' where id % 7 = {0}; delete from t where id % 11 = {0} + 1;
insert into t (id, a) select (select max(abs(id)) from t) + i, 'more' from generate_series(1, 5) i
"""


@pytest.mark.slow
def test_a_fetch_that_ended_anywhere_is_begun_again_while_the_table_changes(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.sql("create table t (id int primary key, a text, b text); alter table t alter column b set storage external")
    env16.bootstrap("insert into t select i, 'a' || i, repeat('b', 4000) from generate_series(1, 60) i")

    for number, (place, name, when) in enumerate(STEPS):
        env16.sql(MOVED.format(number))
        env16.land(f"alter table t alter column a type text using a || '{number}'; {MOVED.format(number + 1)}")
        with monkeypatch.context() as patched:
            patched.setattr(place, name, killed(getattr(place, name), when))
            with pytest.raises(KilledError):
                assert env16.wake()
        env16.sql(MOVED.format(number))
        env16.maintain()
        env16.follow()
        assert env16.wake()

        equal(env16)
        assert [table.state for table in env16.tables] == ["ready"]


@pytest.mark.slow
def test_a_table_that_changes_while_its_columns_are_read_goes_on_exactly(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.sql("create table t (id int primary key, a text, b text); create table u (id int primary key, a text)")
    env16.bootstrap(
        "insert into t select i, 'a' || i, 'b' from generate_series(1, 60) i; insert into u select id, a from t"
    )
    for table in ("t", "u"):
        env16.sql(f"alter table {table} alter column a type int using id * 3; update {table} set id = -id where id < 9")
    env16.capture()
    meanwhile = iter(
        [
            "update t set id = -id where id % 2 = 0; update t set a = 1 where id % 3 = 0; delete from t where id % 7 = 0; "
            "insert into t values (500, 5); update t set id = 501, a = 7 where id = 1; alter table t add c int default 4; "
            "update t set c = 5 where id = 501; truncate u; insert into u values (1, 1)",
            "update t set id = -id; update t set a = 2 where id % 3 = 0",
        ]
    )
    whole = reading.copy_tables

    def copy_tables(*arguments: Any, **options: Any) -> Any:
        found = whole(*arguments, **options)
        env16.land(next(meanwhile))
        return found

    monkeypatch.setattr(reading, "copy_tables", copy_tables)
    assert env16.wake()

    equal(env16)
    assert next(meanwhile, None) is None, "the table that was altered meanwhile was read twice"
    assert {table.state for table in env16.tables} == {"ready"}


def killed(step: Callable[..., Any], when: str) -> Callable[..., Any]:
    def stopped(*arguments: Any, **options: Any) -> Any:
        if when == "after":
            step(*arguments, **options)
        raise KilledError

    return stopped
