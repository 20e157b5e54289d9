"""What the plan for a table does to the ledger: the table goes on with what it is now, or waits for a copy."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import LedgerError
from penstock.flow.context import Context
from penstock.flow.schema.questions import Known
from penstock.ledger.records import SchemaChange
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, TableFacts, with_gone
from penstock.shapes.mirror_column import column_plan
from penstock.shapes.plan import Plan
from penstock.shapes.source_table import SourceTable


def retire_rows(ctx: Context, known: Known, decided: Plan, accepted: Accepted, lsn: Lsn) -> Accepted:
    """Make a cut due at which the rows of partitions that are gone go, and return what says which go or stay."""
    names = ", ".join(each.name for each in decided.gone if not each.kept)
    if names and not ctx.ledger.barriers.add(ctx.name, lsn, reason=f"rows of {names} go from {known.qualified}"):
        raise LedgerError(
            "ledger-conflict",
            f"expected {ctx.name} to stand before {lsn}, but a window is planned beyond it; another run is at work: start over",
        )
    through = known.complete_through if isinstance(known, TableRecord) else None
    gone = (replace(each, lsn=lsn) for each in decided.gone)
    return replace(accepted, gone=with_gone(known.accepted, gone, through))


def await_copy(ctx: Context, known: Known, now: SourceTable) -> None:
    """Save what a table is now that has no copy yet: its first copy reads all rows as they are then, whatever the commands did."""
    apply(ctx, known, Plan(tuple(map(column_plan, now.columns)), now.identity), Accepted(now.shape))


def apply(ctx: Context, known: Known, decided: Plan, accepted: Accepted) -> None:
    """Save what was added, and what the catalog looks like now, with the partitions whose rows go."""
    accepted = replace(accepted, gone=accepted.gone or known.accepted.gone)
    if not decided.events and accepted == known.accepted:
        return
    events = followed_changes(known.oid, decided) if known.state == "ready" else ()
    columns, identity = decided.columns, decided.identity or known.identity  # no column where the last one was dropped
    _save(ctx, known, replace(known, columns=columns, identity=identity, accepted=accepted), events)
    if isinstance(known, TableRecord):
        for event in decided.events:
            ctx.progress(f"{known.qualified}: {event.text}")


def keep_open(ctx: Context, known: Known, accepted: Accepted) -> None:
    """Save a table as it was at the look before, which had to leave it open, with what is sure meanwhile."""
    _save(ctx, known, replace(known, accepted=accepted))


def _save(ctx: Context, known: Known, facts_now: TableFacts, events: Sequence[SchemaChange] = ()) -> None:
    if isinstance(known, LoadRecord):
        ctx.ledger.loads.reshape(ctx.name, known.id, facts_now)
    else:
        ctx.ledger.tables.save(ctx.name, [facts_now], events)


def followed_changes(oid: int, decided: Plan) -> list[SchemaChange]:
    """Return what the lake follows by a plan, for the history of the table's shapes."""
    return [
        SchemaChange(oid, event.name, event.text, {"xid": event.xid} if event.xid else {}) for event in decided.events
    ]
