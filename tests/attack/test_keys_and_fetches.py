"""A table whose key changes while values of other columns are in doubt: both are followed, or the table is copied."""

import pytest

from penstock.flow.load import run as rebuild
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.key_changes import (
    BY_CODE,
    BY_ID,
    BY_ROW,
    LATE,
    LATE_BY_ID,
    MADE,
    NO_KEY,
    ONE_OF_EACH,
    TO_CODE,
    TO_ID,
    missed,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ADDED = "alter table {t} add column u uuid default gen_random_uuid()"
RETYPED = "alter table {t} alter column n type bigint using n + 1000"
FETCHED = {
    "added_with_it": [f"begin; {ADDED}; {TO_CODE}; {BY_CODE}; commit", LATE],
    "key_then_values": [TO_CODE, BY_CODE, RETYPED, LATE],
    "values_then_key": [RETYPED, "update {t} set n = 3 where id in (14, 19)", TO_CODE, BY_CODE],
    "there_and_back": [TO_CODE, BY_CODE, ADDED, TO_ID, LATE_BY_ID],
    "rolled_back": [f"begin; {TO_CODE}; {BY_CODE}; rollback", TO_CODE, ADDED, BY_CODE],
    "old_key_dropped": [TO_CODE, BY_CODE, "alter table {t} drop column id", ADDED, "delete from {t} where code = 'c8'"],
}
COPIED = {
    "by_a_new_column": [
        "alter table {t} add k text; update {t} set k = 'k' || id",
        "alter table {t} drop constraint {t}_pkey, add primary key (k)",
        RETYPED,
        "update {t} set n = 4 where k = 'k17'; update {t} set k = 'moved' where k = 'k18'",
    ],
    "old_key_in_doubt": ["alter table {t} alter id type bigint using id + 1", TO_CODE, ADDED],
    "new_key_in_doubt": ["alter table {t} alter code type text using code || 'x'", TO_CODE, ADDED],
}
WHOLE_ROWS = [
    NO_KEY,
    BY_ROW,
    ONE_OF_EACH,
    "update {t} set n = 5 where id = 17",
    "alter table {t} add primary key (id), replica identity default",
]


def changed(env: PipelineEnv, tables: dict[str, list[str]]) -> None:
    for name, statements in tables.items():
        env.sql(BY_ID.format(t=name))
        with env.source.connect() as conn:
            for statement in statements:
                conn.execute(statement.format(t=name).encode())
    env.land()


def test_rows_are_found_by_the_key_of_their_time_around_fetched_values(env: PipelineEnv) -> None:
    tables = FETCHED | COPIED
    for name in tables:
        env.sql(MADE.format(t=name))
    env.bootstrap()
    copied = env.copies()

    changed(env, tables)
    fetchable = {each.name for each in env.tables if each.remedy == "read"}
    waiting = env.paused()
    env.merge()
    assert env.wake()
    for name in tables:
        env.sql(f"update {name} set large = 'later' where code in ('c2', 'c20'); delete from {name} where code = 'c3'")
    env.follow()

    assert set(waiting) == tables.keys()
    assert fetchable == FETCHED.keys()
    assert env.paused() == {}
    assert compare(env.ctx).equal
    assert missed(env) == {}
    oids = {each.oid: each.name for each in env.tables}
    assert {oids[oid] for _, oid in env.copies() - copied} == COPIED.keys()


def test_whole_rows_that_lack_a_fetched_column_are_left_to_a_copy(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE.format(t="t"))

    changed(env16, {"t": [*WHOLE_ROWS, RETYPED]})
    rebuild.resync(env16.ctx, None, env16.submit, woken=True)
    env16.follow()
    waiting = env16.paused()
    assert env16.wake()
    env16.merge()

    assert "came whole and without a key" in waiting["t"]
    assert env16.paused() == {}
    assert compare(env16.ctx).equal
