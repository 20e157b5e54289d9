"""A column with a constant default is added while partitions come that had such a column before, with another default."""

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.test_attached_partitions import aside, attach, equal, made, states

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ADDED = "alter table {t} add column x int default 7"
OLD = "alter table {t} add column x int default 5"
CASES = {
    "keyed": [ADDED, "insert into {t} (id, s) values (51, 'new')", "{other}", "{attach}"],
    "bag": ["{other}", ADDED, "update {t} set n = -1 where id between 20 and 25", "{attach}"],
}


LATER = "update {t} set n = 5 where id in (8, 310); insert into {t} (id, s) values (390, 'late')"


def migrate(env: PipelineEnv, rows: tuple[int, int], later: str = LATER) -> None:
    for table, statements in CASES.items():
        other, bound = f"{table}_new", "(300) to (400)"
        filled = f"{aside(table, other, *rows)}; {OLD.format(t=other)}"
        env.sql(f"update {table} set n = n + 1 where id < 10; delete from {table} where id = 150")
        for statement in statements:
            env.sql(statement.format(t=table, other=filled, attach=attach(table, other, bound)))
        env.sql(later.format(t=table))
    env.capture()


def begun(env: PipelineEnv) -> tuple[set[tuple[str, int]], dict[str, set[str]]]:
    for table in CASES:
        env.sql(made(table))
    env.bootstrap()
    return env.copies(), {table: env.data_files(table) for table in CASES}


def test_rows_of_before_show_the_default_of_the_partitions_that_were_there(env16: PipelineEnv) -> None:
    copied, files = begun(env16)

    migrate(env16, (300, 320))
    assert {table.name: table.remedy == "read" for table in env16.tables} == dict.fromkeys(CASES, True), env16.tables
    assert env16.wake()

    assert equal(env16)
    assert env16.copies() == copied
    assert all(files[table] <= env16.data_files(table) for table in CASES), "no file was rewritten"


def test_a_partition_that_was_attached_empty_has_no_say(env16: PipelineEnv) -> None:
    copied, _ = begun(env16)

    migrate(env16, (1, 0), "select 1")
    env16.each(CASES, LATER)
    env16.follow()

    assert states(env16) == dict.fromkeys(CASES, "ready")
    assert equal(env16)
    assert env16.copies() == copied


def test_partitions_that_were_packed_since_have_the_default_in_their_rows(env16: PipelineEnv) -> None:
    begun(env16)

    env16.sql(ADDED.format(t="keyed"))
    env16.sql("alter table keyed alter x drop default")
    env16.each(range(3), "vacuum full keyed_{t}")
    env16.sql(f"{aside('keyed', 'keyed_new', 300, 320)}; {OLD.format(t='keyed_new')}")
    env16.land(attach("keyed", "keyed_new", "(300) to (400)"))

    found = {table.name: (table.state, table.remedy == "read") for table in env16.tables}

    assert found == {"keyed": ("paused", False), "bag": ("ready", False)}
