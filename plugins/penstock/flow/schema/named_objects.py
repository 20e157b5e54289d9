"""Columns whose text is the name of another object, told once when they come: what becomes of that name is in no stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.flow.context import Context
from penstock.shapes import object_names
from penstock.shapes.source_table import SourceTable
from penstock.shapes.steps import ADDED_ONLY, Policy


def note(ctx: Context, tables: Iterable[SourceTable]) -> None:
    """Record an event for each table that has such columns, unless the last one of it says the same."""
    for table in tables:
        columns = object_names.others(table)
        if not columns:
            continue
        message = f"{table.qualified} has {object_names.named(columns)}: {object_names.LOST}"
        if ctx.ledger.events.add_on_change(
            ctx.name, slug=object_names.SLUG, level="warning", message=message, table_oid=table.oid
        ):
            ctx.progress(f"[{object_names.SLUG}] {message}")


def added_only(ctx: Context, now: SourceTable | None) -> Policy:
    """Return that added columns alone are followed, and whether updates and deletes are sent, where that matters for a table."""
    if now is None or object_names.problem(now) is None:
        return ADDED_ONLY
    publishing = ctx.ledger.pipelines.get(ctx.name).publishing
    return replace(ADDED_ONLY, sends_old=publishing is None or bool({"update", "delete"} & set(publishing.sent)))
