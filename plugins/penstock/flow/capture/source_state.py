"""See how slot and source stand to the ledger: what `slot_verdict` needs to know, read from the source now."""

from __future__ import annotations

from penstock.flow.capture.slot_verdict import SourceState
from penstock.flow.expected_state import ExpectedState
from penstock.lsn import Lsn
from penstock.source import publication, server_info, slot
from penstock.source.publication import PublicationFacts
from penstock.source.session import SourceSession


def found(conn: SourceSession, known: ExpectedState) -> SourceState:
    """Read from the source what the verdict needs; raises SourceError."""
    return with_readings(conn, known, publication.read(conn, known.publication), server_info.flushed(conn))


def with_readings(
    conn: SourceSession, known: ExpectedState, published: PublicationFacts | None, flushed: Lsn
) -> SourceState:
    """Read what the verdict needs besides the publication and the end of the WAL, which were read a moment ago."""
    server, state = server_info.read(conn), slot.read(conn, known.slot)
    return SourceState(
        system_identifier=server.system_identifier,
        timeline=server.timeline,
        database=server.database,
        publication_oid=published.oid if published else None,
        slot_exists=state is not None,
        plugin=state.plugin if state else None,
        slot_database=state.database if state else None,
        two_phase=bool(state and state.two_phase),
        temporary=bool(state and state.temporary),
        wal_status=state.wal_status if state else None,
        invalidation=state.invalidation if state else None,
        restart=state.restart if state else None,
        confirmed=state.confirmed if state else None,
        flushed=flushed,
        standby=server.in_recovery,
    )
