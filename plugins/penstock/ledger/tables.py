"""A table's life: new -> ready; paused from either and back; dropped at last (`MOVES`).

While its first copy is read, and until a cut holds that, a new table is called by the state of this load: `copying`, `copied`.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from psycopg import errors as pg

from penstock.codec import plain
from penstock.errors import LakeError, LedgerError, Trouble
from penstock.jobs.pointers import place_of
from penstock.ledger.records import SchemaChange
from penstock.ledger.session import Part, Statements, Transaction, recordset
from penstock.ledger.shapes import keep_open, note_shapes
from penstock.ledger.table_records import TableRecord, TableState
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.source_table import Shape

_OPEN = ("new", "ready", "paused")
MOVES: Mapping[str, Mapping[str, Collection[str]]] = {
    # known, or known again
    "tables/save_tables": {"dropped": ["new"]},
    "tables/join_table": {state: ["new"] for state in (*_OPEN, "dropped")},
    # a cut, or one that was published already: it holds all that there will be of a table that left
    "merges/publish_tables": {"ready": ["dropped"]},
    "merges/adopt_tables": {"ready": ["dropped"]},
    # a cut in which a table that was copied or rebuilt takes its place
    "merges/switch_tables": {state: ["ready"] for state in _OPEN},
    # a trouble, and its end
    "tables/stop_tables": {state: ["paused"] for state in _OPEN},
    "tables/resume_table": {"paused": [state for state in _OPEN if state != "paused"]},
    # it left the publication, and is merged as far as it was published; or another has its name
    "tables/leave_table": {state: ["dropped"] for state in _OPEN},
    "tables/drop_former": {state: ["dropped"] for state in ("ready", "paused")},
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
        return tables(self, name, but=but, states=states)

    def target(self, name: str, oid: int) -> tuple[str, ...] | None:
        """Return the lake's name of a table, also of one that was known before the present era; None where it is new."""
        found = self.rows("tables/target", name=name, oid=oid)
        return next((tuple(target) for (target,) in found if target is not None), None)

    def looked(self, name: str, states: Sequence[TableState]) -> dict[int, str]:
        """Return the stamps under which tables in these states were found to be as the ledger has them, by oid."""
        return dict(self.rows("tables/looked_tables", name=name, states=states))

    def note_looked(self, name: str, found: Mapping[int, tuple[str, Shape]], states: Sequence[TableState]) -> None:
        """Note the stamps that a look has found, for the tables in these states that are as it has found them."""
        rows = ({"oid": oid, "stamp": stamp, "shape": now.to_json()} for oid, (stamp, now) in found.items())
        self.change("tables/note_looked", name=name, tables=recordset(rows), states=states)

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


class Membership(Part):
    """Record tables that joined the publication after bootstrap, and tables that left it.

    One that joined is `new` and waits for its copy. One that left is merged on through the last position at which it was
    surely published, and is then `dropped`; its row, its cuts and its lake table stay. One that stayed, or came back, while
    the publication left out changes of it is hidden: it stops until it is copied again.
    """

    def join(self, name: str, table: TableFacts, *, lsn: Lsn, xid: int | None, message: str) -> None:
        """Note a table that joined, with an event; what the lake has of it from before stays until it is copied.

        `lsn` and `xid` bound what was written before it was seen. A table that left and had the same target is dropped
        at once. Raises LakeError("target-clash").
        """
        chosen = {"name": name, "oid": table.oid}
        with self.transaction(lock=name) as transaction:
            transaction.change("tables/drop_former", target=table.target, **chosen)
            save(transaction, name, [table])
            left = dict(zip(("namespace", "table"), place_of(table.target), strict=True))
            transaction.change("maintenance/forget_old_tables", name=name, tables=recordset([left]))
            transaction.change("tables/join_table", joined_lsn=lsn, joined_xid=xid, **chosen)
            transaction.note(name, "table-added", message, oid=table.oid)

    def leave(self, name: str, oid: int, *, through: Lsn, discard: bool, message: str) -> None:
        """Note a table that left, published `through` that position, with an event; again changes nothing.

        Its open rebuild in place is given up.
        With `discard` its lake table is to be dropped as soon as it is `dropped` itself.
        """
        with self.transaction(lock=name) as transaction:
            if transaction.change("tables/leave_table", name=name, oid=oid, left_lsn=through, discard=discard):
                give_up_loads(transaction, name, "the table left the publication", oids=[oid])
                transaction.change("loads/forget_copies", name=name, oids=[oid], loaded=False)
                transaction.note(name, "table-removed", message, oid=oid)

    def hide(
        self,
        name: str,
        tables: Mapping[int, Sequence[str] | None],
        trouble: Trouble,
        *,
        lsn: Lsn,
        xid: int | None,
        message: str,
    ) -> None:
        """Note tables of which the stream lacks changes, with one event for all of them: they are to be copied again.

        `tables` are oids with their new membership, None for the same. `lsn` and `xid` bound what was written before:
        a copy must see it. What is being made of them in place is given up, and their older copies are forgotten.
        """
        oids = list(tables)
        rows = [{"oid": oid, "membership": None if new is None else list(new)} for oid, new in tables.items()]
        with self.transaction(lock=name) as transaction:
            if transaction.change("tables/hide_tables", name=name, tables=recordset(rows), lsn=lsn, xid=xid):
                give_up_loads(transaction, name, trouble.reason, oids=oids)
                transaction.change("loads/forget_copies", name=name, oids=oids, loaded=True)
                only = oids[0] if len(oids) == 1 else None
                transaction.note(name, trouble.slug, message, level="error", oid=only)

    def to_announce(self, name: str, *, joined: bool, paused: bool, every: timedelta) -> list[int]:
        """Return the tables of a running pipeline that were not announced within that time, and record that they are now.

        They are those that joined, and those that are paused until they are copied, if wanted: for the latter the time grows.
        """
        with self.transaction(lock=name) as transaction:
            chosen = {"joined": joined, "paused": paused}
            return [oid for (oid,) in transaction.rows("tables/announce", name=name, every=every, **chosen)]

    def to_discard(self, name: str) -> list[TableRecord]:
        """Return the dropped tables whose lake tables are to be dropped, too."""
        return [table for table in tables(self, name, states=["dropped"]) if table.discard]

    def discarded(self, name: str, oid: int) -> None:
        """Note that the lake table of a dropped table is gone; again, or for one that came back, changes nothing."""
        with self.transaction(lock=name) as transaction:
            transaction.change("tables/discarded", name=name, oid=oid)


def give_up_loads(
    transaction: Transaction, name: str, reason: str, *, id: str | None = None, oids: Sequence[int] | None = None
) -> int:
    """End one build, those in place of some tables, or all, inside a transaction; return how many."""
    return transaction.change("loads/give_up_loads", name=name, reason=reason, id=id, oids=oids)


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
    ledger: Statements,
    name: str,
    *,
    oid: int | None = None,
    states: Sequence[TableState] | None = None,
    but: Collection[int] = (),
) -> list[TableRecord]:
    """Return the tables that meet every condition given, `but` some, by schema and name."""
    return ledger.records(TableRecord, "tables/tables", name=name, oid=oid, states=states, but=but)


def _unfit(transaction: Transaction, name: str, oid: int, need: str) -> LedgerError:
    found = tables(transaction, name, oid=oid)
    state = found[0].state if found else "unknown"
    return LedgerError(
        "ledger-conflict",
        f"expected table {oid} of {name} {need}, but it is {state}; another run changed it: start over",
    )
