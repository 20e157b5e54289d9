"""What the ledger remembers of tables and of their loads, one frozen record per row."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from penstock.conditions import Remedy
from penstock.contract.manifest import FileEntry
from penstock.ledger.records import Row
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts
from penstock.shapes.mirror_column import MirrorColumn

TableState = Literal["new", "copying", "copied", "ready", "paused", "dropped"]
LoadCause = Literal["first", "resync", "columns", "partitions", "replay", "shadow"]
LoadState = Literal["copying", "landed", "building", "ready", "done", "given_up"]


@dataclass(frozen=True, kw_only=True)
class TableRecord(TableFacts, Row):
    """Hold one table of a pipeline.

    `complete_through` and `snapshot_id` say what the lake's main holds as we last published it. A table that joined
    after bootstrap was first seen at `joined_lsn`, when all transaction ids given out were below `joined_xid` (None on a
    standby). One that left was published through `left_lsn`, as far as it is still to be merged; `discard` says that its
    lake table is to be dropped. `shows` is the metadata file
    that the catalog shows since our last cut, with columns of which `lake_columns` is the stamp. `remedy` is what
    ends its pause (`Trouble`).
    """

    pipeline: str
    state: TableState
    copy_id: str | None = None
    complete_through: Lsn | None = None
    snapshot_id: int | None = None
    paused_slug: str | None = None
    paused_reason: str | None = None
    paused_from_state: TableState | None = None
    joined_lsn: Lsn | None = None
    joined_xid: int | None = None
    left_lsn: Lsn | None = None
    discard: bool = False
    shows: str | None = None
    lake_columns: str | None = None
    remedy: Remedy | None = None

    @property
    def waits(self) -> bool:
        """Return whether the table joined the pipeline and waits for its copy."""
        return self.state == "new" and self.joined_lsn is not None


@dataclass(frozen=True)
class FormerTable:
    """Say what a table looked like that a load has replaced."""

    columns: tuple[MirrorColumn, ...]
    identity: str


@dataclass(frozen=True, kw_only=True)
class LoadRecord(TableFacts, Row):
    """Hold rows of one table that were read under one snapshot (text of pg_current_snapshot()), and what became of them.

    Every transaction that the snapshot sees had committed before `lsn`; of a copy some that it does
    not see had, too. What it does not see lies in windows after `needs_after`. The `files` lie in the folder of `copy_id`, and have
    columns of these `attnums`. Of fetched columns `whole` says that these are the values of all rows: then what was landed of them
    before counts for nothing. Fetched rows of partitions replace all rows of before that are within none of the bounds that `stays` has.

    What is built lies at `place`: `through_lsn` is how far `snapshot_id` of it holds every change, None until the copy is
    loaded. In place it takes the target's name when a cut is published; a shadow stays at its place as of `goal_lsn`. `run` is the
    Spark run that may advance it; `after` is the position from which it needs windows; `former` is what the table that
    it replaced looked like.
    """

    pipeline: str
    id: str
    era: int
    cause: LoadCause
    state: LoadState
    place: tuple[str, ...]
    copy_id: str
    snapshot: str
    lsn: Lsn
    needs_after: Lsn
    attnums: tuple[int, ...]
    whole: bool
    stays: list[list[list[Any]]] | None
    files: tuple[FileEntry, ...]
    rows: int
    bytes: int
    copy_started_at: datetime | None
    copied_at: datetime | None
    through_lsn: Lsn | None
    goal_lsn: Lsn | None
    snapshot_id: int | None
    run: str | None
    built_rows: int
    former: FormerTable | None
    slug: str | None
    reason: str | None
    started_at: datetime
    changed_at: datetime
    after: Lsn | None
