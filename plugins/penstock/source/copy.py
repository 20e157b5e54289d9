"""Read tables under an exported snapshot, in ranges of heap blocks, as the rows of a copy.

The server sends for every value the text that decoding would send, and what Arrow can parse is a value from then on; or the
value itself, where the driver reads its binary form exactly. Every range proves that it has read the file which its snapshot knows. Ranges run in parallel and on any machine that reaches
the source: this module needs drivers and Arrow only, because Spark's tasks import it from a zip.
"""

from collections.abc import Container, Iterable, Iterator, Sequence

import pyarrow as pa
from psycopg import sql

from penstock.config.connections import Connection
from penstock.contract.schema import copy_schema
from penstock.jobs.plans import CopyRange
from penstock.landing.layout import copy_file
from penstock.shapes.source_table import Leaf, SourceTable
from penstock.source.arrow import connect_arrow
from penstock.source.reading import Heap, bounded, of_one_table, require_same
from penstock.source.session import BEGIN, composed, taking
from penstock.source.text_rows import rendered, rendered_rows
from penstock.values.lake_types import describe
from penstock.values.parsed import parsed_type, value_of, widened
from penstock.values.type_change import is_real

_SETTINGS = {
    "lock_timeout": "10s",
    "max_parallel_workers_per_gather": "0",  # the plan says how many connections read at once; each is one process
}
_Ends = tuple[int, int | None]
"""The first block of a range, and the one after its last, None for an open end."""


def plan_ranges(
    tables: Iterable[SourceTable], *, range_bytes: int, folder: str, plain: Container[Heap] = ()
) -> list[CopyRange]:
    """Cut each heap into equal ranges of at most `range_bytes`, each landed as one file below `folder`.

    Every heap has at least one range, an empty one too, and its last range is open: rows written between the look at
    its size and the snapshot are in it. Those that are `plain` have no other. Partitions whose rows are not in the WAL
    (foreign, unlogged) are left out.
    """
    return [
        _range(table, leaf, ends, copy_file(folder, f"{table.oid}-{part:05d}"), plain=_name(leaf) in plain)
        for table in tables
        for part, (leaf, ends) in enumerate(_cuts(table, range_bytes, plain))
    ]


def read_range(
    source: Connection, range_: CopyRange, *, snapshot_name: str, batch_bytes: int, seconds: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one range that the snapshot sees, in a copy's schema, in batches of about `batch_bytes`.

    Close the iterator to stop early. Raises SourceError, "snapshot-gone" when the exporting connection has ended,
    "source-timeout" after `seconds`;
    TableError for what concerns this table only, "table-rewritten" when the snapshot's rows are gone; pa.ArrowInvalid
    where a value of a `typed` column is none of its lake type.
    """
    schema = copy_schema(range_.columns, dict(range_.typed))
    if range_.plain:
        with rendered(source, seconds=seconds, snapshot_name=snapshot_name, what="copy") as conn, of_one_table():
            for block in rendered_rows(conn, [_heap(range_)], range_.columns):
                for batch in block.to_batches():
                    yield _rows(batch, schema, range_)
            require_same(conn, [_heap(range_)])
        return
    settings = {**_SETTINGS, "statement_timeout": f"{seconds}s"}
    with connect_arrow(source, what="copy", settings=settings) as session:
        session.run(BEGIN)
        session.run(taking(snapshot_name))
        with of_one_table(), bounded(session, seconds):
            schema_name, table_name = map(sql.Literal, _heap(range_))
            casts = session.ask(composed("copy/text_casts", schema=schema_name, table=table_name))
            for batch in session.stream(range_query(range_, [name for (name,) in casts]), batch_bytes):
                yield _rows(batch, schema, range_)
            require_same(session, [_heap(range_)])


def _heap(range_: CopyRange) -> Heap:
    return range_.relation_schema, range_.relation_name


def having_labels(columns: Sequence[str], labels: Sequence[str]) -> str:
    """Return the condition, in SQL, that one of these columns of enums holds one of these labels."""
    listed = sql.SQL(", ").join(map(sql.Literal, labels))
    each = [sql.SQL("{}::text in ({})").format(sql.Identifier(column), listed) for column in columns]
    return sql.SQL(" or ").join(each).as_string(None)


def range_query(range_: CopyRange, own_casts: Sequence[str]) -> sql.Composed:
    """Compose the query of one range; `own_casts` names the columns whose type has a cast to text of its own."""
    typed = dict(range_.typed)
    values = [
        _value(column, typed.get(column), is_real=column in range_.reals, has_own_cast=column in own_casts)
        for column in range_.columns
    ]
    values = values or [sql.SQL("null::text").format()]
    return sql.SQL("select {} from only {}{}").format(
        sql.SQL(", ").join(values),
        sql.Identifier(range_.relation_schema, range_.relation_name),
        _where(range_),
    )


def _value(column: str, lake_type: str | None, *, is_real: bool, has_own_cast: bool) -> sql.Composed:
    """Compose a value in the type whose binary form is read, else the text that the type's output function gives, as decoding sends it."""
    name, binary = sql.Identifier(column), describe(lake_type).binary if lake_type else None
    if binary is not None:  # rendering it would cost the server more
        return sql.SQL("{}::{}").format(name, sql.SQL(binary))
    if is_real and lake_type is None:
        # as a double: read as either it is the value, also after the column became a double
        return sql.SQL("{}::float8::text").format(name)
    if has_own_cast:
        # format() calls the output function itself; `is distinct from null`, because a row of nulls `is null`
        return sql.SQL("case when {0} is distinct from null then format('%s', {0}) end").format(name)
    return sql.SQL("{}::text").format(name)


def _where(range_: CopyRange) -> sql.Composable:
    conditions: list[sql.Composable] = []
    if range_.first_block:
        conditions.append(sql.SQL("ctid >= {}::tid").format(sql.Literal(f"({range_.first_block},0)")))
    if range_.last_block is not None:
        conditions.append(sql.SQL("ctid < {}::tid").format(sql.Literal(f"({range_.last_block},0)")))
    if range_.where is not None:
        # the server's own text of the publication's row filter
        conditions.append(sql.SQL("(") + sql.SQL(range_.where) + sql.SQL(")"))
    return sql.SQL(" where ") + sql.SQL(" and ").join(conditions) if conditions else sql.SQL("")


def _rows(batch: pa.RecordBatch, schema: pa.Schema, range_: CopyRange) -> pa.RecordBatch:
    """Dress columns of texts as a copy's rows."""
    typed = dict(range_.typed)
    values = [
        value_of(column, typed[name])
        if name in typed
        else widened(column)
        if range_.plain and name in range_.reals
        else column
        for name, column in zip(schema.names, batch.columns, strict=True)
    ]
    return pa.record_batch(
        [value.cast(type_) for value, type_ in zip(values, schema.types, strict=True)], schema=schema
    )


def _name(leaf: Leaf) -> Heap:
    return leaf.schema, leaf.name


def _cuts(table: SourceTable, range_bytes: int, plain: Container[Heap]) -> Iterator[tuple[Leaf, _Ends]]:
    for leaf in table.leaves:
        if leaf.kind == "r" and leaf.persistence == "p":
            is_whole = not leaf.ranged or not leaf.blocks or _name(leaf) in plain
            # of equal size: a short last range would leave connections idle while the others end
            ranges = 1 if is_whole else min(leaf.blocks, -(-leaf.bytes // range_bytes))
            firsts = [leaf.blocks * each // ranges for each in range(ranges)]
            yield from ((leaf, ends) for ends in zip(firsts, [*firsts[1:], None], strict=True))


def _range(table: SourceTable, leaf: Leaf, ends: _Ends, path: str, *, plain: bool) -> CopyRange:
    first, last = ends
    return CopyRange(
        oid=table.oid,
        relation_schema=leaf.schema,
        relation_name=leaf.name,
        columns=tuple(column.name for column in table.columns),
        first_block=first,
        last_block=last,
        where=table.where,
        path=path,
        typed=tuple(
            (column.name, found)
            for column in table.columns
            if not column.as_text and (found := parsed_type(column.type))
        ),
        reals=tuple(column.name for column in table.columns if is_real(column.type)),
        plain=plain,
    )
