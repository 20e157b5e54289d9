"""A scene for each alarm: a generator that brings it about on a real pipeline, yields, and then ends its cause.

Where a scene needs other servers than a pipeline on one of PostgreSQL 16, `STAGES` names the fixture that has them.
"""

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from penstock.compare.report import TableComparison
from penstock.config.connections import Connection
from penstock.errors import LakeError, PenstockError, SourceError, Trouble
from penstock.flow.capture import run as capture
from penstock.flow.health import alarms, rules_server
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.run import watch_the_watcher
from penstock.flow.recover import resume, teardown
from penstock.ledger.verifications import Outcome
from penstock.source import ddl_trigger, session
from stack.servers.postgres import Server
from tests.flow.health.conftest import Desk
from tests.waiting import wait_until

Scene = Callable[..., Iterator[None]]
TASK = "shop.capture.windows"
STAGES = {"slot-idle-timeout": "watched18", "slot-synced": "synced18", "standby-feedback-off": "pair"}


def judged_by(then: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> Scene:
    """Let the pipeline's file ask for more than there is, and then for less."""

    def scene(desk: Desk) -> Iterator[None]:
        desk.watched.policy(**then)
        yield
        desk.watched.policy(**after)

    return scene


# --- the source ------------------------------------------------------------------------------------------


def source_unreachable(desk: Desk) -> Iterator[None]:
    server = desk.watched.env.source.server
    password, server.password = server.password, "not the password"
    try:
        yield
    finally:
        server.password = password


def source_auth(desk: Desk) -> Iterator[None]:
    env, role = desk.watched.env, f"reader_of_{desk.watched.env.name}"
    env.sql(f"create role {role} nologin password 'of the role'")
    reader = Connection("source", "127.0.0.1", env.source.server.port, role, "of the role", env.source.name)
    with pytest.raises(SourceError, match="source-auth") as caught:
        session.connect(reader, what="test")
    page(desk, caught.value)
    yield
    env.sql(f"alter role {role} login")
    session.connect(reader, what="test").close()
    env.sql(f"drop role {role}")
    alarms.task_succeeded(env.ctx, TASK, desk.deliver)


def decoding_limit(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.settings["capture"] = {"work_mem": "64KiB"}
    env.sql("alter role postgres set temp_file_limit = '1MB'")
    env.sql("insert into t select n, repeat(md5(n::text), 200) from generate_series(2, 1000) n")
    desk.watched.noise(1)
    try:
        with pytest.raises(SourceError, match="decoding-limit") as caught:
            capture.capture(env.ctx)
    finally:
        env.sql("alter role postgres reset temp_file_limit")
    page(desk, caught.value)
    yield
    capture.capture(env.ctx)
    alarms.task_succeeded(env.ctx, TASK, desk.deliver)


def met(error: PenstockError) -> Scene:
    """Let a task meet an error that tests/scenarios/test_damage_acted_out.py brings about with full disks and damaged files."""

    def scene(desk: Desk) -> Iterator[None]:
        page(desk, error)
        yield
        alarms.task_succeeded(desk.watched.env.ctx, TASK, desk.deliver)

    return scene


def page(desk: Desk, error: PenstockError) -> None:
    alarms.page(desk.watched.env.ctx, error, TASK, desk.deliver)


def ddl_trigger_missing(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.settings["source"] = {**env.settings.get("source", {}), "ddl_trigger": True}
    yield
    env.sql(ddl_trigger.install_statement())


def no_usable_identity(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.sql("alter table t replica identity nothing")
    with pytest.raises(psycopg.Error, match="does not have a replica identity"):
        env.sql("update t set id = id")
    yield
    env.sql("alter table t replica identity default")


def publication_narrow(desk: Desk) -> Iterator[None]:
    env, name = desk.watched.env, desk.watched.env.ctx.pipeline.publication
    env.sql(f"alter publication {name} set (publish = 'insert, truncate'); delete from t where id = 1")
    capture.capture(env.ctx)
    yield
    env.sql(f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
    env.sql("insert into t values (7, 'seven')")
    capture.capture(env.ctx)


# --- the slot --------------------------------------------------------------------------------------------


def queue(desk: Desk) -> Iterator[None]:
    desk.watched.noise(20)
    yield
    drain(desk)


def drain(desk: Desk) -> None:
    """Capture until the server frees WAL: it does up to its last note of what runs."""
    for _ in range(3):
        desk.watched.env.sql("select pg_log_standby_snapshot()")
        desk.watched.noise(1)
        capture.capture(desk.watched.env.ctx)


def slot_unreserved(desk: Desk) -> Iterator[None]:
    desk.watched.noise(100)
    yield
    drain(desk)


def slot_lost(desk: Desk) -> Iterator[None]:
    desk.watched.noise(110)
    desk.watched.env.sql("checkpoint")
    yield
    desk.watched.policy(dry_run=False)  # slot health drops what can't be read any more


def slot_missing(desk: Desk) -> Iterator[None]:
    desk.watched.env.sql(f"select pg_drop_replication_slot('{desk.watched.slot}')")
    yield
    teardown.teardown(desk.watched.env.ctx, dry_run=False)


def slot_orphaned(desk: Desk) -> Iterator[None]:
    desk.watched.without_tables()
    yield
    desk.watched.policy(dry_run=False)


def slot_stalled(desk: Desk) -> Iterator[None]:
    desk.watched.env.sql("insert into t values (2, 'two')")
    desk.watched.noise(1)
    desk.check()
    desk.age("update penstock.slot_sample set unchanged_since = then")
    yield
    capture.capture(desk.watched.env.ctx)


def slot_synced(desk: Desk, standby: Server) -> Iterator[None]:
    env = desk.watched.env
    primary = env.source
    env.source = type(primary)(standby, primary.name)
    yield
    env.source = primary


def slot_idle_timeout(desk: Desk) -> Iterator[None]:
    yield
    desk.watched.env.sql("alter system set idle_replication_slot_timeout = 0")
    desk.watched.env.sql("select pg_reload_conf()")


def catalog_xmin_old(desk: Desk) -> Iterator[None]:
    desk.watched.policy(watch={"catalog_age": 50})
    loop = "for n in 1..300 loop perform pg_current_xact_id(); commit; end loop"
    desk.watched.env.sql(f"create procedure burn() language plpgsql as $$begin {loop}; end$$")
    desk.watched.env.sql("call burn()")
    yield
    drain(desk)


def decoding_spills(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.settings["capture"] = {"work_mem": "64KiB"}
    env.sql("insert into t select n, repeat('y', 1000) from generate_series(2, 90000) n")
    desk.watched.noise(1)
    capture.capture(env.ctx)
    yield
    env.sql(f"select pg_stat_reset_replication_slot('{desk.watched.slot}')")


# --- capture, and the server around the slot -------------------------------------------------------------


def paused(verb: str) -> Scene:
    def scene(desk: Desk) -> Iterator[None]:
        desk.dags[verb] = DagState(paused=True)
        yield
        desk.dags[verb] = DagState(paused=False)

    return scene


def capture_failing(desk: Desk) -> Iterator[None]:
    name, outcomes = desk.watched.env.name, desk.watched.env.ctx.ledger.outcomes
    outcomes.failed(name, "capture", "windows", "run 1", slug="source-timeout")
    yield
    outcomes.succeeded(name, "capture", "windows", "run 2", last=True)


def capture_too_slow(desk: Desk) -> Iterator[None]:
    desk.watched.env.settings["capture"] = {"max_wal_bytes": "1MiB"}
    for _ in range(5):  # the source writes many windows' worth between two windows
        desk.watched.noise(8)
        capture.capture_window(desk.watched.env.ctx)
        desk.check()
    yield
    desk.watched.env.settings["capture"] = {"max_wal_bytes": "512MiB", "time_budget": 600}
    drain(desk)


def pipeline_halted(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.ctx.ledger.pipelines.halt(env.name, slug="source-changed", reason="another server answers")
    yield
    resume.resume(env.ctx)


def slot_abandoned(desk: Desk) -> Iterator[None]:
    foreign = desk.watched.foreign(f"reporting_{desk.watched.env.name}")
    desk.watched.policy(watch={"abandoned": 1})
    desk.watched.noise(20)
    capture.capture(desk.watched.env.ctx)
    yield
    desk.watched.env.sql(f"select pg_drop_replication_slot('{foreign}')")


def transaction_open_long(desk: Desk) -> Iterator[None]:
    desk.watched.policy(watch={"transaction": 1})
    with desk.watched.env.source.connect(autocommit=False, application_name="nightly") as writer:
        writer.execute("insert into t values (99, 'x')")
        yield


def transaction_prepared_long(desk: Desk) -> Iterator[None]:
    gid = f"forgotten_{desk.watched.env.name}"
    desk.watched.policy(watch={"transaction": 1})
    with desk.watched.env.source.connect(autocommit=False) as writer:
        writer.execute("insert into t values (98, 'x')")
        writer.execute(f"prepare transaction '{gid}'".encode())
    yield
    desk.watched.env.sql(f"rollback prepared '{gid}'")


def standby_feedback_off(desk: Desk, standby: Server) -> Iterator[None]:
    env = desk.watched.env
    primary = env.source
    env.source = type(primary)(standby, primary.name)
    yield
    primary.execute("select pg_create_physical_replication_slot('of_standby', true)")
    env.sql("alter system set hot_standby_feedback = on")
    env.sql("alter system set primary_slot_name = 'of_standby'")
    env.sql("select pg_reload_conf()")
    wait_until(lambda: env.sql("show primary_slot_name") == [("of_standby",)], "the standby's settings", pause=0.3)


# --- the lake --------------------------------------------------------------------------------------------


def late(merge: DagState, failed: bool = False) -> Scene:
    """Let a change wait for a merge that is kept away, or whose cut gets old."""

    def scene(desk: Desk) -> Iterator[None]:
        env, desk.dags["merge"] = desk.watched.env, merge
        desk.lag()
        if failed:
            env.ctx.ledger.outcomes.failed(env.name, "merge", "spark", "run 1", slug="spark-failed")
        yield
        env.ctx.ledger.outcomes.succeeded(env.name, "merge", "publish", "run 2", last=True)
        desk.dags["merge"] = DagState(paused=False)
        desk.age(
            "update penstock.cut as c set lsn = p.position from penstock.pipeline as p"
            f" where c.pipeline = p.name and p.name = '{env.name}'"
        )
        desk.age("update penstock.source_clock set looked_at = clock_timestamp()")

    return scene


def verified(outcome: Outcome) -> Scene:
    """Let a comparison find this, and a later one that all rows are equal."""

    def scene(desk: Desk) -> Iterator[None]:
        compare(desk, outcome)
        yield
        compare(desk, "equal")

    return scene


def compare(desk: Desk, outcome: Outcome) -> None:
    env = desk.watched.env
    ledger, (table,) = env.ctx.ledger, env.tables
    lsn = ledger.pipelines.get(env.name).position
    assert lsn is not None
    number = ledger.verifications.begin(env.name, mode="whole", lsn=lsn)
    differs, gone = int(outcome == "differs"), LakeError("lake-unreadable", "its files are gone")
    why = gone if outcome == "unreadable" else None
    found = TableComparison(table.schema, table.name, table.target, table.oid, different=differs, trouble=why)
    ledger.verifications.add_finding(env.name, number, found.recorded())
    ledger.verifications.finish(number)


def divergence_suspected(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.ledger.execute(
        "update penstock.table as t set update_missing = 1, conflict_lsn = p.position from penstock.pipeline as p"
        f" where t.pipeline = p.name and p.name = '{env.name}'"
    )
    yield
    compare(desk, "equal")


def table_paused(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    (table,) = env.tables
    env.ctx.ledger.tables.stop(env.name, {table.oid: Trouble.usual("merge-conflict", "changes met absent rows")})
    yield
    env.ctx.ledger.tables.resume(env.name, table.oid)


def resync_failing(desk: Desk) -> Iterator[None]:
    desk.watched.env.sql("create table u (id int primary key)")
    capture.capture(desk.watched.env.ctx)
    yield from paused("resync")(desk)


def copy_stalled(desk: Desk) -> Iterator[None]:
    env = desk.watched.env
    env.ledger.execute(f"update penstock.table set state = 'new' where pipeline = '{env.name}'")
    desk.age("update penstock.load set state = 'copying', finished_at = null, copied_at = null, copy_started_at = then")
    age_files(desk)
    yield
    env.ledger.execute(f"update penstock.load set state = 'ready' where pipeline = '{env.name}'")


def age_files(desk: Desk) -> None:
    """Let time pass in the landing zone."""
    then = time.time() - timedelta(days=3).total_seconds()
    for path in (desk.watched.env.landing / desk.watched.env.name / "copies").rglob("*"):
        os.utime(path, (then, then))


def done_long_ago(statement: str) -> Scene:
    """Let scheduled work have been done last long ago, and then now."""

    def scene(desk: Desk) -> Iterator[None]:
        scheduled_work_is_done(desk)
        desk.age(statement)
        yield
        desk.age(statement.replace("then", "now()"))

    return scene


def scheduled_work_is_done(desk: Desk) -> None:
    """Let it have been done now, once."""
    env = desk.watched.env
    if "verify" in env.settings:
        return
    env.settings = {**env.settings, "verify": {"schedule": "0 3 * * *"}}
    desk.age("update penstock.pipeline set created_at = then")
    desk.age(
        "insert into penstock.maintenance (pipeline, attempt, started_at, ended_at, dry_run, report)"
        f" values ('{env.name}', 'now', now(), now(), false, '{{}}')"
    )
    desk.age(
        "insert into penstock.verification (pipeline, era, mode, finished_at)"
        f" values ('{env.name}', 1, 'sample', now())"
    )
    desk.age(
        "insert into penstock.changelog_fill (pipeline, from_time, upto_time, era, through_lsn, attempt, rows, tables)"
        f" values ('{env.name}', now() - interval '1 day', now(), 1, '0/0', 'a', 0, '[]')"
    )


# --- what the pipeline stands on -------------------------------------------------------------------------


def slot_unwatched(desk: Desk) -> Iterator[None]:
    """Let a capture tell it: whoever is paused can't."""
    for stopped in (True, False):
        desk.dags["slot_health"] = DagState(paused=stopped)
        watch_the_watcher(desk.watched.env.ctx, desk.dags, desk.deliver)
        if stopped:
            yield


def clocks_differ(desk: Desk) -> Iterator[None]:
    """Let no two clocks be near enough."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rules_server, "TOLERANCE_SECONDS", -60)
        yield


SCENES: dict[str, Scene] = {
    "source-unreachable": source_unreachable,
    "source-auth": source_auth,
    "source-disk-full": met(SourceError("source-disk-full", "expected room, got none; make some")),
    "source-corrupt": met(SourceError("source-corrupt", "expected whole files, got a damaged one; restore it")),
    "target-clash": met(LakeError("target-clash", "expected a target for each table, got one for two; map one")),
    "cuts-unreadable": met(LakeError("cuts-unreadable", "expected the table of cuts, got no file; resync a table")),
    "clock-skew": met(LakeError("clock-skew", "expected the driver's clock to be right, got one 60 s ahead; set it")),
    "clocks-differ": clocks_differ,
    "landing-changed": met(
        LakeError("landing-changed", "expected the zone's mark, but there is no such file; mount it")
    ),
    "decoding-limit": decoding_limit,
    "ddl-trigger-missing": ddl_trigger_missing,
    "no-usable-identity": no_usable_identity,
    "publication-narrow": publication_narrow,
    "slot-retained": queue,
    "slot-unread": queue,
    "slot-unreserved": slot_unreserved,
    "slot-lost": slot_lost,
    "slot-missing": slot_missing,
    "slot-orphaned": slot_orphaned,
    "slot-stalled": slot_stalled,
    "slot-synced": slot_synced,
    "slot-idle-timeout": slot_idle_timeout,
    "catalog-xmin-old": catalog_xmin_old,
    "decoding-spills": decoding_spills,
    "capture-paused": paused("capture"),
    "capture-failing": capture_failing,
    "capture-too-slow": capture_too_slow,
    "pipeline-halted": pipeline_halted,
    "slot-abandoned": slot_abandoned,
    "slots-nearly-full": judged_by({"watch": {"free_slots": 1000}}, {"watch": {"free_slots": 1}}),
    "transaction-open-long": transaction_open_long,
    "transaction-prepared-long": transaction_prepared_long,
    "standby-feedback-off": standby_feedback_off,
    "divergence-suspected": divergence_suspected,
    "verify-differs": verified("differs"),
    "verify-unreadable": verified("unreadable"),
    "lake-stale": late(DagState(paused=False, under_way=True)),
    "merge-paused": late(DagState(paused=True)),
    "merge-failing": late(DagState(paused=False), failed=True),
    "merge-late": late(DagState(paused=False)),
    "table-paused": table_paused,
    "resync-failing": resync_failing,
    "copy-stalled": copy_stalled,
    "maintain-overdue": done_long_ago("update penstock.maintenance set ended_at = then"),
    "verify-overdue": done_long_ago("update penstock.verification set finished_at = then"),
    "changelog-overdue": done_long_ago(
        "update penstock.changelog_fill set from_time = then - interval '1 day', upto_time = then"
    ),
    "storage-nearly-full": judged_by({"watch": {"free_share": 1}}, {"watch": {"free_share": 0.000001}}),
    "slot-unwatched": slot_unwatched,
    "alerts-unheard": judged_by({"critical": {"channels": []}}, {"critical": {"channels": ["hook"]}}),
}
