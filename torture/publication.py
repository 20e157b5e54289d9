"""What an owner may do to the publication without Penstock; it is put right before a round is compared."""

from __future__ import annotations

import random

from torture import writers
from torture.model import Model, Table, quoted
from torture.values import IDS

ALL = "insert, update, delete, truncate"


def change(dice: random.Random, model: Model, name: str) -> list[str] | None:
    """Return statements that change the publication, or change something while it is narrower, perhaps with the way back."""
    published = [table for table in model.roots if (table.schema, table.name) in model.published]
    if not published:
        return None
    table, publication = dice.choice(published), quoted(name)
    there, back = dice.choice(_kinds(dice, table, publication))
    between = [writers.statement(dice, model, table) for _ in range(dice.randint(1, 3))]
    return dice.choice(([there, *between, back], [there, back], [there, *between]))


def restored(model: Model, name: str) -> list[str]:
    """Return what makes the publication whole again."""
    publication = quoted(name)
    plain = [f"alter publication {publication} set (publish = '{ALL}', publish_via_partition_root = true)"]
    members = [table for table in model.roots if (table.schema, table.name) in model.published]
    narrowed = [table for table in members if _narrow(table, model)]
    if narrowed:
        listed = ", ".join(
            f"table only {table.sql}" if table.kind == "r" else f"table {table.sql}" for table in members
        )
        plain.append(f"alter publication {publication} set {listed}")
    return plain


def whole(options: tuple[bool, ...], model: Model) -> bool:
    """Return whether everything is published: by these options, and of every member."""
    members = [table for table in model.roots if (table.schema, table.name) in model.published]
    return all(options) and not any(_narrow(table, model) for table in members)


def _narrow(table: Table, model: Model) -> bool:
    published = model.published[table.schema, table.name]
    return published.filtered or published.columns is not None


def _kinds(dice: random.Random, table: Table, publication: str) -> list[tuple[str, str]]:
    alter = f"alter publication {publication}"
    options = [
        (f"{alter} set (publish = '{less}')", f"{alter} set (publish = '{ALL}')")
        for less in ("insert", "insert, update", "insert, update, delete")
    ]
    options.append(
        (f"{alter} set (publish_via_partition_root = false)", f"{alter} set (publish_via_partition_root = true)")
    )
    back = f"{alter} add table {table.sql}"
    options.append((f"{alter} drop table {table.sql}", back))
    if table.key:
        columns = ", ".join(map(quoted, table.key))
        out = f"{alter} drop table {table.sql}; {back}"
        options.append((f"{out} ({columns})", f"{alter} drop table {table.sql}; {back}"))
        if "id" in table.key:
            options.append((f"{out} where (id < {dice.randrange(IDS)})", f"{alter} drop table {table.sql}; {back}"))
    return options
