"""Notice, once per window, what changed in a table's catalog entries and the stream does not carry.

PostgreSQL emits nothing for most DDL. An added column is followed, with the value that old rows show; any other
change pauses that one table with the reason, while capture and all other tables go on. The verdict is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.flow.context import Context
from penstock.lake.plan import ColumnPlan
from penstock.ledger.records import RebuildRecord, TableFacts, TableRecord
from penstock.source.catalog import SourceColumn, SourceTable
from penstock.wire.messages import Relation

WATCHED = ("new", "copying", "copied", "ready")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say what follows for one table: new columns, or the reason to pause it."""

    added: tuple[ColumnPlan, ...] = ()
    reason: str | None = None


def follow(ctx: Context, found: Sequence[SourceTable]) -> None:
    """Hold the source's tables against the ledger's: save added columns, pause what changed otherwise."""
    now = {table.oid: table for table in found}
    for record in ctx.ledger.tables(ctx.name):
        if record.state in WATCHED and record.left_lsn is None and record.oid in now:
            _follow(ctx, record, now[record.oid])
    for rebuild in ctx.ledger.rebuilds(ctx.name, states=["building", "ready"]):
        if rebuild.kind != "shadow":
            _follow_rebuild(ctx, rebuild, now.get(rebuild.oid))


def _follow(ctx: Context, record: TableRecord, now: SourceTable) -> None:
    decided = verdict(record.columns, record.identity, record.catalog_digest, now)
    if decided.reason is not None:
        ctx.ledger.pause_table(ctx.name, record.oid, slug="schema-change", reason=decided.reason)
        ctx.progress(f"paused {record.schema}.{record.name}: {decided.reason}")
    elif decided.added or now.digest() != record.catalog_digest:
        ctx.ledger.save_tables(ctx.name, [grown(record, decided, now)])
        for column in decided.added:
            ctx.progress(f"{record.schema}.{record.name}: column {column.name} was added")


def _follow_rebuild(ctx: Context, rebuild: RebuildRecord, now: SourceTable | None) -> None:
    """Let the table that is being made anew follow as well; what cannot be followed ends the rebuild."""
    decided = verdict(rebuild.columns, rebuild.identity, rebuild.catalog_digest, now)
    if decided.reason is not None:
        ctx.ledger.give_up_rebuild(ctx.name, rebuild, slug="rebuild-given-up", reason=decided.reason)
        ctx.progress(f"gave up the {rebuild.kind} of {rebuild.qualified}: {decided.reason}")
    elif now is not None and (decided.added or now.digest() != rebuild.catalog_digest):
        ctx.ledger.reshape_rebuild(ctx.name, rebuild.id, grown(rebuild, decided, now))


def grown(known: TableRecord | RebuildRecord, decided: Verdict, now: SourceTable) -> TableFacts:
    """Return the facts of a table with the columns that were added to it."""
    return replace(facts_of(known), columns=(*known.columns, *decided.added), catalog_digest=now.digest())


def table_facts(ctx: Context, table: SourceTable) -> TableFacts:
    """Return a source table as the ledger keeps it."""
    return TableFacts(
        oid=table.oid,
        schema=table.schema,
        name=table.name,
        target=ctx.pipeline.target(table.schema, table.name),
        identity=table.identity,
        columns=tuple(map(column_plan, table.columns)),
        catalog_digest=table.digest(),
    )


def facts_of(record: TableRecord | RebuildRecord) -> TableFacts:
    """Return what the ledger knows of a table in the form in which it takes it."""
    return TableFacts(
        record.oid, record.schema, record.name, record.target, record.identity, record.columns, record.catalog_digest
    )


def column_plan(column: SourceColumn) -> ColumnPlan:
    """Return a source column as merge plans name it."""
    return ColumnPlan(column.name, column.attnum, column.type, column.key, column.missing_text)


def verdict(
    columns: Sequence[ColumnPlan], identity: str, digest: Mapping[str, Any], now: SourceTable | None
) -> Verdict:
    """Compare one table with what the ledger knows of it."""
    if now is None:
        return Verdict(reason="the table was dropped, or left the publication")
    reasons = [
        *_column_reasons(columns, now),
        *_rewrite_reasons(columns, digest, now),
        *_identity_reasons(columns, identity, now),
        *_filter_reasons(digest, now),
        *_type_reasons(digest, now.digest()),
        *_leaf_reasons(digest, now),
    ]
    if reasons:
        return Verdict(reason="; ".join(reasons))
    return Verdict(added=tuple(map(column_plan, _added(columns, now))))


def reshaped(table: TableRecord | TableFacts, relation: Relation) -> str | None:
    """Say why landed rows of this shape do not belong into the table, or None when they do.

    Columns that the rows lack are fine: they were added later, or dropped since (which `verdict` notices).
    """
    columns = {column.name: column for column in table.columns}
    for column in relation.columns:
        known = columns.get(column.name)
        if known is None:
            return f"the stream has a column {column.name} that the catalog no longer has"
        if (known.type.oid, known.type.typmod) != (column.type_oid, column.typmod):
            return f"column {column.name} changed its type from {known.type.name} under a window"
    return None


def _added(columns: Sequence[ColumnPlan], now: SourceTable) -> list[SourceColumn]:
    before = {column.attnum for column in columns}
    return [column for column in now.columns if column.attnum not in before]


def _column_reasons(columns: Sequence[ColumnPlan], now: SourceTable) -> Iterator[str]:
    by_attnum = {column.attnum: column for column in now.columns}
    for column in columns:
        found = by_attnum.get(column.attnum)
        if found is None:
            yield f"column {column.name} was dropped"
        elif found.name != column.name:
            yield f"column {column.name} was renamed to {found.name}"
        elif found.type != column.type:
            yield f"column {column.name} changed its type from {column.type.name} to {found.type.name}"


def _rewrite_reasons(columns: Sequence[ColumnPlan], digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    """Name added columns whose old rows hold values that no catalog entry tells: the table was rewritten."""
    if storage(digest) == storage(now.digest()):
        return
    for column in _added(columns, now):
        if (column.has_default or column.identity) and column.missing_text is None:
            yield f"column {column.name} was added with a default that was written into every row"


def storage(digest: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the files that hold the rows, from a digest: a rewrite gives new ones."""
    leaves = digest.get("leaves", {})
    return (digest.get("relfilenode"), *(leaves[oid] for oid in sorted(leaves)))


def _identity_reasons(columns: Sequence[ColumnPlan], identity: str, now: SourceTable) -> Iterator[str]:
    before = {column.attnum for column in columns if column.key}
    if identity != now.identity or before != {column.attnum for column in now.columns if column.key}:
        yield "the replica identity changed"


def _filter_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    if digest.get("row_filter") != now.row_filter:
        yield "the publication's row filter changed"


def _type_reasons(digest: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for oid, labels in digest.get("enums", {}).items():
        now = after["enums"].get(oid, labels)
        if [label for label in now if label in labels] != labels:
            yield "a label of an enum was renamed or moved"
    for oid, attributes in digest.get("composites", {}).items():
        if after["composites"].get(oid, attributes) != attributes:
            yield "a composite type changed its attributes"


def _leaf_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    before = digest.get("leaves", {})
    leaves = {str(leaf.oid): leaf for leaf in now.leaves}
    for oid in before.keys() - leaves.keys():
        yield f"partition {before[oid][1]} was detached or dropped with its rows"
    for oid in leaves.keys() - before.keys():
        if now.kind == "p" and not leaves[oid].born_attached:
            yield f"partition {leaves[oid].name} was attached with the rows it had"
