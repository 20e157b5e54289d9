"""The source's tables, read from its catalog by a constant number of statements, however many tables there are.

One set of statements serves PostgreSQL 14 to 18. All of a reading is one snapshot of the catalog's rows, and waits for no
lock of a table: a transaction that holds one table must not keep the reading of all others waiting.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg.pq import TransactionStatus

from penstock.codec import record_of
from penstock.shapes import partition_bounds
from penstock.shapes.source_table import Leaf, SourceColumn, SourceTable
from penstock.source import types
from penstock.source.reading import rewritten_error
from penstock.source.session import SourceSession, composed
from penstock.source.types import Types


@dataclass(frozen=True, slots=True)
class Relation:
    """Name anything in the users' schemas that a pattern may match; `kind` is `pg_class.relkind`."""

    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    is_partition: bool
    parents: list[int]

    @property
    def qualified(self) -> str:
        """Name the relation for a message."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Published:
    """Say how a table is published: None means all columns but generated ones, all rows.

    `filter_digest` is that of the stored expression. `listed`: whether the publication names the table by itself.
    """

    columns: frozenset[str] | None = None
    filter_digest: str | None = None
    membership: tuple[str, ...] = ()
    listed: bool = False


def members(conn: SourceSession, publication: str, oids: Collection[int] | None = None) -> dict[int, Published]:
    """Say which tables a publication publishes, of these or of all, by oid, and how; raises SourceError."""
    query = composed("catalog/published_of", published=composed("catalog/published"))
    rows = conn.ask(query, publication=publication, oids=None if oids is None else list(oids))
    return {
        oid: Published(frozenset(columns), filter_digest, tuple(membership), listed)
        for oid, columns, filter_digest, membership, listed in rows
    }


def with_filter(conn: SourceSession, publication: str, table: SourceTable) -> SourceTable:
    """Return a published table with the text of its row filter, which takes a lock of that table.

    Raises SourceError; TableError("table-rewritten") where the table or its filter is gone.
    """
    if table.filter is None:
        return table
    rows = conn.rows("catalog/row_filter", publication=publication, oid=table.oid)
    if not rows or rows[0][0] is None:
        raise rewritten_error((table.schema, table.name))
    return replace(table, row_filter=rows[0][0])


def relations(conn: SourceSession) -> list[Relation]:
    """List whatever a pattern may name, ordered by name; raises SourceError."""
    return conn.records(Relation, "catalog/relations")


def describe(conn: SourceSession, wanted: Mapping[int, Published], *, sizes: bool = True) -> list[SourceTable]:
    """Read the tables with these oids, ordered by name; those that are gone are left out. Raises SourceError.

    Without `sizes` no table is locked, not even for a moment, and no file is looked at. With them, a table that another
    transaction holds exclusively has the size of its last ANALYZE.
    """
    with one_snapshot(conn):
        heaps = conn.records(dict, "catalog/heaps", oids=list(wanted), sizes=sizes)
        columns = conn.records(dict, "catalog/columns", oids=list(wanted))
        known = types.read_types(conn, (column["type"] for column in columns))
        missing = missing_values(conn, (row["oid"] for row in heaps if row["kind"] == "r"))
    columns_of = {oid: list(rows) for oid, rows in groupby(columns, key=itemgetter("relation"))}
    tables = [
        _table(list(rows), columns_of.get(root, []), wanted[root], known, missing)
        for root, rows in groupby(heaps, key=itemgetter("root"))
    ]
    return sorted(tables, key=lambda table: (table.schema, table.name))


_Row = Mapping[str, Any]
"""One row of the statement `heaps`, or of `columns`: what is named as a field of the class that it becomes goes into it as it is."""


def _table(
    rows: Iterable[_Row],
    columns: Iterable[_Row],
    published: Published,
    types: Types,
    missing: Mapping[int, Mapping[str, str]],
) -> SourceTable:
    """Put one table together from its rows of all statements."""
    row = next(row for row in rows if row["oid"] == row["root"])
    heaps = [leaf for leaf in rows if leaf["kind"] != "p"]
    shown = {name: text for leaf in heaps for name, text in missing.get(leaf["oid"], {}).items()}
    streamed, hidden = list[_Row](), list[_Row]()
    for each in columns:
        is_sent = not each["generated"] if published.columns is None else each["name"] in published.columns
        (streamed if is_sent else hidden).append(each)
    # none where a column of it is generated, and so in no old row that the stream brings
    key = () if {column["name"] for column in hidden if column["generated"]} & set(row["key"]) else row["key"]
    # rows that are found by all of their columns, while a partition with an index may log less
    keyless = row["kind"] == "p" and row["identity"] == "f" and not key
    attnums = {column["name"]: column["attnum"] for column in streamed}
    made_of = types.closure(column["type"] for column in streamed)
    found = {
        "identity": row["identity"] if key or row["identity"] == "f" else "n",
        "key": key,
        "key_index": row["key_index"] if key else 0,
        "columns": [_column(column, types, key=key, missing=shown) for column in streamed],
        "hidden": {column["attnum"]: column["name"] for column in hidden},
        "leaves": [_leaf(leaf, missing.get(leaf["oid"], {}), attnums, keyless=keyless) for leaf in heaps],
        "filter": published.filter_digest,
        "membership": published.membership,
        "enums": {part.oid: part.labels for part in made_of if part.kind == "e"},
        "composites": {part.oid: part.attributes for part in made_of if part.kind == "c"},
        "part_versions": {part.oid: part.versions for part in made_of if part.versions},
        "part_names": {part.oid: part.name for part in made_of if part.versions},
    }
    return record_of(SourceTable, {**row, **found})


def _column(row: _Row, types: Types, *, key: Collection[str], missing: Mapping[str, str]) -> SourceColumn:
    found = {
        "type": types.tree(row["type"], row["typmod"]),
        "key": row["name"] in key,
        "missing_text": missing.get(row["name"]),
        "names_objects": types.naming(row["type"]),
        "parts": [part.oid for part in types.closure([row["type"]])],
    }
    return record_of(SourceColumn, {**row, **found})


def _leaf(row: _Row, missing: Mapping[str, str], attnums: Mapping[str, int], *, keyless: bool) -> Leaf:
    found = {
        "key": sorted(row["key"]),
        "blocks": row["bytes"] // row["block_size"],
        "altered_by": row["changed_by"] if keyless and row["has_unique"] else None,
        "bound": partition_bounds.by_attnum(partition_bounds.parse_bound(row["bounds"]), attnums),
        "missing": sorted(missing.items()),
    }
    return record_of(Leaf, {**row, **found})


def missing_values(conn: SourceSession, oids: Iterable[int]) -> dict[int, dict[str, str]]:
    """Read the missing values by relation and column. They lie at the leaves: a partitioned table has no rows itself."""
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for oid, column, text in conn.rows("catalog/missing", oids=list(oids)):
        found[oid][column] = text
    return found


@contextmanager
def one_snapshot(conn: SourceSession) -> Iterator[None]:
    """Read all inside from one snapshot; inside a transaction that is already open, from that one's."""
    with conn.snapshot() if conn.info.transaction_status == TransactionStatus.IDLE else nullcontext():
        yield
