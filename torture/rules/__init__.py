"""What an application may do to a database's tables: each rule is a name, how dangerous it is, and a pure function.

A rule gets a random generator and the catalog as it is now, and returns a change: statements in order, in one transaction
or each in its own, or None where the tables of the moment offer nothing to do it to. It may fail at the server; that is counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from torture.model import Column, Model, Table
from torture.values import literal


@dataclass(frozen=True)
class Change:
    """Hold the statements of one rule; in one transaction if `atomic`."""

    rule: str
    statements: tuple[str, ...]
    atomic: bool = False


Build = Callable[[random.Random, Model], "Change | list[str] | None"]


@dataclass(frozen=True)
class Rule:
    """Name a rule; a `safe` one is followed or noticed by any mirror that deserves the name."""

    name: str
    weight: int
    safe: bool
    build: Build


RULES: list[Rule] = []


def rule(weight: int = 2, *, safe: bool = False) -> Callable[[Build], Build]:
    """Register a function of this module as a rule."""

    def register(build: Build) -> Build:
        RULES.append(Rule(build.__name__, weight, safe, build))
        return build

    return register


def whole(name: str, *statements: str) -> Change:
    """Make a change of one transaction."""
    return Change(name, statements, atomic=True)


# --- choosing ---------------------------------------------------------------------------------------

MANY = 22
"""Roots that there may be; beyond, no table is made."""

ORDINARY = ("integer", "bigint", "text", "numeric(10,2)", "boolean", "uuid", "timestamp with time zone", "jsonb")


def any_root(dice: random.Random, model: Model, kind: str | None = None) -> Table | None:
    """Choose a table, of one kind if named."""
    found = [table for table in model.roots if (kind is None or table.kind == kind) and len(table.columns) < 25]
    return dice.choice(found) if found else None


def any_column(dice: random.Random, table: Table | None, *types: str) -> Column | None:
    """Choose a column outside the key, of one of these types where some are named."""
    if table is None:
        return None
    inner = partition_columns(table)
    found = [
        column
        for column in table.columns
        if column.name not in table.key
        and column.name not in inner
        and not column.generated
        and (not types or column.type.partition("(")[0] in types)
    ]
    return dice.choice(found) if found else None


def partition_columns(table: Table) -> set[str]:
    """Name the columns that say in which partition a row lies."""
    text = table.partitioned or ""
    return {column.name for column in table.columns if column.name in text}


def fresh_column(dice: random.Random, table: Table) -> str:
    """Return a name that no column of the table has."""
    taken = {column.name for column in table.columns}
    return next(name for _ in range(1000) if (name := f"c{dice.randrange(1000)}") not in taken)


def any_with(dice: random.Random, model: Model, *types: str) -> tuple[Table, Column] | None:
    """Choose a table that has such a column, and the column."""
    tables = [table for table in model.roots if any_column(random.Random(0), table, *types)]
    table = dice.choice(tables) if tables else None
    column = any_column(dice, table, *types)
    return (table, column) if table and column else None


def any_leaf(dice: random.Random, model: Model) -> Table | None:
    """Choose a partition that holds rows."""
    found = [table for table in model.tables if table.parent is not None and table.kind == "r"]
    return dice.choice(found) if found else None


def free_range(dice: random.Random, model: Model, parent: Table) -> int | None:
    """Return the begin of a hundred ids that no partition of the parent has by name of its bound."""
    bounds = " ".join(child.bound or "" for child in model.children(parent))
    free = [low for low in range(400, 3000, 100) if f"({low})" not in bounds.replace("'", "")]
    return dice.choice(free) if free else None


def any_ranged(dice: random.Random, model: Model) -> Table | None:
    """Choose a table that is partitioned by ranges of ids."""
    found = [table for table in model.tables if (table.partitioned or "").startswith("RANGE (id)")]
    return dice.choice(found) if found else None


def rows_within(dice: random.Random, table: Table, into: str, low: int, high: int, count: int = 3) -> list[str]:
    """Write inserts of some rows of a table, whose id lies in a range, into one of this name in SQL."""
    names = ["id", *(column.name for column in table.free if column.name != "id" and not column.default)]
    chosen = [table.column(name) for name in names]
    return [
        f"insert into {into} ({', '.join(column.sql for column in chosen)}) values "
        f"({dice.randrange(low, high)}, {', '.join(literal(dice, column, {}) for column in chosen[1:])}) on conflict do nothing"
        for _ in range(count)
    ]
