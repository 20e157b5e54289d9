"""Servers that give slots up early, pipelines on them, and people who receive alerts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.flow.copy import bootstrap
from penstock.flow.health import check as flow
from penstock.flow.health.alerts import Alert, Delivery
from penstock.flow.health.judge import Verdict
from penstock.flow.health.standing import DagState
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import HASTY, NewServer
from tests.faults.killed import copy_without_spark
from tests.pipeline_env import PipelineEnv

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
    told: list[Alert] = field(default_factory=list)

    @property
    def slot(self) -> str:
        return self.env.ctx.pipeline.slot

    def policy(self, **keys: Any) -> None:
        """Change the pipeline's section `health`."""
        self.env.settings = {**self.env.settings, "health": {**self.env.settings.get("health", {}), **keys}}

    def check(self, **paused: bool) -> flow.Checked:
        """Run one health check, as the DAG does; `paused` are the DAGs that a person has paused."""
        dags = {verb: DagState(paused=paused.get(verb, False)) for verb in {"capture", *paused}}
        return flow.check(self.env.ctx, dags, self.deliver)

    def look(self) -> Verdict:
        return flow.look(self.env.ctx, {"capture": DagState(paused=False)})

    def deliver(self, alert: Alert) -> Delivery:
        self.told.append(alert)
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


NewWatched = Callable[[Server], Watched]


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
            env.sql("create table t (id int primary key, note text); insert into t values (1, 'one')")
            bootstrap.prepare(env.ctx)
            bootstrap.copy(env.ctx, copy_without_spark)
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
