"""What the ledger remembers, one frozen record per row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from penstock.contract.manifest import FileEntry, vars_of
from penstock.lake.mirror_column import MirrorColumn, present
from penstock.ledger.json_codec import column_from_json, column_to_json, relation_from_json
from penstock.lsn import Lsn
from penstock.wire.messages import Relation

PipelineState = Literal["new", "bootstrapping", "running", "halted", "torn_down"]
WindowState = Literal["planned", "staged", "confirmed"]
TableState = Literal["new", "copying", "copied", "ready", "paused", "dropped"]
CopyState = Literal["copying", "copied", "loaded"]
FetchState = Literal["copying", "landed"]
RebuildKind = Literal["resync", "replay", "shadow"]
RebuildState = Literal["copying", "building", "ready", "done", "given_up"]
Level = Literal["info", "warning", "error"]


class Row:
    """Be a record that is made from a row whose columns are named as its fields."""

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row as psycopg returns it."""
        return cls(**row)


@dataclass(frozen=True)
class PipelineFacts(Row):
    """Hold what a pipeline is and where it stands in the stream.

    `position` is the end of the newest staged window, the slot's consistent point before the first; None until a
    slot is recorded.
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

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row; the identifier is an unsigned 64-bit number, which PostgreSQL has only as numeric."""
        identifier = row["system_identifier"]
        return cls(**{**row, "system_identifier": None if identifier is None else int(identifier)})


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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Publishing:
        """Read plain data."""
        return cls(**{**data, "sent": tuple(data["sent"]), "promised": tuple(data["promised"])})

    @property
    def withheld(self) -> tuple[str, ...]:
        """Name what it does not send any more."""
        return tuple(kind for kind in self.promised if kind not in self.sent)


@dataclass(frozen=True)
class PipelineRecord(PipelineFacts):
    """Hold one pipeline.

    `merge_attempt` is the only one that may publish. `era` counts the slots that it had; `slot_made` says whether
    Penstock made the present one, None before the first slot, as
    `publishing` is.
    `unproved_from` is where the source was found with another history than the one that was read, None if it was not.
    """

    publication_oid: int | None
    slot_intent_at: datetime | None
    halted_from: PipelineState | None
    merge_attempt: str | None
    era: int
    slot_made: bool | None
    publishing: Publishing | None
    unproved_from: Lsn | None

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        publishing = row["publishing"]
        return super().from_row(**{**row, "publishing": publishing and Publishing.from_json(publishing)})

    @property
    def withheld(self) -> tuple[str, ...]:
        """Name the kinds of change that the publication has sent and does not send any more."""
        return self.publishing.withheld if self.publishing else ()


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
    settings_digest: str
    source_time: datetime | None
    planned_at: datetime
    staged_at: datetime | None
    confirmed_at: datetime | None
    seconds: float | None
    era: int
    digest: str | None

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        return cls(**{**row, "files": tuple(map(FileEntry.from_json, row["files"]))})


@dataclass(frozen=True)
class SkippedRecord(Row):
    """Hold a transaction that no window has: the LSN of its commit, its 64-bit id where that is known, its tables.

    A copy that began after `known_lsn` has its rows.
    """

    lsn: Lsn
    xid: int | None
    oids: list[int]
    known_lsn: Lsn
    at: datetime


@dataclass(frozen=True)
class RelationRecord(Row):
    """Hold one shape of a relation as the stream described it, first in the window that ends at `seen_lsn`."""

    version: int
    relation: Relation
    seen_lsn: Lsn

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        return cls(row["version"], relation_from_json(row), row["seen_lsn"])


ColumnState = tuple[str, int, int]
"""What a column was at a look: its name, its type's oid and its typmod."""


@dataclass(frozen=True)
class ColumnLook:
    """Hold the published columns of a table by attnum, in order, as a look has found them, and how many attnums were given out.

    `trigger` is the token of the source's event trigger at that time, empty where that may miss commands, None where it is not read.
    `sure`: everything was so at the position that was asked for.
    `key` are the attnums of those that identify a row, `key_index` the index that sees to that (0 for none). `hidden` are columns
    that were not published.
    """

    count: int
    columns: Mapping[int, ColumnState]
    trigger: str | None = None
    sure: bool = False
    key: tuple[int, ...] = ()
    key_index: int = 0
    hidden: tuple[int, ...] = ()

    @classmethod
    def from_row(
        cls,
        count: int,
        columns: Sequence[tuple[int, str, int, int]],
        trigger: str | None,
        *,
        sure: bool,
        key: Sequence[int],
        key_index: int,
        hidden: Sequence[int],
    ) -> ColumnLook:
        """Read what the ledger has."""
        states = {attnum: (name, oid, typmod) for attnum, name, oid, typmod in columns}
        return cls(count, states, trigger, sure, tuple(key), key_index, tuple(hidden))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        columns = [[attnum, *state] for attnum, state in self.columns.items()]
        return {
            "count": self.count,
            "columns": columns,
            "key": list(self.key),
            "key_index": self.key_index,
            "hidden": list(self.hidden),
        }


@dataclass(frozen=True)
class RelationNumbers:
    """Say which of the table's columns those of a relation version are, None where that cannot be told.

    `key` are those by which its changes find their rows: none where only whole rows do, None where that is not known.
    """

    attnums: tuple[int, ...] | None
    key: tuple[int, ...] | None = None


@dataclass(frozen=True)
class RelationAttnums:
    """Hold which of the table's columns those of relation versions are: by oid and version, since which window, in order."""

    since: Mapping[tuple[int, int], Sequence[tuple[Lsn, RelationNumbers]]]

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, Lsn, list[int] | None, list[int] | None]]) -> RelationAttnums:
        """Read rows in the order of positions."""
        since: dict[tuple[int, int], list[tuple[Lsn, RelationNumbers]]] = {}
        for oid, version, lsn, *lists in rows:
            numbers = RelationNumbers(*(None if each is None else tuple(each) for each in lists))
            since.setdefault((oid, version), []).append((lsn, numbers))
        return cls(since)

    def at(self, oid: int, version: int, window: Lsn) -> Sequence[RelationNumbers]:
        """Return what a version's columns are in the window from a position on; nothing where nobody has looked."""
        return [numbers for lsn, numbers in self.since.get((oid, version), ()) if lsn <= window][-1:]


@dataclass(frozen=True)
class TableFacts:
    """Describe one source table and its target, as `save_tables` takes it.

    `identity` is `d`, `i`, `f` or `n`; `catalog_digest` holds whatever shows that the table was changed behind
    the stream's back. `renamed_to` is the name that the lake's table takes in the next cut, None where it keeps `target`.
    """

    oid: int
    schema: str
    name: str
    target: tuple[str, ...]
    identity: str
    columns: tuple[MirrorColumn, ...]
    catalog_digest: dict[str, Any]
    renamed_to: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars_of(self), "columns": [column_to_json(column) for column in self.columns]}

    @property
    def look(self) -> ColumnLook:
        """Return what of its columns a look at the catalog has found."""
        there = sorted(present(self.columns), key=lambda column: column.attnum)
        states = {column.attnum: (column.name, column.type.oid, column.type.typmod) for column in there}
        key = tuple(column.attnum for column in there if column.key)
        digest = self.catalog_digest
        count, hidden = digest.get("attnums", max(states, default=0)), digest.get("versions", {}).get("hidden", ())
        return ColumnLook(count, states, key=key, key_index=digest.get("key_index", 0), hidden=tuple(hidden))


@dataclass(frozen=True)
class TableRecord(Row):
    """Hold one table of a pipeline.

    `complete_through` and `snapshot_id` say what the lake's main holds as we last published it. A table that joined
    after bootstrap was first seen at `joined_lsn`, when all transaction ids given out were below `joined_xid` (None on a
    standby). One that left was published through `left_lsn`, as far as it is still to be merged; `discard` says that its
    lake table is to be dropped. `renamed_to` is the name that the lake's table takes in the next cut. `shows` is the metadata file
    that the catalog shows since our last cut, with columns of which `lake_columns` is the stamp. `fetchable` says that it is
    paused for nothing but values of some columns.
    """

    pipeline: str
    oid: int
    schema: str
    name: str
    target: tuple[str, ...]
    renamed_to: tuple[str, ...] | None
    state: TableState
    identity: str
    columns: tuple[MirrorColumn, ...]
    catalog_digest: dict[str, Any]
    copy_id: str | None
    complete_through: Lsn | None
    snapshot_id: int | None
    paused_slug: str | None
    paused_reason: str | None
    paused_from_state: TableState | None
    joined_lsn: Lsn | None
    joined_xid: int | None
    left_lsn: Lsn | None
    discard: bool
    shows: str | None
    lake_columns: str | None
    fetchable: bool

    @property
    def qualified(self) -> str:
        """Name the table for a message."""
        return f"{self.schema}.{self.name}"

    @property
    def waits(self) -> bool:
        """Return whether the table joined the pipeline and waits for its copy."""
        return self.state == "new" and self.joined_lsn is not None

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        columns = tuple(map(column_from_json, row["columns"]))
        renamed = row["renamed_to"]
        names = {"target": tuple(row["target"]), "renamed_to": None if renamed is None else tuple(renamed)}
        return cls(**{**row, **names, "columns": columns})


@dataclass(frozen=True)
class CopyRecord(Row):
    """Hold the copy of one table under one snapshot (text of pg_current_snapshot()).

    Every transaction that the snapshot sees had committed before `lsn`; some that it does not see had, too. What it does
    not see lies in windows after `needs_after`. The files' columns have these `attnums`.
    """

    pipeline: str
    id: str
    oid: int
    snapshot: str
    lsn: Lsn
    needs_after: Lsn
    state: CopyState
    files: tuple[FileEntry, ...]
    rows: int
    bytes: int
    started_at: datetime
    finished_at: datetime | None
    attnums: list[int]

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        return cls(**{**row, "files": tuple(map(FileEntry.from_json, row["files"]))})


@dataclass(frozen=True)
class FetchRecord(Row):
    """Hold values of some columns of one table that were read under a snapshot, of all that was committed before `lsn`.

    `whole` says that these are the columns' values of all rows: then what was landed of them before counts for nothing.
    """

    pipeline: str
    id: str
    oid: int
    lsn: Lsn
    attnums: tuple[int, ...]
    whole: bool
    state: FetchState
    files: tuple[FileEntry, ...]
    rows: int
    bytes: int

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        return cls(**{**row, "attnums": tuple(row["attnums"]), "files": tuple(map(FileEntry.from_json, row["files"]))})


@dataclass(frozen=True)
class RebuildRecord(Row):
    """Hold one table that is being rebuilt at `place`, from its copy and the windows since.

    `through_lsn` is how far `snapshot_id` of the fresh table holds every change, None until its copy is loaded. In place
    it takes the target's name when a cut is published; a shadow stays at its place as of `goal_lsn`. `run` is the
    Spark run that may advance it; `after` is the position from which it needs windows; `former` is what the table that
    it replaced looked like.
    """

    pipeline: str
    id: str
    oid: int
    era: int
    kind: RebuildKind
    state: RebuildState
    schema: str
    name: str
    target: tuple[str, ...]
    place: tuple[str, ...]
    identity: str
    columns: tuple[MirrorColumn, ...]
    catalog_digest: dict[str, Any]
    copy_id: str | None
    through_lsn: Lsn | None
    goal_lsn: Lsn | None
    snapshot_id: int | None
    run: str | None
    rows: int
    former: dict[str, Any] | None
    slug: str | None
    reason: str | None
    started_at: datetime
    changed_at: datetime
    finished_at: datetime | None
    copy_snapshot: str | None
    copy_lsn: Lsn | None
    after: Lsn | None

    @classmethod
    def from_row(cls, **row: Any) -> Self:
        """Read one row."""
        columns = tuple(map(column_from_json, row["columns"]))
        return cls(**{**row, "target": tuple(row["target"]), "place": tuple(row["place"]), "columns": columns})

    @property
    def qualified(self) -> str:
        """Name the source table for a message."""
        return f"{self.schema}.{self.name}"


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
class EventRecord(Row):
    """Hold one thing that happened, under the name of its runbook."""

    pipeline: str
    at: datetime
    slug: str
    level: Level
    table_oid: int | None
    message: str
    details: dict[str, Any]


@dataclass(frozen=True)
class SchemaChange:
    """Hold a change of a table's shape at the source that the lake follows: by which rule, in words, and with which numbers."""

    oid: int
    rule: str
    message: str
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"oid": self.oid, "message": self.message, "details": {"rule": self.rule, **self.details}}


@dataclass(frozen=True)
class UntoldRecord(Row):
    """Hold a change of a table's shape of which nobody was told yet."""

    number: int
    at: datetime
    table_name: str
    message: str
    details: dict[str, Any]


@dataclass(frozen=True)
class KeptSparkRecord(Row):
    """Hold until when a merge keeps its Spark application if nothing is landed, and how many cuts it has made."""

    until: datetime
    cuts: int


@dataclass(frozen=True)
class StatusRecord:
    """Hold one pipeline's state, all read at one moment; the unmerged windows end after the last cut."""

    pipeline: PipelineRecord
    windows: dict[str, int]
    newest_window: WindowRecord | None
    unmerged_windows: int
    unmerged_rows: int
    unmerged_bytes: int
    tables: dict[str, int]
    paused: tuple[TableRecord, ...]
    waiting: tuple[TableRecord, ...]
    last_cut: CutRecord | None
    gaps: tuple[GapRecord, ...]
    events: tuple[EventRecord, ...]
    rebuilds: tuple[RebuildRecord, ...] = ()
    kept_spark: KeptSparkRecord | None = None
