"""Fetches of columns or of partitions' rows: begun before anything is read, and landed together with what the table is from then on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from penstock.contract.manifest import FileEntry
from penstock.ledger.pipelines import lock_active
from penstock.ledger.records import SchemaChange
from penstock.ledger.session import Part, Transaction
from penstock.ledger.table_records import FetchRecord
from penstock.ledger.tables import note_schema_changes, resume, save
from penstock.lsn import Lsn
from penstock.shapes.table_facts import TableFacts


@dataclass(frozen=True)
class NewFetch:
    """Order the fetch of one table's columns, by attnum, or of its `leaves`' rows; `whole` and `stays` are as in `FetchRecord`."""

    oid: int
    attnums: Collection[int]
    whole: bool
    stays: Sequence[Sequence[Sequence[Any]]] | None = None
    leaves: Sequence[str] = ()


@dataclass(frozen=True)
class LandedFetch:
    """Say what a fetch has brought, what the table is with it, and what of that belongs into the history of its shapes."""

    facts: TableFacts
    files: Sequence[FileEntry]
    changes: Sequence[SchemaChange]


class Fetches(Part):
    """Record fetches."""

    def all(self, name: str, *, after: Lsn | None = None) -> list[FetchRecord]:
        """Return the fetches, those after a position if one is given, in the order of their positions."""
        with self.transaction() as transaction:
            return fetches(transaction, name, after=after)

    def start(self, name: str, id: str, lsn: Lsn, orders: Sequence[NewFetch]) -> None:
        """Note that columns or rows of these tables are read as of a position; what an earlier run left unfinished is forgotten.

        Raises LedgerError("pipeline-halted" | "not-bootstrapped").
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            transaction.change("fetches/forget_unlanded_fetches", name=name, oids=[each.oid for each in orders])
            for each in orders:
                chosen = {"id": id, "lsn": lsn, "oid": each.oid, "attnums": list(each.attnums), "whole": each.whole}
                stays = None if each.stays is None else Jsonb(each.stays)
                transaction.change("fetches/start_fetch", name=name, stays=stays, leaves=list(each.leaves), **chosen)

    def land(self, name: str, id: str, landed: LandedFetch, *, seen: Lsn) -> bool:
        """Take in what was fetched and what the table is from now on, and resume it, in one step; say whether that was done.

        It is not where the table does not wait for this fetch any more, or where capture has come further than `seen`,
        through which the table is known to be as the fetch had it. Raises LedgerError("pipeline-halted").
        """
        facts = landed.facts
        totals = {"rows": sum(file.rows for file in landed.files), "bytes": sum(file.bytes for file in landed.files)}
        files = Jsonb([file.to_json() for file in landed.files])
        with self.transaction() as transaction:
            known = lock_active(transaction, name)
            if known.position is None or known.position > seen:
                return False
            if not transaction.change("fetches/land_fetch", name=name, id=id, oid=facts.oid, files=files, **totals):
                return False
            save(transaction, name, [facts])
            resume(transaction, name, facts.oid)
            note_schema_changes(transaction, name, landed.changes)
            return True


def fetches(transaction: Transaction, name: str, *, after: Lsn | None = None) -> list[FetchRecord]:
    """Return the fetches, those after a position if one is given, in order, inside a transaction."""
    return transaction.records(FetchRecord, "fetches/fetches", name=name, after=after)
