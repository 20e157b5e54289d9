"""A publication of all tables: a rewritten table may have been unlogged, and the event trigger tells whether it was."""

import pytest

from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import adopt
from tests.scenarios.stories import spelt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = (
    "create table {t} (id int primary key, s smallint, n int default 3, f real); "
    "insert into {t} select i, i, i, i / 7.0 from generate_series(1, 20) i"
)
ROWS = "update {t} set n = n + 1, f = 0.1 where id < {0}; delete from {t} where id = {0}; insert into {t} (id) values ({0} + 100)"
WIDER = "alter table {t} alter n type bigint, alter id type bigint, alter f type float8"
KEPT = {
    "followed": "WIDER / update {t} set n = 9000000000000000000 where id = 3",
    "then_full": "WIDER / vacuum full {t}",
    "truncated": "truncate {t} / insert into {t} (id, f) values (1, 0.7), (2, 0.1) / WIDER / "
    "insert into {t} values (3, 1)",
    "truncated_then": "WIDER / insert into {t} values (41, 1) / truncate {t} / insert into {t} values (42, 1)",
    "granted": "WIDER / grant select on {t} to public",
    "undone": "begin; alter table {t} set unlogged; insert into {t} values (77); rollback / WIDER",
}
LOST = {
    "unlogged_before": "alter table {t} set unlogged / insert into {t} values (50) / alter table {t} set logged / "
    "WIDER",
    "unlogged_after": "WIDER / alter table {t} set unlogged / insert into {t} values (50) / alter table {t} set logged",
    "unlogged_with_it": "alter table {t} set unlogged, alter n type bigint / insert into {t} values (50) / "
    "alter table {t} set logged, alter s type int",
    "unlogged_in_a_block": "do $$ begin alter table {t} set unlogged; insert into {t} values (50); "
    "alter table {t} set logged; end $$ / WIDER",
    "computed": "alter table {t} alter n type bigint using n + 1",
}


@pytest.mark.parametrize("made", ["for all tables", "for tables in schema public"])
def test_a_plain_rewrite_is_metadata_unless_the_table_was_unlogged(env16: PipelineEnv, made: str) -> None:
    tables = KEPT | LOST
    for name in tables:
        env16.sql(MADE.format(t=name))
    adopt(env16, f"{made} with (publish_via_partition_root = true)")
    env16.bootstrap(trigger=True)
    env16.capture()
    copied = env16.copies()

    for name, statements in tables.items():
        env16.sql(ROWS.format(5, t=name))
        for statement in spelt(statements, {"WIDER": WIDER}):
            env16.sql(statement.format(t=name))
        env16.sql(ROWS.format(9, t=name))
    env16.follow()

    assert set(env16.paused()) == LOST.keys()
    assert {each.name.rpartition(".")[2] for each in compare(env16.ctx).tables if each.equal} >= KEPT.keys()
    assert env16.copies() == copied


def test_without_truncates_in_the_stream_a_rewrite_is_not_believed(env16: PipelineEnv) -> None:
    env16.sql(MADE.format(t="t"))
    adopt(env16, "for all tables with (publish_via_partition_root = true, publish = 'insert, update, delete')")
    env16.bootstrap(trigger=True)
    env16.capture()
    copied = env16.copies()

    env16.sql("truncate t")
    env16.land(WIDER.format(t="t"))

    assert set(env16.paused()) == {"t"}
    assert env16.wrong(copied)
