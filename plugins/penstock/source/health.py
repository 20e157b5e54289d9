"""What the source shows of the health of its slots: a few bounded reads of its views, never a peek.

A role sees what it may: what is hidden from it is listed in `unseen`, with the grant that would show it. The one
thing that changes the source here is `drop_unmoved`, which drops the very slot that was judged or nothing.
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from penstock.lsn import Lsn
from penstock.source import ddl_trigger, refusals, server_info, slot
from penstock.source.ddl_trigger import DdlTrigger
from penstock.source.refusals import Refusal
from penstock.source.server_info import OpenTransaction, ServerFacts
from penstock.source.session import SourceSession
from penstock.source.slot import SlotFacts

_TRANSACTIONS = 20
_ACTIVITY = "since when other roles' transactions are open (grant pg_monitor or pg_read_all_stats)"
_WAL_DIRECTORY = "the size of the WAL directory (grant pg_monitor)"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Hold what else bears on the slots; `at` is the server's clock."""

    at: datetime
    slots_taken: int
    senders_taken: int
    standby_feedback: bool
    primary_slot_name: str | None


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """Hold all that one health check saw of the source; `flushed` is the end of its WAL.

    `ddl_trigger` is None where it was not asked for. `refused` are the relations of which the application's updates or
    deletes fail because the publication publishes them.
    """

    server: ServerFacts
    around: Surroundings
    flushed: Lsn
    slots: tuple[SlotFacts, ...]
    transactions: tuple[OpenTransaction, ...]
    wal_directory: int | None
    unseen: tuple[str, ...]
    ddl_trigger: DdlTrigger | None = None
    refused: tuple[Refusal, ...] = ()


def read_health(conn: SourceSession, *, publication: str, trigger: bool = False) -> SourceHealth:
    """Read the source's views once, with the event trigger if it is asked for; raises SourceError."""
    others_activity, wal_directory = conn.row("health/health_rights")
    return SourceHealth(
        server=server_info.read_server(conn),
        around=conn.record(Surroundings, "health/surroundings"),
        flushed=server_info.flushed(conn),
        slots=tuple(slot.all_slots(conn)),
        transactions=tuple(server_info.open_now(conn, limit=_TRANSACTIONS)),
        wal_directory=conn.row("health/wal_directory")[0] if wal_directory else None,
        unseen=(*([] if others_activity else [_ACTIVITY]), *([] if wal_directory else [_WAL_DIRECTORY])),
        ddl_trigger=ddl_trigger.read_trigger(conn) if trigger else None,
        refused=tuple(refusals.read_refusals(conn, publication)),
    )


def drop_unmoved(conn: SourceSession, judged: SlotFacts) -> bool:
    """Drop a slot if it is still as it was judged: not active, at the same position; return whether it was dropped.

    Raises SourceError("slot-in-use") when another session took it in that very moment.
    """
    return bool(conn.rows("health/drop_unmoved_slot", **asdict(judged)))
