"""Follow the names of the source's tables: which the lake's tables take in the next cut, or which name they keep.

All tables of a look are renamed together, so that names may be passed on in chains and circles. Nothing moves here: the cut
does that, and a name that another table is to have pauses the table that was given it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.errors import Trouble
from penstock.flow import table_status
from penstock.flow.context import Context, on_change
from penstock.ledger.records import SchemaChange
from penstock.ledger.table_records import TableRecord
from penstock.shapes.accepted import Accepted, TableFacts
from penstock.shapes.mirror_column import column_plan
from penstock.shapes.source_table import SourceTable
from penstock.source import types
from penstock.source.catalog_snapshot import CatalogSnapshot

Target = tuple[str, ...]
_AT_ONCE = ("new", "copied")  # the lake does not show the table yet, so no reader knows it by its old name
_FOLLOWED = (*_AT_ONCE, "ready")  # a copy that is being read goes by the old name


def follow_names(ctx: Context, found: CatalogSnapshot, tables: Iterable[TableRecord]) -> bool:
    """Take over the new names of these tables, and pause those of which the lake's name is another table's; return whether there were any."""
    now = found.by_oid
    changed = [
        record
        for record in tables
        if _renamed(record, now)
        and (record.state == "new" or on_change(ctx.pipeline, record.schema, record.name) == "follow")
    ]
    if not changed:
        return False
    moving = {record.oid: _with_new_name(ctx, record, now[record.oid]) for record in changed}
    known = {record.oid: record for record in ctx.ledger.tables.all(ctx.name)}
    wanted = {
        record.oid: record.renamed_to or record.target
        for record in known.values()
        if record.state != "dropped" and record.left_lsn is None
    }
    taken = clashes(moving, wanted)
    free = [facts for oid, facts in moving.items() if oid not in taken]
    texts = {facts.oid: _rename_text(known[facts.oid], facts) for facts in free}
    if free:
        ctx.ledger.tables.save(
            ctx.name, free, [SchemaChange(oid, "rename-table", text, {}) for oid, text in texts.items()]
        )
    for text in texts.values():
        ctx.progress(text)
    for oid, holder in taken.items():
        facts = moving[oid]
        reason = (
            f"the table was renamed from {known[oid].qualified} to {facts.qualified}, and the lake's name for that, "
            f"{'.'.join(facts.renamed_to or facts.target)}, is {known[holder].qualified}'s: rename one of them"
        )
        table_status.stop(ctx, known[oid], Trouble("target-clash", reason, "resume"))
    return True


def clashes(moving: Mapping[int, TableFacts], wanted: Mapping[int, Target]) -> dict[int, int]:
    """Return the tables that cannot have the lake's name of their new one, each with the table that is to have it. Pure.

    `wanted` are the names that tables have, or are to have, by oid.
    """
    taken: dict[int, int] = {}
    while True:
        names = {oid: facts.renamed_to or facts.target for oid, facts in moving.items() if oid not in taken}
        stays = {**wanted, **names}
        holders: dict[Target, int] = {}
        for oid in sorted(stays, key=lambda oid: oid in names):
            holders.setdefault(stays[oid], oid)
        more = {oid: holders[target] for oid, target in names.items() if holders[target] != oid}
        if not more:
            return taken
        taken |= more


def _renamed(record: TableRecord, now: Mapping[int, SourceTable]) -> bool:
    table = now.get(record.oid)
    if table is None or record.left_lsn is not None:
        return False
    if (record.schema, record.name) == (table.schema, table.name):
        return False
    return (record.paused_from_state or record.state) in _FOLLOWED


def with_name(accepted: Accepted, table: SourceTable) -> Accepted:
    """Return what is known under the new name, so that the rest of the look compares what else changed."""
    return replace(accepted, shape=replace(accepted.shape, schema=table.schema, name=table.name))


def _rename_text(before: TableRecord, facts: TableFacts) -> str:
    what = f"{before.qualified} was renamed to {facts.qualified}"
    if facts.renamed_to is not None:
        return f"{what}: {'.'.join(facts.target)} becomes {'.'.join(facts.renamed_to)} in the next cut"
    return f"{what}: it is {'.'.join(facts.target)} in the lake"


def table_facts(ctx: Context, table: SourceTable) -> TableFacts:
    """Return a source table as the ledger keeps it."""
    kept = ctx.ledger.tables.target(ctx.name, table.oid) if ctx.pipeline.lake.on_renamed_table == "keep" else None
    return TableFacts(
        oid=table.oid,
        schema=table.schema,
        name=table.name,
        target=kept or ctx.pipeline.target(table.schema, table.name),
        identity=table.identity,
        columns=tuple(map(column_plan, types.as_chosen(ctx.pipeline, table).columns)),
        accepted=Accepted(table.shape),
    )


def _with_new_name(ctx: Context, known: TableRecord, table: SourceTable) -> TableFacts:
    """Return what the ledger knows of a table, with the source's name of it and what follows for the lake's.

    A table that the lake does not have yet is called by its new name at once.
    """
    target, accepted = ctx.pipeline.target(table.schema, table.name), with_name(known.accepted, table)
    named = replace(known, schema=table.schema, name=table.name, accepted=accepted)
    if ctx.pipeline.lake.on_renamed_table == "keep":
        return named
    if (known.paused_from_state or known.state) in _AT_ONCE:
        return replace(named, target=target, renamed_to=None)
    return replace(named, renamed_to=None if target == known.target else target)
