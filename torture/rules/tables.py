"""Tables made, dropped, renamed, moved, rewritten; their names, keys and replica identities."""

from __future__ import annotations

import random

from torture import writers
from torture.model import Model, quoted
from torture.rules import MANY, Change, any_leaf, any_root, fresh_column, rule, whole
from torture.values import row

NAMES = (
    "nest/data",
    "nest/metadata",
    "a.b",
    "..",
    "tab\tbed",
    "what?#[*]%41",
    "größe",
    "${env:HOME}",
    "${spark.master}",
    "Two\nLines",
)
COLUMN_NAMES = (
    "${env:PATH}",
    "_file",
    "_pos",
    "_partition",
    "_row_id",
    "_deleted",
    "_spec_id",
    "_misfits",
    "_last_updated_sequence_number",
    "a b",
    "ünï",
    "select",
)


@rule(2, safe=True)
def new_table(dice: random.Random, model: Model) -> list[str] | None:
    """Make a table that joins."""
    if len(model.roots) > MANY:
        return None
    name = model.fresh("joined")
    return [
        f"create table {name} (id int primary key, v int, s text)",
        f"insert into {name} select n, n * 2, 'born ' || n from generate_series(1, {dice.randrange(1, 40)}) n",
    ]


@rule(2)
def new_table_of_odd_names(dice: random.Random, model: Model) -> list[str] | None:
    """Make a table with a name, or with columns, that files, Spark and readers may trip over."""
    if len(model.roots) > MANY:
        return None
    taken = {table.name for table in model.tables}
    free = [name for name in NAMES if name not in taken]
    name = quoted(dice.choice(free)) if free and dice.random() < 0.6 else model.fresh("odd")
    columns = dice.sample(COLUMN_NAMES, 2)
    key = "id int primary key" if dice.random() < 0.7 else "id int"
    steps = [
        f"create table {name} ({key}, {', '.join(f'{quoted(each)} text' for each in columns)}, v int)",
        f"insert into {name} (id, v) select n, n from generate_series(1, 9) n",
    ]
    return [*steps[:1], *([] if "primary" in key else [f"alter table {name} replica identity full"]), *steps[1:]]


@rule(2, safe=True)
def drop_table(dice: random.Random, model: Model) -> list[str] | None:
    """Drop a table that joined."""
    made = [table for table in model.roots if table.name.startswith(("joined", "odd")) or not table.name.isalpha()]
    return [f"drop table {dice.choice(made).sql} cascade"] if len(made) > 1 else None


@rule(2)
def drop_and_make(dice: random.Random, model: Model) -> Change | None:
    """Drop a table and make one of the same name, with other rows."""
    if (table := any_root(dice, model, "r")) is None:
        return None
    made = f"{table.name}_"
    return whole(
        "drop_and_make",
        f"create table {quoted(made)} (like {table.sql} including all)",
        f"alter table {quoted(made)} replica identity {'full' if not table.key or table.identity == 'f' else 'default'}",
        f"insert into {quoted(made)} {row(dice, table, model)}",
        f"drop table {table.sql} cascade",
        f"alter table {quoted(made)} rename to {quoted(table.name)}",
    )


@rule(3)
def swap_tables(dice: random.Random, model: Model) -> Change | None:
    """Exchange the names of two tables."""
    found = [table for table in model.roots if table.kind == "r"]
    if len(found) < 2:
        return None
    one, other = dice.sample(found, 2)
    return Change(
        "swap_tables",
        (
            f"alter table {one.sql} rename to tmp_",
            f"alter table {other.sql} rename to {quoted(one.name)}",
            f"alter table tmp_ rename to {quoted(other.name)}",
        ),
        atomic=dice.random() < 0.5,
    )


@rule(2)
def rename_table(dice: random.Random, model: Model) -> list[str] | None:
    """Rename a table, perhaps with changes and back."""
    if (table := any_root(dice, model)) is None:
        return None
    name = model.fresh("renamed")
    there = f"alter table {table.sql} rename to {name}"
    back = f"alter table {name} rename to {quoted(table.name)}"
    return [there, back] if dice.random() < 0.6 else [there]


@rule(2)
def move_schema(dice: random.Random, model: Model) -> list[str] | None:
    """Move a table out of the published schema, change it there, and move it back."""
    if (table := any_root(dice, model)) is None:
        return None
    away = f"aside.{quoted(table.name)}"
    there = f"alter table {table.sql} set schema aside"
    change = writers.delete(dice, model, table).replace(table.sql, away)
    return [there, change, f"alter table {away} set schema public"]


@rule(2)
def unlogged_for_a_while(dice: random.Random, model: Model) -> list[str] | None:
    """Keep a table, or a partition, out of the log for some changes."""
    table = any_leaf(dice, model) if dice.random() < 0.6 else any_root(dice, model, "r")
    if table is None:
        return None
    change = writers.statement(dice, model, table)
    return [f"alter table {table.sql} set unlogged", change, f"alter table {table.sql} set logged"]


@rule(3)
def other_identity(dice: random.Random, model: Model) -> list[str] | None:
    """Change the replica identity, perhaps with changes and back; of partitions, too."""
    table = any_leaf(dice, model) if dice.random() < 0.5 else any_root(dice, model)
    if table is None:
        return None
    unique = [f"using index {index.name}" for index in table.indexes if index.unique]
    to = dice.choice(["full", "full", "nothing", "default", *unique])
    now = {"f": "full", "n": "nothing", "d": "default", "i": "default"}[table.identity]
    there, back = (f"alter table {table.sql} replica identity {each}" for each in (to, now))
    return [there, writers.delete(dice, model, table), back] if dice.random() < 0.6 else [there]


@rule(2)
def other_key(dice: random.Random, model: Model) -> list[str] | None:
    """Give a table another primary key, perhaps with other columns; where whole rows come also one that the server enforces late."""
    if (table := any_root(dice, model, "r")) is None:
        return None
    primary = [index for index in table.indexes if index.primary]
    if not primary:
        return [f"alter table {table.sql} add primary key (id)"]
    drop = f"alter table {table.sql} drop constraint {primary[0].name} cascade"
    late = " deferrable" if table.identity == "f" and dice.random() < 0.5 else ""
    return [drop, *([f"alter table {table.sql} add primary key (id){late}"] if dice.random() < 0.8 else [])]


@rule(3)
def key_of_another_column(dice: random.Random, model: Model) -> Change | None:
    """Move the primary key to a column that is filled for it, perhaps with rows between and back again."""
    if (table := any_root(dice, model, "r")) is None or len(table.key) != 1:
        return None
    primary = [index.name for index in table.indexes if index.primary]
    if not primary:
        return None
    (old,), name = table.key, fresh_column(dice, table)
    alter, key = f"alter table {table.sql}", quoted(old)
    there = [
        f"{alter} add column {name} text",
        f"update {table.sql} set {name} = 'k' || {key}",
        f"{alter} drop constraint {primary[0]} cascade, add constraint {primary[0]} primary key ({name})",
    ]
    between = [
        f"update {table.sql} set {name} = {name} || '.' where {key} % 5 = {dice.randrange(5)}",
        f"delete from {table.sql} where {name} like '%{dice.randrange(10)}'",
    ]
    back = f"{alter} drop constraint {primary[0]}, add constraint {primary[0]} primary key ({key})"
    steps = [*there, *(between if dice.random() < 0.7 else []), *([back] if dice.random() < 0.7 else [])]
    return Change("key_of_another_column", tuple(steps), atomic=dice.random() < 0.4)


@rule(2)
def key_of_an_index(dice: random.Random, model: Model) -> Change | None:
    """Let a unique index of more columns be the replica identity, or rows as a whole, perhaps with changes and back."""
    table = any_root(dice, model, "r")
    if table is None or not table.key or table.identity not in "df":
        return None
    name, index = fresh_column(dice, table), quoted(model.fresh("ident"))
    alter = f"alter table {table.sql}"
    there = [
        f"{alter} add column {name} int not null default {dice.randrange(9)}",
        f"create unique index {index} on {table.sql} ({', '.join(map(quoted, table.key))}, {name})",
        f"{alter} replica identity using index {index}",
    ]
    between = [f"update {table.sql} set {name} = {name} + 1 where {name} % 2 = 0", writers.delete(dice, model, table)]
    back = [f"{alter} replica identity {'full' if table.identity == 'f' else 'default'}", f"drop index {index}"]
    steps = [*there, *between, *(back if dice.random() < 0.7 else [])]
    return Change("key_of_an_index", tuple(steps), atomic=dice.random() < 0.4)


@rule(1)
def circle_of_tables(dice: random.Random, model: Model) -> Change | None:
    """Let the names of three tables go round."""
    found = [table for table in model.roots if table.kind == "r"]
    if len(found) < 3:
        return None
    one, two, three = dice.sample(found, 3)
    steps = (
        f"alter table {one.sql} rename to tmp_",
        f"alter table {two.sql} rename to {quoted(one.name)}",
        f"alter table {three.sql} rename to {quoted(two.name)}",
        f"alter table tmp_ rename to {quoted(three.name)}",
    )
    return Change("circle_of_tables", steps, atomic=dice.random() < 0.7)


@rule(1)
def key_on_generated(dice: random.Random, model: Model) -> list[str] | None:
    """Make a table with a primary key on a generated column."""
    if len(model.roots) > MANY:
        return None
    name = model.fresh("odd")
    return [
        f"create table {name} (id int, g int generated always as (id + 1) stored primary key, s text)",
        f"insert into {name} (id, s) select n, 'x' from generate_series(1, 9) n",
    ]


@rule(3, safe=True)
def truncate_and_fill(dice: random.Random, model: Model) -> Change | None:
    """Empty a table and fill it again in one transaction."""
    table = any_root(dice, model)
    if table is None or not table.free:
        return None
    return whole("truncate_and_fill", f"truncate {table.sql}", *(writers.insert(dice, model, table) for _ in range(3)))


@rule(1, safe=True)
def analyse_all(dice: random.Random, model: Model) -> list[str] | None:
    """Vacuum the system's own tables and switch the log."""
    return dice.choice(
        (["vacuum full pg_attribute"], ["vacuum full pg_class"], ["select pg_switch_wal()"], ["checkpoint"])
    )
