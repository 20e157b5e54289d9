"""The judge of the landing zone: what was landed equals the source, and what was not yet is found."""

from tests.pipeline_env import PipelineEnv
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


def test_what_is_not_captured_yet_is_found_and_what_was_landed_is_equal(env16: PipelineEnv) -> None:
    env16.sql(stand.TABLES)
    env16.begin(stand.FILLED)
    env16.sql(CHANGES)
    env16.flush()

    assert unlike(env16) == {f"public.{name}" for name in ("plain", "toasted", "bag", "nest", "parted", "made")}
    env16.capture()
    assert unlike(env16) == set()


def unlike(env: PipelineEnv) -> set[str]:
    with env.source.connect() as conn:
        now = model.read(conn, env.ctx.pipeline.publication)
    found = dict(landed.judge(env, now))
    assert len(found) == 16
    return {table for table, lines in found.items() if lines}
