"""What the ledger expects of slot and source: where they must stand for capture to continue."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import LedgerError
from penstock.ledger.records import PipelineRecord
from penstock.lsn import Lsn


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """Hold what the ledger knows of a pipeline that has a slot."""

    system_identifier: int
    timeline: int
    database: str
    slot: str
    publication: str
    publication_oid: int
    consistent_point: Lsn
    position: Lsn
    unproved_from: Lsn | None = None
    """Where the source was found with another history, until it is proved to have the one that was read."""

    @classmethod
    def of(cls, record: PipelineRecord) -> ExpectedState:
        """Read a ledger row; raises LedgerError("not-bootstrapped") where there is no slot yet."""
        facts = (
            record.system_identifier,
            record.timeline,
            record.publication_oid,
            record.consistent_point,
            record.position,
        )
        system_identifier, timeline, publication_oid, consistent_point, position = facts
        if (
            system_identifier is None
            or timeline is None
            or publication_oid is None
            or consistent_point is None
            or position is None
        ):
            raise LedgerError(
                "not-bootstrapped", f"pipeline {record.name} has no slot yet: run bootstrap, or end its recovery"
            )
        return cls(
            system_identifier,
            timeline,
            record.database,
            record.slot,
            record.publication,
            publication_oid,
            consistent_point,
            position,
            record.unproved_from,
        )
