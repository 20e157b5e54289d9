"""Each alarm that needs no source, brought about on a real pipeline, received by a real receiver, and closed with its cause."""

import json

import pytest

from penstock.errors import SourceError, Trouble
from penstock.flow.capture import run as capture
from penstock.flow.health import report
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.run import watch_the_watcher
from tests.flow.health.alarm_scenes import SCENES, age_files, copy_stalled, scheduled_work_is_done
from tests.flow.health.conftest import Desk


def test_a_lake_that_gets_old_is_told_with_what_keeps_the_merge_away(desk: Desk) -> None:
    name = desk.watched.env.name
    desk.lag()

    desk.dags["merge"] = DagState(paused=True)
    assert desk.check() == [f"CRITICAL: merge-paused {name}.merge"]
    text = desk.hook.posts[-1]["message"]
    assert "\nfollows: lake-stale: readers see the source as it was 3 d" in text
    assert desk.check() == []
    assert desk.watched.open_alarms() == {"merge-paused": "critical", "lake-stale": "critical"}

    desk.dags["merge"] = DagState(paused=False)
    desk.watched.env.ctx.ledger.outcomes.failed(name, "merge", "spark", "run 1", slug="spark-failed")
    assert desk.check() == [f"CRITICAL: merge-failing {name}.merge", f"closed: merge-paused {name}.merge"]
    text = next(post["message"] for post in desk.hook.posts if "merge-failing" in post["title"])
    assert "\nrun: " in text
    assert f"/dags/{name}.merge/runs/run%201/tasks/spark" in text

    desk.watched.env.ctx.ledger.outcomes.succeeded(name, "merge", "publish", "run 2", last=True)
    assert desk.check() == [f"CRITICAL: merge-late {name}.merge", f"closed: merge-failing {name}.merge"]

    desk.watched.env.ledger.execute(
        f"update penstock.cut as c set lsn = p.position from penstock.pipeline as p where c.pipeline = p.name and p.name = '{name}'"
    )
    assert desk.check() == [f"closed: merge-late {name}.merge"], "what follows is held back for a while"
    desk.watched.env.ledger.execute("update penstock.alarm set freed_at = freed_at - interval '1 hour'")
    assert desk.check() == [f"CRITICAL: lake-stale {name}"]
    desk.age("update penstock.source_clock set looked_at = clock_timestamp()")
    assert desk.check() == [f"closed: lake-stale {name}"]


def test_a_lake_of_an_idle_source_is_as_fresh_as_captures_last_look(desk: Desk) -> None:
    env = desk.watched.env
    capture.capture(env.ctx)
    desk.age("update penstock.source_clock set looked_at = then")
    desk.age("update penstock.window set source_time = then")
    assert desk.check() == [f"CRITICAL: lake-stale {env.name}"]

    capture.capture(env.ctx)  # which finds nothing to bring

    assert desk.check() == [f"closed: lake-stale {env.name}"]
    assert report.gauges(desk.watched.look())["penstock.lake.freshness_seconds"] < 3600


@pytest.mark.slow
def test_a_source_that_does_not_answer_is_one_message_however_old_the_lake_gets(desk: Desk) -> None:
    desk.lag()
    desk.dags["merge"] = DagState(paused=False, under_way=True)
    server, before = desk.watched.env.source.server, len(desk.hook.posts)
    password, server.password = server.password, "not the password"
    try:
        with pytest.raises(SourceError):
            desk.check()
        with pytest.raises(SourceError):
            desk.check()
    finally:
        server.password = password

    assert desk.arrived(before) == ["CRITICAL: source-unreachable source"]
    assert "\nfollows: lake-stale: " in desk.hook.posts[-1]["message"]
    assert password not in json.dumps(desk.hook.posts)
    assert desk.check() == ["closed: source-unreachable source"]


@pytest.mark.slow
def test_tables_that_pause_at_once_are_one_message_and_each_ends_by_itself(desk: Desk) -> None:
    env = desk.watched.env
    env.sql("create table u (id int primary key)")
    capture.capture(env.ctx)
    tables = {table.name: table.oid for table in env.tables}
    for oid in tables.values():
        env.ctx.ledger.tables.stop(env.name, {oid: Trouble.usual("merge-conflict", "changes met absent rows")})

    assert desk.check() == ["WARN: table-paused public.t and 1 more"]
    assert desk.hook.posts[-1]["message"].count("is paused by merge-conflict: changes met absent rows") == 2
    env.ctx.ledger.tables.resume(env.name, tables["t"])
    assert desk.check() == ["closed: table-paused public.t"]


@pytest.mark.slow
def test_a_table_that_waits_for_a_resync_which_is_paused_is_told(desk: Desk) -> None:
    env = desk.watched.env
    env.sql("create table u (id int primary key)")
    capture.capture(env.ctx)

    desk.dags["resync"] = DagState(paused=True)
    assert desk.check() == [f"WARN: resync-failing {env.name}.resync"]
    desk.dags["resync"] = DagState(paused=False)
    assert desk.check() == [f"closed: resync-failing {env.name}.resync"]


AT_ONCE = (
    "copy-stalled",
    "maintain-overdue",
    "verify-overdue",
    "changelog-overdue",
    "storage-nearly-full",
    "alerts-unheard",
)


def test_each_alarm_arrives_once_and_ends_with_its_cause(desk: Desk, subtests: pytest.Subtests) -> None:
    scheduled_work_is_done(desk)
    assert desk.check() == []

    for slug in AT_ONCE:
        with subtests.test(slug):
            scene = SCENES[slug](desk)
            next(scene)

            (reported,) = desk.check()
            assert slug in reported
            assert f"https://airflow.example.com/cdc/runbooks/{slug}" in desk.hook.posts[-1]["message"]
            assert desk.check() == []
            next(scene, None)
            (reported,) = desk.check()
            assert reported.startswith(f"closed: {slug} ")


def test_a_large_table_that_lands_part_after_part_is_not_stalled_and_one_that_hangs_is(desk: Desk) -> None:
    env = desk.watched.env
    next(copy_stalled(desk))
    (copy,) = env.ctx.ledger.health.open_copies(env.name)
    part = f"{env.name}/copies/{copy.id}/part-2.parquet"

    env.ctx.landing.write_text(part, "one more range of the table")
    assert desk.check() == [], "the ledger knows of nothing for three days, and a part has landed now"

    age_files(desk)
    (reported,) = desk.check()
    assert reported.startswith("WARN: copy-stalled copy ")

    env.ctx.landing.write_text(part, "a further one")
    (reported,) = desk.check()
    assert reported.startswith("closed: copy-stalled copy ")


def test_a_capture_tells_that_slot_health_is_paused_and_slot_health_that_it_is_not(desk: Desk) -> None:
    env, before = desk.watched.env, len(desk.hook.posts)

    for paused in (True, True, False):
        watch_the_watcher(env.ctx, {"slot_health": DagState(paused=paused)}, desk.deliver)
    assert desk.arrived(before) == [
        f"CRITICAL: slot-unwatched {env.name}.slot_health",
        f"closed: slot-unwatched {env.name}.slot_health",
    ]

    desk.age("update penstock.slot_sample set at = then")
    watch_the_watcher(env.ctx, {}, desk.deliver)
    assert "has not looked for 3 d" in desk.hook.posts[-1]["message"]
    assert desk.check() == [f"closed: slot-unwatched {env.name}.slot_health"]
