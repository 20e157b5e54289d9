"""Verifications: what comparisons of source and lake found, table by table or share by share.

A rolling sample cuts the keys of a table into shares and looks at another one each time. A table is verified through
the position at which all of its rows were seen to be equal: for shares, that of the share that was looked at first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb

from penstock.ledger.records import Row
from penstock.ledger.session import Part
from penstock.lsn import Lsn

Mode = Literal["whole", "sample"]
Outcome = Literal["equal", "differs", "skipped", "unreadable"]


@dataclass(frozen=True)
class KeyShare(Row):
    """Hold one share of a table's keys: `lower <= key_column < upper`, None for an open end.

    `wanted` is the number of shares that was asked for; a table with few different keys gets fewer. `verified_lsn` is
    None until this round has come to it.
    """

    oid: int
    share: int
    shares: int
    wanted: int
    key_column: str
    key_type: str
    indexed: bool
    lower: str | None = field(repr=False)
    upper: str | None = field(repr=False)
    verified_lsn: Lsn | None
    verified_at: datetime | None
    differs: bool


@dataclass(frozen=True)
class VerifiedTable(Row):
    """Say how far a table is verified, and what the newest comparison came to.

    `differs` is true until a later comparison has seen that table or share to be equal. The counts, and what is
    named differing, are of the newest comparison that found a difference. Conflicts and misfits are counted since the
    table's copy; `conflict_lsn` is the newest cut with a conflict.
    """

    oid: int
    schema: str
    name: str
    verified_through: Lsn | None
    verified_at: datetime | None
    differs: bool
    compared_lsn: Lsn | None
    compared_at: datetime | None
    outcome: Outcome | None
    reason: str | None
    verification: int | None
    differing_lsn: Lsn | None
    differing_at: datetime | None
    missing: int
    extra: int
    different: int
    conflicts: dict[str, int]
    suspected: bool
    misfits: int
    conflict_lsn: Lsn | None


class Verifications(Part):
    """Record verifications and the shares of a rolling sample."""

    def begin(self, name: str, *, mode: Mode, lsn: Lsn) -> int:
        """Note that tables are compared at this position; return the verification's number."""
        ((number,),) = self.rows("verifications/begin_verification", name=name, mode=mode, lsn=lsn)
        return int(number)

    def add_finding(self, name: str, number: int, found: Mapping[str, Any]) -> None:
        """Record what was found of one table or share (`TableComparison.recorded`), and how far the table is verified now."""
        values = {**found, "number": number, "details": Jsonb(found["details"])}
        with self.transaction(lock=name) as transaction:
            transaction.change("verifications/add_verified", **values)
            if found["outcome"] in ("skipped", "unreadable"):
                return
            chosen = {"number": number, "oid": found["oid"], "equal": found["outcome"] == "equal"}
            if found["shares"] > 1:
                transaction.change("verifications/verify_share", share=found["share"], **chosen)
                transaction.change("verifications/verify_round", number=number, oid=found["oid"])
            else:
                transaction.change("verifications/verify_table", **chosen)

    def finish(self, number: int) -> None:
        """Note that every table was looked at."""
        self.change("verifications/finish_verification", number=number)

    def tables(self, name: str) -> list[VerifiedTable]:
        """Return how far every table is verified, by name."""
        return self.records(VerifiedTable, "verifications/verified_tables", name=name)

    def key_shares(self, name: str) -> dict[int, list[KeyShare]]:
        """Return the shares of every table that has any, by oid and in order."""
        found: dict[int, list[KeyShare]] = {}
        for share in self.records(KeyShare, "verifications/key_shares", name=name):
            found.setdefault(share.oid, []).append(share)
        return found

    def cut_shares(
        self, name: str, oid: int, *, wanted: int, column: str, type: str, indexed: bool, bounds: Sequence[str]
    ) -> None:
        """Cut a table's keys into shares at these bounds, and begin a round; a difference found before stays known."""
        shares = {"wanted": wanted, "column": column, "type": type, "indexed": indexed, "bounds": bounds}
        with self.transaction(lock=name) as transaction:
            transaction.change("verifications/forget_shares", name=name, oid=oid)
            transaction.change("verifications/add_shares", name=name, oid=oid, **shares)

    def begin_round(self, name: str, oid: int) -> None:
        """Begin the next round with the shares as they are."""
        self.change("verifications/begin_round", name=name, oid=oid)

    def trim(self, name: str, *, before: datetime) -> None:
        """Forget comparisons from before that time; how far tables are verified stays."""
        self.change("verifications/trim_verifications", name=name, before=before)
