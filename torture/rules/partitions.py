"""The life of partitions: made, loaded and attached, split, detached, emptied, unlogged, dropped."""

from __future__ import annotations

import random

from torture import writers
from torture.model import Model
from torture.rules import MANY, Change, any_leaf, any_ranged, free_range, rows_within, rule, whole
from torture.values import IDS


@rule(3, safe=True)
def new_partition(dice: random.Random, model: Model) -> list[str] | None:
    """Make a partition in its place, and fill it through the root."""
    parent = any_ranged(dice, model)
    if parent is None or (low := free_range(dice, model, parent)) is None:
        return None
    name = model.fresh("part")
    made = f"create table {name} partition of {parent.sql} for values from ({low}) to ({low + 100})"
    root = model.root(parent)
    return [made, *rows_within(dice, root, root.sql, low, low + 100)]


@rule(4)
def attach_filled(dice: random.Random, model: Model) -> Change | None:
    """Load a table and attach it: the everyday way, in one transaction or in several."""
    parent = any_ranged(dice, model)
    if parent is None or (low := free_range(dice, model, parent)) is None:
        return None
    name = model.fresh("part")
    bare = any(column.identity or column.generated for column in parent.columns)
    steps = [
        f"create table {name} (like {parent.sql} including {'all' if not bare else 'defaults including generated including identity'})",
        *rows_within(dice, parent, name, low, low + 100, 4),
        f"alter table {parent.sql} attach partition {name} for values from ({low}) to ({low + 100})",
    ]
    return Change("attach_filled", tuple(steps), atomic=dice.random() < 0.7)


@rule(3)
def split_default(dice: random.Random, model: Model) -> Change | None:
    """Take rows of the default partition into one of their own."""
    found = [(t, child) for t in model.tables for child in model.children(t) if child.bound == "DEFAULT"]
    found = [(parent, child) for parent, child in found if (parent.partitioned or "").startswith("RANGE (id)")]
    if not found:
        return None
    parent, default = dice.choice(found)
    if (low := free_range(dice, model, parent)) is None:
        return None
    name, columns = model.fresh("part"), ", ".join(column.sql for column in parent.free)
    fill = rows_within(dice, parent, model.root(parent).sql, low, low + 100)
    split = (
        f"create table {name} (like {parent.sql} including all)",
        f"with m as (delete from {default.sql} where id >= {low} and id < {low + 100} returning {columns}) "
        f"insert into {name} ({columns}) select {columns} from m",
        f"alter table {parent.sql} attach partition {name} for values from ({low}) to ({low + 100})",
    )
    if dice.random() < 0.5:
        return Change("split_default", tuple(fill))  # another time there is something to split
    return whole("split_default", *split)


@rule(3)
def detach_and_attach(dice: random.Random, model: Model) -> list[str] | None:
    """Detach a partition, change it or not, and attach it again or not."""
    leaf = any_leaf(dice, model)
    if leaf is None or leaf.bound is None:
        return None
    parent = next(table for table in model.tables if table.name == leaf.parent)
    gone = f"alter table {parent.sql} detach partition {leaf.sql}"
    again = f"alter table {parent.sql} attach partition {leaf.sql} {leaf.bound}"
    change = writers.statement(dice, model, leaf)
    return dice.choice(
        ([gone, change, again], [gone, again], [gone, f"truncate {leaf.sql}", again], [gone, f"drop table {leaf.sql}"])
    )


@rule(2)
def short_life(dice: random.Random, model: Model) -> list[str] | None:
    """Make a partition, fill it through the root, and drop, detach or empty it."""
    parent = any_ranged(dice, model)
    if parent is None or (low := free_range(dice, model, parent)) is None:
        return None
    name, root = model.fresh("part"), model.root(parent)
    ends = (
        [f"drop table {name}"],
        [f"truncate {name}"],
        [f"alter table {parent.sql} detach partition {name}", f"drop table {name}"],
    )
    made = f"create table {name} partition of {parent.sql} for values from ({low}) to ({low + 100})"
    return [made, *rows_within(dice, root, root.sql, low, low + 100), *dice.choice(ends)]


@rule(2)
def drop_partition(dice: random.Random, model: Model) -> list[str] | None:
    """Drop a partition with its rows."""
    leaf = any_leaf(dice, model)
    return None if leaf is None or leaf.bound == "DEFAULT" else [f"drop table {leaf.sql}"]


@rule(2)
def truncate_partition(dice: random.Random, model: Model) -> list[str] | None:
    """Empty a partition, which the stream names only where partitions are published."""
    leaf = any_leaf(dice, model)
    return None if leaf is None else [f"truncate {leaf.sql}"]


@rule(2)
def unlogged_partition(dice: random.Random, model: Model) -> list[str] | None:
    """Make a partition that is not logged, fill it, and perhaps let it be logged."""
    parent = any_ranged(dice, model)
    if parent is None or (low := free_range(dice, model, parent)) is None:
        return None
    name, root = model.fresh("part"), model.root(parent)
    steps = [f"create unlogged table {name} partition of {parent.sql} for values from ({low}) to ({low + 100})"]
    steps += rows_within(dice, root, root.sql, low, low + 100)
    return steps + ([f"alter table {name} set logged"] if dice.random() < 0.7 else [])


@rule(2)
def sub_partition(dice: random.Random, model: Model) -> list[str] | None:
    """Make a partition that is partitioned itself."""
    found = [table for table in model.roots if (table.partitioned or "").startswith("RANGE (id)")]
    if not found:
        return None
    parent = dice.choice(found)
    if (low := free_range(dice, model, parent)) is None:
        return None
    name, inner = model.fresh("part"), model.fresh("sub")
    return [
        f"create table {name} partition of {parent.sql} for values from ({low}) to ({low + 100}) partition by range (id)",
        f"create table {inner} partition of {name} for values from ({low}) to ({low + 100})",
        *rows_within(dice, parent, parent.sql, low, low + 100),
    ]


@rule(1)
def new_root(dice: random.Random, model: Model) -> list[str] | None:
    """Make a partitioned table without partitions, or with an unlogged one only."""
    if len(model.roots) > MANY:
        return None
    name = model.fresh("joined")
    made = [f"create table {name} (id int primary key, v int, s text) partition by range (id)"]
    low = dice.randrange(0, IDS, 100)
    leaf = f"create {dice.choice(('', 'unlogged '))}table {model.fresh('part')} partition of {name} for values from ({low}) to ({low + 100})"
    return made + ([leaf] if dice.random() < 0.5 else [])


def repaired(model: Model) -> list[str]:
    """Return what an operator does where a copy is refused: partitions get the identity of their root, and are logged."""
    steps = [f"alter table {table.sql} set logged" for table in model.tables if table.persistence == "u"]
    for leaf in model.tables:
        root = model.root(leaf)
        if leaf is not root and leaf.kind == "r" and leaf.identity != root.identity and root.identity in "fd":
            steps.append(f"alter table {leaf.sql} replica identity {'full' if root.identity == 'f' else 'default'}")
    return steps
