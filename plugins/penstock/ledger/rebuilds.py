"""A rebuild's life: copying -> building -> ready -> done; given up from any of them.

A replay begins with a copy that is there, so it begins as `building`. Only the newest run of a rebuild may advance it,
and each step moves the fresh table's pointer and the ledger's row together; the switch itself is part of a cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from psycopg import errors as pg
from psycopg.types.json import Jsonb

from penstock.config.connections import Connection
from penstock.contract.manifest import FileEntry
from penstock.errors import LedgerError
from penstock.jobs.pointers import Pointer
from penstock.ledger.iceberg_pointers import move_pointers
from penstock.ledger.json_codec import column_to_json, facts_to_json
from penstock.ledger.pipelines import lock, lock_active
from penstock.ledger.session import Part, Transaction
from penstock.ledger.table_records import CopyRecord, RebuildKind, RebuildRecord, RebuildState
from penstock.lsn import Lsn
from penstock.shapes.table_facts import TableFacts

OPEN: tuple[RebuildState, ...] = ("copying", "building", "ready")


@dataclass(frozen=True)
class NewRebuild:
    """Order a rebuild; one without a copy begins with copying."""

    id: str
    kind: RebuildKind
    facts: TableFacts
    place: tuple[str, ...]
    copy_id: str | None = None
    goal_lsn: Lsn | None = None


@dataclass(frozen=True)
class RebuildStep:
    """Say how far a run has brought a rebuild, with how many rows more, what it met besides, and what it is from now on."""

    id: str
    through_lsn: Lsn
    snapshot_id: int
    rows: int
    state: RebuildState
    update_missing: int = 0
    delete_missing: int = 0
    insert_existing: int = 0
    misfits: int = 0


class Rebuilds(Part):
    """Record rebuilds."""

    def all(self, name: str, *, states: Sequence[RebuildState] | None = OPEN) -> list[RebuildRecord]:
        """Return the rebuilds in these states, None for all, oldest first."""
        with self.transaction() as transaction:
            return _rebuilds(transaction, name, states)

    def copy_due(self, name: str, copied: CopyRecord) -> Lsn:
        """Return after which position a copy needs windows: the first may hold a change that it had not seen."""
        with self.transaction() as transaction:
            ((after,),) = transaction.rows("rebuilds/copy_due", name=name, id=copied.id, oid=copied.oid)
            return Lsn(after)

    def start(self, name: str, orders: Sequence[NewRebuild]) -> list[RebuildRecord]:
        """Begin rebuilds, all or none.

        Raises LedgerError("rebuild-open") when a table is being rebuilt in place already, or a place is being filled;
        "pipeline-halted", "not-bootstrapped".
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            already = _rebuilds(transaction, name, OPEN)
            for order in orders:
                try:
                    transaction.change("rebuilds/start_rebuild", name=name, **_row(order))
                except pg.UniqueViolation:
                    raise LedgerError("rebuild-open", _clash(order, already)) from None
            wanted = {order.id for order in orders}
            return [each for each in _rebuilds(transaction, name, OPEN) if each.id in wanted]

    def start_copy(
        self,
        name: str,
        *,
        copy_id: str,
        snapshot: str,
        lsn: Lsn,
        facts: Mapping[str, TableFacts],
        places: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Note that these rebuilds, by id, are being copied under one snapshot, as the tables look now.

        The tables' own state stays as it is. Raises LedgerError("ledger-conflict") when one is no longer copying.
        """
        listed = [{"id": id_, **facts_to_json(table), "place": places[id_]} for id_, table in facts.items()]
        with self.transaction() as transaction:
            lock_active(transaction, name)
            transaction.change("rebuilds/forget_rebuild_copies", name=name, ids=list(facts))
            chosen = {"copy_id": copy_id, "snapshot": snapshot, "lsn": lsn}
            begun = transaction.change("rebuilds/start_rebuild_copy", name=name, rebuilds=Jsonb(listed), **chosen)
            if begun != len(facts):
                raise _conflict(name, "to be copying")

    def finish_copy(self, name: str, rebuild: RebuildRecord, files: Sequence[FileEntry]) -> None:
        """Note that a rebuild's table is copied; raises LedgerError("ledger-conflict") when another copy was begun."""
        totals = {"rows": sum(file.rows for file in files), "bytes": sum(file.bytes for file in files)}
        chosen = {"name": name, "copy_id": rebuild.copy_id}
        listed = Jsonb([file.to_json() for file in files])
        with self.transaction() as transaction:
            lock(transaction, name)
            copied = transaction.change("tables/finish_copy", oid=rebuild.oid, files=listed, **totals, **chosen)
            finished = transaction.change("rebuilds/finish_rebuild_copy", id=rebuild.id, **chosen)
            if copied != 1 or finished != 1:
                raise _conflict(name, "to wait for this copy")

    def reshape(self, name: str, rebuild_id: str, facts: TableFacts) -> None:
        """Take over columns that were added at the source meanwhile."""
        columns = Jsonb([column_to_json(column) for column in facts.columns])
        with self.transaction() as transaction:
            lock(transaction, name)
            accepted = Jsonb(facts.accepted.to_json())
            transaction.change("rebuilds/reshape_rebuild", name=name, id=rebuild_id, columns=columns, accepted=accepted)

    def run(self, name: str, *, ids: Sequence[str], run: str) -> None:
        """Note the run that may advance these rebuilds from now on; raises LedgerError("ledger-conflict")."""
        with self.transaction() as transaction:
            lock_active(transaction, name)
            if transaction.change("rebuilds/run_rebuilds", name=name, ids=list(ids), run=run) != len(ids):
                raise _conflict(name, "to be building")

    def advance(
        self,
        name: str,
        *,
        run: str,
        catalog: Connection,
        catalog_name: str,
        pointers: Sequence[Pointer],
        steps: Sequence[RebuildStep],
    ) -> None:
        """Move the fresh tables of a run and note how far they are, in one transaction.

        Where the catalog is another database, its transaction commits just before ours; asking again heals what a crash
        between them leaves. Raises LedgerError("ledger-conflict") for a run that was overtaken,
        LakeError("publish-conflict" | "catalog-unreachable").
        """
        with self.transaction() as transaction:
            lock_active(transaction, name)
            listed = Jsonb([{**asdict(step), "through_lsn": str(step.through_lsn)} for step in steps])
            if transaction.change("rebuilds/advance_rebuilds", name=name, run=run, steps=listed) != len(steps):
                raise _conflict(name, "to be advanced by this run")
            if not pointers:
                return
            move_pointers(transaction, self.connection, catalog, catalog_name, pointers)

    def give_up(self, name: str, rebuild: RebuildRecord, *, slug: str, reason: str) -> None:
        """End a rebuild that cannot be finished, with an event for each new reason; its table stays as it is."""
        event = {"slug": slug, "level": "error", "table_oid": rebuild.oid, "message": reason, "details": "{}"}
        with self.transaction() as transaction:
            lock(transaction, name)
            if transaction.change("rebuilds/give_up_rebuild", name=name, id=rebuild.id, slug=slug, reason=reason):
                transaction.change("events/add_event_on_change", name=name, first=True, **event)


def _rebuilds(transaction: Transaction, name: str, states: Sequence[RebuildState] | None) -> list[RebuildRecord]:
    chosen = None if states is None else list(states)
    return transaction.records(RebuildRecord, "rebuilds/rebuilds", name=name, states=chosen)


def _row(order: NewRebuild) -> dict[str, object]:
    facts = order.facts
    return {
        "id": order.id,
        "kind": order.kind,
        "state": "copying" if order.copy_id is None else "building",
        "oid": facts.oid,
        "schema": facts.schema,
        "table": facts.name,
        "target": list(facts.target),
        "place": list(order.place),
        "identity": facts.identity,
        "columns": Jsonb([column_to_json(column) for column in facts.columns]),
        "accepted": Jsonb(facts.accepted.to_json()),
        "copy_id": order.copy_id,
        "goal_lsn": order.goal_lsn,
    }


def _clash(order: NewRebuild, already: Sequence[RebuildRecord]) -> str:
    table = f"{order.facts.schema}.{order.facts.name}"
    shadow = order.kind == "shadow"
    in_the_way = (
        each
        for each in already
        if each.place == order.place or (each.oid == order.facts.oid and not shadow and each.kind != "shadow")
    )
    which = next((f"{each.kind} {each.id} (since {each.started_at:%F %T} UTC)" for each in in_the_way), "another one")
    return (
        f"expected no open rebuild of {table}, but {which} is not done; let it end by running that verb again, "
        "or abandon it, then start over"
    )


def _conflict(name: str, need: str) -> LedgerError:
    return LedgerError(
        "ledger-conflict",
        f"expected the rebuilds of {name} {need}, but another run has taken them over or they were given up; "
        "this one changed nothing: leave it",
    )
