"""Rows that go because the partition that held them is gone: found by its bounds, among all rows that the table has by now.

The bounds are those that the lake's types compare as the server's do; a value that does not fit its type lies in none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.engine import target, vectors
from penstock.engine.duck import Duck, duck_type, literal
from penstock.engine.order import MergeAnswer, MergeOrder
from penstock.errors import LakeError
from penstock.values.type_table import STRING

KINDS: Mapping[str, tuple[str, ...]] = {
    "int": ("int", "bigint"),
    "date": ("date",),
    "timestamp": ("timestamp_ntz",),
    "instant": ("timestamp",),
    "text": (STRING,),
}
"""The lake types in which values of each kind of bound are compared as the server compares them."""

Bounds = Sequence[Sequence[Any]]
"""The bounds of one partition: per level the column's name, the kind, the ends of a range (or None), the values of a list (or None)."""


def remove(db: Duck, order: MergeOrder, bounds: Sequence[Bounds]) -> MergeAnswer:
    """Write deletion vectors for the rows of the order's data files that lie within one of the bounds."""
    names = {column.name: place for place, column in enumerate(order.columns)}
    used = sorted({names[str(column)] for bound in bounds for column, *_ in bound})
    inside = " or ".join(
        f"({' and '.join(_condition(order, names[str(each[0])], each) for each in bound)})" for bound in bounds
    )
    db.execute(
        "create or replace temp table matched as "
        "select file_index::bigint as file, file_row_number as position "
        f"from {target.read(db, order, used)} where {inside}"
    )
    gone = target.leave_out_gone(db, order)
    places = target.places(db, "select file, position from matched")
    if not places:
        return MergeAnswer()
    written = vectors.write_vectors(db.files.lake, order.new_location("-deletes.puffin"), order.target, places, gone)
    return MergeAnswer(vectors=written, counts={"rows_deleted": sum(map(len, places.values()))})


def _condition(order: MergeOrder, place: int, condition: Sequence[Any]) -> str:
    column, kind, low, high, values = condition
    type_ = order.columns[place].lake_type
    if type_ not in KINDS[kind]:
        raise LakeError(
            "schema-change",
            f"expected column {column}, by which a partition that is gone was bounded, as {' or '.join(KINDS[kind])}, it is "
            f"{type_}; copy the table again",
        )

    def cast(value: str) -> str:
        return f"cast({literal(value)} as {duck_type(type_)})"

    if values is not None:
        return f"t{place} in ({', '.join(map(cast, values))})"
    ends = [f"t{place} >= {cast(low)}"] if low is not None else []
    ends += [f"t{place} < {cast(high)}"] if high is not None else []
    return " and ".join([f"t{place} is not null", *ends])
