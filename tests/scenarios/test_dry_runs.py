"""A dry run says what will happen, changes nothing, and refuses what the real run would refuse."""

import re
from collections.abc import Iterator

import pytest
import typer

from penstock.cli.app import app
from penstock.errors import SourceError, Trouble
from penstock.flow.context import Context
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from penstock.flow.load.resync import resync_lines
from penstock.flow.recover import run as recover
from penstock.flow.spark_job import SparkJob
from tests.pipeline_env import PipelineEnv, copy_without_spark

DRY = {"resync", "replay", "abandon", "recover", "skip-transaction", "teardown"}


def begin(
    env: PipelineEnv, schema: str = "create table t (id int primary key); create table u (id int primary key)"
) -> None:
    env.begin(schema)


def no_spark(_: SparkJob) -> None:
    raise AssertionError("nothing was to be copied")


def test_every_verb_has_the_same_flag_and_those_of_repair_are_dry_until_told_otherwise() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    flags = {
        name: option
        for name, command in commands.items()
        for option in command.params
        if "--dry-run" in (*option.opts, *option.secondary_opts)
    }

    assert {(tuple(each.opts), tuple(each.secondary_opts), each.help) for each in flags.values()} == {
        (("--dry-run",), ("--no-dry-run",), flags["recover"].help)
    }
    assert {name for name, each in flags.items() if each.default} == DRY
    assert flags.keys() - DRY == {"maintain"}


def test_a_resync_refuses_dry_what_it_would_refuse(env16: PipelineEnv) -> None:
    begin(env16)
    env16.ledger.execute("update penstock.table set state = 'ready', complete_through = '0/1'")
    env16.sql("alter table t replica identity nothing")

    for call in (
        lambda: resync_lines(env16.ctx, ["public.t"]),
        lambda: rebuild.resync(env16.ctx, ["public.t"], no_spark),
    ):
        with pytest.raises(SourceError, match=r"no-usable-identity.*public\.t"):
            call()


def test_a_resync_of_all_that_wait_promises_no_copy_that_it_leaves_out(env16: PipelineEnv) -> None:
    begin(env16)
    env16.ledger.execute("update penstock.table set state = 'ready', complete_through = '0/1'")
    for name in ("t", "u"):
        ((oid,),) = env16.sql(f"select '{name}'::regclass::oid::bigint")
        env16.ctx.ledger.tables.stop(env16.name, {oid: Trouble.usual("schema-change", "it changed.")})
    env16.sql(
        f"alter publication {env16.ctx.pipeline.publication} drop table u; alter table t replica identity nothing"
    )

    lines = resync_lines(env16.ctx, None)

    assert re.match(r"public\.t \(paused\): not copied: \[no-usable-identity\]", lines[0])
    assert lines[1] == "public.u (paused): it is not in the publication any more: not copied; the next capture notes it"
    rebuild.resync(env16.ctx, None, no_spark)


@pytest.fixture
def adopting(env16: PipelineEnv) -> Iterator[tuple[PipelineEnv, Context]]:
    """A pipeline whose role owns nothing, and adopts what the owner has made."""
    env, role = env16, f"adopts_{env16.name}"
    env.sql(
        f"create table t (id int primary key); create role {role} login replication password 'of the role';"
        f"grant select on all tables in schema public to {role}; create publication {env.ctx.pipeline.publication} for table t"
    )
    env.settings["source"]["adopt"] = True
    ctx = env.logged_in(user=role, password="of the role")
    bootstrap.prepare(ctx)
    bootstrap.copy(ctx, copy_without_spark)
    yield env, ctx
    env.sql(f"drop owned by {role}; drop role {role}")


def test_a_recovery_names_dry_what_the_owner_has_to_do_first(adopting: tuple[PipelineEnv, Context]) -> None:
    env, ctx = adopting
    env.sql(f"drop publication {ctx.pipeline.publication}")

    with pytest.raises(SourceError, match=r"preflight-failed.*let the owner run: create publication"):
        recover.start(ctx, dry_run=True)

    said = [line for line in env.lines if line.startswith("must be fixed first")]
    assert [
        line for line in said if f'create publication "{ctx.pipeline.publication}" for table only "public"."t"' in line
    ] == said
    assert len(said) == 1
    assert ctx.ledger.pipelines.get(ctx.name).state == "running", "nothing was changed"
    with pytest.raises(SourceError, match="preflight-failed"):
        recover.start(ctx, dry_run=False)
    assert ctx.ledger.pipelines.get(ctx.name).state == "running", "nor by the real run, which ends the same way"

    env.sql(f"create publication {ctx.pipeline.publication} for table t")
    assert recover.start(ctx, dry_run=True) is False
    assert ctx.ledger.pipelines.get(ctx.name).state == "running"
