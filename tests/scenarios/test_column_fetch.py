"""Changes that leave only some columns' values open: these are fetched under a snapshot, and the table goes on in one cut."""

from typing import Any

import pytest

from penstock.flow.load import read as reading
from penstock.ledger.loads import Loads
from tests.dying import dying
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin
from tests.scenarios.test_stories import TYPES_OF_FETCHED

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
    env.sql(TYPES_OF_FETCHED)
    env.bootstrap(LABELLED)
    copied = env.copies()

    env.sql("update one set a = 'b' where id < 10; delete from one where id = 3")
    env.sql("alter type mood rename value 'sad' to 'blue'; update one set m = 'blue' where id = 5")
    env.sql("alter type mood add value 'new'; update three set m = 'ok' where id = 7")
    env.land("insert into one values (50, 'new', 'n'), (51, 'blue', 'n'); insert into two values (50, '{blue,new}')")
    assert env.wake()

    assert env.unlike() == []
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


def test_what_is_not_exact_by_columns_waits_for_a_whole_copy(env16: PipelineEnv) -> None:
    begin(env16, "; ".join(made.format(t=table) for table, (made, _) in KEPT_WHOLE.items()))

    for table, (_, change) in KEPT_WHOLE.items():
        env16.sql(f"alter table {table} {change}")
    env16.capture()

    assert {table.name: table.paused_slug for table in env16.tables} == dict.fromkeys(KEPT_WHOLE, "schema-change")
    assert {table.name: table.remedy == "read" for table in env16.tables} == dict.fromkeys(KEPT_WHOLE, False)


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
def test_a_fetch_that_ended_anywhere_is_begun_again_while_the_table_changes(env16: PipelineEnv) -> None:
    env16.sql("create table t (id int primary key, a text, b text); alter table t alter column b set storage external")
    env16.bootstrap("insert into t select i, 'a' || i, repeat('b', 4000) from generate_series(1, 60) i")

    for number, (place, name, when) in enumerate(STEPS):
        env16.sql(MOVED.format(number))
        env16.land(f"alter table t alter column a type text using a || '{number}'; {MOVED.format(number + 1)}")
        with dying(place, name, when):
            env16.wake()
        env16.sql(MOVED.format(number))
        env16.maintain()
        env16.follow()
        assert env16.wake()

        assert env16.unlike() == []
        assert [table.state for table in env16.tables] == ["ready"]


@pytest.mark.slow
def test_a_table_that_changes_while_its_columns_are_read_goes_on_exactly(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env16.sql("create table t (id int primary key, a text, b text); create table u (id int primary key, a text)")
    env16.bootstrap(
        "insert into t select i, 'a' || i, 'b' from generate_series(1, 60) i; insert into u select id, a from t"
    )
    env16.each(("t", "u"), "alter table {t} alter column a type int using id * 3; update {t} set id = -id where id < 9")
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

    assert env16.unlike() == []
    assert next(meanwhile, None) is None, "the table that was altered meanwhile was read twice"
    assert {table.state for table in env16.tables} == {"ready"}
