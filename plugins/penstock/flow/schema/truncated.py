"""Which new files of a table a TRUNCATE that a window brought explains, so that nothing else can be hidden by them.

The stream names the truncated table and its transaction. What else that transaction did to rows that it wrote after the
TRUNCATE is in no message: a rewrite of them with other values, a TRUNCATE of one partition, a partition that was unlogged.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.flow.context import Context
from penstock.flow.schema.undecided import Undecided
from penstock.shapes.diff import added_columns, altered_columns
from penstock.shapes.landed_window import Landed
from penstock.shapes.source_table import SourceTable
from penstock.source import leaf_rows

_XID = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Refill:
    """Say what a transaction did to a table after it had truncated it: whether it wrote rows, and how many it left."""

    wrote: bool
    rows: int


def explained(ctx: Context, case: Undecided, landed: Landed) -> frozenset[int]:
    """Return the leaves of a case whose files are the work of a TRUNCATE, after which every row was sent as it is."""
    refills = truncations(ctx, landed, case.known.oid)
    blank = {leaf.oid: leaf.changed_by for leaf in case.now.leaves if leaf.oid in case.empty}
    writers = {**case.leaves, **blank}
    reshaped = is_reshaped(case)
    sure = {
        xid
        for xid in refills.keys() & set(writers.values())
        if not (reshaped and refills[xid].wrote) and _has_all(ctx, case.now, xid, refills[xid].rows)
    }
    return frozenset(oid for oid, xid in writers.items() if xid in sure)


def is_reshaped(case: Undecided) -> bool:
    """Return whether columns were altered or added since the last look."""
    known, before = case.known.columns, case.known.accepted.shape
    return any(altered_columns(known, before, case.now)) or any(added_columns(known, case.now))


def truncations(ctx: Context, landed: Landed, oid: int) -> dict[int, Refill]:
    """Return the transactions that truncated a table in a window, by their 32-bit ids."""
    ours = [entry for entry in landed.files if entry.oid == oid]
    if not any(entry.counts.truncates for entry in ours):
        return {}
    changes = pa.concat_tables(ctx.landing.columns(entry.path, ["op", "xid", "ordinal"]) for entry in ours)
    found: dict[int, Refill] = {}
    truncating = changes.filter(pc.equal(changes["op"], "T"))
    for xid in truncating["xid"].unique().to_pylist():
        last = pc.max(truncating.filter(pc.equal(truncating["xid"], xid))["ordinal"])
        after = changes.filter(pc.and_(pc.equal(changes["xid"], xid), pc.greater(changes["ordinal"], last)))["op"]
        found[xid & _XID] = Refill(len(after) > 0, _count(after, "I") - _count(after, "D"))
    return found


def _count(ops: pa.ChunkedArray, op: str) -> int:
    return int(pc.sum(pc.equal(ops, op)).as_py() or 0)


def _has_all(ctx: Context, now: SourceTable, xid: int, rows: int) -> bool:
    """Return whether the rows of a transaction are there that the stream brought, where some may have come or gone without it.

    Rows that others have changed since are not counted: then it is not known. A row that the stream did not bring can only
    be in a leaf that was altered after it was written, so as many rows as were sent, all younger than that, are those.
    """
    if not now.changes_silently:
        return True
    with leaf_rows.looking(ctx.reader, what=f"{ctx.name}:look") as look:
        found = [look.inspect(leaf_rows.refilled, leaf, xid) for leaf in now.leaves if leaf.kind == "r"]
    return sum(each or 0 for each in found) == rows and None not in found
