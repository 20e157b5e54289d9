"""Resume ends a halt or a pause when its cause is gone, and says which cause is not."""

from pathlib import Path

import pytest

from penstock.errors import ConfigError, LakeError, SourceError
from penstock.flow.guards import record_errors
from penstock.flow.load import bootstrap
from penstock.flow.merge import run as merge
from penstock.flow.recover.resume import resume, resume_table
from tests.pipeline_env import PipelineEnv, copy_without_spark
from tests.scenarios.recovery import consume

TABLES = """
create table t (id int primary key, name text); create table other (id int primary key);
insert into t values (1, 'one');
"""


def begin(env: PipelineEnv) -> None:
    env.begin(TABLES)
    env.land("insert into t values (2, 'two')")


def state(env: PipelineEnv) -> tuple[str, str | None]:
    record = env.ctx.ledger.pipelines.get(env.name)
    return record.state, record.halted_slug


def paused(env: PipelineEnv) -> set[str]:
    return {record.name for record in env.tables if record.state == "paused"}


def test_a_halt_whose_cause_is_still_there_stays(env16: PipelineEnv) -> None:
    begin(env16)
    consume(env16)
    with pytest.raises(SourceError, match="slot-ahead"), record_errors(env16.ctx):
        env16.capture()

    with pytest.raises(SourceError, match="slot-ahead"), record_errors(env16.ctx):
        resume(env16.ctx)
    assert state(env16) == ("halted", "slot-ahead")

    env16.sql(f"select pg_drop_replication_slot('{env16.ctx.pipeline.slot}')")
    with pytest.raises(SourceError, match="slot-missing"), record_errors(env16.ctx):
        resume(env16.ctx)
    assert state(env16) == ("halted", "slot-missing"), "the reason is the present one"


def test_a_pipeline_continues_when_its_connection_leads_to_the_right_server_again(
    env16: PipelineEnv, request: pytest.FixtureRequest
) -> None:
    begin(env16)
    right = env16.source
    wrong_server = request.getfixturevalue("postgres15")
    with wrong_server.temporary_database(right.name) as wrong:
        env16.source = wrong
        for call in (env16.capture, lambda: resume(env16.ctx)):
            with pytest.raises(SourceError, match="source-changed"), record_errors(env16.ctx):
                call()
        env16.source = right

    resume(env16.ctx)
    assert state(env16) == ("running", None)
    assert env16.land("insert into t values (3, 'three')").changes == 1


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_halt_for_a_landing_file_ends_when_the_file_is_whole_again(env16: PipelineEnv, damage: str) -> None:
    begin(env16)
    (entry,) = (entry for window in env16.ctx.ledger.windows.all(env16.name) for entry in window.files)
    place = Path(env16.landing, entry.path)
    whole = place.read_bytes()
    place.unlink()
    with pytest.raises(LakeError, match="landing-file-missing"), record_errors(env16.ctx):
        merge.plan(env16.ctx)
    if damage == "cut":
        place.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(LakeError, match="landing-file-missing"), record_errors(env16.ctx):
        resume(env16.ctx)
    assert state(env16) == ("halted", "landing-file-missing")

    place.write_bytes(whole)
    resume(env16.ctx)
    assert state(env16) == ("running", None)


def test_a_pipeline_that_was_halted_before_it_had_a_slot_continues_with_its_bootstrap(env16: PipelineEnv) -> None:
    env16.prepare(TABLES)
    env16.ctx.ledger.pipelines.halt(env16.name, slug="slot-unusable", reason="for this test")

    resume(env16.ctx)
    bootstrap.copy(env16.ctx, copy_without_spark)
    assert state(env16) == ("running", None)


def test_where_a_pipeline_runs_the_answer_is_that_there_is_nothing_to_resume(env16: PipelineEnv) -> None:
    begin(env16)

    resume(env16.ctx)

    name = env16.name
    assert env16.lines[-1] == f"nothing to resume: {name} is running, not halted, and no task has opened an alarm."
    assert state(env16) == ("running", None)


def test_a_table_whose_column_has_another_name_stays_paused_until_it_has_the_old_one(env16: PipelineEnv) -> None:
    begin(env16)
    env16.land("alter table t rename name to title")
    assert paused(env16) == {"t"}

    with pytest.raises(LakeError, match=r"schema-change.*column name was renamed to title.*schema-change.md"):
        resume_table(env16.ctx, "public.t")
    assert paused(env16) == {"t"}

    env16.sql("alter table t rename title to name")
    resume_table(env16.ctx, "public.t")
    assert paused(env16) == set()


def test_a_table_is_found_by_its_name_or_the_names_are_listed(env16: PipelineEnv) -> None:
    begin(env16)

    with pytest.raises(ConfigError, match=r"one of the tables \['public.other', 'public.t'\], got t"):
        resume_table(env16.ctx, "t")
    resume_table(env16.ctx, "public.t")
    assert env16.lines[-1] == "nothing to resume: public.t is copied, not paused."


@pytest.mark.spark
def test_rows_of_another_shape_that_are_landed_keep_a_table_paused(env16: PipelineEnv) -> None:
    env16.bootstrap(TABLES)
    env16.land("alter table t add amount int; insert into t values (3, 'three', 3)")
    env16.sql("alter table t alter amount type text; insert into t values (4, 'four', 'x')")
    env16.land("alter table t alter amount type int using 0")
    assert paused(env16) == {"t"}

    with pytest.raises(LakeError, match="schema-change"):
        resume_table(env16.ctx, "public.t")
    assert paused(env16) == {"t"}


@pytest.mark.slow
@pytest.mark.spark
def test_a_foreign_commit_keeps_a_table_paused_until_it_is_rolled_back(env16: PipelineEnv) -> None:
    env16.bootstrap(TABLES)
    target = f"{env16.name}.public.t"
    env16.spark.sql(f"delete from lake.{target} where id = 1")
    env16.follow("insert into t values (3, 'three')")
    assert paused(env16) == {"t"}
    record = env16.table("t")

    with pytest.raises(LakeError, match=rf"foreign-commit.*not at our snapshot {record.snapshot_id}"):
        resume_table(env16.ctx, "public.t")

    env16.spark.sql(f"call lake.system.rollback_to_snapshot(table => '{target}', snapshot_id => {record.snapshot_id}L)")
    resume_table(env16.ctx, "public.t")
    env16.merge()
    assert sorted(env16.lake_rows("t", "id, name")) == [(1, "one"), (3, "three")]
