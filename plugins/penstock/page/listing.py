"""A long list as a page shows it: searched, sorted and cut into pages by what the address says. Pure.

Below are the lists that there are: by which keys they are sorted, and which words of a row count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.ledger.page import TablePanel
from penstock.page.pipeline import Pipeline
from penstock.page.runbook_pages import Runbook

Item = TypeVar("Item")

PAGE = 50
"""So many rows stand on one page."""
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
    "unread": lambda each: each.slot["unread_bytes"] if each.slot else None,
    "retained": lambda each: each.slot["retained_bytes"] if each.slot else None,
    "changes": lambda each: each.unmerged_changes,
}


@dataclass(frozen=True)
class Wanted:
    """Say which part of a list to show: rows with every word of `query`, by the key `sort` (`-` before it: largest first)."""

    query: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True)
class Listing(Generic[Item]):
    """Hold the rows of one page, and of how many they are; `pages` is at least 1, `wanted.page` one of them."""

    rows: list[Item]
    found: int
    total: int
    pages: int
    wanted: Wanted


def listing(
    rows: Sequence[Item],
    wanted: Wanted,
    *,
    keys: Mapping[str, Callable[[Item], Any]],
    words: Callable[[Item], str],
    size: int = PAGE,
) -> Listing[Item]:
    """Return the wanted part; rows come as given without a known key, and those without a value last."""
    asked = wanted.query.casefold().split()
    found = [each for each in rows if all(word in words(each).casefold() for word in asked)]
    name, falling = wanted.sort.lstrip("-"), wanted.sort.startswith("-")
    if name in keys:
        have = [each for each in found if keys[name](each) is not None]
        have.sort(key=keys[name], reverse=falling)
        found = have + [each for each in found if keys[name](each) is None]
    else:
        name = ""
    pages = max(1, -(-len(found) // size))
    page = min(max(wanted.page, 1), pages)
    taken = found[(page - 1) * size : page * size]
    known = Wanted(wanted.query, f"{'-' if falling else ''}{name}" if name else "", page)
    return Listing(taken, len(found), len(rows), pages, known)


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
