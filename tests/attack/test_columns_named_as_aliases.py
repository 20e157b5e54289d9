"""A table may name its columns as our statements name their sides: `t`, `s`, `file`, `net` and the like."""

import pytest

from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_table_without_a_key_whose_columns_are_named_as_our_aliases_follows(env16: PipelineEnv) -> None:
    env16.sql("create table bag (s text, t text, file text, pos int, net int, id int, misfits text, copy int)")
    env16.sql("create table keyed (t int primary key, s text, first int, row text, unknown text)")
    env16.sql("alter table bag replica identity full; alter table keyed alter s set storage external")
    env16.sql("insert into bag select 's', 't' || n % 3, 'f', n % 2 from generate_series(1, 20) n")
    env16.bootstrap("insert into keyed select n, repeat('x', 4000) from generate_series(1, 20) n")

    env16.sql("delete from bag where t = 't1'; update bag set pos = 7 where ctid in (select ctid from bag limit 3)")
    env16.follow("update keyed set row = 'new' where t < 5; update keyed set t = -t where t > 15")

    tables = env16.tables
    assert {(table.name, table.state, table.paused_reason) for table in tables} == {
        ("bag", "ready", None),
        ("keyed", "ready", None),
    }
    assert env16.unlike() == []
