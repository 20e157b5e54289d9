"""The copy of a resync: under a snapshot of its own, beside a table that stays as it is, resumable table by table.

No slot has a part in it, so no WAL is kept for it, and capture goes on. What a table looks like is read before and after
the snapshot is taken, and once more when the copy is done: a table that was rewritten meanwhile is copied again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import SourceError
from penstock.flow import drift
from penstock.flow.context import Context
from penstock.flow.copying import copied_files, copy_tables
from penstock.flow.drift import table_facts
from penstock.flow.joined import require_joined
from penstock.flow.spark_job import Submit
from penstock.lake.pointers import rebuilt
from penstock.ledger import new_attempt
from penstock.ledger.records import RebuildRecord, TableFacts
from penstock.source import catalog, session, slot
from penstock.source.tables import SourceTable

_TRIES = 5


def copy(ctx: Context, ids: Sequence[str], submit: Submit) -> None:
    """Copy the tables of these rebuilds that have no whole copy yet; raises SourceError, LakeError, LedgerError."""
    collect(ctx, ids)
    for _ in range(_TRIES):
        pending = _pending(ctx, ids)
        if not pending:
            return
        _copy(ctx, pending, submit)
    raise SourceError(
        "snapshot-gone",
        f"expected {', '.join(each.qualified for each in _pending(ctx, ids))} to stay as they are while they are copied, "
        f"but they were changed or rewritten in each of {_TRIES} tries; run again when that is over",
    )


def published(ctx: Context, *, sizes: bool = False) -> dict[int, SourceTable]:
    """Return the tables of the publication as they are now, by oid."""
    with session.connect(ctx.source, what=f"{ctx.name}:resync") as conn:
        return {table.oid: table for table in catalog.published_tables(conn, ctx.pipeline.publication, sizes=sizes)}


def collect(ctx: Context, ids: Sequence[str]) -> None:
    """Record the copies that are proved by their results, and leave those to be made again that cannot be trusted."""
    results = {each.id: copied_files(ctx, each.copy_id, each.oid) for each in _pending(ctx, ids) if each.copy_id}
    if not any(files is not None for files in results.values()):
        return
    now = published(ctx)
    for rebuild in _pending(ctx, ids):
        files = results.get(rebuild.id)
        if files is None or _rewritten(ctx, rebuild, now.get(rebuild.oid)):
            continue
        ctx.ledger.finish_rebuild_copy(ctx.name, rebuild, files)


def _pending(ctx: Context, ids: Sequence[str]) -> list[RebuildRecord]:
    return [each for each in ctx.ledger.rebuilds(ctx.name, states=["copying"]) if each.id in ids]


def _copy(ctx: Context, pending: Sequence[RebuildRecord], submit: Submit) -> None:
    oids = {each.oid for each in pending}
    require_joined(ctx, [table for table in ctx.ledger.tables(ctx.name) if table.oid in oids])
    before = published(ctx)
    with slot.export_snapshot(ctx.source, what=f"{ctx.name}:resync") as exported:
        sources = published(ctx, sizes=True)
        steady = [each for each in pending if _same(ctx, before.get(each.oid), sources.get(each.oid))]
        for each in pending:
            if each.oid not in sources:
                _left(ctx, each)
        if not steady:
            return
        copy_id = new_attempt()
        facts = {each.id: table_facts(ctx, sources[each.oid]) for each in steady}
        ctx.ledger.start_rebuild_copy(
            ctx.name,
            copy_id=copy_id,
            snapshot=exported.snapshot,
            lsn=exported.lsn,
            facts=facts,
            places=_places(ctx, facts),
        )
        try:
            copy_tables(ctx, exported, copy_id, [sources[each.oid] for each in steady], submit)
        finally:
            collect(ctx, [each.id for each in steady])


def _places(ctx: Context, facts: Mapping[str, TableFacts]) -> dict[str, tuple[str, ...]]:
    return {id_: rebuilt(ctx.pipeline.namespace, table.target, id_) for id_, table in facts.items()}


def _same(ctx: Context, before: SourceTable | None, now: SourceTable | None) -> bool:
    """Tell whether a table was the same before and after the snapshot was taken, and so in it, too."""
    return before is not None and now is not None and table_facts(ctx, before) == table_facts(ctx, now)


def _left(ctx: Context, rebuild: RebuildRecord) -> None:
    reason = f"{rebuild.qualified} was dropped, or left the publication"
    ctx.ledger.give_up_rebuild(ctx.name, rebuild, slug="rebuild-given-up", reason=reason)
    raise SourceError("rebuild-given-up", f"expected the tables to stay while they are copied, but {reason}")


def _rewritten(ctx: Context, rebuild: RebuildRecord, now: SourceTable | None) -> bool:
    """Tell whether rows may be missing from a copy: an older snapshot reads nothing of a table rewritten since."""
    if now is None:
        _left(ctx, rebuild)
        return True
    decided = drift.verdict(rebuild.columns, rebuild.identity, rebuild.catalog_digest, now)
    if decided.reason is not None or drift.storage(rebuild.catalog_digest) != drift.storage(now.digest()):
        ctx.progress(f"{rebuild.qualified}: {decided.reason or 'rewritten while it was copied'}; copying it again")
        return True
    if decided.added:
        ctx.ledger.reshape_rebuild(ctx.name, rebuild.id, drift.grown(rebuild, decided, now))
    return False
