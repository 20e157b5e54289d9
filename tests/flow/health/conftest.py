"""Servers that give slots up early, pipelines on them, and people who receive alerts."""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
import psycopg2.extras
import pytest

from penstock.config.connections import Connection
from penstock.flow.capture import run as capture
from penstock.flow.health import run as flow
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.alerts import Alert, Delivery
from penstock.flow.health.judge import Verdict
from penstock.source import health, session
from stack import ports
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import HASTY, NewServer, standby_of
from tests.flow.health.alert_receivers import Hook, Mailbox, http_receiver, smtp_receiver
from tests.pipeline_env import PipelineEnv
from tests.waiting import wait_until

KEEP = {
    "max_slot_wal_keep_size": "64MB",
    "max_wal_size": "2GB",
    "min_wal_size": "32MB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}
_numbers = itertools.count(1)


@dataclass
class Watched:
    """A pipeline under slot health: what it was told, and what it told."""

    env: PipelineEnv
    delivered: list[Alert] = field(default_factory=list)

    @property
    def slot(self) -> str:
        return self.env.ctx.pipeline.slot

    def policy(self, **keys: Any) -> None:
        """Change the pipeline's section `health`."""
        self.env.settings = {**self.env.settings, "health": {**self.env.settings.get("health", {}), **keys}}

    def without_tables(self) -> None:
        """Let the ledger know all tables as dropped, as it does after their last merge."""
        self.env.ledger.execute("update penstock.table set state = 'dropped'")

    def check(self, **paused: bool) -> Verdict:
        """Run one health check, as the DAG does; `paused` are the DAGs that a person has paused."""
        dags = {verb: DagState(paused=paused.get(verb, False)) for verb in {"capture", *paused}}
        return flow.check(self.env.ctx, dags, self.deliver)

    def look(self) -> Verdict:
        return flow.judge_pipeline(self.env.ctx, {"capture": DagState(paused=False)})

    def deliver(self, alert: Alert) -> Delivery:
        self.delivered.append(alert)
        return Delivery(taken=1)

    def open_alarms(self) -> dict[str, str]:
        alarms = self.env.ctx.ledger.health.alarms(self.env.name)
        return {alarm.slug: alarm.level for alarm in alarms if alarm.closed_at is None}

    def events(self, slug: str) -> list[str]:
        events = self.env.ctx.ledger.events.all(self.env.name, limit=100)
        return [event.message for event in events if event.slug == slug]

    def slots(self) -> set[str]:
        return {name for (name,) in self.env.sql("select slot_name from pg_replication_slots")}

    def noise(self, megabytes: int) -> None:
        """Write WAL that no pipeline asks for."""
        self.env.sql(
            f"select pg_logical_emit_message(false, 'noise', repeat('x', 1 << 20)) from generate_series(1, {megabytes});"
            "set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')"
        )

    def foreign(self, name: str) -> str:
        """Make a slot of another owner's."""
        self.env.sql(f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")
        return name


@dataclass
class Desk:
    """The desk of a person on call: what a pipeline tells arrives there over HTTP and by mail."""

    watched: Watched
    hook: Hook
    mailbox: Mailbox
    dags: dict[str, DagState]

    def check(self) -> list[str]:
        """Run one check as the DAG does; return the titles of what arrived, without the pipeline, by name."""
        before, mails = len(self.hook.posts), len(self.mailbox.mails)
        flow.check(self.watched.env.ctx, self.dags, self.deliver)
        assert [subject for subject, _ in self.mailbox.mails[mails:]] == [
            each["title"] for each in self.hook.posts[before:]
        ]
        return sorted(self.arrived(before))

    def deliver(self, alert: Alert) -> Delivery:
        """Send an alert as a DAG does."""
        from penstock.orchestration import notifications  # noqa: PLC0415  # after the throw-away home is set

        return notifications.deliver(alert)

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
        self.age("update penstock.source_clock set looked_at = then")
        self.age("update penstock.cut set published_at = then")


NewWatched = Callable[[Server], Watched]
NewDesk = Callable[[Watched], Desk]


def streaming(database: Database, slot: str, publication: str = "none") -> Any:
    """Read a slot by streaming replication: it is active as long as this is open."""
    reader = psycopg2.connect(database.dsn(), connection_factory=psycopg2.extras.LogicalReplicationConnection)
    options = {"proto_version": "1", "publication_names": publication}
    reader.cursor().start_replication(slot_name=slot, options=options, decode=False)
    return reader


@pytest.fixture
def watched_on(postgres16: Server, tmp_path: Path) -> Iterator[NewWatched]:
    """A function that makes a bootstrapped pipeline of one table on a server; its ledger is elsewhere."""
    with postgres16.temporary_database(f"health_ledger{next(_numbers)}") as ledger:
        made: list[Database] = []

        def make(server: Server) -> Watched:
            name = f"health{next(_numbers)}"
            with server.connect() as connection:
                connection.execute(f"create database {name}".encode())
            database = Database(server, name)
            made.append(database)
            env = PipelineEnv(database, ledger, tmp_path / "landing", name)
            env.begin("create table t (id int primary key, note text); insert into t values (1, 'one')")
            return Watched(env)

        yield make
        for database in made:
            database.drop()


@pytest.fixture(scope="session")
def tight16(new_server: NewServer, binaries16: Binaries) -> Server:
    """A server that gives a slot up when it keeps more than 64 MB."""
    return new_server(binaries16, {**HASTY, **KEEP})


@pytest.fixture
def watched(watched_on: NewWatched, tight16: Server) -> Watched:
    return watched_on(tight16)


@pytest.fixture
def desk_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[NewDesk]:
    """A function that puts a person on call in front of a pipeline, which then has a cut and says nothing."""
    with http_receiver() as hook, smtp_receiver(ports.choose()) as mailbox:
        mail = f"mailto://127.0.0.1:{mailbox.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/\n{mail}"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(channel))

        def sit(watched: Watched) -> Desk:
            watched.policy(warn={"channels": ["hook"]}, critical={"channels": ["hook"]}, drain=False)
            name = watched.env.name
            watched.env.ledger.execute(
                "insert into penstock.cut (pipeline, era, lsn, attempt, tables, cuts_snapshot_id)"
                f" select name, era, position, 'merge', '[]', 1 from penstock.pipeline where name = '{name}'"
            )
            return Desk(watched, hook, mailbox, {"capture": DagState(paused=False)})

        yield sit


@pytest.fixture
def desk(watched: Watched, desk_of: NewDesk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
    capture.capture(watched.env.ctx)
    found = desk_of(watched)
    assert found.check() == [], "a pipeline that is well says nothing"
    return found


@pytest.fixture
def own(new_server: NewServer, binaries16: Binaries) -> Iterator[Server]:
    """A server of the test's own, small, for settings that a page changes."""
    server = new_server(binaries16, {**HASTY, **KEEP, "max_replication_slots": "4", "max_wal_senders": "10"})
    yield server
    server.stop()


@pytest.fixture
def pair(own: Server, servers_home: Path, watched_on: NewWatched) -> Iterator[tuple[Watched, Server]]:
    """A pipeline on a primary, and a hot standby that tells its primary nothing."""
    watched = watched_on(own)
    with standby_of(own, servers_home / f"standby_of_{watched.env.name}") as standby:
        yield watched, standby


@pytest.fixture
def impatient18(new_server: NewServer, binaries_of: Callable[[int], Binaries]) -> Iterator[Server]:
    """PostgreSQL 18, which gives up slots that no one has used for twenty seconds."""
    server = new_server(binaries_of(18), {**HASTY, **KEEP, "idle_replication_slot_timeout": "20s"})
    yield server
    server.stop()


@pytest.fixture
def watched18(impatient18: Server, watched_on: NewWatched) -> Watched:
    """A pipeline on a server that gives idle slots up."""
    return watched_on(impatient18)


@pytest.fixture
def pair18(
    new_server: NewServer, binaries_of: Callable[[int], Binaries], servers_home: Path
) -> Iterator[tuple[Server, Server]]:
    """A primary and a standby of PostgreSQL 18; the standby keeps failover slots in sync."""
    primary = new_server(binaries_of(18), {"max_slot_wal_keep_size": "64MB", "checkpoint_timeout": "30s"})
    with primary.connect() as connection:
        connection.execute("select pg_create_physical_replication_slot('phys', true)")
    primary.stop()
    home = servers_home / "standby18"
    home.mkdir()
    primary.account.own(home)
    primary.account.run(["cp", "-a", primary.data, home / "data"])
    (home / "data" / "standby.signal").touch()
    primary.account.own(home / "data" / "standby.signal")
    primary.start()
    conninfo = f"host=127.0.0.1 port={primary.port} user=postgres password={primary.password} dbname=postgres"
    follower = {
        "primary_conninfo": conninfo,
        "primary_slot_name": "phys",
        "hot_standby_feedback": "on",
        "sync_replication_slots": "on",
    }
    standby = Server(home, primary.binaries, ports.choose(), primary.password, {**primary.settings, **follower})
    standby.start()
    yield primary, standby
    standby.stop("immediate")
    shutil.rmtree(home, ignore_errors=True)
    primary.stop()


@pytest.fixture
def synced18(pair18: tuple[Server, Server], watched_on: NewWatched) -> tuple[Watched, Server]:
    """A pipeline on a primary of PostgreSQL 18, and a standby that has a copy of its slot."""
    primary, standby = pair18
    watched = watched_on(primary)
    watched.env.sql(f"select pg_drop_replication_slot('{watched.slot}')")
    watched.env.sql(f"select pg_create_logical_replication_slot('{watched.slot}', 'pgoutput', false, false, true)")
    place = Connection("source", "127.0.0.1", standby.port, "postgres", standby.password, watched.env.source.name)

    def synced() -> bool:
        watched.env.sql("select pg_log_standby_snapshot()")
        watched.env.sql(f"select pg_replication_slot_advance('{watched.slot}', pg_current_wal_flush_lsn())")
        with session.connect(place, what="test") as conn:
            return any(slot.synced and not slot.temporary for slot in health.read_health(conn, publication="").slots)

    wait_until(synced, "the synchronised slot")
    return watched, standby
