"""A load's life: rows of a table are read under a snapshot, and come into the lake.

    first copy             copying -> ready -> done, when a cut has loaded it and given it the table's name
    columns, partitions    copying -> landed; a merge takes them in where they stand among the changes
    resync                 copying -> building -> ready -> done, when a cut has given it the table's name
    replay, shadow         building -> ready -> done: their files are those of an earlier load

What is built may be given up until it is done. Only the newest run of a build may advance it, and each step moves the fresh
table's pointer and the ledger's row together; the switch itself is part of a cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import errors as pg
from psycopg.types.json import Jsonb

from penstock.codec import plain
from penstock.config.connections import Connection
from penstock.contract.manifest import FileEntry
from penstock.errors import LedgerError
from penstock.jobs.pointers import Pointer
from penstock.ledger.iceberg_pointers import move_pointers
from penstock.ledger.pipelines import lock, lock_active
from penstock.ledger.records import SchemaChange
from penstock.ledger.session import Part, Statements, recordset
from penstock.ledger.shapes import keep_open
from penstock.ledger.table_records import LoadCause, LoadRecord, LoadState
from penstock.ledger.tables import give_up_loads, note_schema_changes, resume, save
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts

BUILDS: tuple[LoadCause, ...] = ("resync", "replay", "shadow")
COPIES: tuple[LoadCause, ...] = ("first", "resync")
FETCHES: tuple[LoadCause, ...] = ("columns", "partitions")
OPEN: tuple[LoadState, ...] = ("copying", "building", "ready")
"""The states of a build that is neither done nor given up."""


@dataclass(frozen=True)
class NewBuild:
    """Order a table to be built from the files of a copy: an earlier one's, or those that are about to be read."""

    id: str
    cause: LoadCause
    facts: TableFacts
    place: tuple[str, ...]
    copy_id: str | None = None
    goal_lsn: Lsn | None = None


@dataclass(frozen=True)
class NewRead:
    """Say which rows of a table are about to be read: all columns of them where `attnums` are not given.

    A resync has a `build`; its table looks as that says. A first copy is loaded into a table at `place`. `leaves` names the
    partitions of which rows are read; `whole` and `stays` are as in `LoadRecord`.
    """

    oid: int
    cause: LoadCause = "first"
    attnums: Sequence[int] | None = None
    whole: bool = False
    stays: Sequence[Sequence[Sequence[Any]]] | None = None
    leaves: Sequence[str] = ()
    build: NewBuild | None = None
    place: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BuildStep:
    """Say how far a run has brought a build, with how many rows more, what it met besides, and what it is from now on."""

    id: str
    through_lsn: Lsn
    snapshot_id: int
    rows: int
    state: LoadState
    update_missing: int = 0
    delete_missing: int = 0
    insert_existing: int = 0
    misfits: int = 0


class Loads(Part):
    """Record loads."""

    def builds(self, name: str, *, states: Sequence[LoadState] | None = OPEN) -> list[LoadRecord]:
        """Return what is built in these states, None for all, oldest first."""
        return loads(self, name, BUILDS, states=states)

    def copies(self, name: str, *, state: LoadState | None = None) -> list[LoadRecord]:
        """Return the copies of whole tables that the landing zone has, oldest first."""
        return loads(self, name, COPIES, states=None if state is None else [state], kept=True)

    def fetches(self, name: str) -> list[LoadRecord]:
        """Return what was fetched of tables, in the order of the positions."""
        return sorted(loads(self, name, FETCHES), key=lambda each: (each.lsn, each.oid))

    def copy_due(self, name: str, copied: LoadRecord) -> Lsn:
        """Return after which position a copy needs windows: the first may hold a change that it had not seen."""
        ((after,),) = self.rows("loads/copy_due", name=name, snapshot=copied.snapshot)
        return Lsn(after)

    def start_reads(
        self, name: str, *, copy_id: str, snapshot: str, lsn: Lsn, reads: Sequence[NewRead]
    ) -> list[LoadRecord]:
        """Note that rows of these tables are read under one snapshot; what an earlier run left unfinished of them is forgotten.

        A first copy may be of a pipeline that is not bootstrapped. Raises LedgerError("rebuild-open") when a table is being rebuilt in place
        already; "ledger-conflict" when a table is unknown or dropped, does not wait for a first copy, or its resync is not being
        copied any more; "pipeline-halted", "not-bootstrapped".
        """
        oids, first = [each.oid for each in reads], any(each.cause == "first" for each in reads)
        with self.transaction() as transaction:
            (lock if first else lock_active)(transaction, name)
            already = loads(transaction, name, BUILDS, states=OPEN)
            chosen = {"name": name, "copy_id": copy_id, "oids": oids}
            transaction.change("loads/forget_unlanded", first=first, **chosen)
            rows = [_row(each) for each in reads]
            given = {"reads": recordset(rows), "snapshot": snapshot, "lsn": lsn, "name": name, "copy_id": copy_id}
            try:
                started = transaction.change("loads/start_reads", **given)
            except pg.UniqueViolation:
                raise _clash([each.build for each in reads if each.build is not None], already) from None
            if started != len(reads):
                raise _conflict(name, "to be copying")
            keep_open(transaction, name, [each for each in rows if "id" in each])
            return loads(transaction, name, (*COPIES, *FETCHES), copy_id=copy_id)

    def start(self, name: str, orders: Sequence[NewBuild]) -> list[LoadRecord]:
        """Begin to build tables from copies that are there, all or none.

        Raises LedgerError("rebuild-open") when a table is being rebuilt in place already, or a place is being filled;
        "ledger-conflict" when a copy to begin with was forgotten meanwhile; "pipeline-halted", "not-bootstrapped".
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            already, rows = loads(transaction, name, BUILDS, states=OPEN), [_row(order) for order in orders]
            try:
                began = transaction.change("loads/start_loads", name=name, orders=recordset(rows))
            except pg.UniqueViolation:
                raise _clash(orders, already) from None
            if began != len(orders):
                names = ", ".join(f"copy {order.copy_id} of {order.facts.qualified}" for order in orders)
                raise LedgerError(
                    "ledger-conflict",
                    f"expected the files of {names}, but some were forgotten meanwhile; run it again, it begins with another copy",
                )
            keep_open(transaction, name, rows)
            wanted = {order.id for order in orders}
            return [each for each in loads(transaction, name, BUILDS, states=OPEN) if each.id in wanted]

    def finish_copy(self, name: str, *, copy_id: str, oid: int, files: Sequence[FileEntry]) -> LoadRecord:
        """Note that one table is copied; finishing a first copy again returns it.

        Raises LedgerError("ledger-conflict") when another copy of the table was started meanwhile.
        """
        chosen = {"name": name, "copy_id": copy_id, "oid": oid}
        with self.transaction(lock=name) as transaction:
            finished = transaction.change("loads/finish_copy", **_landed(files), **chosen)
            found = loads(transaction, name, COPIES, copy_id=copy_id, oid=oid, kept=True)
            if not found or not (finished or found[0].cause == "first"):
                raise LedgerError(
                    "ledger-conflict",
                    f"expected copy {copy_id} to be the newest of table {oid} of {name}, but another was started or "
                    "the table was dropped; this copy is of no use: leave it",
                )
            return found[0]

    def land(
        self,
        name: str,
        copy_id: str,
        facts: TableFacts,
        *,
        files: Sequence[FileEntry],
        changes: Sequence[SchemaChange],
        seen: Lsn,
    ) -> bool:
        """Take in what was fetched and what the table is from now on, and resume it, in one step; say whether that was done.

        The `changes` belong into the history of its shapes. It is not done where the table does not wait for this fetch any more, or
        where capture has come further than `seen`, through which the table is known to be as the fetch had it.
        Raises LedgerError("pipeline-halted").
        """
        with self.transaction() as transaction:
            known = lock_active(transaction, name)
            chosen = {"copy_id": copy_id, "oid": facts.oid, **_landed(files)}
            if known.position > seen or not transaction.change("loads/land_fetch", name=name, **chosen):
                return False
            save(transaction, name, [facts])
            resume(transaction, name, facts.oid)
            note_schema_changes(transaction, name, changes)
            return True

    def reshape(self, name: str, load_id: str, facts: TableFacts) -> None:
        """Take over columns that were added at the source meanwhile."""
        columns = recordset(facts.columns)
        with self.transaction(lock=name) as transaction:
            accepted = Jsonb(facts.accepted.to_json())
            transaction.change("loads/reshape_load", name=name, id=load_id, columns=columns, accepted=accepted)
            keep_open(transaction, name, [{**plain(facts), "id": load_id}])

    def run(self, name: str, *, ids: Sequence[str], run: str) -> None:
        """Note the run that may advance these builds from now on; raises LedgerError("ledger-conflict")."""
        with self.transaction() as transaction:
            lock_active(transaction, name)
            if transaction.change("loads/run_loads", name=name, ids=ids, run=run) != len(ids):
                raise _conflict(name, "to be building")

    def advance(
        self,
        name: str,
        *,
        run: str,
        catalog: Connection,
        catalog_name: str,
        pointers: Sequence[Pointer],
        steps: Sequence[BuildStep],
    ) -> None:
        """Move the fresh tables of a run and note how far they are, in one transaction.

        Where the catalog is another database, its transaction commits just before ours; asking again heals what a crash
        between them leaves. Raises LedgerError("ledger-conflict") for a run that was overtaken,
        LakeError("publish-conflict" | "catalog-unreachable").
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            if transaction.change("loads/advance_loads", name=name, run=run, steps=recordset(steps)) != len(steps):
                raise _conflict(name, "to be advanced by this run")
            if pointers:
                move_pointers(transaction, self.connection, catalog, catalog_name, pointers)

    def give_up(self, name: str, load: LoadRecord, *, reason: str) -> None:
        """End a build that cannot be finished, with an event for each new reason; its table stays as it is."""
        event = {"slug": "rebuild-given-up", "level": "error", "message": reason, "table_oid": load.oid}
        with self.transaction(lock=name) as transaction:
            if give_up_loads(transaction, name, reason, id=load.id):
                transaction.change("events/add_event_on_change", name=name, first=True, **event)


def loads(
    ledger: Statements,
    name: str,
    causes: Sequence[LoadCause],
    *,
    states: Sequence[LoadState] | None = None,
    copy_id: str | None = None,
    oid: int | None = None,
    kept: bool = False,
) -> list[LoadRecord]:
    """Return the loads that meet every condition, oldest first; those `kept` have their files in this era's landing zone."""
    conditions = {"states": states, "copy_id": copy_id, "oid": oid, "kept": kept}
    return ledger.records(LoadRecord, "loads/loads", name=name, causes=causes, **conditions)


def _row(new: NewBuild | NewRead) -> dict[str, Any]:
    """Return what a statement takes: what a build makes of its table stands beside the rest."""
    row = plain(new)
    if isinstance(new, NewBuild):
        return {**row.pop("facts"), **row}
    del row["build"]
    return row if new.build is None else row | _row(new.build)


def _landed(files: Sequence[FileEntry]) -> dict[str, Any]:
    totals = {"rows": sum(file.rows for file in files), "bytes": sum(file.bytes for file in files)}
    return {"files": recordset(files), **totals}


def _clash(orders: Sequence[NewBuild], already: Sequence[LoadRecord]) -> LedgerError:
    """Make the error of orders of which one is in the way of a build that is open."""
    pairs = ((order, each) for order in orders for each in already if _in_the_way(order, each))
    order, other = next(pairs, (orders[0], None))
    which = f"{other.cause} {other.id} (since {other.started_at:%F %T} UTC)" if other else "another one"
    return LedgerError(
        "rebuild-open",
        f"expected no open rebuild of {order.facts.qualified}, but {which} is not done; let it end by running that "
        "verb again, or abandon it, then start over",
    )


def _in_the_way(order: NewBuild, other: LoadRecord) -> bool:
    in_place = "shadow" not in (order.cause, other.cause)
    return other.place == order.place or (in_place and other.oid == order.facts.oid)


def _conflict(name: str, need: str) -> LedgerError:
    return LedgerError(
        "ledger-conflict",
        f"expected the loads of {name} {need}, but another run has taken them over or they were given up; "
        "this one changed nothing: leave it",
    )
