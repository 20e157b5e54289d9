"""Teardown: drop the pipeline's slot and publication at the source; the lake and the landing zone stay."""

from penstock.flow import guards
from penstock.flow.context import Context
from penstock.flow.guards import slot_work
from penstock.flow.health import alarms
from penstock.ledger.records import PipelineRecord
from penstock.source import publication, server_info, session, slot
from penstock.source.publication import PublicationFacts


def teardown(ctx: Context, *, dry_run: bool = True) -> list[str]:
    """Return the statements that end the pipeline, and carry them out unless `dry_run`.

    What Penstock did not make is left alone: an adopted slot or publication, a slot of the same name on another
    server. Raises SourceError("slot-in-use") for an active slot, LedgerError: "not-bootstrapped", "work-under-way".
    """
    statements: list[str] = []
    record = ctx.ledger.pipelines.get(ctx.name)
    with session.connect(ctx.source, what=f"{ctx.name}:teardown") as conn, slot_work(ctx):
        found = slot.read_slot(conn, record.slot)
        if found is not None:
            strange = guards.why_not_ours(record, found, server_info.read_server(conn))
            if strange is None:
                statements.append(slot.drop_statement(record.slot))
                if not dry_run:
                    slot.drop(conn, record.slot)
            else:
                ctx.progress(f"slot {record.slot} stays: {strange}")
        published = publication.read_publication(conn, ctx.pipeline.publication)
        if published is not None and _is_ours(record, published):
            statements.append(publication.drop_statement(ctx.pipeline.publication))
            if not dry_run:
                publication.drop(conn, ctx.pipeline.publication)
    for statement in statements:
        ctx.progress(("would run: " if dry_run else "ran: ") + statement)
    if not dry_run:
        ctx.ledger.pipelines.tear_down(ctx.name)
        alarms.close_paged(ctx)
    return statements


def _is_ours(record: PipelineRecord, published: PublicationFacts) -> bool:
    """Return whether a publication is the one that this pipeline made: not another installation's for one of the same name."""
    known = record.publication_oid in (None, published.oid)
    return record.state != "torn_down" and known and published.made_for(record.name)
