"""Types of the source that are named as built-in ones: the stream names them, and they are taken for nothing else."""

import pytest

from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = """
create type public.int4 as enum ('one', 'two', '7'); create type public.citext as (a pg_catalog.int4, b pg_catalog.text);
create type public.varchar as enum ('x', 'y'); create schema o; create type o.text as range (subtype = pg_catalog.int4);
create domain public.bool as public.int4;
create table t (id pg_catalog.int4 primary key, a public.int4, b public.citext, c public.varchar, d o.text, e public.bool);
insert into t select i, 'one', row(i, 'q')::public.citext, 'x', o.text(1, 5), '7' from generate_series(1, 20) i
"""
CHANGES = (
    "update t set a = 'two', b = row(9, 'w')::public.citext, c = 'y', d = o.text(2, 9), e = 'one' where id < 5; "
    "insert into t values (30, '7', row(1, null)::public.citext, 'x', null, 'two')",
    "alter table t alter a type pg_catalog.int4 using 40 + id, alter b type pg_catalog.text using (b).b, "
    "alter c type pg_catalog.text using c::pg_catalog.text || '!', alter d type pg_catalog.text using upper(d)::pg_catalog.text, "
    "alter e type pg_catalog.bool using (e::public.int4)::pg_catalog.text = 'one'",
    "update t set a = 3, c = 'later' where id between 3 and 8; delete from t where id = 9; "
    "insert into t values (31, 1, 'n', 'm', 'k', true)",
)


def test_a_type_named_as_a_built_in_one_becomes_that_one_with_rows_of_both_in_a_window(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE)
    for statements in CHANGES:
        env16.sql(statements)
    env16.follow()

    assert env16.wake()

    assert [table.state for table in env16.tables] == ["ready"]
    assert env16.unlike() == []
