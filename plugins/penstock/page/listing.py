"""A long list as a page shows it: searched, sorted and cut into pages by what the address says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")

PAGE = 50
"""So many rows stand on one page."""


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
