"""What a window, the log of the source's event trigger, and a bounded look at rows show of what a table's catalog leaves open.

The stream names a truncated table and its transaction. What else that transaction did to rows that it wrote after the TRUNCATE is in
no message: a rewrite of them with other values, a TRUNCATE of one partition, a partition that was unlogged. A label of an enum that
came and was renamed before anyone looked is shown by the landed rows alone: they have the name of their moment.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.contract.manifest import FileEntry
from penstock.flow.context import Context
from penstock.flow.schema.questions import OpenTable
from penstock.landing.zone import LandingZone
from penstock.lsn import Lsn
from penstock.shapes.ddl_message import DdlLog
from penstock.shapes.source_table import SourceTable
from penstock.shapes.timeline import History
from penstock.source import leaf_rows
from penstock.values.pgtype import PgType
from penstock.wire.columnar import Relation, Totals

_XID = 0xFFFFFFFF
_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)')


@dataclass(frozen=True)
class Landed:
    """Say what one window left in the landing zone."""

    files: tuple[FileEntry, ...]
    relations: dict[tuple[int, int], Relation]
    totals: Totals
    old_nulls: Mapping[int, frozenset[str]]
    """The columns that are NULL in an old row, by relation."""
    after: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    """After how many logged events of its table each relation version was announced."""
    ddl: DdlLog | None = None
    """What the source's event trigger logged, None where the window was read without it."""


@dataclass(frozen=True, slots=True)
class Refill:
    """Say what a transaction did to a table after it had truncated it: whether it wrote rows, and how many it left."""

    wrote: bool
    rows: int


def explained_files(ctx: Context, case: OpenTable, landed: Landed) -> frozenset[int]:
    """Return the leaves whose new files are the work of a TRUNCATE that a window brought, after which every row was sent as it is."""
    refills = truncations(ctx, landed, case.known.oid)
    writers = {leaf.oid: leaf.changed_by for leaf in case.now.leaves if leaf.oid in case.files}
    sure = {
        xid
        for xid in refills.keys() & set(writers.values())
        if not (case.is_reshaped and refills[xid].wrote) and _has_all(ctx, case.now, xid, refills[xid].rows)
    }
    return frozenset(oid for oid, xid in writers.items() if xid in sure)


def truncations(ctx: Context, landed: Landed, oid: int) -> dict[int, Refill]:
    """Return the transactions that truncated a table in a window, by their 32-bit ids."""
    ours = [entry for entry in landed.files if entry.oid == oid]
    if not any(entry.counts.truncates for entry in ours):
        return {}
    changes = pa.concat_tables(ctx.landing.read(entry.path, ["op", "xid", "ordinal"]) for entry in ours)
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
        found = [look.refilled(leaf, xid) for leaf in now.leaves if leaf.kind == "r"]
    return sum(each or 0 for each in found) == rows and None not in found


def rows_kept(ctx: Context, case: OpenTable, landed: Landed, generation: str | None) -> bool:
    """Return whether the window logged how each partition came to its file, and no row can have gone by a TRUNCATE of it alone."""
    if case.now.kind != "p":
        return True
    leaves, found = {leaf.oid: leaf for leaf in case.now.leaves}, case.rewrites(landed.ddl, generation)
    rewrites = [(leaves[oid], each) for oid, each in found.items() if each is not None]
    full = [(leaf, each.written) for leaf, each in rewrites if each.rewrote and not each.rewrote.empty]
    empty = {each.xid & _XID for _, each in rewrites if each.rewrote and each.rewrote.empty}
    if len(rewrites) < len(found):
        return False
    if empty and not empty.isdisjoint(xid & _XID for xid in transactions(ctx, landed, case.known.oid)):
        return False
    if not full:
        return True
    with leaf_rows.looking(ctx.reader, what=f"{ctx.name}:look") as rows:
        return all(rows.holds_row_of(leaf, *written) for leaf, written in full)


def transactions(ctx: Context, landed: Landed, oid: int) -> set[int]:
    """Return the ids of the transactions of which a window brought changes of a table."""
    files = [entry.path for entry in landed.files if entry.oid == oid]
    return {xid for path in files for xid in ctx.landing.read(path, ["xid"])["xid"].unique().to_pylist()}


def emptied(ctx: Context, case: OpenTable, explained: Set[int]) -> dict[int, str]:
    """Return the leaves that are empty though nothing says how they came to a new file, with the snapshots that show it."""
    known = case.known.accepted.shape.leaves
    open_ = [leaf for leaf in case.now.leaves if leaf.oid in case.files - explained and leaf.oid in known]
    if not open_:
        return {}
    with leaf_rows.looking(ctx.reader, what=f"{ctx.name}:look") as rows:
        found = {leaf.oid: rows.empty_in(leaf) for leaf in open_}
    return {oid: snapshot for oid, snapshot in found.items() if snapshot is not None}


def histories(ctx: Context, landed: Landed, oids: Collection[int], since: Lsn) -> dict[int, History]:
    """Return all that is known of the columns of these tables around a window."""
    known = ctx.ledger.shapes.histories(ctx.name, oids, since=since) if oids else {}
    complete, ddl = ctx.pipeline.source.origin == "any", landed.ddl
    if ddl is None:
        return {oid: replace(each, before=None) for oid, each in known.items()}
    return {oid: each.within(ddl.shapes.get(oid, ()), ddl.gaps, complete) for oid, each in known.items()}


def strange_label(
    zone: LandingZone, files: Mapping[FileEntry, Sequence[int]], now: SourceTable, enums: set[int]
) -> str | None:
    """Say which column was landed with a label that its enum does not have, or None; the files come with their columns' attnums."""
    for column in now.columns:
        enum = _enum(column.type)
        if enum is None or enum not in enums:
            continue
        labels = set(now.enums[enum])
        is_array = column.type.element is not None
        for entry, attnums in files.items():
            if column.attnum in attnums and not labels.issuperset(
                _landed(zone, entry, attnums.index(column.attnum), is_array)
            ):
                return f"column {column.name} was landed with a label that its enum no longer has: it was renamed under a window"
    return None


def _enum(type: PgType) -> int | None:
    """Return the enum that a type's text consists of: itself, an array's element, a domain's base."""
    if type.kind == "e":
        return type.oid
    inner = type.element or type.base
    return None if inner is None else _enum(inner)


def _landed(zone: LandingZone, entry: FileEntry, column: int, is_array: bool) -> Iterator[str]:
    for part in ("new", "old"):
        rows = zone.read(entry.path, [part]).column(part)
        values = pc.struct_field(rows, [column])
        for text in pc.unique(values.cast(pa.string())).drop_null().to_pylist():
            yield from _elements(text) if is_array else (text,)


def _elements(array: str) -> Iterator[str]:
    for quoted, plain in _ELEMENT.findall(array):
        if quoted or plain != "NULL":
            yield re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
