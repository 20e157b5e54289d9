"""The DAGs run by Airflow itself (`dag.test()`) against real servers."""

import itertools
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.context import spark_submit
from penstock.compare.report import Comparison
from penstock.errors import Trouble
from penstock.flow.context import Context
from penstock.flow.merge import run as merge
from penstock.flow.verify import run as verify
from penstock.flow.verify.compare import compare
from penstock.lsn import Lsn
from penstock.orchestration import other_dags
from stack.servers.binaries import Binaries
from tests.dags.test_dags import load
from tests.flow.health.alert_receivers import http_receiver
from tests.flow.health.oncall import OnCall
from tests.pipeline_env import PipelineEnv, copy_without_spark


def run(verb: str, env: PipelineEnv, **conf: Any) -> Any:
    """Run a DAG once and return its run."""
    dag: Any = load(verb)[f"{env.name}.{verb}"]
    return dag.test(run_conf=conf or None)


def states(run: Any) -> dict[str, str]:
    return {task.task_id: str(task.state) for task in run.get_task_instances()}


def begin(env: PipelineEnv) -> None:
    env.sql("create table t (id int primary key, name text); insert into t values (1, 'one')")

    env.begin()


def test_capture_lands_changes_and_a_second_run_finds_nothing_to_do(deployed: PipelineEnv) -> None:
    begin(deployed)
    deployed.sql("insert into t select n, 'new' from generate_series(2, 50) n")

    assert states(run("capture", deployed)) == {"windows": "success"}
    assert states(run("capture", deployed)) == {"windows": "success"}

    windows = deployed.ctx.ledger.windows.all(deployed.name)
    assert sum(window.rows for window in windows) == 49
    assert {window.state for window in windows} == {"confirmed"}


def events_of(uri: str) -> list[dict[str, Any]]:
    """Return what the events of an asset say, in order."""
    from airflow.models.asset import AssetEvent, AssetModel  # noqa: PLC0415  # after the throw-away home is set
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        events = session.query(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return [event.extra for event in events.filter(AssetModel.uri == uri).order_by(AssetEvent.id)]


def test_capture_announces_a_table_that_joined_until_it_is_copied(deployed: PipelineEnv) -> None:
    begin(deployed)
    deployed.sql("create table u (id int primary key)")
    assert states(run("capture", deployed)) == {"windows": "success"}
    assert states(run("capture", deployed)) == {"windows": "success"}

    assert [event["tables"] for event in events_of(f"penstock://{deployed.name}/new_tables")] == [["public.u"]]


def test_a_halt_fails_the_run_at_once_and_stays_until_a_person_resumes(deployed: PipelineEnv) -> None:
    begin(deployed)
    deployed.sql("insert into t values (2, 'lost')")
    deployed.sql(f"select count(*) from pg_logical_slot_get_binary_changes('{deployed.name}', null, null, "
                 f"'proto_version', '1', 'publication_names', '{deployed.name}')")  # fmt: skip

    failed = run("capture", deployed)

    assert states(failed) == {"windows": "failed"}
    record = deployed.ctx.ledger.pipelines.get(deployed.name)
    assert (record.state, record.halted_slug) == ("halted", "slot-ahead")
    assert states(run("capture", deployed)) == {"windows": "failed"}
    assert [event.slug for event in deployed.ctx.ledger.events.all(deployed.name)][:2] == [
        "pipeline-halted",
        "slot-ahead",
    ]
    with deployed.ctx.ledger.page.panels() as panel:
        (shown,) = panel.pipelines(deployed.name)
    met = failed.get_task_instance("windows")
    assert shown.halted_by == {"dag": met.dag_id, "run_id": met.run_id, "task": "windows"}


@pytest.mark.usefixtures("with_spark")
def test_bootstrap_capture_and_merge_run_by_airflow_make_the_lake_equal_to_the_source(
    deployed: PipelineEnv, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    deployed.sql("create table t (id int primary key, name text); insert into t values (1, 'one'), (2, 'two')")

    assert set(states(run("bootstrap", deployed)).values()) == {"success"}
    assert compare(deployed.ctx).rows == 2

    deployed.sql("update t set name = 'changed' where id = 1; delete from t where id = 2; insert into t values (3, '')")
    assert states(run("capture", deployed)) == {"windows": "success"}
    assert states(run("merge", deployed)) == {"plan": "success", "spark": "success", "publish": "success"}

    compared = compare(deployed.ctx)
    assert (compared.equal, compared.rows) == (True, 2)
    assert [cut.tables[0]["state"] for cut in deployed.ctx.ledger.merges.cuts(deployed.name)] == ["ready", "ready"]
    require_said_once(by_task(caplog.records), capfd.readouterr().out)
    changes = {"inserts": 1, "updates": 1, "deletes": 1, "truncates": 0}
    assert [event | {"cut": ""} for event in events_of(f"penstock://{deployed.name}/lake/public/t")] == [
        {"cut": "", "rows": 2, "inserts": 0, "updates": 0, "deletes": 0, "truncates": 0},
        {"cut": "", "rows": 2, **changes},
    ]


STEPS = [
    ("bootstrap.copy", r"copying 1 table in 1 range"),
    ("bootstrap.publish", r"published cut"),
    ("capture.windows", r"3 changes"),
    ("merge.plan", r"3 changes in \d+ window"),
    ("merge.spark", r"3 changes in \d+ window"),
    ("merge.publish", r"published cut"),
]
"""Steps of these runs, and what their tasks say of each, once."""


def by_task(records: list[logging.LogRecord]) -> dict[str, list[str]]:
    """What the library says, by the task that it is said in."""
    found: dict[str, list[str]] = {}
    task = ""
    for record in records:
        if begun := re.search(r"running task <TaskInstance: [^.]+\.(\w+\.\w+)", record.getMessage()):
            task = begun[1]
        elif record.name == "penstock":
            found.setdefault(task, []).append(record.getMessage())
    return found


def require_said_once(tasks: dict[str, list[str]], shown: str) -> None:
    """Hold that each step has one line, in what the library says and in what tasks show besides, Spark's driver included."""
    assert [(task, line) for task, lines in tasks.items() for line in lines if lines.count(line) > 1] == []
    for task, step in STEPS:
        assert len([line for line in tasks[task] if re.search(step, line)]) == 1, (task, step, tasks[task])
    driver = re.findall(r"INFO (penstock\.\w+: .*?)(?: \[|$)", shown, flags=re.MULTILINE)
    assert len([line for line in driver if line.startswith("penstock.copy: public.t: ")]) == 1, driver
    assert not [line for line in tasks["bootstrap.copy"] if "public.t" in line], "the driver has said it"
    assert len([line for line in driver if "1 inserts, 1 updates, 1 deletes" in line]) == 1, driver
    assert not re.search(r"Returned value was|spark\.local\.dir will be overridden", shown)
    assert not [line for lines in tasks.values() for line in lines if "ledger-not-migrated" in line]


@pytest.mark.usefixtures("with_spark")
@pytest.mark.slow
def test_a_merge_that_lingers_publishes_by_itself_and_ends_when_nothing_comes(
    deployed: PipelineEnv, tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(file.read_text() + "merge: {linger: 3s}\n")
    begin(deployed)
    deployed.sql("insert into t values (2, 'two')")
    run("capture", deployed)

    assert states(run("merge", deployed)) == {"plan": "success", "spark": "success", "publish": "success"}

    compared = compare(deployed.ctx)
    assert (compared.equal, compared.rows) == (True, 2)
    assert len(deployed.ctx.ledger.merges.cuts(deployed.name)) == 1


@pytest.mark.usefixtures("with_spark")
@pytest.mark.slow
def test_a_running_pipeline_is_verified_recorded_maintained_and_recovered_by_airflow(
    deployed: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.sql("create table t (id int primary key, name text); insert into t values (1, 'one'), (2, 'two')")
    assert set(states(run("bootstrap", deployed)).values()) == {"success"}
    before = deployed.sql("select clock_timestamp()")[0][0]
    deployed.sql("update t set name = 'changed' where id = 1; delete from t where id = 2; insert into t values (3, '')")
    after = deployed.sql("select clock_timestamp()")[0][0]

    deployed.sql("insert into t values (5, 'not captured yet')")
    monkeypatch.setattr(other_dags.MergeTrigger, "fire", lambda _: merge_by_command(deployed))
    assert states(run("verify", deployed, mode="whole")) == {"compare": "success", "equal": "success"}
    (verified,) = deployed.ctx.ledger.verifications.tables(deployed.name)
    cut = deployed.ctx.ledger.merges.last_cut(deployed.name)
    assert cut is not None
    assert (verified.verified_through, verified.outcome) == (cut.lsn, "equal")
    deployed.sql("delete from t where id = 5")

    logged = {"from": before.isoformat(), "to": after.isoformat()}
    assert states(run("changelog", deployed, **logged)) == {"wait": "success", "fill": "success"}
    (filled,) = deployed.ctx.ledger.changelogs.fills(deployed.name)
    assert (filled.from_time, filled.upto_time, filled.rows) == (before, after, 3)

    assert states(run("maintain", deployed)) == {"maintain": "success"}
    (maintained,) = deployed.ctx.ledger.maintenance.all(deployed.name)
    assert maintained.report is not None
    done = {table["target"][-1]: table["left"] for table in maintained.report["lake"]["tables"]}
    assert done == {"t": None, "t__changelog": None, "_penstock_cuts": None}

    deployed.sql(f"select pg_drop_replication_slot('{deployed.name}')")
    deployed.sql("delete from t where id = 1; insert into t values (4, 'never captured')")
    assert states(run("recover", deployed)).pop("look") == "success"
    assert deployed.ctx.ledger.pipelines.get(deployed.name).state == "running", "a dry run changes nothing"
    assert states(run("recover", deployed, dry_run=False)) == dict.fromkeys(
        ("look", "merge", "publish_last", "new_era", "copy", "load", "publish"), "success"
    )
    compared = compare(deployed.ctx)
    assert (compared.equal, compared.rows) == (True, 2)
    assert states(run("recover", deployed, dry_run=False))["look"] == "failed", "nothing is to be recovered now"


@pytest.mark.usefixtures("with_spark")
@pytest.mark.slow
@pytest.mark.timeout(1800)  # ten Spark applications, one after the other
def test_resync_and_replay_run_by_airflow_rebuild_tables(deployed: PipelineEnv) -> None:
    deployed.sql("create table t (id int primary key, name text); insert into t values (1, 'one'), (2, 'two')")
    run("bootstrap", deployed)
    deployed.sql("alter table t rename name to title; insert into t values (3, 'three'); delete from t where id = 1")
    run("capture", deployed)
    (table,) = deployed.tables
    deployed.ctx.ledger.tables.stop(deployed.name, {table.oid: Trouble.usual("divergence", "a person says so")})
    assert states(run("replay", deployed, tables=["public.t"]))["look"] == "failed"

    done = dict.fromkeys(("look", "build", "switch"), "success")
    assert states(run("resync", deployed, tables=["public.t"]))["build"] == "skipped"
    assert states(run("resync", deployed, tables=["public.t"], dry_run=False)) == done

    compared = compare(deployed.ctx)
    assert (compared.equal, compared.rows) == (True, 2)
    deployed.sql("insert into t values (4, 'four')")
    run("capture", deployed)
    assert states(run("replay", deployed, tables=["public.t"])) == done | {"build": "skipped", "switch": "skipped"}
    assert states(run("replay", deployed, tables=["public.t"], dry_run=False)) == done
    assert states(run("replay", deployed, tables=["public.t"], dry_run=False, shadow="then")) == done
    compared = compare(deployed.ctx)
    assert (compared.equal, compared.rows) == (True, 3)
    kinds = [each.cause for each in deployed.ctx.ledger.loads.builds(deployed.name, states=["done"])]
    assert kinds == ["resync", "replay", "shadow"]


def test_a_request_that_cannot_be_is_refused_by_the_first_task_with_its_slug(deployed: PipelineEnv) -> None:
    begin(deployed)

    assert states(run("resync", deployed, tables=["public.tt"]))["look"] == "failed"
    assert states(run("replay", deployed, tables=["public.t"]))["look"] == "failed", "its copy is not loaded yet"
    assert states(run("maintain", deployed, tables=["public.tt"]))["maintain"] == "failed"

    slugs = [event.slug for event in deployed.ctx.ledger.events.all(deployed.name)]
    assert slugs[:3] == ["table-unknown", "table-not-ready", "table-unknown"]
    assert deployed.ctx.ledger.loads.builds(deployed.name, states=None) == []


def merge_by_command(env: PipelineEnv) -> None:
    """Merge what is due, as the command line does."""
    attempt = merge.plan(env.ctx)
    if attempt is not None:
        spark_submit("local[2]", print)(merge.job(env.ctx, attempt))
        merge.publish(env.ctx, attempt)


def test_a_verification_triggers_the_merge_or_says_that_it_is_paused(
    deployed: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    begin(deployed)
    (table,) = deployed.tables
    deployed.ctx.ledger.tables.stop(deployed.name, {table.oid: Trouble.usual("schema-change", "for this test")})
    run("merge", deployed)  # from now on Airflow knows it
    said: list[str | None] = []

    def asking(ctx: Context, *, merge: Callable[[], str | None], **_: Any) -> Comparison:
        said.extend([merge(), merge()])
        return Comparison((), 1, Lsn(1))

    monkeypatch.setattr(verify, "verify", asking)

    def triggered() -> int:
        with create_session() as session:
            runs = session.query(DagRun).filter(DagRun.dag_id == f"{deployed.name}.merge")
            return sum(each.run_id.startswith("verify__") for each in runs)

    pause(deployed, "merge", True)
    assert states(run("verify", deployed)) == {"compare": "success", "equal": "success"}
    assert said == [f"the DAG {deployed.name}.merge is paused: unpause it"] * 2
    assert triggered() == 0

    pause(deployed, "merge", False)
    assert states(run("verify", deployed)) == {"compare": "success", "equal": "success"}
    assert said[2:] == [f"the DAG {deployed.name}.merge was triggered"] * 2
    assert triggered() == 1, "once, however often it is asked for"


def test_a_table_that_the_pipeline_does_not_have_is_refused_by_the_verify_dag(deployed: PipelineEnv) -> None:
    begin(deployed)

    assert states(run("verify", deployed, tables=["public.tt"])) == {"compare": "failed", "equal": "upstream_failed"}

    (event, *_) = deployed.ctx.ledger.events.all(deployed.name)
    assert "got public.tt; did you mean public.t?" in event.message


@pytest.mark.slow
def test_an_interval_that_can_never_be_filled_fails_its_run_at_once(deployed: PipelineEnv) -> None:
    begin(deployed)
    assert states(run("capture", deployed)) == {"windows": "success"}

    for wanted, slug in (
        ({"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}, "interval-gone"),
        ({"from": "2999-01-01T00:00:00Z", "to": "2999-01-02T00:00:00Z"}, "interval-invalid"),
        ({"from": "2020-01-02T00:00:00Z"}, "interval-invalid"),
    ):
        assert states(run("changelog", deployed, **wanted)) == {"wait": "failed", "fill": "upstream_failed"}
        newest = deployed.ctx.ledger.events.all(deployed.name, limit=1)[0]
        assert newest.slug == slug


def test_airflows_backfill_makes_a_run_for_each_data_interval_in_either_order(deployed: PipelineEnv) -> None:
    from airflow.cli.cli_parser import get_parser  # noqa: PLC0415
    from airflow.models import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    begin(deployed)
    run("changelog", deployed, **{"from": "2020-01-02T00:00:00Z"})  # makes the DAG known to Airflow
    dag_id = f"{deployed.name}.changelog"
    dates = ["--from-date", "2026-10-01", "--to-date", "2026-10-03", "--max-active-runs", "2"]
    command = get_parser().parse_args(["backfill", "create", "--dag-id", dag_id, *dates, "--run-backwards"])
    command.func(command)

    with create_session() as session:
        runs = session.query(DagRun).filter(DagRun.dag_id == dag_id, DagRun.run_type == "backfill").all()
        intervals = [(each.data_interval_start, each.data_interval_end) for each in runs]
    october = [datetime(2026, 10, day, tzinfo=UTC) for day in range(1, 5)]
    assert sorted(intervals) == list(itertools.pairwise(october))


def test_a_halted_pipeline_is_resumed_by_its_dag_once_the_cause_is_gone(deployed: PipelineEnv) -> None:
    begin(deployed)
    deployed.ctx.ledger.pipelines.halt(deployed.name, slug="source-changed", reason="for this test")
    assert states(run("resume", deployed)) == {"resume": "success"}
    assert deployed.ctx.ledger.pipelines.get(deployed.name).state == "running"

    deployed.sql("alter table t rename name to title")
    assert states(run("capture", deployed)) == {"windows": "success"}
    assert states(run("resume", deployed, table="public.t")) == {"resume": "failed"}
    deployed.sql("alter table t rename title to name")
    assert states(run("resume", deployed, table="public.t")) == {"resume": "success"}
    assert [table.state for table in deployed.tables] == ["copied"]


def test_a_recovery_only_says_what_it_would_do_until_dry_run_is_off(deployed: PipelineEnv) -> None:
    begin(deployed)
    deployed.sql(f"select pg_drop_replication_slot('{deployed.name}')")
    before = deployed.ctx.ledger.pipelines.get(deployed.name)

    looked = states(run("recover", deployed))

    assert looked.pop("look") == "success"
    assert set(looked.values()) == {"skipped"}
    assert deployed.ctx.ledger.pipelines.get(deployed.name) == before
    assert deployed.ctx.ledger.events.all(deployed.name) == []


def test_a_merge_with_nothing_due_ends_at_its_plan(deployed: PipelineEnv) -> None:
    deployed.sql("create table t (id int primary key)")
    begin_without_tables = deployed.ctx
    from penstock.flow.load import bootstrap  # noqa: PLC0415

    bootstrap.prepare(begin_without_tables)
    bootstrap.copy(deployed.ctx, copy_without_spark)
    for table in deployed.tables:
        deployed.ctx.ledger.tables.stop(deployed.name, {table.oid: Trouble.usual("schema-change", "for this test")})

    assert states(run("merge", deployed)) == {"plan": "success", "spark": "skipped", "publish": "skipped"}


def test_teardown_only_says_what_it_would_do_until_dry_run_is_off(deployed: PipelineEnv) -> None:
    begin(deployed)
    slots = f"select count(*) from pg_replication_slots where slot_name = '{deployed.name}'"

    run("teardown", deployed)
    assert deployed.sql(slots) == [(1,)]

    run("teardown", deployed, dry_run=False)
    assert deployed.sql(slots) == [(0,)]
    assert deployed.sql("select count(*) from pg_publication") == [(0,)]


@pytest.mark.slow
def test_a_transaction_that_cannot_be_decoded_is_only_named_until_it_is_to_be_left_out(
    deployed: PipelineEnv, tmp_path: Path
) -> None:
    deployed.sql("create table big (id int primary key, body bytea); alter table big alter body set storage external")
    begin(deployed)
    with (tmp_path / "pipeline.yaml").open("a") as file:
        file.write("capture: {work_mem: 64KiB}\n")
    deployed.sql(f"alter role postgres in database {deployed.source.name} set temp_file_limit = '5MB'")
    deployed.sql("insert into t values (2, 'before')")
    deployed.sql(f"insert into big values (1, convert_to(repeat('x', {3 << 20}), 'UTF8'))")
    deployed.sql("insert into t values (3, 'after')")
    deployed.sql("set synchronous_commit = on; select pg_current_xact_id()")
    before = deployed.ctx.ledger.pipelines.get(deployed.name)
    assert states(run("capture", deployed)) == {"windows": "failed"}

    looked = run("skip_transaction", deployed)

    assert states(looked) == {"skip": "success"}
    assert "it touched public.big" in looked.get_task_instance("skip").xcom_pull("skip")
    assert deployed.ctx.ledger.pipelines.get(deployed.name) == before, "a dry run changes nothing"
    assert {table.state for table in deployed.tables} == {"copied"}

    assert states(run("skip_transaction", deployed, dry_run=False)) == {"skip": "success"}
    assert states(run("capture", deployed)) == {"windows": "success"}
    found = {table.name: (table.state, table.paused_slug) for table in deployed.tables}
    assert found == {"big": ("paused", "transaction-skipped"), "t": ("copied", None)}
    assert sum(window.rows for window in deployed.ctx.ledger.windows.all(deployed.name)) == 2
    assert len(deployed.ctx.ledger.windows.skipped(deployed.name)) == 1

    assert states(run("skip_transaction", deployed, dry_run=False)) == {"skip": "success"}, "nothing is in the way"
    assert len(deployed.ctx.ledger.windows.skipped(deployed.name)) == 1


def test_a_skip_takes_no_other_word_for_its_dry_run_than_yes_or_no(deployed: PipelineEnv) -> None:
    from airflow.sdk.exceptions import ParamValidationError  # noqa: PLC0415

    begin(deployed)
    with pytest.raises(ParamValidationError, match="dry_run"):
        run("skip_transaction", deployed, dry_run="no")


def watch(env: PipelineEnv, folder: Path, health: str) -> None:
    """Add a section `health` to the deployed pipeline's file."""
    file = folder / "pipeline.yaml"
    file.write_text(file.read_text() + f"health: {health}\n")
    env.flush("select pg_logical_emit_message(false, 'noise', repeat('x', 3000000))")


def pause_capture(env: PipelineEnv, paused: bool) -> None:
    pause(env, "capture", paused)


def pause(env: PipelineEnv, verb: str, paused: bool) -> None:
    """Do what the switch in Airflow's UI does."""
    from airflow.models import DagModel  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        session.get(DagModel, f"{env.name}.{verb}").is_paused = paused


def test_slot_health_sends_an_alert_once_and_records_what_it_saw(
    deployed: PipelineEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(deployed)
    run("capture", deployed)
    pause_capture(deployed, False)
    with http_receiver() as hook:
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(channel))
        beat = f"heartbeat: 'http://127.0.0.1:{hook.port}/beat'"
        limits = "warn: {bytes: 1MiB, channels: [hook]}, critical: {channels: [hook]}"
        watch(deployed, tmp_path, f"{{drain: false, {beat}, {limits}}}")

        for _ in range(2):
            done = states(run("slot_health", deployed))
            assert done == {"check": "success", "drain": "skipped", "delivered": "success"}

    assert hook.paths.count("/beat") == 2
    slugs = [alarm.slug for alarm in deployed.ctx.ledger.health.alarms(deployed.name)]
    assert {"slot-retained", "slot-unread"} <= set(slugs)
    assert sorted(post["title"].split()[2] for post in hook.posts if "closed" not in post["title"]) == sorted(slugs)
    assert len(deployed.ctx.ledger.health.slot_samples(deployed.name, deployed.name)) == 2


def test_slot_health_drains_a_critical_slot_and_starts_the_merge(deployed: PipelineEnv, tmp_path: Path) -> None:
    begin(deployed)
    run("capture", deployed)
    pause_capture(deployed, False)
    deployed.sql("insert into t select n, 'new' from generate_series(2, 50) n")
    watch(deployed, tmp_path, "{warn: {bytes: 1MiB}, critical: {bytes: 2MiB}}")

    assert states(run("slot_health", deployed))["drain"] == "success"

    assert sum(window.rows for window in deployed.ctx.ledger.windows.all(deployed.name)) == 49


def test_a_channel_that_does_not_take_an_alert_fails_the_run_but_stops_nothing(
    deployed: PipelineEnv, tmp_path: Path
) -> None:
    begin(deployed)
    run("capture", deployed)
    pause_capture(deployed, False)
    watch(deployed, tmp_path, "{warn: {bytes: 1MiB}, critical: {bytes: 2MiB, channels: [nowhere]}}")

    assert states(run("slot_health", deployed)) == {"check": "success", "drain": "success", "delivered": "failed"}

    assert "alert-undelivered" in {event.slug for event in deployed.ctx.ledger.events.all(deployed.name)}


def test_slot_health_sees_that_capture_is_paused(deployed: PipelineEnv) -> None:
    begin(deployed)
    run("capture", deployed)
    pause_capture(deployed, True)

    run("slot_health", deployed)

    assert [alarm.slug for alarm in deployed.ctx.ledger.health.alarms(deployed.name)] == ["capture-paused"]


@pytest.mark.slow
def test_the_pages_of_a_capture_that_is_paused_or_fails_end_their_alarms(
    deployed: PipelineEnv, tmp_path: Path, binaries16: Binaries
) -> None:
    begin(deployed)
    run("capture", deployed)
    pause_capture(deployed, True)
    run("slot_health", deployed)
    assert open_alarms(deployed) == {"capture-paused"}
    home = tmp_path / "shell"
    home.mkdir()
    oncall = OnCall(deployed, home, binaries16)

    assert deployed.name in oncall.confirm("capture-paused")
    oncall.do("capture-paused", "airflow dags unpause")
    run("slot_health", deployed)
    assert open_alarms(deployed) == set()

    deployed.ctx.ledger.pipelines.halt(deployed.name, slug="source-changed", reason="for this test")
    run("capture", deployed)
    run("slot_health", deployed)
    assert open_alarms(deployed) == {"pipeline-halted", "capture-failing"}
    assert re.search(r": halted\b.*source-changed", oncall.confirm("capture-failing"), flags=re.DOTALL)
    oncall.do("pipeline-halted", "penstock resume")  # the slug in the run's log, to which the page leads
    run("capture", deployed)
    run("slot_health", deployed)
    assert open_alarms(deployed) == set()


def open_alarms(env: PipelineEnv) -> set[str]:
    return {alarm.slug for alarm in env.ctx.ledger.health.alarms(env.name) if alarm.closed_at is None}


def test_slot_health_sees_that_capture_fails(deployed: PipelineEnv) -> None:
    begin(deployed)
    deployed.ctx.ledger.pipelines.halt(deployed.name, slug="slot-ahead", reason="for this test")
    assert states(run("capture", deployed)) == {"windows": "failed"}
    pause_capture(deployed, False)

    run("slot_health", deployed)

    slugs = {alarm.slug for alarm in deployed.ctx.ledger.health.alarms(deployed.name)}
    assert slugs >= {"pipeline-halted", "capture-failing"}


def test_an_error_that_only_a_person_fixes_pages_one_at_once_and_once(
    deployed: PipelineEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(deployed)
    right = os.environ["AIRFLOW_CONN_PENSTOCK_SOURCE"]
    wrong = json.dumps(json.loads(right) | {"password": "s3cret-but-wrong"})
    with http_receiver() as hook:
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(channel))
        watch(deployed, tmp_path, "{critical: {channels: [hook]}}")

        monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SOURCE", wrong)
        (failed, again) = (run("capture", deployed) for _ in range(2))
        assert states(failed) == states(again) == {"windows": "failed"}
        assert [task.try_number for task in failed.get_task_instances()] == [1], "no pointless retry"
        assert len(hook.posts) == 1, "told at once, and not by every run"
        monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SOURCE", right)
        assert states(run("capture", deployed)) == {"windows": "success"}

    opened, unwatched, closed = hook.posts
    assert unwatched["title"].startswith("[penstock] CRITICAL: slot-unwatched"), (
        "slot health is paused, as capture sees"
    )
    assert opened["title"] == f"[penstock] CRITICAL: source-auth {deployed.name}.capture.windows ({deployed.name})"
    assert "docs/runbooks/source-auth.md" in opened["message"]
    assert closed["title"].startswith("[penstock] closed: source-auth")
    assert "s3cret" not in json.dumps(hook.posts)
    assert deployed.ctx.ledger.pipelines.get(deployed.name).state == "running", "nothing is halted"


@contextmanager
def running(dag_id: str) -> Iterator[None]:
    """A run of that DAG is at work, as Airflow's metadata have it."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415
    from airflow.utils.state import DagRunState  # noqa: PLC0415
    from airflow.utils.types import DagRunTriggeredByType, DagRunType  # noqa: PLC0415

    with create_session() as session:
        session.add(
            DagRun(
                dag_id=dag_id,
                run_id="manual__at_work",
                run_type=DagRunType.MANUAL,
                run_after=datetime.now(UTC),
                state=DagRunState.RUNNING,
                triggered_by=DagRunTriggeredByType.TEST,
            )
        )
    yield
    with create_session() as session:
        session.query(DagRun).filter_by(dag_id=dag_id, run_id="manual__at_work").delete()


@pytest.mark.slow
def test_capture_and_merge_wait_while_a_recovery_is_at_work_and_fail_if_it_ends_without_a_slot(
    deployed: PipelineEnv,
) -> None:
    begin(deployed)
    deployed.ctx.ledger.pipelines.halt(deployed.name, slug="slot-lost", reason="for this test")
    with running(f"{deployed.name}.recover"):
        assert states(run("capture", deployed)) == {"windows": "skipped"}
        assert states(run("merge", deployed))["plan"] == "skipped"
        assert [event.slug for event in deployed.ctx.ledger.events.all(deployed.name)] == ["slot-lost"], (
            "nobody is woken"
        )

    assert states(run("capture", deployed)) == {"windows": "failed"}
    assert deployed.ctx.ledger.events.all(deployed.name)[0].slug == "pipeline-halted"


def test_capture_waits_for_the_slot_that_bootstrap_is_making(deployed: PipelineEnv) -> None:
    from penstock.flow.load import bootstrap  # noqa: PLC0415

    deployed.sql("create table t (id int primary key)")
    bootstrap.prepare(deployed.ctx)
    with running(f"{deployed.name}.bootstrap"):
        assert states(run("capture", deployed)) == {"windows": "skipped"}

    assert states(run("capture", deployed)) == {"windows": "failed"}
