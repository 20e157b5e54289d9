"""What the ledger remembers of a pipeline, one frozen record per row; its tables and relations have modules of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

from typing_extensions import TypedDict

from penstock.codec import record_of
from penstock.contract.manifest import FileEntry
from penstock.errors import LedgerError
from penstock.lsn import Lsn

PipelineState = Literal["new", "bootstrapping", "running", "halted", "torn_down"]
WindowState = Literal["planned", "staged", "confirmed"]
Level = Literal["info", "warning", "error"]


class Row:
    """Be a record that is made from a row whose columns are named as its fields; another column is refused."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}


class TaskRef(TypedDict):
    """Lead to a run of Airflow; `task` is the one whose log tells, empty where only the run is known."""

    dag: str
    run_id: str
    task: str


@dataclass(frozen=True)
class Publishing:
    """Hold how a publication publishes, as the last look found it.

    `stamp` is another one after every ALTER PUBLICATION of the publication itself, also of one that was undone. `sent`
    names the kinds of change that it sends, and `via_root` where those of a partition come under its root's name;
    `promised` the kinds that it has sent at any look since its slot was made.
    """

    stamp: str
    owner: str
    sent: tuple[str, ...]
    promised: tuple[str, ...]
    generated: bool = False

    @property
    def withheld(self) -> tuple[str, ...]:
        """Name what it does not send any more."""
        return tuple(kind for kind in self.promised if kind not in self.sent)


@dataclass(frozen=True)
class PipelineRecord(Row):
    """Hold what a pipeline is and where it stands in the stream.

    `position` is the end of the newest staged window, the slot's consistent point before the first; None until a
    slot is recorded.
    `merge_attempt` is the only one that may publish. `era` counts the slots that it had; `slot_made` says whether
    Penstock made the present one, None before the first slot, as
    `publishing` is.
    `unproved_from` is where the source was found with another history than the one that was read, None if it was not.
    `landing_mark` is the landing zone's random name; until it is `landing_marked` the one that a bootstrap was about to give it.
    """

    name: str
    state: PipelineState
    database: str
    slot: str
    publication: str
    system_identifier: int | None
    timeline: int | None
    consistent_point: Lsn | None
    position: Lsn | None
    halted_slug: str | None
    halted_reason: str | None
    created_at: datetime
    publication_oid: int | None
    slot_intent_at: datetime | None
    halted_from: PipelineState | None
    merge_attempt: str | None
    era: int
    slot_made: bool | None
    publishing: Publishing | None
    unproved_from: Lsn | None
    landing_mark: str | None
    landing_marked: bool

    @property
    def withheld(self) -> tuple[str, ...]:
        """Name the kinds of change that the publication has sent and does not send any more."""
        return self.publishing.withheld if self.publishing else ()

    def active(self, *, halted: bool = False) -> ActivePipeline:
        """Return it as one that can be worked on now, with `halted` also where it is halted.

        Raises LedgerError("pipeline-halted" | "not-bootstrapped").
        """
        if self.state == "halted" and not halted:
            raise LedgerError(
                "pipeline-halted",
                f"expected pipeline {self.name} to run, but it is halted by {self.halted_slug}: {self.halted_reason}; "
                f"follow docs/runbooks/{self.halted_slug}.md, then resume it",
            )
        if self.state == "torn_down":
            raise self._without_slot()
        return self.with_slot()

    def with_slot(self) -> ActivePipeline:
        """Return it as one that has a slot, or had; raises LedgerError("not-bootstrapped")."""
        try:
            return record_of(ActivePipeline, vars(self))
        except ValueError:
            raise self._without_slot() from None

    def _without_slot(self) -> LedgerError:
        return LedgerError(
            "not-bootstrapped",
            f"expected pipeline {self.name} to have a slot, but it is {self.state}; bootstrap it, or end its recovery",
        )


@dataclass(frozen=True)
class ActivePipeline(PipelineRecord):
    """Be a pipeline of which a slot is recorded."""

    system_identifier: int
    timeline: int
    publication_oid: int
    consistent_point: Lsn
    position: Lsn


@dataclass(frozen=True)
class WindowRecord(Row):
    """Hold one window `(from_lsn, upto_lsn]`; `seconds` is what its capture took, `digest` that of its messages."""

    pipeline: str
    from_lsn: Lsn
    upto_lsn: Lsn
    attempt: str
    state: WindowState
    rows: int
    bytes: int
    transactions: int
    messages: int
    files: tuple[FileEntry, ...]
    source_time: datetime | None
    planned_at: datetime
    staged_at: datetime | None
    seconds: float | None
    era: int
    digest: str | None


@dataclass(frozen=True)
class SkippedRecord(Row):
    """Hold a transaction that no window has: the LSN of its commit, its 64-bit id where that is known, its tables.

    A copy that began after `known_lsn` has its rows. It committed between `since` and `until`, None where unknown. Its `era`, and when
    the window was staged that is without it, are known once that is.
    """

    lsn: Lsn
    xid: int | None
    oids: list[int]
    known_lsn: Lsn
    since: datetime | None
    until: datetime | None
    era: int = 0
    staged_at: datetime | None = None


@dataclass(frozen=True)
class CutRecord(Row):
    """Hold one published cut; `tables` says per table its state, position and snapshot in the lake, and what its merge
    counted besides, if anything. `cuts_snapshot_id` is what `_penstock_cuts` was then.
    """

    pipeline: str
    lsn: Lsn
    attempt: str
    tables: list[dict[str, Any]]
    rows: int
    published_at: datetime
    era: int
    cuts_snapshot_id: int


@dataclass(frozen=True)
class TableWork(Row):
    """Hold what cuts did to a table that moved: which changes it took, none where a copy took its place, its rows since, and seconds."""

    schema: str
    name: str
    inserts: int
    updates: int
    deletes: int
    truncates: int
    rows: int
    seconds: float

    @property
    def qualified(self) -> str:
        """Name the table for a message."""
        return f"{self.schema}.{self.name}"

    @property
    def changes(self) -> dict[str, int]:
        """Return the changes by kind."""
        return {name: getattr(self, name) for name in ("inserts", "updates", "deletes", "truncates")}


@dataclass(frozen=True)
class GapRecord(Row):
    """Hold what lies between two eras: changes that are in no window. `era` is the one that ended.

    The ends are those of the last window and of the next slot; `upto_lsn` is None while there is no next slot. Where
    the server is another one, the two positions are not of one scale.
    """

    pipeline: str
    era: int
    reason: str
    from_lsn: Lsn
    upto_lsn: Lsn | None
    from_time: datetime | None
    upto_time: datetime | None


@dataclass(frozen=True)
class SchemaChange:
    """Hold a change of a table's shape at the source that the lake follows: by which rule, in words, and with which numbers."""

    oid: int
    rule: str
    message: str
    details: Mapping[str, Any]
