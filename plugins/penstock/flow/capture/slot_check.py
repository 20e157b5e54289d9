"""Decide, from what the ledger and the source say, whether capture may continue.

The ledger is the truth, the slot is a hint: a slot that is behind is advanced once its windows are proved, a slot that
is ahead means that another session consumed changes we never had. All but the reading is pure, so that each verdict can be tested by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import SourceError
from penstock.ledger.records import ActivePipeline, WindowRecord
from penstock.lsn import Lsn
from penstock.source import publication, server_info, slot
from penstock.source.publication import PublicationFacts
from penstock.source.server_info import ServerFacts
from penstock.source.session import SourceSession
from penstock.source.slot import SlotFacts


class HistoryError(SourceError):
    """The source does not have the history that was read, or cannot be proved to have it."""

    @classmethod
    def of(cls, expected: str, came: str) -> HistoryError:
        """Say what was expected and what came; nothing but a new copy answers it."""
        return cls(
            "source-changed",
            f"expected {expected}, got: {came}; the server was taken back to an earlier state and has another history since: "
            "copy the tables again",
        )


@dataclass(frozen=True, slots=True)
class SourceState:
    """Hold what the source says now of the server, the slot and the publication; None where a thing does not exist."""

    server: ServerFacts
    slot: SlotFacts | None
    publication_oid: int | None
    flushed: Lsn

    @property
    def confirmed(self) -> Lsn | None:
        """Return where the slot stands."""
        return self.slot.confirmed if self.slot else None

    @property
    def restart(self) -> Lsn | None:
        """Return from where on the slot keeps WAL."""
        return self.slot.restart if self.slot else None


def read_state(conn: SourceSession, known: ActivePipeline) -> SourceState:
    """Read from the source what the verdict needs; raises SourceError."""
    return read_rest(conn, known, publication.read_publication(conn, known.publication), server_info.flushed(conn))


def read_rest(
    conn: SourceSession, known: ActivePipeline, published: PublicationFacts | None, flushed: Lsn
) -> SourceState:
    """Read what the verdict needs besides the publication and the end of the WAL, which were read a moment ago."""
    found = server_info.read_server(conn), slot.read_slot(conn, known.slot)
    return SourceState(*found, published.oid if published else None, flushed)


def is_behind(known: ActivePipeline, found: SourceState) -> bool:
    """Return whether the slot must first be advanced to where the ledger is; raise SourceError to halt."""
    _same_server(known, found)
    same_publication(known, found.publication_oid)
    return _place(known, found, _usable_slot(known, found.slot)) < known.position


def provable(known: ActivePipeline, found: SourceState) -> None:
    """Raise HistoryError where the source's history is unproved and cannot be proved: no window is left to read again.

    A slot that was moved over the unproved WAL proves nothing, nor does WAL that has grown past the ledger since.
    """
    if known.unproved_from is None or found.confirmed is None:
        return
    if known.unproved_from < found.confirmed or found.confirmed == known.position:
        raise HistoryError.of(
            f"slot {known.slot} to be behind {known.position}, and at {known.unproved_from} at most, so that the WAL since there can be "
            "read again: another history was found at the source before",
            f"{found.confirmed}",
        )


def to_prove(known: ActivePipeline, start: Lsn, windows: Sequence[WindowRecord]) -> list[WindowRecord]:
    """Return the staged windows between a slot that is behind and the ledger; raise SourceError unless they lead from one to the other."""
    staged = [window for window in windows if window.state != "planned" and window.upto_lsn <= known.position]
    ends = [start, *(window.upto_lsn for window in staged)]
    whole = [window.from_lsn for window in staged] == ends[:-1] and ends[-1] == known.position
    if not whole or any(window.digest is None for window in staged):
        held = f"from {staged[0].from_lsn}" if staged else "none"
        raise HistoryError.of(
            f"slot {known.slot} to be at the end of a window from which all others to {known.position} can be read again",
            f"{start}; of the windows since, the ledger has {held}"
            + (", some of them without a digest" if whole else ""),
        )
    return staged


def same_window(window: WindowRecord, digest: str) -> None:
    """Raise SourceError("source-changed") unless a window that was read again is the one that was staged."""
    if digest != window.digest:
        raise HistoryError.of(
            f"the WAL from {window.from_lsn} to {window.upto_lsn} to be the one that was staged at {window.staged_at:%F %T} UTC",
            "other changes there",
        )


def judge_again(known: ActivePipeline, before: SourceState, now: SourceState) -> None:
    """Raise SourceError unless the source stands after a peek as it did before: then the window is whole.

    A slot never moves back by itself, and a new one begins beyond the ledger. So one that stands where it stood was not
    moved while it was read. `restart` may grow by the peek itself; where it shrank, the slot was replaced by an older one.
    """
    behind = is_behind(known, now)
    if behind or (before.restart is not None and now.restart is not None and now.restart < before.restart):
        raise SourceError(
            "slot-in-use",
            f"expected slot {known.slot} to stay at {known.position} while a window was read, but it was set back (confirmed "
            f"{now.confirmed}, restart {before.restart} before and {now.restart} after): another session has replaced it; "
            "nothing was staged, the next run reads the window again",
        )


def same_publication(known: ActivePipeline, oid: int | None) -> None:
    """Raise SourceError("publication-missing") unless the publication is the one that the ledger knows.

    Checked before and after a peek: then it existed all along, and no change of the window was left out. (PostgreSQL
    18 only warns about a publication that is missing at a place of the WAL, and leaves the changes out.)
    """
    if oid == known.publication_oid:
        return
    state = "it does not exist" if oid is None else "another one of this name was made since"
    raise SourceError(
        "publication-missing",
        f"expected publication {known.publication} as the pipeline knew it, but {state}; "
        "changes may be missing from the stream: copy the tables again",
    )


def _same_server(known: ActivePipeline, found: SourceState) -> None:
    facts = (
        ("system identifier", known.system_identifier, found.server.system_identifier),
        ("timeline", known.timeline, found.server.timeline),
        ("database", known.database, found.server.database),
    )
    for what, wanted, now in facts:
        if wanted != now:
            raise SourceError(
                "source-changed",
                f"expected {what} {wanted} behind the source's connection, got {now} instead; "
                "if the server was restored or failed over, the slot's position means nothing here: copy again",
            )


def _usable_slot(known: ActivePipeline, found: SlotFacts | None) -> Lsn:
    """Return where a slot stands that can be read."""
    if found is None:
        raise SourceError(
            "slot-missing",
            f"expected slot {known.slot} at {known.position}, but the server has no such slot; "
            "changes since then are lost to the stream: recover by copying the tables again",
        )
    if found.wal_status == "lost" or found.invalidation or found.confirmed is None:
        raise SourceError(
            "slot-lost",
            f"slot {known.slot} was invalidated ({found.invalidation or found.wal_status}) after "
            f"{known.position}; it cannot be read again: recover by copying the tables again",
        )
    if found.plugin != "pgoutput" or found.two_phase or found.temporary or found.database != known.database:
        raise SourceError(
            "slot-unusable",
            f"expected slot {known.slot} to be a permanent pgoutput slot of database {known.database} without "
            f"two_phase, got plugin {found.plugin}, database {found.database}, two_phase {found.two_phase}",
        )
    return found.confirmed


def _place(known: ActivePipeline, found: SourceState, confirmed: Lsn) -> Lsn:
    """Return where the slot stands, at the ledger's position at most, which the source has reached."""
    if found.flushed < known.position:
        # a standby may replay from an earlier place when it starts again, and then it has the same history
        refused = SourceError if found.server.in_recovery else HistoryError
        raise refused(
            "source-changed",
            f"the source has written WAL only up to {found.flushed}, but {known.position} is already staged; "
            "the server lost commits or was restored: copy the tables again",
        )
    if confirmed > known.position:
        raise SourceError(
            "slot-ahead",
            f"expected slot {known.slot} at {known.position}, got {confirmed}; another session consumed the "
            f"{confirmed - known.position} bytes of WAL between: recover by copying the tables again",
        )
    return confirmed
