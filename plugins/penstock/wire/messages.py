"""What pgoutput says, as values.

One frozen class per message, fields in wire order, named as in PostgreSQL's "Logical Replication Message Formats".
Three things that other decoders confuse are three types here: NULL, unchanged TOAST (the value is in the row but was
not sent) and a value. Old images say whether they are a key or a whole row. Times are microseconds since 2000-01-01 UTC.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from penstock.lsn import Lsn

POSTGRES_EPOCH_US = 946_684_800_000_000  # 2000-01-01 in microseconds since 1970-01-01


class Missing(Enum):
    """Stand for a column without a value of its own in the message."""

    NULL = "n"
    UNCHANGED = "u"  # TOASTed and not touched by the update: unknown here, not NULL


@dataclass(frozen=True, slots=True)
class Text:
    """Hold a value in the text form of its type."""

    value: str


@dataclass(frozen=True, slots=True)
class Binary:
    """Hold a value as its type's send function made it."""

    value: bytes


KnownCell = Text | Binary | Literal[Missing.NULL]
Cell = KnownCell | Literal[Missing.UNCHANGED]


@dataclass(frozen=True, slots=True)
class OldKey:
    """Hold the replica identity of the old row; the cells of all other columns are NULL and mean nothing."""

    cells: tuple[KnownCell, ...]


@dataclass(frozen=True, slots=True)
class OldRow:
    """Hold the whole old row (REPLICA IDENTITY FULL)."""

    cells: tuple[KnownCell, ...]


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """Describe one published column; `key` says that it is part of the replica identity.

    `base` is the name of its type, or of what a domain is made of, where a TYPE message says it: of types that are not built in.
    """

    name: str
    type_oid: int
    typmod: int
    key: bool
    base: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """Describe a table as of this place in the stream; `replica_identity` is one of d, n, f, i."""

    oid: int
    namespace: str
    name: str
    replica_identity: str
    columns: tuple[RelationColumn, ...]

    def __str__(self) -> str:
        return f'"{self.namespace}"."{self.name}"'


@dataclass(frozen=True, slots=True)
class Type:
    """Name a type that is not built in; a domain comes with the name of its base type."""

    oid: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Open a transaction; `final_lsn` is its place in commit order."""

    final_lsn: Lsn
    commit_time: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Close a transaction; `commit_lsn` is the final LSN that BEGIN announced."""

    commit_lsn: Lsn
    end_lsn: Lsn
    commit_time: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Name the replication origin of the transaction just opened."""

    commit_lsn: Lsn
    name: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Add a row."""

    relation: Relation
    new: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """Change a row; without `old` the key is the one in `new`."""

    relation: Relation
    old: OldKey | OldRow | None
    new: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a row."""

    relation: Relation
    old: OldKey | OldRow


@dataclass(frozen=True, slots=True)
class Truncate:
    """Empty tables."""

    relations: tuple[Relation, ...]
    cascade: bool
    restart_identity: bool


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """Carry what a session gave to `pg_logical_emit_message`."""

    transactional: bool
    lsn: Lsn
    prefix: str
    content: bytes


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Open a block of changes of a transaction that has not ended yet."""

    xid: int
    first_segment: bool


@dataclass(frozen=True, slots=True)
class StreamStop:
    """Close a block."""


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """Commit a streamed transaction."""

    xid: int
    commit_lsn: Lsn
    end_lsn: Lsn
    commit_time: int


@dataclass(frozen=True, slots=True)
class StreamAbort:
    """Roll back a streamed transaction or one of its subtransactions; place and time come with parallel streaming only."""

    xid: int
    subxid: int
    abort_lsn: Lsn | None = None
    abort_time: int | None = None


@dataclass(frozen=True, slots=True)
class _Prepared:
    prepare_lsn: Lsn
    end_lsn: Lsn
    prepare_time: int
    xid: int
    gid: str


class BeginPrepare(_Prepared):
    """Open a transaction that is being prepared."""


class Prepare(_Prepared):
    """Close a transaction that is now prepared."""


@dataclass(frozen=True, slots=True)
class CommitPrepared:
    """Commit a prepared transaction."""

    commit_lsn: Lsn
    end_lsn: Lsn
    commit_time: int
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class RollbackPrepared:
    """Roll back a prepared transaction."""

    prepare_end_lsn: Lsn
    rollback_end_lsn: Lsn
    prepare_time: int
    rollback_time: int
    xid: int
    gid: str


class StreamPrepare(_Prepared):
    """Prepare a streamed transaction."""


Change = Insert | Update | Delete | Truncate
InTransaction = Relation | Type | Change | LogicalMessage
PlainMessage = (
    InTransaction
    | Begin
    | Commit
    | Origin
    | StreamStart
    | StreamStop
    | StreamCommit
    | StreamAbort
    | BeginPrepare
    | Prepare
    | CommitPrepared
    | RollbackPrepared
    | StreamPrepare
)


@dataclass(frozen=True, slots=True)
class Streamed:
    """Hold a message of a stream block with the (sub)transaction it belongs to."""

    xid: int
    message: InTransaction


Message = PlainMessage | Streamed
