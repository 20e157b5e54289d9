"""What a use case requires before any work: a pipeline that is not halted, or that runs, and tables that it has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from penstock.errors import ConfigError, LedgerError
from penstock.flow.context import Context
from penstock.flow.expected_state import ExpectedState
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn


def running(ctx: Context) -> ExpectedState:
    """Return what the ledger knows of the pipeline; raises LedgerError when it cannot be worked on now."""
    record = ctx.ledger.pipelines.get(ctx.name)
    if record.state == "halted":
        raise LedgerError(
            "pipeline-halted",
            f"pipeline {ctx.name} was halted by {record.halted_slug}: {record.halted_reason} "
            f"Follow docs/runbooks/{record.halted_slug}.md, then resume it",
        )
    return ExpectedState.of(record)


def require_running(ctx: Context) -> Lsn:
    """Return where a pipeline that runs has got to; raises LedgerError("pipeline-halted" | "not-bootstrapped")."""
    running(ctx)
    record = ctx.ledger.pipelines.get(ctx.name)
    if record.state != "running" or record.position is None:
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
