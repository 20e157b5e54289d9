"""Verify without a barrier: compare source and lake as both are now, for a source without writers or a paused table.

What is written meanwhile, or not merged yet, shows as a difference. So nothing is recorded, and no alarm opens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.conditions import Directive
from penstock.errors import LedgerError
from penstock.flow.context import Context
from penstock.flow.guards import require_named
from penstock.flow.verify.compare import compare
from penstock.flow.verify.report import Verification, finding

__all__ = ["verify_now"]


def verify_now(
    ctx: Context, *, tables: Sequence[str] = (), lake_properties: Mapping[str, str] | None = None
) -> Verification:
    """Compare these tables, or all, paused ones too; a difference and an unreadable table are findings.

    Raises LedgerError("not-bootstrapped") where there is no table yet, ConfigError("table-unknown"), SourceError, LedgerError or LakeError for what concerns all tables, and, once all are
    compared, what alerts a person at once, such as a damaged source.
    """
    known = [record for record in ctx.ledger.tables.all(ctx.name) if record.state != "dropped"]
    if not known:  # "all equal" of nothing would be taken for an answer
        raise LedgerError(
            "not-bootstrapped", f"expected pipeline {ctx.name} to have tables to compare, it has none yet; bootstrap it"
        )
    records = require_named(known, tables) if tables else known
    found = compare(ctx, records, lake_properties=lake_properties)
    for trouble in found.unreadable.values():
        if trouble.directive is Directive.PAGE:
            raise trouble
    oids = {record.target: record.oid for record in records}
    return Verification(tuple(finding(oids[each.target], each) for each in found.tables))
