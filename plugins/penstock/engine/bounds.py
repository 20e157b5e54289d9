"""Whether a row lies within the bounds of partitions, as DuckDB SQL.

The bounds are those that the lake's types compare as the server's do; a value that does not fit its type lies in none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.engine.duck import duck_type, literal
from penstock.engine.order import Bounds, MergeOrder
from penstock.errors import LakeError
from penstock.values.lake_types import STRING

KINDS: Mapping[str, tuple[str, ...]] = {
    "int": ("int", "bigint"),
    "date": ("date",),
    "timestamp": ("timestamp_ntz",),
    "instant": ("timestamp",),
    "text": (STRING,),
}
"""The lake types in which values of each kind of bound are compared as the server compares them."""


def within(order: MergeOrder, bounds: Sequence[Bounds], value: Callable[[int], str]) -> tuple[str, list[int]]:
    """Return the SQL of whether a row is within one of the bounds, never NULL, and the positions of the columns that it asks for.

    `value` gives the SQL of the value of the column at a position. Raises LakeError("schema-change").
    """
    names = {column.name: place for place, column in enumerate(order.columns)}
    used = sorted({names[str(column)] for bound in bounds for column, *_ in bound})
    values = {place: value(place) for place in used}
    found = [
        " and ".join(_condition(order, names[str(each[0])], each, values[names[str(each[0])]]) for each in bound)
        for bound in bounds
    ]
    return f"coalesce({' or '.join(f'({each})' for each in found) or 'false'}, false)", used


def _condition(order: MergeOrder, place: int, condition: Sequence[Any], value: str) -> str:
    column, kind, low, high, values = condition
    type_ = order.columns[place].lake_type
    if type_ not in KINDS[kind]:
        raise LakeError(
            "schema-change",
            f"expected column {column}, by which a partition that is gone was bounded, as {' or '.join(KINDS[kind])}, it is "
            f"{type_}; copy the table again",
        )

    def cast(text: str) -> str:
        return f"cast({literal(text)} as {duck_type(type_)})"

    if values is not None:
        return f"{value} in ({', '.join(map(cast, values))})"
    ends = [f"{value} >= {cast(low)}"] if low is not None else []
    ends += [f"{value} < {cast(high)}"] if high is not None else []
    return " and ".join([f"{value} is not null", *ends])
