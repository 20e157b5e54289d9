"""Which tables of the lake take other names in the next cut, and which have to wait for that, or for a person.

A name is left and taken in one step, so tables may change places. A name that nobody leaves is waited for if one of this
pipeline's tables has it; if another table has it, the one that was renamed is paused.
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.errors import Trouble
from penstock.flow import table_status
from penstock.flow.context import Context
from penstock.jobs.pointers import Place, Rename, replaced
from penstock.ledger import iceberg_pointers
from penstock.ledger.merge_queue import MergeQueue
from penstock.ledger.table_records import LoadRecord

Target = tuple[str, ...]


def with_free_names(ctx: Context, queue: MergeQueue) -> MergeQueue:
    """Return the queue with the renames that its cut can hold, and without the rebuilds that have to wait for a name."""
    going = {table.oid: table.renamed_to for table in queue.tables if table.state == "ready" and table.renamed_to}
    going |= {each.oid: each.target for each in queue.rebuilds}
    leaving = _leaving(queue)
    holders = {oid: target for oid, target in queue.targets.items() if oid not in leaving}
    waiting = _waiting_for_names(going, holders)
    for oid, holder in waiting.items():
        _note_waiting(ctx, going[oid], oid, holder)
    rebuilds = tuple(each for each in queue.rebuilds if each.oid not in waiting)
    renames = _renames(ctx, replace(queue, rebuilds=rebuilds), {o: t for o, t in going.items() if o not in waiting})
    return replace(queue, rebuilds=rebuilds, renames=renames)


def pause_unnamed(ctx: Context, queue: MergeQueue) -> bool:
    """Pause the tables whose new name in the lake is taken by a table that stays; return whether there were any."""
    wanted = [each for each in queue.renames if each.kind != "aside"]
    if not wanted:
        return False
    places = [place for each in wanted for place in each.places]
    shown = iceberg_pointers.shown(ctx.catalog, ctx.pipeline.lake.catalog, places)
    left = {each.places[0] for each in queue.renames}
    taken = {each.oid: each for each in wanted if _is_taken(each, shown, left)}
    tables = {table.oid: table for table in queue.tables}
    paused = {oid: each for oid, each in taken.items() if oid in tables}
    kept = {table.target for table in (*queue.tables, *queue.dropped) if table.left_lsn is not None}
    for oid, each in paused.items():
        ours = each.kind == "table" and each.to in kept
        whose = (
            "which is kept though the source dropped its table: a copy takes the name from it, or drop it, then resume"
            if ours
            else "which is no table of this pipeline's now: move or drop it, then resume"
        )
        reason = (
            f"the table was renamed to {tables[oid].qualified}, and the lake has another {'.'.join(each.to)}, {whose}"
        )
        table_status.stop(ctx, tables[oid], Trouble.usual("schema-change" if ours else "target-clash", reason))
    return bool(paused)


def _waiting_for_names(wanted: Mapping[int, Target], targets: Mapping[int, Target]) -> dict[int, int]:
    """Return the tables that cannot take their names in this cut, each with the table that has its name. Pure.

    `wanted` are the names that renamed and rebuilt tables are to have, `targets` those of the lake's tables, by oid. Tables
    that were renamed in a circle go together or not at all.
    """
    holders = {target: oid for oid, target in targets.items()}
    going, waiting = dict(wanted), dict[int, int]()
    while True:
        stuck = {oid: holders.get(target, oid) for oid, target in going.items()}
        stuck = {oid: holder for oid, holder in stuck.items() if holder != oid and holder not in going}
        if not stuck:
            return waiting
        for oid, holder in stuck.items():
            waiting[oid] = holder
            del going[oid]


def _leaving(queue: MergeQueue) -> frozenset[int]:
    """Name the tables whose lake tables are to be dropped, in or after this cut: whoever takes their names puts them aside."""
    return frozenset(table.oid for table in queue.tables if table.left_lsn is not None and table.discard) | {
        table.oid for table in queue.dropped if table.discard
    }


def _renames(ctx: Context, queue: MergeQueue, going: Mapping[int, Target]) -> tuple[Rename, ...]:
    """Return what takes another name: tables with their changelogs, and before them what they put aside."""
    rebuilds = {each.oid: each for each in queue.rebuilds}
    found, leaving = list[Rename](), _leaving(queue)
    old = {table.target: table for table in (*queue.tables, *queue.dropped) if table.oid in leaving}
    for oid, target in going.items():
        now = queue.targets.get(oid)
        if now is None or now == target:
            continue
        history = ctx.pipeline.changelog_target
        found.append(_table(ctx, oid, now, target, rebuilds.get(oid)))
        found.append(Rename(oid, history(now), history(target), "changelog"))
        if (gone := old.get(target)) and oid not in rebuilds:
            kept = replaced(ctx.pipeline.namespace, target, f"{gone.oid}_{oid}")
            found.append(Rename(gone.oid, target, kept, "aside"))
    return tuple(found)


def _table(ctx: Context, oid: int, now: Target, target: Target, rebuild: LoadRecord | None) -> Rename:
    """Rename a table, or put aside the one that a rebuilt table of another name replaces."""
    if rebuild is None:
        return Rename(oid, now, target)
    return Rename(oid, now, replaced(ctx.pipeline.namespace, now, rebuild.id), "aside")


def _is_taken(rename: Rename, shown: Mapping[Place, str], left: set[Place]) -> bool:
    now, to = rename.places
    return to in shown and to not in left and (rename.kind == "table" or now in shown)


def _note_waiting(ctx: Context, target: Target, oid: int, holder: int) -> None:
    """Note once which table has the name that another one waits for."""
    names = {each.oid: each.qualified for each in ctx.ledger.tables.all(ctx.name)}
    message = (
        f"{names[oid]} is to be {'.'.join(target)} in the lake, and waits for that name: the table of {names[holder]} has it "
        f"still; resync {names[holder]} too"
    )
    table_status.warn(ctx, "schema-change", message, oid)
