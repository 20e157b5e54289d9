"""A part of a table's rows in SQL: those whose first key column lies in a range, or those outside of a partition's bound.

Where source and lake order the column's values alike, the range is of values, and the key's index serves it. Anywhere
else it is a range of the texts that the output function gives, by their bytes: any type has such, but the server
looks at every row to find them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from psycopg import sql

from penstock.shapes.partition_bounds import Bound, Condition
from penstock.source.session import SourceSession

ORDERED_ALIKE = frozenset(
    {"smallint", "integer", "bigint", "date", "timestamp without time zone", "timestamp with time zone", "uuid"}
)
"""Types whose values source and lake order alike; `numeric` where the lake has a decimal, text where bytes order it."""
_TEXTS = frozenset({"text", "character varying"})


@dataclass(frozen=True, slots=True)
class LeadingKey:
    """Describe the first column of a table's identifying index; `bytewise` says how text in it is ordered."""

    relation: int
    name: str
    type: str
    bytewise: bool | None

    def ordered_alike(self, lake_type: str) -> bool:
        """Return whether the lake orders the column's values as the source does."""
        if self.type == "numeric":
            return lake_type.startswith("decimal")
        return self.type in ORDERED_ALIKE or (self.type in _TEXTS and bool(self.bytewise))


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Hold `lower <= column < upper`; None is an open end.

    The ends are PostgreSQL's texts of values: never show them. `type` is the column's type as SQL writes it.
    """

    column: str
    type: str
    indexed: bool
    lower: str | None = field(default=None, repr=False)
    upper: str | None = field(default=None, repr=False)

    def condition(self) -> sql.Composed:
        """Compose the condition on the source's rows."""
        ends = ((">=", self.lower), ("<", self.upper))
        parts = [self._compared(sign, end) for sign, end in ends if end is not None]
        return sql.SQL(" and ").join(parts or [sql.SQL("true").format()])

    def _compared(self, sign: str, end: str) -> sql.Composed:
        column, value = sql.Identifier(self.column), sql.Literal(end)
        if self.indexed:
            return sql.SQL("{} {} {}::{}").format(column, sql.SQL(sign), value, sql.SQL(self.type))
        # format() calls the output function itself, where a type has a cast to text of its own
        return sql.SQL("format('%s', {}) collate \"C\" {} {}").format(column, sql.SQL(sign), value)


def leading_keys(conn: SourceSession, oids: Iterable[int]) -> dict[int, LeadingKey]:
    """Read the first key column of each table that has a key, by the table's oid; raises SourceError."""
    return {key.relation: key for key in conn.records(LeadingKey, "key_range/leading_keys", oids=list(oids))}


def outside_bound(bound: Bound) -> str:
    """Return the SQL of the rows that are not within a bound, its columns by name."""
    inside = sql.SQL(" and ").join(part for each in bound for part in _sql(each))
    return sql.SQL("not coalesce({}, false)").format(inside).as_string()


def _sql(condition: Condition) -> Iterator[sql.Composed]:
    column = sql.Identifier(str(condition.column))
    if condition.values is not None:
        values = sql.SQL(", ").join(map(sql.Literal, condition.values))
        yield sql.SQL("{} in ({})").format(column, values)
    else:
        yield sql.SQL("{} is not null").format(column)
    for sign, end in ((">=", condition.low), ("<", condition.high)):
        if end is not None:
            yield sql.SQL("{} {} {}").format(column, sql.SQL(sign), sql.Literal(end))
