"""What stands around the work of a use case: what it requires of the pipeline, its slot and its tables, and what follows from an error.

A slot of the pipeline's name says neither who made it nor when. But the ledger knows for which pipeline, on which server, and through
which position that one was read: a slot begins at its maker's time, so one that begins beyond that position was made later, by another.
Teardown, recovery and slot health drop only what this rule calls ours (`why_not_ours`).
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from penstock.conditions import Directive, with_runbook
from penstock.errors import ConfigError, LedgerError, PenstockError
from penstock.flow.context import Context
from penstock.ledger.records import ActivePipeline, PipelineRecord
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.source.server_info import ServerFacts
from penstock.source.slot import SlotFacts


def running(ctx: Context) -> ActivePipeline:
    """Return what the ledger knows of the pipeline; raises LedgerError when it cannot be worked on now."""
    return ctx.ledger.pipelines.get(ctx.name).active()


def require_running(ctx: Context) -> Lsn:
    """Return where a pipeline that runs has got to; raises LedgerError("pipeline-halted" | "not-bootstrapped")."""
    record = running(ctx)
    if record.state != "running":
        raise LedgerError(
            "not-bootstrapped", f"expected pipeline {ctx.name} to run, but it is {record.state}; let its copy end first"
        )
    return record.position


def slot_work(ctx: Context) -> AbstractContextManager[None]:
    """Hold the right to read, move or drop the pipeline's slot, which is free between a peek and its confirmation.

    The lock is the ledger's: whoever may connect to the source could take one there. Two ledgers that share a slot learn of each
    other by where it stands (`capture/slot_check.py`). Raises LedgerError("work-under-way").
    """
    return ctx.ledger.locks.hold(ctx.name, "slot")


def tables_by_name(known: Iterable[TableRecord]) -> dict[str, TableRecord]:
    """Return tables as `schema.table`; of those that share a name the one that is there, not one that was dropped."""
    present_last = sorted(known, key=lambda record: record.state != "dropped")
    return {record.qualified: record for record in present_last}


def require_named(known: Sequence[TableRecord], tables: Sequence[str]) -> list[TableRecord]:
    """Return the tables of these names, each once; raises ConfigError("table-unknown") with the nearest name."""
    by_name = tables_by_name(known)
    if not tables:
        raise ConfigError("table-unknown", f"expected at least one table of {', '.join(sorted(by_name))}, got none")
    for table in tables:
        if table not in by_name:
            nearest = difflib.get_close_matches(table, by_name, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(sorted(by_name)) or 'none'}"
            raise ConfigError("table-unknown", f"expected a table of the pipeline as schema.table, got {table}; {hint}")
    return [by_name[table] for table in dict.fromkeys(tables)]


@contextmanager
def record_errors(ctx: Context) -> Iterator[None]:
    """Record a PenstockError of the block in the ledger, halt the pipeline if its kind says so, and raise it on."""
    try:
        yield
    except PenstockError as error:
        ctx.progress(with_runbook(str(error), error.slug))
        with suppress(LedgerError):  # the first error is the one to show; the ledger may be what failed
            _record(ctx, error)
        raise


def _record(ctx: Context, error: PenstockError) -> None:
    if error.directive is Directive.HALT and error.slug != "pipeline-halted":
        ctx.ledger.pipelines.halt(ctx.name, slug=error.slug, reason=error.message)
    ctx.ledger.events.add(
        ctx.name,
        slug=error.slug,
        level="warning" if error.directive is Directive.RETRY else "error",
        message=error.message,
    )


def why_not_ours(record: PipelineRecord, found: SlotFacts, server: ServerFacts) -> str | None:
    """Say why a slot of the pipeline's name is not ours to drop, or None when it is."""
    kind = f"plugin {found.plugin or 'none (a physical slot)'}, database {found.database}"
    as_made = found.plugin == "pgoutput" and found.database == record.database and not found.temporary
    elsewhere = record.system_identifier != server.system_identifier
    later = f"it begins beyond {record.position}, through which Penstock has read: another has made it anew, or reads it for long"
    reasons = (
        (record.state == "torn_down", "the pipeline is torn down, so it owns none"),
        (record.slot_intent_at is None, "this pipeline has never made one"),
        (not record.slot_made, "it was adopted, not made by Penstock"),
        (record.slot != found.name, f"the slot that Penstock made is {record.slot}"),
        (elsewhere, "this server is another one than that on which Penstock made its slot"),
        (not as_made, f"it is not one as Penstock makes: {kind}"),
        (found.synced, "it is synchronised from a primary, which alone can drop it"),
        (_begins_later(record, found), later),
    )
    return next((reason for applies, reason in reasons if applies), None)


def _begins_later(record: PipelineRecord, found: SlotFacts) -> bool:
    """Return whether a slot may have been made after the newest position of ours.

    Making one reserves the WAL from the end of that moment on. Ours keeps WAL from before our position, unless it was lost, or
    another session has read on for long.
    """
    if record.position is None or found.confirmed is None or found.confirmed <= record.position:
        return False
    return found.restart is None or found.restart >= record.position
