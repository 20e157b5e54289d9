"""See how slot and source stand to the ledger: what `judge` needs to know, read from the source now."""

from __future__ import annotations

from penstock.flow.capture.slot_verdict import ExpectedState, SourceState
from penstock.source import catalog, server_info, slot
from penstock.source.session import SourceSession


def found(conn: SourceSession, known: ExpectedState) -> SourceState:
    """Read from the source what the verdict needs; raises SourceError."""
    server, state = server_info.read(conn), slot.read(conn, known.slot)
    return SourceState(
        system_identifier=server.system_identifier,
        timeline=server.timeline,
        database=server.database,
        publication_oid=catalog.publication_oid(conn, known.publication),
        slot_exists=state is not None,
        plugin=state.plugin if state else None,
        slot_database=state.database if state else None,
        two_phase=bool(state and state.two_phase),
        temporary=bool(state and state.temporary),
        wal_status=state.wal_status if state else None,
        invalidation=state.invalidation if state else None,
        restart=state.restart if state else None,
        confirmed=state.confirmed if state else None,
        flushed=server_info.position(conn).flushed,
        standby=server.in_recovery,
    )
