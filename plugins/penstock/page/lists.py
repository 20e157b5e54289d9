"""The lists that can be searched and sorted: by which keys, and which words of a row count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.ledger.table_page import TablePanel
from penstock.page.listing import Listing, Wanted, listing
from penstock.page.pipeline import Pipeline
from penstock.page.runbook_pages import Runbook

_TABLES: Mapping[str, Callable[[TablePanel], Any]] = {
    "name": lambda each: each.name,
    "state": lambda each: each.state,
    "rows": lambda each: each.rows,
    "bytes": lambda each: each.bytes,
    "changes": lambda each: each.changes,
    "changed": lambda each: each.changed_at,
    "verified": lambda each: each.verified_at,
}
_PIPELINES: Mapping[str, Callable[[Pipeline], Any]] = {
    "name": lambda each: each.name,
    "state": lambda each: each.state,
    "behind": lambda each: each.freshness_seconds,
    "unread": lambda each: each.slot.unread_bytes if each.slot else None,
    "retained": lambda each: each.slot.retained_bytes if each.slot else None,
    "changes": lambda each: each.unmerged_changes,
}


def runbook_list(runbooks: Sequence[Runbook], wanted: Wanted) -> Listing[Runbook]:
    """Return the runbooks whose name or text holds the wanted words, those whose name does first; all on one page."""
    words = wanted.query.casefold().split()
    first = sorted(runbooks, key=lambda each: (not all(word in each.name for word in words), each.name))
    return listing(first, wanted, keys={}, words=lambda each: f"{each.name} {each.text}", size=len(runbooks) or 1)


def table_list(tables: Sequence[TablePanel], wanted: Wanted) -> Listing[TablePanel]:
    """Return the wanted tables: by default the paused ones first, then those not ready yet, then the others."""
    return listing(tables, wanted, keys=_TABLES, words=lambda each: f"{each.name} {each.target} {each.state}")


def pipeline_list(pipelines: Sequence[Pipeline], wanted: Wanted) -> Listing[Pipeline]:
    """Return the wanted pipelines: by default what is worst first."""
    return listing(
        pipelines, wanted, keys=_PIPELINES, words=lambda each: f"{each.name} {each.database or ''} {each.state}"
    )
