"""What the server says of itself: who it is, how far its WAL is written, the limits that concern us, who has a transaction open."""

from dataclasses import dataclass
from datetime import datetime

from penstock.lsn import Lsn
from penstock.source.session import SourceSession


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Hold what identifies a server, and its settings that matter to a pipeline.

    Sizes are in bytes with None for unlimited; `idle_slot_timeout` is in seconds with 0 for none (18+).
    `output_plugins` is None where the server has no such list, or does not show it to this role.
    """

    version_num: int
    version: str
    system_identifier: int
    timeline: int
    database: str
    in_recovery: bool
    wal_level: str
    encoding: str
    max_replication_slots: int
    max_wal_senders: int
    max_slot_wal_keep_size: int | None
    temp_file_limit: int | None
    idle_slot_timeout: int
    output_plugins: str | None

    @property
    def major(self) -> int:
        """Return the major version, 16 for 16.14."""
        return self.version_num // 10_000


@dataclass(frozen=True, slots=True)
class Position:
    """Hold where the WAL ends, when that was asked, and two 64-bit bounds of transaction ids.

    Every transaction before `flushed` has an id below `xid_horizon`; every one below `oldest_xid` has ended.

    What committed before `seen` lies before `flushed`, the moment excepted between a commit's time and its record in
    the WAL. A standby that has replayed no commit does not know (None).
    """

    flushed: Lsn
    time: datetime
    xid_horizon: int
    seen: datetime | None
    oldest_xid: int


@dataclass(frozen=True, slots=True)
class Sight:
    """Hold a moment: the WAL's position, and a bound of all 64-bit transaction ids given out before; None on a standby."""

    lsn: Lsn
    xid: int | None


def why_undone(conn: SourceSession, xid: int) -> str | None:
    """Say why a transaction of a 64-bit id cannot have been committed, None where it was, or may have been; raises SourceError."""
    why: str | None = conn.row("server_info/undone", xid=xid)[0]
    return why


def sight(conn: SourceSession) -> Sight:
    """Mark this moment, which takes a transaction id; raises SourceError."""
    return conn.record(Sight, "server_info/sight")


def read_server(conn: SourceSession) -> ServerFacts:
    """Ask the server who it is; raises SourceError."""
    return conn.record(ServerFacts, "server_info/server")


def flushed(conn: SourceSession) -> Lsn:
    """Ask how far the WAL is flushed (a standby: replayed); raises SourceError."""
    end, *_ = conn.row("server_info/flushed")
    return Lsn(end)


def inserted(conn: SourceSession) -> Lsn:
    """Ask where the WAL ends, flushed or not (a standby: replayed); raises SourceError.

    What a look at the catalog before has seen lies below it, also a command that was committed asynchronously.
    """
    (end,) = conn.row("server_info/inserted")
    return Lsn(end)


def position(conn: SourceSession) -> Position:
    """Ask how far the WAL is flushed (a standby: replayed); raises SourceError.

    The horizon is read in a later statement, so that it bounds the xid of every transaction below `flushed`.
    """
    end, time, seen = conn.row("server_info/flushed")
    horizon, oldest = conn.row("server_info/horizon")
    return Position(end, time, horizon, seen, oldest)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Name one transaction that has written; `prepared` is its name if it is a prepared one.

    `xids` counts the transactions since it began. `age_seconds` is None where the role may not see when that was.
    """

    pid: int | None
    user: str | None
    database: str | None
    application: str | None
    age_seconds: float | None
    prepared: str | None
    xids: int

    @property
    def subject(self) -> str:
        """Name it in an alarm."""
        return f"prepared {self.prepared}" if self.prepared else f"process {self.pid}"

    def describe(self) -> str:
        """Say who it is and since when, for a person who has to end it."""
        return self.name() + ("" if self.age_seconds is None else f", open for {self.age_seconds:.0f} s")

    def name(self) -> str:
        """Say who it is."""
        if not (self.pid or self.prepared):
            return "one that has just ended"
        who = f"process {self.pid} ({self.application or 'no name'})" if self.pid else f'prepared "{self.prepared}"'
        return f'{who} of role "{self.user}" in database "{self.database}"'


def open_now(conn: SourceSession, *, limit: int | None = None) -> list[OpenTransaction]:
    """List the transactions that have written, in any database, the oldest first; a slot's creation waits for each.

    Raises SourceError.
    """
    return conn.records(OpenTransaction, "server_info/open_now", limit=limit)


def open_before(conn: SourceSession, xid: int) -> list[OpenTransaction]:
    """List the transactions with ids below `xid` that may have written to this database and are open; raises SourceError."""
    return conn.records(OpenTransaction, "server_info/open_before", bound=xid)
