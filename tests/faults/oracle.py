"""What the landed windows say, applied by hand, against what the source says: without Spark and without its casts."""

from __future__ import annotations

from typing import Any

from penstock.lsn import Lsn
from tests.world import World

Row = tuple[str | None, ...]


def landed(world: World, table: str, key: str) -> dict[str | None, Row]:
    """Return the rows of a keyed table after its copy and every staged change, as texts; each change exactly once."""
    ctx = world.ctx
    record = next(each for each in ctx.ledger.tables(world.name) if each.name == table)
    rows: dict[str | None, dict[str, Any]] = {}
    copied = next(each for each in ctx.ledger.copies(world.name) if each.oid == record.oid)
    for entry in copied.files:
        for row in ctx.landing.read(entry.path).column("new").to_pylist():
            assert row[key] not in rows, "a row was copied twice"
            rows[row[key]] = row
    changes = []
    reached = Lsn(0)
    for window in ctx.ledger.windows(world.name):
        assert window.from_lsn >= reached, "windows overlap"
        reached = window.upto_lsn
        for entry in window.files:
            if entry.oid == record.oid:
                changes += ctx.landing.read(entry.path).to_pylist()
    for change in sorted(changes, key=lambda each: (each["commit_lsn"], each["ordinal"])):
        if not _visible(change["xid"], copied.snapshot):
            _apply(rows, change, key)
    names = [column.name for column in record.columns]
    return {value: tuple(row[name] for name in names) for value, row in rows.items()}


def at_source(world: World, table: str, key: str) -> dict[str | None, Row]:
    """Return the source's rows as texts."""
    found = world.source.execute(f'select {key}::text, t.* from "{table}" t')
    return {row[0]: tuple(None if value is None else str(value) for value in row[1:]) for row in found}


def _apply(rows: dict[str | None, dict[str, Any]], change: dict[str, Any], key: str) -> None:
    if change["op"] == "T":
        rows.clear()
        return
    old = change["old"] or change["new"]
    if change["op"] != "I":
        before = rows.pop(old[key])  # a change of a row that is not there raises KeyError
    if change["op"] == "D":
        return
    after = dict(change["new"])
    for name in change["unchanged"] or ():
        after[name] = before[name]
    assert after[key] not in rows, "a row was inserted twice"
    rows[after[key]] = after


def _visible(xid: int, snapshot: str) -> bool:
    low, high, running = snapshot.split(":")
    return xid < int(low) or (xid < int(high) and str(xid) not in running.split(","))
