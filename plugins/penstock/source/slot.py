"""The replication slot: made with an exported snapshot, watched, confirmed and dropped.

A slot is made over a replication connection, because only there the server exports the snapshot of the slot's
first position. That snapshot lives until its connection ends or takes another command. For later copies an
ordinary transaction exports one. Source: PostgreSQL documentation, "Streaming Replication Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_hex
from threading import Timer
from typing import TYPE_CHECKING

from psycopg import sql

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source import server_info
from penstock.source.server_errors import translating
from penstock.source.session import BEGIN, SourceSession, composed, connect, pinning, taking

if TYPE_CHECKING:
    from penstock.source.arrow import ArrowSession

_NO_LIMITS = {"statement_timeout": "0", "lock_timeout": "0"}
_CANCEL_SECONDS = 10


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """Hold what the server shows of one slot; columns that a version does not have are None or False.

    `retained` and `unread` are bytes of WAL up to the flushed position: what the slot keeps, and what it has not
    confirmed. `invalidation` names why a slot can never be read again. `spill_bytes` and `total_bytes` are what decoding has
    cost since its statistics began, None where there are none.
    """

    name: str
    plugin: str | None
    slot_type: str
    database: str | None
    temporary: bool
    active: bool
    active_pid: int | None
    catalog_xmin_age: int | None
    restart: Lsn | None
    confirmed: Lsn | None
    wal_status: str | None
    safe_wal_size: int | None
    two_phase: bool
    invalidation: str | None
    inactive_since: datetime | None
    synced: bool
    retained: int | None
    unread: int | None
    spill_bytes: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """Hold an exported snapshot while its connection stays open.

    `snapshot` is the text of pg_current_snapshot() inside it. `lsn` is the slot's consistent point, or for a
    snapshot without a slot a position at or after the commit of every transaction that it sees.
    """

    lsn: Lsn
    snapshot_name: str
    snapshot: str
    conn: SourceSession = field(repr=False)


@contextmanager
def create_exporting(source: Connection, slot: str, *, timeout: int) -> Iterator[Exported]:
    """Create a permanent pgoutput slot and hold the snapshot of its first position.

    Raises SourceError: "slot-creation-blocked" (after `timeout` seconds, naming who blocks; no slot is left),
    "slot-exists", "no-free-slot". The slot stays when the block inside fails.
    """
    with closing(SourceSession.open(source, "penstock:bootstrap", replication="database")) as conn:
        conn.run(pinning(_NO_LIMITS))
        lsn, name = _create(conn, slot, timeout)
        try:
            snapshot = _text_of(source, name)
        except BaseException:
            with connect(source, what="bootstrap") as dropping:
                drop(dropping, slot)
            raise
        yield Exported(lsn, name, snapshot, conn)


@contextmanager
def exact_snapshot(source: Connection, slot: str, *, timeout: int, what: str) -> Iterator[Exported]:
    """Hold a snapshot of exactly the transactions committed before its `lsn`; its temporary slot is dropped at once.

    It lives on in an ordinary transaction. Raises SourceError as `create_exporting` does.
    """
    with closing(connect(source, what=what, statement_timeout=0)) as keeper:
        with closing(SourceSession.open(source, f"penstock:{what}", replication="database")) as conn:
            conn.run(pinning(_NO_LIMITS))
            lsn, name = _create(conn, slot, timeout, temporary=True)
            keeper.run(BEGIN)
            keeper.run(taking(name))
            kept, snapshot, _ = keeper.row("slot/export_snapshot")
            # the end of its session drops it as well, but some time later
            conn.run(sql.SQL("DROP_REPLICATION_SLOT {}").format(sql.Identifier(slot)))
        yield Exported(lsn, kept, snapshot, keeper)


@contextmanager
def export_snapshot(source: Connection, *, what: str = "copy") -> Iterator[Exported]:
    """Hold an exported snapshot of now, in an ordinary transaction; raises SourceError."""
    with closing(connect(source, what=what, statement_timeout=0)) as conn, conn.snapshot():
        name, snapshot, lsn = conn.row("slot/export_snapshot")
        yield Exported(lsn, name, snapshot, conn)


def read_slot(conn: SourceSession, slot: str) -> SlotFacts | None:
    """Return what the server shows of the slot, or None; raises SourceError."""
    found = conn.records(SlotFacts, "slot/slots", slot=slot)
    return found[0] if found else None


def all_slots(conn: SourceSession) -> list[SlotFacts]:
    """Return what the server shows of every slot of the cluster; raises SourceError."""
    return conn.records(SlotFacts, "slot/slots", slot=None)


def advance(session: SourceSession | ArrowSession, slot: str, lsn: Lsn) -> Lsn:
    """Confirm everything up to `lsn` and return the position that the server says the slot has then.

    Twice: one call frees only the WAL up to the first restart point that it meets. Raises SourceError.
    """
    statement = composed("slot/advance", slot=sql.Literal(slot), lsn=sql.Literal(str(lsn)))
    for _ in range(2):
        ((confirmed,),) = session.ask(statement)
    return Lsn.parse(confirmed)


@contextmanager
def copied(session: SourceSession | ArrowSession, slot: str) -> Iterator[str]:
    """Lend a temporary copy of a slot, which stands where the slot does; an error ends it, as the session's end. Raises SourceError."""
    copy = f"penstock_copy_{token_hex(8)}"
    session.ask(composed("slot/copy_slot", slot=sql.Literal(slot), copy=sql.Literal(copy)))
    yield copy
    drop(session, copy)


def drop(session: SourceSession | ArrowSession, slot: str) -> None:
    """Drop a slot; raises SourceError("slot-in-use" | "slot-missing")."""
    session.ask(composed("slot/drop_slot", slot=sql.Literal(slot)))


def drop_statement(slot: str) -> str:
    """Return the statement that `drop` runs."""
    return sql.SQL("select pg_drop_replication_slot({})").format(sql.Literal(slot)).as_string(None)


def _create(conn: SourceSession, slot: str, timeout: int, temporary: bool = False) -> tuple[Lsn, str]:
    # The server's own timeouts do not apply to commands of the replication protocol, nor does it notice there that
    # its client has gone: so we keep the time, and cancel on every way out but success.
    alarm = Timer(timeout, conn.cancel_safe, kwargs={"timeout": _CANCEL_SECONDS})
    alarm.start()
    # a snapshot is exported where nothing else is said; 15 has other words to say it than 14
    made = sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL pgoutput").format(
        sql.Identifier(slot), sql.SQL("TEMPORARY" if temporary else "")
    )
    try:
        with translating(conn.place):
            row = conn.execute(made).fetchone()
    except SourceError as error:
        if error.slug == "source-timeout":  # cancelled
            raise _blocked(conn.source, slot, timeout) from None
        raise
    except BaseException:
        conn.cancel_safe(timeout=_CANCEL_SECONDS)
        raise
    finally:
        alarm.cancel()
        alarm.join()
    _, consistent_point, name, _ = row or ("", "", "", "")
    return Lsn.parse(consistent_point), name


def _blocked(source: Connection, slot: str, timeout: int) -> SourceError:
    with connect(source, what="blockers") as conn:
        found = "; ".join(each.describe() for each in server_info.open_now(conn))
        on_standby = server_info.read_server(conn).in_recovery
    hint = "run pg_log_standby_snapshot() on the primary" if on_standby else "end them or wait"
    return SourceError(
        "slot-creation-blocked",
        f"expected every open transaction that has written to end within {timeout} s, so that slot {slot} could be "
        f"made at {source.address}, but these were open: {found or 'none any more'}; no slot was left behind: "
        f"{hint}, then run again",
    )


def _text_of(source: Connection, snapshot_name: str) -> str:
    with closing(connect(source, what="bootstrap")) as conn, conn.snapshot(snapshot_name):
        (text,) = conn.row("slot/snapshot")
    return str(text)
