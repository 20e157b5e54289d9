"""What every use case needs: the pipeline, what its operator wants of a table, and how to reach source, ledger and landing zone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.config.connections import Connection, Resolver
from penstock.config.model import OnChange, Pipeline
from penstock.source.patterns import chosen_by

if TYPE_CHECKING:  # a DAG file names a context and opens none: database drivers and Arrow are for who does
    from penstock.landing.zone import LandingZone
    from penstock.ledger import Ledger


Progress = Callable[[str], None]


class Stage(Protocol):
    """Take what is being done, how much of it is done, how much it is, and the rows done where they are counted."""

    def __call__(self, what: str, done: int, total: int, rows: int | None = None, /) -> None:
        """Take it."""


def _silent(_: str) -> None:
    return None


def _unwatched(_what: str, _done: int, _total: int, _rows: int | None = None) -> None:
    return None


@dataclass(frozen=True)
class Context:
    """Hold one pipeline with its ways to the outside.

    `home` is the project folder; `environment` is what Spark drivers inherit, without secrets;
    `progress` receives one readable line at a time, `stage` how far a work with a known end is. `task` is the task of Airflow
    that is at work, as {dag, run_id, task}.
    """

    pipeline: Pipeline
    connections: Resolver
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    progress: Progress = _silent
    stage: Stage = _unwatched
    task: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name the pipeline."""
        return self.pipeline.name

    @property
    def is_watched(self) -> bool:
        """Return whether anyone wants to know how far a work is."""
        return self.stage is not _unwatched

    @cached_property
    def source(self) -> Connection:
        """Return the connection of the source database."""
        return self.connections(self.pipeline.source.connection)

    @cached_property
    def reader(self) -> Connection:
        """Return the connection by which rows of tables are read: functions of their owners run as its role."""
        named = self.pipeline.source.reader_connection
        return self.source if named is None else self.connections(named)

    @cached_property
    def catalog(self) -> Connection:
        """Return the connection of the database that holds the lake's catalog."""
        return self.connections(self.pipeline.lake.connection)

    @cached_property
    def ledger(self) -> Ledger:
        """Return the ledger; no connection is opened before its first call."""
        from penstock.ledger import Ledger

        return Ledger(self.connections(self.pipeline.ledger.connection), self.task)

    @cached_property
    def landing(self) -> LandingZone:
        """Return the landing zone."""
        from penstock.landing.zone import LandingZone

        settings = self.pipeline.landing
        return LandingZone.open(settings.uri, settings.options, {**os.environ, **self.environment})


def on_change(pipeline: Pipeline, schema: str, name: str) -> OnChange:
    """Return what follows when a table is changed in a way that the stream does not carry.

    That is what the first entry says that names the table, else the pipeline's own setting.
    """
    for policy in pipeline.tables.policies:
        if chosen_by(policy)(schema, name):
            return policy.on_change
    return pipeline.tables.on_change


def any_copied(pipeline: Pipeline) -> bool:
    """Return whether there is a table that is copied again by itself after such a change."""
    wanted = [pipeline.tables.on_change, *(policy.on_change for policy in pipeline.tables.policies)]
    return any(each != "pause" for each in wanted)
