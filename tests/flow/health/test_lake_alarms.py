"""Each alarm that needs no source, brought about on a real pipeline, received by a real receiver, and closed with its cause."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from penstock.errors import SourceError
from penstock.flow.capture import run as capture
from penstock.flow.health import check as flow
from penstock.flow.health.standing import DagState
from penstock.flow.health.watcher import watch_the_watcher
from stack import ports
from tests.flow.health.alert_receivers import Hook, Mailbox, http_receiver, smtp_receiver
from tests.flow.health.conftest import Watched


@dataclass
class OnCall:
    """A pipeline whose alerts go to a channel, over HTTP and by mail."""

    watched: Watched
    hook: Hook
    mailbox: Mailbox
    dags: dict[str, DagState]

    def check(self) -> list[str]:
        """Run one check as the DAG does; return the titles of what arrived, without the pipeline, by name."""
        from penstock.orchestration import notifications  # noqa: PLC0415  # after the throw-away home is set

        before, mails = len(self.hook.posts), len(self.mailbox.mails)
        flow.check(self.watched.env.ctx, self.dags, notifications.deliver)
        assert [subject for subject, _ in self.mailbox.mails[mails:]] == [
            each["title"] for each in self.hook.posts[before:]
        ]
        return sorted(self.arrived(before))

    def arrived(self, before: int) -> list[str]:
        return [post["title"].removeprefix("[penstock] ").rpartition(" (")[0] for post in self.hook.posts[before:]]

    def age(self, statement: str) -> None:
        """Let time pass in the ledger: `then` stands for three days ago."""
        then = "clock_timestamp() - interval '3 days'"
        self.watched.env.ledger.execute(statement.replace("then", then))

    def lag(self) -> None:
        """Land a change that no merge takes, long ago."""
        self.watched.env.sql("insert into t select max(id) + 1, 'new' from t")
        capture.capture(self.watched.env.ctx)
        self.age("update penstock.window set source_time = then, staged_at = then, confirmed_at = then")
        self.age("update penstock.cut set published_at = then")


@pytest.fixture
def oncall(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnCall]:
    with http_receiver() as hook, smtp_receiver(ports.choose()) as mailbox:
        mail = f"mailto://127.0.0.1:{mailbox.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/\n{mail}"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(channel))
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
        watched.policy(warn={"channels": ["hook"]}, critical={"channels": ["hook"]}, drain=False)
        found = OnCall(watched, hook, mailbox, {"capture": DagState(paused=False)})
        capture.capture(watched.env.ctx)
        name = watched.env.name
        watched.env.ledger.execute(
            "insert into penstock.cut (pipeline, era, lsn, attempt, tables, cuts_snapshot_id)"
            f" select name, era, position, 'merge', '[]', 1 from penstock.pipeline where name = '{name}'"
        )
        assert found.check() == [], "a pipeline that is well says nothing"
        yield found


def test_a_lake_that_gets_old_is_told_with_what_keeps_the_merge_away(oncall: OnCall) -> None:
    name = oncall.watched.env.name
    oncall.lag()

    oncall.dags["merge"] = DagState(paused=True)
    assert oncall.check() == [f"CRITICAL: merge-paused {name}.merge"]
    text = oncall.hook.posts[-1]["message"]
    assert "\nfollows: lake-stale: readers see the source as it was 3 d" in text
    assert oncall.check() == []
    assert oncall.watched.open_alarms() == {"merge-paused": "critical", "lake-stale": "critical"}

    oncall.dags["merge"] = DagState(paused=False)
    oncall.watched.env.ctx.ledger.outcomes.failed(name, "merge", "spark", "run 1", slug="spark-failed")
    assert oncall.check() == [f"CRITICAL: merge-failing {name}.merge", f"closed: merge-paused {name}.merge"]
    text = next(post["message"] for post in oncall.hook.posts if "merge-failing" in post["title"])
    assert "\nrun: " in text
    assert f"/dags/{name}.merge/runs/run%201/tasks/spark" in text

    oncall.watched.env.ctx.ledger.outcomes.succeeded(name, "merge", "publish", "run 2", last=True)
    assert oncall.check() == [f"CRITICAL: merge-late {name}.merge", f"closed: merge-failing {name}.merge"]

    oncall.watched.env.ledger.execute(
        f"update penstock.cut as c set lsn = p.position from penstock.pipeline as p where c.pipeline = p.name and p.name = '{name}'"
    )
    assert oncall.check() == [f"closed: merge-late {name}.merge"], "what follows is held back for a while"
    oncall.watched.env.ledger.execute("update penstock.alarm set freed_at = freed_at - interval '1 hour'")
    assert oncall.check() == [f"CRITICAL: lake-stale {name}"]
    oncall.age("update penstock.window set source_time = clock_timestamp()")
    assert oncall.check() == [f"closed: lake-stale {name}"]


@pytest.mark.slow
def test_a_source_that_does_not_answer_is_one_message_however_old_the_lake_gets(oncall: OnCall) -> None:
    oncall.lag()
    oncall.dags["merge"] = DagState(paused=False, under_way=True)
    server, before = oncall.watched.env.source.server, len(oncall.hook.posts)
    password, server.password = server.password, "not the password"
    try:
        with pytest.raises(SourceError):
            oncall.check()
        with pytest.raises(SourceError):
            oncall.check()
    finally:
        server.password = password

    assert oncall.arrived(before) == ["CRITICAL: source-unreachable source"]
    assert "\nfollows: lake-stale: " in oncall.hook.posts[-1]["message"]
    assert password not in json.dumps(oncall.hook.posts)
    assert oncall.check() == ["closed: source-unreachable source"]


@pytest.mark.slow
def test_tables_that_pause_at_once_are_one_message_and_each_ends_by_itself(oncall: OnCall) -> None:
    env = oncall.watched.env
    env.sql("create table u (id int primary key)")
    capture.capture(env.ctx)
    tables = {table.name: table.oid for table in env.ctx.ledger.tables.all(env.name)}
    for oid in tables.values():
        env.ctx.ledger.tables.pause(env.name, oid, slug="merge-conflict", reason="changes met absent rows")

    assert oncall.check() == ["WARN: table-paused public.t and 1 more"]
    assert oncall.hook.posts[-1]["message"].count("is paused by merge-conflict: changes met absent rows") == 2
    env.ctx.ledger.tables.resume(env.name, tables["t"])
    assert oncall.check() == ["closed: table-paused public.t"]


@pytest.mark.slow
def test_a_table_that_waits_for_a_resync_which_is_paused_is_told(oncall: OnCall) -> None:
    env = oncall.watched.env
    env.sql("create table u (id int primary key)")
    capture.capture(env.ctx)

    oncall.dags["resync"] = DagState(paused=True)
    assert oncall.check() == [f"WARN: resync-failing {env.name}.resync"]
    oncall.dags["resync"] = DagState(paused=False)
    assert oncall.check() == [f"closed: resync-failing {env.name}.resync"]


def age_files(oncall: OnCall) -> None:
    """Let time pass in the landing zone."""
    then = time.time() - timedelta(days=3).total_seconds()
    for path in (oncall.watched.env.landing / oncall.watched.env.name / "copies").rglob("*"):
        os.utime(path, (then, then))


def stall(oncall: OnCall) -> Callable[[], None]:
    env = oncall.watched.env
    (table,) = env.ctx.ledger.tables.all(env.name)
    env.ledger.execute(f"update penstock.table set state = 'copying' where pipeline = '{env.name}'")
    oncall.age("update penstock.copy set state = 'copying', finished_at = null, started_at = then")
    age_files(oncall)

    def end() -> None:
        env.ledger.execute(f"update penstock.table set state = '{table.state}' where pipeline = '{env.name}'")

    return end


def scheduled_work_is_done(oncall: OnCall) -> None:
    env = oncall.watched.env
    env.settings = {**env.settings, "verify": {"schedule": "0 3 * * *"}}
    oncall.age("update penstock.pipeline set created_at = then")
    oncall.age(
        "insert into penstock.maintenance (pipeline, attempt, started_at, ended_at, dry_run, report)"
        f" values ('{env.name}', 'now', now(), now(), false, '{{}}')"
    )
    oncall.age(
        "insert into penstock.verification (pipeline, era, mode, finished_at)"
        f" values ('{env.name}', 1, 'sample', now())"
    )
    oncall.age(
        "insert into penstock.changelog_fill (pipeline, from_time, upto_time, era, through_lsn, attempt, rows, tables)"
        f" values ('{env.name}', now() - interval '1 day', now(), 1, '0/0', 'a', 0, '[]')"
    )


def rest(statement: str) -> Callable[[OnCall], Callable[[], None]]:
    """Let scheduled work have been done last long ago, and then now."""

    def bring_about(oncall: OnCall) -> Callable[[], None]:
        oncall.age(statement)
        return lambda: oncall.age(statement.replace("then", "now()"))

    return bring_about


def fill(oncall: OnCall) -> Callable[[], None]:
    oncall.watched.policy(watch={"free_share": 1})
    return lambda: oncall.watched.policy(watch={"free_share": 0.000001})


def mute(oncall: OnCall) -> Callable[[], None]:
    oncall.watched.policy(critical={"channels": []})
    return lambda: oncall.watched.policy(critical={"channels": ["hook"]})


CAUSES = {
    "copy-stalled": stall,
    "maintain-overdue": rest("update penstock.maintenance set ended_at = then"),
    "verify-overdue": rest("update penstock.verification set finished_at = then"),
    "changelog-overdue": rest(
        "update penstock.changelog_fill set from_time = then - interval '1 day', upto_time = then"
    ),
    "storage-nearly-full": fill,
    "alerts-unheard": mute,
}


def test_each_alarm_arrives_once_and_ends_with_its_cause(oncall: OnCall, subtests: pytest.Subtests) -> None:
    scheduled_work_is_done(oncall)
    assert oncall.check() == []

    for slug, bring_about in CAUSES.items():
        with subtests.test(slug):
            end = bring_about(oncall)

            (told,) = oncall.check()
            assert slug in told
            assert f"https://airflow.example.com/cdc/runbooks/{slug}" in oncall.hook.posts[-1]["message"]
            assert oncall.check() == []
            end()
            (told,) = oncall.check()
            assert told.startswith(f"closed: {slug} ")


def test_a_large_table_that_lands_part_after_part_is_not_stalled_and_one_that_hangs_is(oncall: OnCall) -> None:
    env = oncall.watched.env
    stall(oncall)
    (copy,) = env.ctx.ledger.health.open_copies(env.name)
    part = f"{env.name}/copies/{copy.id}/part-2.parquet"

    env.ctx.landing.write_text(part, "one more range of the table")
    assert oncall.check() == [], "the ledger knows of nothing for three days, and a part has landed now"

    age_files(oncall)
    (told,) = oncall.check()
    assert told.startswith("WARN: copy-stalled copy ")

    env.ctx.landing.write_text(part, "a further one")
    (told,) = oncall.check()
    assert told.startswith("closed: copy-stalled copy ")


def test_a_capture_tells_that_slot_health_is_paused_and_slot_health_that_it_is_not(oncall: OnCall) -> None:
    from penstock.orchestration import notifications  # noqa: PLC0415  # after the throw-away home is set

    env, before = oncall.watched.env, len(oncall.hook.posts)

    for paused in (True, True, False):
        watch_the_watcher(env.ctx, {"slot_health": DagState(paused=paused)}, notifications.deliver)
    assert oncall.arrived(before) == [
        f"CRITICAL: slot-unwatched {env.name}.slot_health",
        f"closed: slot-unwatched {env.name}.slot_health",
    ]

    oncall.age("update penstock.slot_sample set at = then")
    watch_the_watcher(env.ctx, {}, notifications.deliver)
    assert "has not looked for 3 d" in oncall.hook.posts[-1]["message"]
    assert oncall.check() == [f"closed: slot-unwatched {env.name}.slot_health"]
