"""Resume ends a halt or a pause when its cause is gone, and says which cause is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError, LakeError, LedgerError, SourceError
from penstock.flow.copy import bootstrap
from penstock.flow.errors import record_errors
from penstock.flow.merge import run as merge
from penstock.flow.recover.resume import resume, resume_table
from tests.faults.killed import copy_without_spark
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import consume, flush

TABLES = """
create table t (id int primary key, name text); create table other (id int primary key);
insert into t values (1, 'one');
"""


def begin(world: PipelineEnv) -> None:
    world.sql(TABLES)
    bootstrap.prepare(world.ctx)
    bootstrap.copy(world.ctx, copy_without_spark)
    world.sql("insert into t values (2, 'two')")
    flush(world)
    world.capture()


def state(world: PipelineEnv) -> tuple[str, str | None]:
    record = world.ctx.ledger.pipelines.get(world.name)
    return record.state, record.halted_slug


def paused(world: PipelineEnv) -> set[str]:
    return {record.name for record in world.ctx.ledger.tables.all(world.name) if record.state == "paused"}


def test_a_halt_whose_cause_is_still_there_stays(bare16: PipelineEnv) -> None:
    begin(bare16)
    consume(bare16)
    with pytest.raises(SourceError, match="slot-ahead"), record_errors(bare16.ctx):
        bare16.capture()

    with pytest.raises(SourceError, match="slot-ahead"), record_errors(bare16.ctx):
        resume(bare16.ctx)
    assert state(bare16) == ("halted", "slot-ahead")

    bare16.sql(f"select pg_drop_replication_slot('{bare16.ctx.pipeline.slot}')")
    with pytest.raises(SourceError, match="slot-missing"), record_errors(bare16.ctx):
        resume(bare16.ctx)
    assert state(bare16) == ("halted", "slot-missing"), "the reason is the present one"


def test_a_pipeline_goes_on_when_its_connection_leads_to_the_right_server_again(
    bare16: PipelineEnv, request: pytest.FixtureRequest
) -> None:
    begin(bare16)
    right = bare16.source
    wrong_server = request.getfixturevalue("postgres15")
    with wrong_server.temporary_database(right.name) as wrong:
        bare16.source = wrong
        for call in (bare16.capture, lambda: resume(bare16.ctx)):
            with pytest.raises(SourceError, match="source-changed"), record_errors(bare16.ctx):
                call()
        bare16.source = right

    resume(bare16.ctx)
    assert state(bare16) == ("running", None)
    bare16.sql("insert into t values (3, 'three')")
    flush(bare16)
    assert bare16.capture().changes == 1


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_halt_for_a_landing_file_ends_when_the_file_is_whole_again(bare16: PipelineEnv, damage: str) -> None:
    begin(bare16)
    (entry,) = (entry for window in bare16.ctx.ledger.windows.all(bare16.name) for entry in window.files)
    place = Path(bare16.landing, entry.path)
    whole = place.read_bytes()
    place.unlink()
    with pytest.raises(LakeError, match="landing-file-missing"), record_errors(bare16.ctx):
        merge.plan(bare16.ctx)
    if damage == "cut":
        place.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(LakeError, match="landing-file-missing"), record_errors(bare16.ctx):
        resume(bare16.ctx)
    assert state(bare16) == ("halted", "landing-file-missing")

    place.write_bytes(whole)
    resume(bare16.ctx)
    assert state(bare16) == ("running", None)


def test_a_pipeline_that_was_halted_before_it_had_a_slot_goes_on_with_its_bootstrap(bare16: PipelineEnv) -> None:
    bare16.sql(TABLES)
    bootstrap.prepare(bare16.ctx)
    bare16.ctx.ledger.pipelines.halt(bare16.name, slug="slot-unusable", reason="for this test")

    resume(bare16.ctx)
    bootstrap.copy(bare16.ctx, copy_without_spark)
    assert state(bare16) == ("running", None)


def test_a_pipeline_that_runs_cannot_be_resumed(bare16: PipelineEnv) -> None:
    begin(bare16)

    with pytest.raises(LedgerError, match=r"ledger-conflict.*to be halted"):
        resume(bare16.ctx)


def test_a_table_whose_column_has_another_name_stays_paused_until_it_has_the_old_one(bare16: PipelineEnv) -> None:
    begin(bare16)
    bare16.sql("alter table t rename name to title")
    bare16.capture()
    assert paused(bare16) == {"t"}

    with pytest.raises(LakeError, match=r"schema-change.*column name was renamed to title.*schema-change.md"):
        resume_table(bare16.ctx, "public.t")
    assert paused(bare16) == {"t"}

    bare16.sql("alter table t rename title to name")
    resume_table(bare16.ctx, "public.t")
    assert paused(bare16) == set()


def test_a_table_is_found_by_its_name_or_the_names_are_listed(bare16: PipelineEnv) -> None:
    begin(bare16)

    with pytest.raises(ConfigError, match=r"one of the tables \['public.other', 'public.t'\], got t"):
        resume_table(bare16.ctx, "t")
    with pytest.raises(LedgerError, match=r"ledger-conflict.*to be paused, but it is copied"):
        resume_table(bare16.ctx, "public.t")


@pytest.mark.spark
def test_rows_of_another_shape_that_are_landed_keep_a_table_paused(world16: PipelineEnv) -> None:
    world16.sql(TABLES)
    world16.bootstrap()
    world16.sql("alter table t add amount int; insert into t values (3, 'three', 3)")
    flush(world16)
    world16.capture()
    world16.sql(
        "alter table t alter amount type text; insert into t values (4, 'four', 'x'); alter table t drop amount"
    )
    flush(world16)
    world16.capture()
    assert paused(world16) == {"t"}

    with pytest.raises(LakeError, match="schema-change"):
        resume_table(world16.ctx, "public.t")
    assert paused(world16) == {"t"}


@pytest.mark.spark
def test_a_foreign_commit_keeps_a_table_paused_until_it_is_rolled_back(world16: PipelineEnv) -> None:
    world16.sql(TABLES)
    world16.bootstrap()
    assert world16.spark is not None
    target = f"{world16.name}.public.t"
    world16.spark.sql(f"delete from lake.{target} where id = 1")
    world16.sql("insert into t values (3, 'three')")
    flush(world16)
    world16.capture()
    world16.merge()
    assert paused(world16) == {"t"}
    (record,) = (each for each in world16.ctx.ledger.tables.all(world16.name) if each.name == "t")

    with pytest.raises(LakeError, match=rf"foreign-commit.*not at our snapshot {record.snapshot_id}"):
        resume_table(world16.ctx, "public.t")

    world16.spark.sql(
        f"call lake.system.rollback_to_snapshot(table => '{target}', snapshot_id => {record.snapshot_id}L)"
    )
    resume_table(world16.ctx, "public.t")
    world16.merge()
    assert sorted(world16.lake_rows("t", "id, name")) == [(1, "one"), (3, "three")]
