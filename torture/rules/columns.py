"""Columns added, dropped, renamed, retyped and rewritten: what the stream says least about."""

from __future__ import annotations

import random

from torture.model import Column, Model
from torture.rules import ORDINARY, Change, any_column, any_root, any_with, fresh_column, partition_columns, rule
from torture.values import literal, row


@rule(4, safe=True)
def add_column(dice: random.Random, model: Model) -> list[str] | None:
    """Add a column, with or without a constant default."""
    if (table := any_root(dice, model)) is None:
        return None
    name, kind = fresh_column(dice, table), dice.choice(ORDINARY)
    value = literal(dice, Column(name, kind, "", "", False, True, "b", kind), {})
    default = dice.choice(["", f" default {value}", f" not null default {value}"])
    return [f"alter table {table.sql} add column {name} {kind}{default}"]


@rule(2, safe=True)
def drop_column(dice: random.Random, model: Model) -> list[str] | None:
    """Drop a column."""
    table = any_root(dice, model)
    if table is None or len(table.columns) < 4 or (column := any_column(dice, table)) is None:
        return None
    return [f"alter table {table.sql} drop column {column.sql} cascade"]


@rule(2, safe=True)
def rename_column(dice: random.Random, model: Model) -> list[str] | None:
    """Rename a column."""
    table = any_root(dice, model)
    if table is None or (column := any_column(dice, table)) is None:
        return None
    return [f"alter table {table.sql} rename column {column.sql} to {fresh_column(dice, table)}"]


@rule(2, safe=True)
def retype(dice: random.Random, model: Model) -> list[str] | None:
    """Give a column another type."""
    if (found := any_with(dice, model, "integer")) is None:
        return None
    table, column = found
    kind = dice.choice(("bigint", "bigint", "text", "numeric(12,3)"))
    return [f"alter table {table.sql} alter column {column.sql} type {kind}"]


@rule(3)
def other_type(dice: random.Random, model: Model) -> list[str] | None:
    """Give a column a type that rewrites its values, or shows them otherwise."""
    kinds = {
        "date": ("timestamp", "timestamptz", "text"),
        "timestamp with time zone": ("timestamp", "date", "timestamptz(3)"),
        "timestamp without time zone": ("timestamptz", "timestamp(0)", "date"),
        "text": ("char(9)", "varchar(9000)"),
        "character": ("text", "char(12)"),
        "boolean": ("int", "text"),
        "real": ("float8",),
        "double precision": ("real", "numeric"),
        "bigint": ("int", "numeric(20)"),
    }
    if (found := any_with(dice, model, *kinds)) is None:
        return None
    table, column = found
    kind = dice.choice(kinds[column.type.partition("(")[0] if "(" not in column.type else "character"])
    using = f" using left({column.sql}, 5)" if kind == "char(9)" else f" using {column.sql}::{kind}"
    return [f"alter table {table.sql} alter column {column.sql} type {kind}{using}"]


@rule(3)
def drop_and_add(dice: random.Random, model: Model) -> Change | None:
    """Drop a column and add one of its name, of the same type or another, perhaps with rows between."""
    table = any_root(dice, model)
    if table is None or (column := any_column(dice, table)) is None:
        return None
    kind = column.type if dice.random() < 0.5 else dice.choice(ORDINARY)
    drop = f"alter table {table.sql} drop column {column.sql} cascade"
    add = f"alter table {table.sql} add column {column.sql} {kind}"
    between = [f"delete from {table.sql} where ctid in (select t.ctid from {table.sql} t order by t::text limit 1)"]
    steps = [drop, *(between if dice.random() < 0.4 else []), add]
    return Change("drop_and_add", tuple(steps), atomic=dice.random() < 0.5)


@rule(2)
def chain_of_names(dice: random.Random, model: Model) -> Change | None:
    """Drop a column, give its name to another one, and the other one's to a new one."""
    table = any_root(dice, model)
    if table is None or len(table.columns) < 4:
        return None
    one, other = any_column(dice, table), any_column(dice, table)
    if one is None or other is None or one.name == other.name:
        return None
    alter = f"alter table {table.sql}"
    steps = (
        f"{alter} drop column {one.sql} cascade",
        f"{alter} rename column {other.sql} to {one.sql}",
        f"{alter} add column {other.sql} {dice.choice(ORDINARY)}",
    )
    return Change("chain_of_names", steps, atomic=dice.random() < 0.6)


@rule(3)
def same_type_other_values(dice: random.Random, model: Model) -> list[str] | None:
    """Rewrite values under the same type, sometimes together with an added column."""
    if (found := any_with(dice, model, "integer", "text")) is None:
        return None
    table, column = found
    using = f"upper({column.sql})" if column.type == "text" else f"{column.sql} * 100"
    extra = f", add column {fresh_column(dice, table)} integer default 3" if dice.random() < 0.3 else ""
    return [f"alter table {table.sql} alter column {column.sql} type {column.type} using {using}{extra}"]


@rule(3)
def type_there_and_back(dice: random.Random, model: Model) -> list[str] | None:
    """Lose digits on the way to a type and back."""
    if (found := any_with(dice, model, "numeric", "double precision", "integer")) is None:
        return None
    table, column = found
    between = "smallint" if column.type == "integer" else "integer"
    using = (
        f" using ({column.sql} % 10)::smallint"
        if between == "smallint"
        else f" using nullif({column.sql}, 'NaN')::integer"
    )
    alter = f"alter table {table.sql} alter column {column.sql} type"
    return [f"{alter} {between}{using}", f"{alter} {column.type}"]


@rule(2)
def widen(dice: random.Random, model: Model) -> list[str] | None:
    """Widen a type, which rewrites nothing."""
    if (found := any_with(dice, model, "numeric", "character varying")) is None:
        return None
    table, column = found
    kind = "numeric(14,2)" if column.type.startswith("numeric(") else "text" if "char" in column.type else "numeric"
    return [f"alter table {table.sql} alter column {column.sql} type {kind}"]


@rule(3)
def volatile_default(dice: random.Random, model: Model) -> Change | None:
    """Add a column whose default is computed per row, drop the default, in one transaction or two."""
    if (table := any_root(dice, model)) is None:
        return None
    name = fresh_column(dice, table)
    kind = dice.choice(
        ("timestamptz default clock_timestamp()", "uuid default gen_random_uuid()", "float8 default random()")
    )
    steps = [f"alter table {table.sql} add column {name} {kind}"]
    if dice.random() < 0.7:
        steps.append(f"alter table {table.sql} alter column {name} drop default")
    return Change("volatile_default", tuple(steps), atomic=dice.random() < 0.7)


@rule(2)
def numbered_column(dice: random.Random, model: Model) -> Change | None:
    """Add a serial or identity column, and perhaps take the numbering away again."""
    if (table := any_root(dice, model, "r")) is None:
        return None
    name = fresh_column(dice, table)
    kind, drop = dice.choice(
        (
            ("bigserial", "drop default"),
            ("integer generated by default as identity", "drop identity"),
            ("integer generated always as identity", "drop identity"),
        )
    )
    steps = [f"alter table {table.sql} add column {name} {kind}"]
    if dice.random() < 0.6:
        steps.append(f"alter table {table.sql} alter column {name} {drop}")
    return Change("numbered_column", tuple(steps), atomic=dice.random() < 0.6)


@rule(2)
def add_and_retype(dice: random.Random, model: Model) -> Change | None:
    """Add a column with a default and change its type at once."""
    if (table := any_root(dice, model)) is None:
        return None
    name = fresh_column(dice, table)
    return Change(
        "add_and_retype",
        (
            f"alter table {table.sql} add column {name} integer default {dice.randrange(100)}",
            f"alter table {table.sql} alter column {name} type text using 'was ' || {name}",
        ),
        atomic=dice.random() < 0.5,
    )


@rule(3)
def default_made_solid(dice: random.Random, model: Model) -> Change | None:
    """Add with a constant default, drop the default, and let a rewrite write it into every row."""
    if (table := any_root(dice, model, "r")) is None:
        return None
    name = fresh_column(dice, table)
    return Change(
        "default_made_solid",
        (
            f"alter table {table.sql} add column {name} integer default {dice.randrange(100)}",
            f"alter table {table.sql} alter column {name} drop default",
            f"vacuum full {table.sql}",
        ),
    )


@rule(2)
def add_domain_column(dice: random.Random, model: Model) -> list[str] | None:
    """Add a column of a domain with a default and a check: it is written into every row."""
    if (table := any_root(dice, model)) is None:
        return None
    return [f"alter table {table.sql} add column {fresh_column(dice, table)} amount"]


@rule(2)
def add_generated_column(dice: random.Random, model: Model) -> list[str] | None:
    """Add a generated column."""
    if (found := any_with(dice, model, "integer")) is None:
        return None
    table, column = found
    name = fresh_column(dice, table)
    return [f"alter table {table.sql} add column {name} bigint generated always as ({column.sql}::bigint * 2) stored"]


@rule(3)
def drop_expression(dice: random.Random, model: Model) -> list[str] | None:
    """Make a generated column a plain one, which rewrites nothing."""
    found = [(table, column) for table in model.roots for column in table.columns if column.generated == "s"]
    if not found:
        return None
    table, column = dice.choice(found)
    return [f"alter table {table.sql} alter column {column.sql} drop expression"]


@rule(3)
def swap_columns(dice: random.Random, model: Model) -> Change | None:
    """Exchange the names of two columns, perhaps only for a while in which rows are inserted."""
    if (found := any_with(dice, model, "integer", "text")) is None:
        return None
    table, one = found
    others = [each for each in table.columns if each.type == one.type and each.name not in (*table.key, one.name)]
    others = [each for each in others if not each.generated and each.name not in partition_columns(table)]
    if not others:
        return None
    other = dice.choice(others)

    def renamed(first: str, second: str) -> list[str]:
        alter = f"alter table {table.sql} rename column"
        return [f"{alter} {first} to tmp_", f"{alter} {second} to {first}", f"{alter} tmp_ to {second}"]

    swap = renamed(one.sql, other.sql)
    back = [f"insert into {table.sql} {row(dice, table, model)} on conflict do nothing", *swap]
    return Change("swap_columns", tuple(swap + (back if dice.random() < 0.6 else [])), atomic=dice.random() < 0.3)


@rule(1, safe=True)
def harmless(dice: random.Random, model: Model) -> list[str] | None:
    """Do something that no reader can see."""
    if (table := any_root(dice, model)) is None:
        return None
    column = dice.choice(table.columns)
    return [
        dice.choice(
            (
                f"analyze {table.sql}",
                f"vacuum {table.sql}",
                f"alter table {table.sql} alter column {column.sql} set statistics {dice.randrange(10, 200)}",
                f"create index on {table.sql} ({column.sql})",
                f"comment on table {table.sql} is 'comment {dice.randrange(99)}'",
                f"alter table {table.sql} add check ({column.sql} is not distinct from {column.sql})",
                f"grant select on {table.sql} to public",
                f"alter table {table.sql} alter column {column.sql} set storage plain",
                f"alter table {table.sql} alter column {column.sql} set storage external",
                f"alter table {table.sql} alter column {column.sql} set not null",
                f"alter table {table.sql} alter column {column.sql} drop not null",
                f"alter table {table.sql} alter column {column.sql} drop default",
                f'alter table {table.sql} alter column {column.sql} type text collate "C"',
            )
        )
    ]


@rule(3, safe=True)
def rewritten(dice: random.Random, model: Model) -> list[str] | None:
    """Rewrite a table without a change of values."""
    if (table := any_root(dice, model, "r")) is None:
        return None
    primary = [index.name for index in table.indexes if index.primary]
    if primary and dice.random() < 0.4:
        return [f"cluster {table.sql} using {primary[0]}"]
    return [f"vacuum full {table.sql}"]
