"""The lake as archive: rows of partitions that are gone at the source stay, verify knows it, and no copy loses them."""

import pytest

from penstock.errors import LakeError
from penstock.flow.load import run as rebuild
from penstock.flow.recover import run as recover
from penstock.flow.verify import run as verify
from tests.pipeline_env import PipelineEnv
from tests.scenarios.test_gone_partitions import DEEP, states

HASHED = """
create table spread (id int primary key, s text) partition by hash (id);
create table spread_0 partition of spread for values with (modulus 2, remainder 0);
create table spread_1 partition of spread for values with (modulus 2, remainder 1);
insert into spread select n, 's' || n from generate_series(1, 20) n;
"""


def count(env: PipelineEnv, condition: str = "true") -> int:
    ((rows,),) = env.lake_rows("deep", f"count_if({condition})")
    return int(rows)


@pytest.mark.slow
def test_rows_of_partitions_that_are_gone_stay_in_the_lake_and_verify_compares_the_others(env: PipelineEnv) -> None:
    env.settings |= {"lake": {"on_dropped_partition": "keep"}, "tables": {"include": ["public.deep", "public.spread"]}}
    env.bootstrap(DEEP + HASHED)
    copied, rows = env.copies(), count(env)

    env.sql("update deep set s = 'b' where id = 3; delete from deep where id = 6; drop table deep_jan")
    env.sql("insert into deep values (901, '2026-02-07', 'a'); truncate deep_feb_a")
    env.come_to_rest(
        4, "alter table spread detach partition spread_0; delete from spread where id = (select max(id) from spread)"
    )
    assert states(env) == {"deep": ("ready", None), "spread": ("ready", None)}
    assert count(env) == rows
    assert count(env, "id = 3 and s = 'b'") == 1
    assert env.copies() == copied

    # what is written since is compared, but within the bounds of what was kept
    env.sql("create table deep_jan2 partition of deep for values from ('2026-01-01') to ('2026-01-20')")
    env.come_to_rest(
        4, "insert into deep values (3, '2026-01-04', 'b'), (902, '2026-02-08', 'a'), (903, '2026-03-09', 'b')"
    )
    assert count(env, "id in (3, 902, 903)") == 3
    assert env.unlike() == []
    found = verify.verify(env.ctx, merge=env.merge)
    assert {(each.name, each.outcome) for each in found.findings} == {("deep", "equal"), ("spread", "equal")}

    env.spark.sql(f"delete from lake.{env.name}.public.deep where id = 903")
    assert env.unlike() != []


def keeping(env: PipelineEnv) -> PipelineEnv:
    """Bootstrap a pipeline whose lake keeps the rows of dropped partitions."""
    env.settings["lake"] = {"on_dropped_partition": "keep"}
    env.bootstrap(DEEP)
    return env


@pytest.mark.slow
def test_no_copy_truncate_or_recovery_takes_what_only_the_lake_has_unless_a_person_gives_it_up(
    env16: PipelineEnv,
) -> None:
    env = keeping(env16)
    env.come_to_rest(4, "drop table deep_jan")
    rows = count(env)

    with pytest.raises(LakeError, match="only the lake has those of deep_jan_0, deep_jan_1") as refused:
        rebuild.resync(env.ctx, ["public.deep"], env.submit)
    assert refused.value.slug == "archive-kept"

    # the copy of before the drop has them, and the windows since bring no end of them
    assert rebuild.switch(env.ctx, rebuild.replay(env.ctx, rebuild.Replay(("public.deep",)), env.submit), env.submit)
    assert count(env) == rows

    env.come_to_rest(4, "truncate deep")
    assert "would go with the others" in (states(env)["deep"][1] or "")
    assert rebuild.resync(env.ctx, None, env.submit) == []
    assert any(event.slug == "archive-kept" for event in env.ctx.ledger.events.all(env.name))

    env.ctx.ledger.pipelines.halt(env.name, slug="slot-lost", reason="acted out")
    with pytest.raises(LakeError, match="archive") as refused:
        recover.start(env.ctx, dry_run=False)
    assert refused.value.slug == "archive-kept"
    assert count(env) == rows


@pytest.mark.slow
def test_a_copy_that_is_under_way_when_a_partition_goes_does_not_take_the_place_of_the_table(
    env16: PipelineEnv,
) -> None:
    env = keeping(env16)
    rows = count(env)

    def submit(job: object) -> None:
        env.submit(job)  # type: ignore[arg-type]
        env.sql("drop table if exists deep_jan")

    def copied_again() -> None:
        rebuild.switch(env.ctx, rebuild.resync(env.ctx, ["public.deep"], submit), env.submit)

    with pytest.raises(LakeError) as given_up:
        copied_again()
    assert given_up.value.slug in ("rebuild-given-up", "archive-kept")
    env.come_to_rest(4)
    assert count(env) == rows
    assert env.unlike() == []
