"""The judge of the landing zone: what was landed equals the source, and what was not yet is found."""

from __future__ import annotations

from penstock.flow.copy import bootstrap
from tests.faults.killed import copy_without_spark
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import flush
from torture import landed, model, stand

CHANGES = """
update plain set v = v + 1, id = id + 100 where id % 2 = 0;
update toasted set v = -v;
delete from bag where ctid in (select ctid from bag limit 3);
insert into bag values ('s1', null, 1);
truncate nest;
insert into nest values (1, 1, 'after');
update parted set id = id + 500 where id < 50;
alter table made add column c int default 7;
update made set v = 5 where id < 5
"""


def test_what_is_not_captured_yet_is_found_and_what_was_landed_is_equal(bare16: PipelineEnv) -> None:
    bare16.sql(stand.TABLES)
    bare16.sql(stand.FILLED)
    bootstrap.prepare(bare16.ctx)
    bootstrap.copy(bare16.ctx, copy_without_spark)
    bare16.sql(CHANGES)
    flush(bare16)

    assert unlike(bare16) == {f"public.{name}" for name in ("plain", "toasted", "bag", "nest", "parted", "made")}
    bare16.capture()
    assert unlike(bare16) == set()


def unlike(world: PipelineEnv) -> set[str]:
    with world.source.connect() as conn:
        now = model.read(conn, world.ctx.pipeline.publication)
    found = dict(landed.judge(world, now))
    assert len(found) == 13
    return {table for table, lines in found.items() if lines}
