"""SQL literals of any type from one random generator: ordinary ones, and those that a lake has no place for."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from torture.model import Column, Model, Table

IDS = 400
"""Ids are below this, so that inserts meet rows, and partitions of a hundred get their share."""


def literal(dice: random.Random, column: Column, labels: Mapping[str, Sequence[str]]) -> str:
    """Return a literal that the column takes, NULL now and then where it may be."""
    if not column.not_null and dice.random() < 0.12:
        return "null"
    if column.kind == "e":
        return f"'{dice.choice(labels.get(column.type.removeprefix('public.').strip(chr(34)), ['?'])).replace(chr(39), chr(39) * 2)}'"
    if column.kind == "c":
        parts = labels.get(column.type, ())
        return f"'({','.join(str(dice.randrange(100)) for _ in parts)})'" if parts else "null"
    return _of(dice, column.base if column.kind == "d" else column.type)


def _of(dice: random.Random, kind: str) -> str:
    if kind.endswith("[]"):
        return f"array[{', '.join(_of(dice, kind[:-2]) for _ in range(dice.randint(1, 3)))}]::{kind}"
    name = kind.partition("(")[0]
    if name in ("integer", "bigint", "smallint"):
        return str(dice.randrange(1, IDS))
    if name in ("numeric", "real", "double precision"):
        return dice.choice(["0", "'-0'", f"{dice.randrange(1, 9999) / 100:.2f}", "'NaN'"])
    if name in ("text", "character varying", "character"):
        return _text(dice)
    if name == "boolean":
        return dice.choice(["true", "false"])
    if name == "uuid":
        return f"'{dice.getrandbits(128):032x}'"
    if name in ("json", "jsonb"):
        return f"""'{{"a": {dice.randrange(100)}}}'"""
    if name == "date":
        return dice.choice([f"date '2024-01-01' + {dice.randrange(1000)}", "'infinity'", "'0044-03-15 BC'"])
    if name.startswith("timestamp"):
        moment = f"timestamp '2024-01-01' + interval '{dice.randrange(10**6)} seconds'"
        return dice.choice([moment, moment, "'-infinity'"])
    if name == "bytea":
        return f"'\\x{dice.getrandbits(64):016x}'"
    return "null"


def _text(dice: random.Random) -> str:
    chosen = dice.random()
    if chosen < 0.1:
        return "''"
    if chosen < 0.3:  # out of line, where the column's storage lets it
        return f"repeat(md5('{dice.randrange(10**6)}'), {dice.randrange(80, 200)})"
    return (
        f"'{dice.choice(('red', 'green', 'blue', 'grün', 'a b', chr(39) * 2, 'NULL', chr(92)))}{dice.randrange(100)}'"
    )


def row(dice: random.Random, table: Table, model: Model) -> str:
    """Return `(columns) values (...)` for one row, some columns with a default left out."""
    chosen = [column for column in table.free if not (column.default and dice.random() < 0.3)]
    values = ", ".join(literal(dice, column, model.labels) for column in chosen)
    return f"({', '.join(column.sql for column in chosen)}) values ({values})"
