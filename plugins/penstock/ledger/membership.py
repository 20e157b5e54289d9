"""Tables that joined the publication after bootstrap, and tables that left it.

One that joined is `new` and waits for its copy. One that left is merged on through the last position at which it was
surely published, and is then `dropped`; its row, its cuts and its lake table stay. One that stayed, or came back, while
the publication left out changes of it is hidden: it stops until it is copied again.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from penstock.errors import Trouble
from penstock.jobs.pointers import place_of
from penstock.ledger.loads import give_up
from penstock.ledger.session import Part, recordset
from penstock.ledger.table_records import TableRecord
from penstock.ledger.tables import save
from penstock.ledger.tables import tables as tables_of
from penstock.lsn import Lsn
from penstock.shapes.accepted import TableFacts


class Membership(Part):
    """Record who joined and who left."""

    def join(self, name: str, table: TableFacts, *, lsn: Lsn, xid: int | None, message: str) -> None:
        """Note a table that joined, with an event; what the lake has of it from before stays until it is copied.

        `lsn` and `xid` bound what was written before it was seen. A table that left and had the same target is dropped
        at once. Raises LakeError("target-clash").
        """
        chosen = {"name": name, "oid": table.oid}
        with self.transaction(lock=name) as transaction:
            transaction.change("membership/drop_former", target=list(table.target), **chosen)
            save(transaction, name, [table])
            namespace, target = place_of(table.target)
            transaction.change(
                "maintenance/forget_old_tables", name=name, tables=recordset([{"namespace": namespace, "name": target}])
            )
            transaction.change("membership/join_table", joined_lsn=lsn, joined_xid=xid, **chosen)
            transaction.note(name, "table-added", message, oid=table.oid)

    def leave(self, name: str, oid: int, *, through: Lsn, discard: bool, message: str) -> None:
        """Note a table that left, published `through` that position, with an event; again changes nothing.

        Its open rebuild in place is given up.
        With `discard` its lake table is to be dropped as soon as it is `dropped` itself.
        """
        with self.transaction(lock=name) as transaction:
            if transaction.change("membership/leave_table", name=name, oid=oid, left_lsn=through, discard=discard):
                give_up(transaction, name, "the table left the publication", oids=[oid])
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
            if transaction.change("membership/hide_tables", name=name, tables=recordset(rows), lsn=lsn, xid=xid):
                give_up(transaction, name, trouble.reason, oids=oids)
                transaction.change("loads/forget_copies", name=name, oids=oids, loaded=True)
                only = oids[0] if len(oids) == 1 else None
                transaction.note(name, trouble.slug, message, level="error", oid=only)

    def to_announce(self, name: str, *, joined: bool, paused: bool, every: timedelta) -> list[int]:
        """Return the tables of a running pipeline that were not announced within that time, and record that they are now.

        They are those that joined, and those that are paused until they are copied, if wanted: for the latter the time grows.
        """
        with self.transaction(lock=name) as transaction:
            chosen = {"joined": joined, "paused": paused}
            return [oid for (oid,) in transaction.rows("membership/announce", name=name, every=every, **chosen)]

    def to_discard(self, name: str) -> list[TableRecord]:
        """Return the dropped tables whose lake tables are to be dropped, too."""
        with self.transaction() as transaction:
            found = tables_of(transaction, name, states=["dropped"])
            return [table for table in found if table.discard]

    def discarded(self, name: str, oid: int) -> None:
        """Note that the lake table of a dropped table is gone; again, or for one that came back, changes nothing."""
        with self.transaction(lock=name) as transaction:
            transaction.change("membership/discarded", name=name, oid=oid)
