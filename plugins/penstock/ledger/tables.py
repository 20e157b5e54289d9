"""A table's life: new -> ready; paused from either and back; dropped at last (`MOVES`).

While its first copy is read, and until a cut holds that, a new table is called by the state of this load: `copying`, `copied`.
"""

from collections.abc import Collection, Mapping, Sequence

from psycopg import errors as pg

from penstock.codec import plain
from penstock.errors import LakeError, LedgerError, Trouble
from penstock.ledger.records import SchemaChange
from penstock.ledger.session import Part, Transaction, recordset
from penstock.ledger.shapes import keep_open, note_shapes
from penstock.ledger.table_records import TableRecord, TableState
from penstock.shapes.accepted import TableFacts
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.shape import Shape

_OPEN = ("new", "ready", "paused")
MOVES: Mapping[str, Mapping[str, Collection[str]]] = {
    # known, or known again
    "tables/save_tables": {"dropped": ["new"]},
    "membership/join_table": {state: ["new"] for state in (*_OPEN, "dropped")},
    # a cut, or one that was published already: it holds all that there will be of a table that left
    "merges/publish_tables": {"ready": ["dropped"]},
    "merges/adopt_tables": {"ready": ["dropped"]},
    # a cut in which a table that was copied or rebuilt takes its place
    "merges/switch_tables": {state: ["ready"] for state in _OPEN},
    # a trouble, and its end
    "tables/stop_tables": {state: ["paused"] for state in _OPEN},
    "tables/resume_table": {"paused": [state for state in _OPEN if state != "paused"]},
    # it left the publication, and is merged as far as it was published; or another has its name
    "membership/leave_table": {state: ["dropped"] for state in _OPEN},
    "membership/drop_former": {state: ["dropped"] for state in ("ready", "paused")},
}
"""What the statements that write `table.state` make of a table, by the state that it is in; in any other they leave it there.

A paused table keeps the state that it was in (`paused_from_state`).
"""


class Tables(Part):
    """Record tables."""

    def save(self, name: str, tables: Sequence[TableFacts], changes: Sequence[SchemaChange] = ()) -> None:
        """Take over what the source says of these tables; new ones begin as `new`, the others keep their state.

        The `changes` of their shape that the lake follows become events.

        Raises LakeError("target-clash") when two tables would share a target; then none is saved.
        """
        with self.transaction(lock=name) as transaction:
            save(transaction, name, tables)
            note_schema_changes(transaction, name, changes)

    def all(
        self, name: str, *, but: Collection[int] = (), states: Sequence[TableState] | None = None
    ) -> list[TableRecord]:
        """Return every table, or those in these states, `but` some, by schema and name."""
        with self.transaction() as transaction:
            return tables(transaction, name, but=but, states=states)

    def target(self, name: str, oid: int) -> tuple[str, ...] | None:
        """Return the lake's name of a table, also of one that was known before the present era; None where it is new."""
        with self.transaction() as transaction:
            found = transaction.rows("tables/target", name=name, oid=oid)
            return next((tuple(target) for (target,) in found if target is not None), None)

    def looked(self, name: str, states: Sequence[TableState]) -> dict[int, str]:
        """Return the stamps under which tables in these states were found to be as the ledger has them, by oid."""
        return dict(self.rows("tables/looked_tables", name=name, states=list(states)))

    def note_looked(self, name: str, found: Mapping[int, tuple[str, Shape]], states: Sequence[TableState]) -> None:
        """Note the stamps that a look has found, for the tables in these states that are as it has found them."""
        rows = ({"oid": oid, "stamp": stamp, "shape": now.to_json()} for oid, (stamp, now) in found.items())
        self.change("tables/note_looked", name=name, tables=recordset(rows), states=list(states))

    def stop(self, name: str, troubles: Mapping[int, Trouble], *, noted: bool = False) -> None:
        """Keep tables out of merges, each with an event that says why, where what stops them all is not `noted` as one.

        Capture continues landing their changes. Raises LedgerError("ledger-conflict") where one is unknown or dropped.
        """
        rows = recordset({"oid": oid, **plain(trouble)} for oid, trouble in troubles.items())
        with self.transaction(lock=name) as transaction:
            stopped = {oid for (oid,) in transaction.rows("tables/stop_tables", name=name, tables=rows)}
            for oid, trouble in troubles.items():
                if oid not in stopped:
                    raise _unfit(transaction, name, oid, "not to be dropped")
                if not noted:
                    transaction.note(name, trouble.slug, trouble.reason, level="error", oid=oid)

    def resume(self, name: str, oid: int) -> TableRecord:
        """Take a paused table back into merges, in the state it had; raises LedgerError("ledger-conflict")."""
        with self.transaction(lock=name) as transaction:
            return resume(transaction, name, oid)


def resume(transaction: Transaction, name: str, oid: int) -> TableRecord:
    """Take a paused table back into merges inside a transaction; raises LedgerError("ledger-conflict")."""
    if transaction.change("tables/resume_table", name=name, oid=oid) != 1:
        raise _unfit(transaction, name, oid, "to be paused")
    return tables(transaction, name, oid=oid)[0]


def save(transaction: Transaction, name: str, tables: Sequence[TableFacts]) -> None:
    """Save tables inside a transaction; raises LakeError("target-clash")."""
    rows = [plain(table) for table in tables]
    transaction.change("tables/save_tables", name=name, tables=recordset(rows))
    keep_open(transaction, name, rows)
    transaction.change("loads/follow_tables", name=name, oids=[table.oid for table in tables])
    note_shapes(transaction, name, {table.oid: KnownShape.of(table.accepted.shape) for table in tables}, None)
    try:
        transaction.connection.execute("set constraints all immediate")
    except pg.ExclusionViolation:
        raise LakeError(
            "target-clash",
            f"expected every table of {name} to have a target of its own, but two share one; "
            "change lake.target or leave one of the tables out",
        ) from None


def note_schema_changes(transaction: Transaction, name: str, changes: Sequence[SchemaChange]) -> None:
    """Note changes of tables' shapes that the lake follows as events, inside a transaction."""
    for change in changes:
        details = {"rule": change.rule, **change.details}
        transaction.note(name, "schema-followed", change.message, oid=change.oid, details=details)


def tables(
    transaction: Transaction,
    name: str,
    *,
    oid: int | None = None,
    states: Sequence[TableState] | None = None,
    but: Collection[int] = (),
) -> list[TableRecord]:
    """Return the tables that meet every condition given, `but` some, by schema and name."""
    conditions = {"oid": oid, "states": None if states is None else list(states), "but": list(but)}
    return transaction.records(TableRecord, "tables/tables", name=name, **conditions)


def _unfit(transaction: Transaction, name: str, oid: int, need: str) -> LedgerError:
    found = tables(transaction, name, oid=oid)
    state = found[0].state if found else "unknown"
    return LedgerError(
        "ledger-conflict",
        f"expected table {oid} of {name} {need}, but it is {state}; another run changed it: start over",
    )
