"""The source's own text of every row, for whoever checks what the pipeline made of it, and of what cannot be queried.

Values are rendered by the types' output functions, which is what COPY writes, under the pinned settings. One transaction
reads one table, as often as asked, and shows the same rows. Whole relations are read by their names, which plans no
query and so runs no function of their owners.

A part of a table is the rows whose first key column lies in a range. Where source and lake order the column's values alike, the
range is of values, and the key's index serves it. Anywhere else it is a range of the texts that the output function gives, by
their bytes: any type has such, but the server looks at every row to find them.
"""

import io
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from penstock.config.connections import Connection
from penstock.shapes.partition_bounds import Bound, Condition
from penstock.source.reading import generated, reading, require_planned
from penstock.source.server_errors import translating
from penstock.source.session import SourceSession, connect

_BLOCK_BYTES = 8 << 20

# COPY quotes every value and leaves NULL bare, so that the two can't be mistaken for each other.
_PARSE = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
_NULLS = {"strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""]}

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


@contextmanager
def rendered(
    source: Connection, *, seconds: int, snapshot_name: str | None = None, what: str = "compare"
) -> Iterator[SourceSession]:
    """Open a transaction for one table, in an exported snapshot if one is named; raises SourceError, also after `seconds`."""
    with connect(source, what=what) as session, reading(session, seconds, snapshot_name=snapshot_name):
        yield session


def rendered_rows(
    session: SourceSession,
    heaps: Sequence[tuple[str, str]],
    columns: Sequence[str],
    where: str | None = None,
    part: KeyRange | None = None,
) -> Generator[pa.Table, None, None]:
    """Yield the rows of some relations, or a part of them, as tables of strings, in blocks of about 8 MiB.

    Rows are in no order. `heaps` are (schema, name) of the relations that hold them: the leaves of a partitioned
    table. Columns come in the order asked for, named by their position; without any there is one column of NULLs,
    for a table without columns has rows all the same. Raises SourceError, TableError("planning-failed").
    """
    for heap in heaps:
        statement = _statement(session, heap, columns, where, part)
        with translating(session.place), session.cursor().copy(statement) as copy:
            for block, count in _blocks(copy):
                yield _table(block, count, len(columns))


def _statement(
    session: SourceSession, heap: tuple[str, str], columns: Sequence[str], where: str | None, part: KeyRange | None
) -> sql.Composed:
    relation, listed = sql.Identifier(*heap), sql.SQL(", ").join(map(sql.Identifier, columns))
    if columns and not where and part is None and not generated(session, heap, columns):
        copied = sql.SQL("{} ({})").format(relation, listed)
    else:
        require_planned(session, heap)
        # the server's own text of a publication's row filter
        conditions = [sql.SQL("(") + sql.SQL(where) + sql.SQL(")")] if where else []
        conditions += [part.condition()] if part else []
        condition = sql.SQL(" where ") + sql.SQL(" and ").join(conditions) if conditions else sql.SQL("")
        copied = sql.SQL("(select {} from only {}{})").format(listed, relation, condition)
    return sql.SQL("copy {} to stdout (format csv, force_quote *)").format(copied)


def _blocks(rows: Iterable[bytes | bytearray | memoryview]) -> Iterator[tuple[bytes, int]]:
    """Gather rows, which the server sends one by one, into blocks of whole rows and their counts."""
    gathered: list[bytes | bytearray | memoryview] = []
    size = 0
    for row in rows:
        gathered.append(row)
        size += len(row)
        if size >= _BLOCK_BYTES:
            yield b"".join(gathered), len(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered), len(gathered)


def _table(block: bytes, rows: int, width: int) -> pa.Table:
    names = [f"c{number}" for number in range(width)]
    if not names:
        return pa.table({"none": pa.nulls(rows)})
    read = csv.ReadOptions(column_names=names, block_size=len(block) + 1)
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), **_NULLS)
    return csv.read_csv(io.BytesIO(block), read_options=read, parse_options=_PARSE, convert_options=convert)


def leading_keys(conn: SourceSession, oids: Iterable[int]) -> dict[int, LeadingKey]:
    """Read the first key column of each table that has a key, by the table's oid; raises SourceError."""
    return {key.relation: key for key in conn.records(LeadingKey, "text_rows/leading_keys", oids=list(oids))}


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
