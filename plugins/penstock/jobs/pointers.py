"""What `publish` moves: names of the catalog, each from the metadata file that it must show to a staged one."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

TOLERANCE_SECONDS = 30
"""How far the clocks of ledger, source and Spark's drivers may be apart.

Iceberg refuses a snapshot that is more than a minute older than the newest one of its table. So a driver whose clock is ahead
would keep all others from writing until that time has come.
"""

Place = tuple[str, str]
"""A table's namespace, with dots between its parts, and its name."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """Say where a new table was prepared, what the catalog must show there, and where the old table goes."""

    place: Place
    location: str
    kept: Place


@dataclass(frozen=True, slots=True)
class Pointer:
    """Name one catalog pointer to move: that of a place, from the metadata file it must show to the staged one.

    With `fresh` the name passes to another table: the old one continues under a name of its own, the new one leaves
    the name under which it was prepared. `old` is None where the catalog has no table of this name. `stamped` is the newest time in
    the staged metadata, in milliseconds since 1970, by the clock of the driver.
    """

    place: Place
    old: str | None
    new: str
    fresh: Fresh | None = None
    stamped: int | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """Say which other name a table of the lake takes in a cut: the table of a source table, or what belongs to it.

    `kind` is `table`, `changelog`, or `aside` for a table that makes way; only a table must be there.
    """

    oid: int
    target: tuple[str, ...]
    to: tuple[str, ...]
    kind: Literal["table", "changelog", "aside"] = "table"

    @property
    def places(self) -> tuple[Place, Place]:
        """Return the name that it has, and the one that it takes."""
        return place_of(self.target), place_of(self.to)


def possible(renames: Sequence[Rename], staying: Collection[int] = ()) -> tuple[Rename, ...]:
    """Return the renames that a cut can hold when these tables stay as they are: all of a table's, or none. Pure."""
    stuck = set(staying)
    while True:
        held = {each.target for each in renames if each.oid in stuck}
        more = {each.oid for each in renames if each.to in held} - stuck
        if not more:
            return tuple(each for each in renames if each.oid not in stuck)
        stuck |= more


def aside(namespace: str, target: tuple[str, ...], era: int) -> tuple[str, ...]:
    """Return the name of an era's table before it has taken, and after it has left, its target's name."""
    return _within(namespace, target, f"_penstock_era{era}")


def rebuilt(namespace: str, target: tuple[str, ...], rebuild: str) -> tuple[str, ...]:
    """Return the name of a rebuild's table before it takes its target's name."""
    return _within(namespace, target, f"_penstock_new_{rebuild}")


def replaced(namespace: str, target: tuple[str, ...], rebuild: str) -> tuple[str, ...]:
    """Return the name of the table that was replaced by a rebuild's."""
    return _within(namespace, target, f"_penstock_old_{rebuild}")


def _within(namespace: str, target: tuple[str, ...], folder: str) -> tuple[str, ...]:
    root = tuple(namespace.split("."))
    inner = target[len(root) :] if target[: len(root)] == root and len(target) > len(root) else target
    return (*root, folder, *inner)


def is_left_behind(namespace: str, found: str, era: int, rebuilds: Collection[str]) -> bool:
    """Return whether a namespace of the catalog holds tables that were replaced or given up.

    Those of the present `era` and of the open `rebuilds` are being filled.
    """
    aside = re.fullmatch(rf"{re.escape(namespace)}\._penstock_(era|new_|old_)(\w+)(\..+)?", found)
    if aside is None:
        return False
    kind, name = aside[1], aside[2]
    return {"old_": True, "new_": name not in rebuilds, "era": name.isdigit() and int(name) < era}[kind]


def place_of(target: tuple[str, ...]) -> Place:
    """Return a table's place in the catalog."""
    return ".".join(target[:-1]), target[-1]
