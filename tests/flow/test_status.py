"""What `penstock status` says first, and its exit status: open alarms, freshness, what a person has to decide."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.cli.options import Status
from penstock.errors import Trouble
from penstock.flow import status
from penstock.flow.capture import run as capture
from penstock.flow.load import bootstrap
from penstock.ledger.health import Finding
from tests.env_fixtures import around, env16
from tests.pipeline_env import PipelineEnv, copy_without_spark

__all__ = ["around", "env16"]


@pytest.fixture
def running(env16: PipelineEnv) -> PipelineEnv:
    """A pipeline that has its first cut, and has captured since."""
    env16.begin("create table item (id int primary key); insert into item values (1)")
    env16.ledger.execute(
        "insert into penstock.cut (pipeline, era, lsn, attempt, tables, cuts_snapshot_id)"
        f" select name, era, position, 'merge', '[]', 1 from penstock.pipeline where name = '{env16.name}'"
    )
    capture.capture(env16.ctx)
    return env16


@pytest.fixture
def typed(env16: PipelineEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that types `penstock status` on the pipeline; returns the exit status and what is printed."""
    for name, value in env16.connections().items():
        monkeypatch.setenv(name, value)
    file = env16.file(tmp_path)

    def run(*options: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["status", str(file), *options])
        return done.exit_code, done.stdout

    return run


def labels(printed: str) -> list[str]:
    return [line.split("  ")[1].strip() for line in printed.splitlines()[1:]]


def test_open_alarms_and_freshness_stand_first_and_the_exit_status_says_it(running: PipelineEnv, typed: Any) -> None:
    code, printed = typed()
    assert (code, labels(printed)[0]) == (Status.DONE, "freshness")
    assert "readers see the source as it was" in printed

    found, at = Finding("slot-retained", "slot", "warn", "the slot keeps much"), datetime.now(UTC)
    running.ctx.ledger.health.reconcile_alarms(running.name, [found], judged=(), at=at)
    code, printed = typed()
    assert (code, labels(printed)[:2]) == (Status.FOUND, ["warn slot-retained", "freshness"])
    assert "docs/runbooks/slot-retained.md" in printed
    _, plain = typed("--json")
    assert [each["slug"] for each in json.loads(plain)["alarms"]] == ["slot-retained"]

    running.ctx.ledger.pipelines.halt(running.name, slug="slot-ahead", reason="somebody read it.")
    code, printed = typed()
    assert code == Status.DECIDE
    assert "[slot-ahead] somebody read it." in printed


def test_a_lake_that_is_late_is_said_though_no_alarm_is_open(running: PipelineEnv, typed: Any) -> None:
    running.ledger.execute("update penstock.source_clock set looked_at = looked_at - interval '3 hours'")

    code, printed = typed()

    assert code == Status.FOUND
    assert re.search(r"as it was 3 h( \d+ \w+)? ago", printed)
    assert "the limit is 2 h (docs/runbooks/lake-stale.md)" in printed


def test_a_table_that_is_copied_again_by_itself_waits_for_no_person(running: PipelineEnv) -> None:
    ((oid,),) = running.source.execute("select 'item'::regclass::oid::bigint")
    running.ctx.ledger.tables.stop(running.name, {oid: Trouble.usual("schema-change", "a column changed.")})
    found = status.status(running.ctx)
    assert (found.is_well, found.waits_for_a_person) == (False, False)

    running.ctx.ledger.tables.resume(running.name, oid)
    running.ctx.ledger.tables.stop(running.name, {oid: Trouble.usual("divergence", "it diverges.")})
    assert status.status(running.ctx).waits_for_a_person


def test_a_table_that_its_own_policy_leaves_to_a_person_waits_for_one(running: PipelineEnv) -> None:
    running.settings["tables"] = {
        "include": ["public.*"],
        "policies": [{"include": ["public.item"], "on_change": "pause"}],
    }
    running.settings["tables"]["policies"].append({"include": ["public.other"], "on_change": "resync"})
    ((oid,),) = running.source.execute("select 'item'::regclass::oid::bigint")
    running.ctx.ledger.tables.stop(running.name, {oid: Trouble.usual("schema-change", "a column changed.")})

    found = status.status(running.ctx)

    assert found.waits_for_a_person
    assert "Resync it, or resume it" in dict(status.lines(found))["paused public.item"]


def test_the_application_that_a_merge_from_a_shell_keeps_is_said_and_is_no_work_with_a_known_end(
    running: PipelineEnv,
) -> None:
    running.ctx.ledger.work.keep_spark(running.name, until=datetime(2026, 11, 23, 8, 5, tzinfo=UTC), cuts=3)
    lines = dict(status.lines(status.status(running.ctx)))
    assert lines["spark"] == "application is kept until 08:05 UTC, 3 cuts so far"
    assert "under way" not in lines

    running.ledger.execute("update penstock.work set seen_at = seen_at - interval '2 minutes'")
    assert "spark" not in dict(status.lines(status.status(running.ctx))), "it was killed"


def test_the_first_bootstrap_shows_its_phase_rows_and_time_left(env16: PipelineEnv, typed: Any) -> None:
    env16.prepare("create table item (id int primary key); create table other (id int primary key)")
    code, printed = typed()
    assert (code, labels(printed)[:2]) == (Status.DONE, ["freshness", "phase"])
    assert "makes the slot, which waits for transactions that are open at the source" in printed
    assert "no slot" in printed

    bootstrap.copy(env16.ctx, copy_without_spark)
    env16.ledger.execute("update penstock.load set state = 'copying' where name = 'other'")
    env16.ledger.execute("update penstock.pipeline set state = 'bootstrapping'")
    env16.ledger.execute(
        "insert into penstock.work (pipeline, dag, run_id, task, what, done, total, rows, first_done, first_rows, started_at)"
        f" values ('{env16.name}', '{env16.name}.bootstrap', 'run', 'copy', 'copying 2 tables', 30, 40, 3000000, 10, 1000000,"
        " clock_timestamp() - interval '60 seconds')"
    )
    lines = dict(status.lines(status.status(env16.ctx)))
    assert lines["phase"] == "copies the tables: 1 of 2 tables copied"
    assert lines["under way"].startswith("copying 2 tables: 75%, 3,000,000 rows, 33,")
    assert "30 s left" in lines["under way"]

    env16.ledger.execute("update penstock.work set seen_at = seen_at - interval '2 minutes'")
    assert "under way" not in dict(status.lines(status.status(env16.ctx))), "its task was killed"
