"""Teardown: drop the pipeline's slot and publication at the source; the lake and the landing zone stay."""

from __future__ import annotations

from penstock.flow.context import Context
from penstock.source import lock, publication, session, slot


def teardown(ctx: Context, *, dry_run: bool = True) -> list[str]:
    """Return the statements that end the pipeline, and carry them out unless `dry_run`.

    An active slot is refused (SourceError "slot-in-use"); an adopted slot or publication is left alone.
    """
    statements: list[str] = []
    with session.connect(ctx.source, what=f"{ctx.name}:teardown") as conn, lock.hold(conn, ctx.name):
        if not ctx.pipeline.source.adopt and slot.read(conn, ctx.pipeline.slot) is not None:
            statements.append(f"select pg_drop_replication_slot('{ctx.pipeline.slot}')")
            if not dry_run:
                slot.drop(conn, ctx.pipeline.slot)
        found = publication.read(conn, ctx.pipeline.publication)
        if found is not None and found.made_for(ctx.name):
            statements.append(publication.drop_statement(ctx.pipeline.publication))
            if not dry_run:
                publication.drop(conn, ctx.pipeline.publication)
    for statement in statements:
        ctx.progress(("would run: " if dry_run else "ran: ") + statement)
    if not dry_run:
        ctx.ledger.tear_down(ctx.name)
    return statements
