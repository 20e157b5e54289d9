"""The source's tables, read from its catalog by a constant number of statements, however many tables there are.

One set of statements serves PostgreSQL 14 to 18. All of a reading is one snapshot of the catalog's rows, and waits for no
lock of a table: a transaction that holds one table must not keep the reading of all others waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from psycopg.pq import TransactionStatus

from penstock.shapes import partition_bounds
from penstock.shapes.source_table import Attach, Leaf, SourceColumn, SourceTable
from penstock.source import types
from penstock.source.reading import rewritten_error
from penstock.source.session import SourceSession, composed
from penstock.source.types import Types

_PUBLISHES_GENERATED = 180_000


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
    """Say how a table is published: None means all columns, all rows. `filter_digest` is that of the stored expression.

    `listed`: whether the publication names the table by itself.
    """

    columns: frozenset[str] | None = None
    filter_digest: str | None = None
    membership: tuple[str, ...] = ()
    listed: bool = False


@dataclass(frozen=True, slots=True)
class _HeapRow:
    """Hold one row of the statement `heaps`."""

    root: int
    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    replica_identity: str
    relfilenode: int
    changed_by: int
    attnums: int
    parents: list[int]
    key: list[str]
    key_index: int
    late_key: bool
    ranged: bool
    has_unique: bool
    chain: list[str]
    attached: list[int | None]
    bounds: list[list[Any] | None]
    bytes: int
    block_size: int

    @property
    def identity(self) -> str:
        """Return the replica identity, with `n` for one whose index does not exist."""
        return self.replica_identity if self.replica_identity == "f" or self.key else "n"

    def leaf(self, missing: Mapping[str, str], attnums: Mapping[str, int], *, keyless: bool) -> Leaf:
        """Return the row as a relation that holds rows, given the attnums of its table's columns.

        `keyless`: of a partitioned table whose rows are found by all of their columns, while one with an index may log less.
        """
        return Leaf(
            oid=self.oid,
            schema=self.schema,
            name=self.name,
            kind=self.kind,
            persistence=self.persistence,
            identity=self.identity,
            key=tuple(sorted(self.key)),
            file=self.relfilenode,
            blocks=self.bytes // self.block_size,
            bytes=self.bytes,
            ranged=self.ranged,
            changed_by=self.changed_by,
            altered_by=self.changed_by if keyless and self.has_unique else None,
            chain=tuple(self.chain),
            attached=tuple(self._attached()),
            bound=partition_bounds.by_attnum(partition_bounds.parse_bound(self.bounds), attnums),
            missing=tuple(sorted(missing.items())),
        )

    def _attached(self) -> Iterator[Attach]:
        for place, xid, cid in zip(self.attached[::3], self.attached[1::3], self.attached[2::3], strict=True):
            yield Attach(self.chain[place or 0], xid or 0, cid)


@dataclass(frozen=True, slots=True)
class _ColumnRow:
    """Hold one row of the statement `columns`."""

    relation: int
    attnum: int
    name: str
    type: int
    typmod: int
    not_null: bool
    has_default: bool
    generated: str
    identity: str
    dimensions: int
    version: str


def published_tables(conn: SourceSession, publication: str, *, sizes: bool = True) -> list[SourceTable]:
    """Read the tables of a publication, ordered by name; raises SourceError.

    Without `sizes` no table is locked, not even for a moment, and no file is looked at. With them, a table that another
    transaction holds exclusively has the size of its last ANALYZE.
    """
    with one_snapshot(conn):
        return describe(conn, members(conn, publication), sizes=sizes)


def members(conn: SourceSession, publication: str) -> dict[int, Published]:
    """Say which tables a publication publishes, by oid, and how; raises SourceError."""
    return _members(conn.rows("catalog/published", publication=publication))


def members_of(conn: SourceSession, publication: str, oids: Collection[int]) -> dict[int, Published]:
    """Say how a publication publishes these tables, as far as it does; raises SourceError."""
    if not oids:
        return {}
    query = composed("catalog/published_of", published=composed("catalog/published"))
    return _members(conn.ask(query, publication=publication, oids=list(oids)))


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


def all_tables(conn: SourceSession, *, sizes: bool = True) -> list[SourceTable]:
    """Read all plain and partitioned tables of the users' schemas, partitions too; raises SourceError."""
    with one_snapshot(conn):
        oids = (relation.oid for relation in relations(conn) if relation.kind in "rp")
        return describe(conn, dict.fromkeys(oids, Published()), sizes=sizes)


def relations(conn: SourceSession) -> list[Relation]:
    """List whatever a pattern may name, ordered by name; raises SourceError."""
    return conn.records(Relation, "catalog/relations")


def describe(conn: SourceSession, wanted: Mapping[int, Published], *, sizes: bool = True) -> list[SourceTable]:
    """Read the tables with these oids, ordered by name; those that are gone are left out. Raises SourceError."""
    with one_snapshot(conn):
        heaps = conn.records(_HeapRow, "catalog/heaps", oids=list(wanted), sizes=sizes)
        columns = conn.records(_ColumnRow, "catalog/columns", oids=list(wanted))
        known = types.read_types(conn, (column.type for column in columns))
        missing = missing_values(conn, (row.oid for row in heaps if row.kind == "r"))
        generated = conn.info.server_version >= _PUBLISHES_GENERATED
    columns_of = {oid: list(rows) for oid, rows in groupby(columns, key=attrgetter("relation"))}
    tables = [
        _Assembly(list(rows), wanted[root], columns_of.get(root, []), known, missing, generated).table()
        for root, rows in groupby(heaps, key=attrgetter("root"))
    ]
    return sorted(tables, key=lambda table: (table.schema, table.name))


@dataclass(frozen=True, slots=True)
class _Assembly:
    """Put one table together from its rows of all statements."""

    rows: Sequence[_HeapRow]
    published: Published
    columns: Sequence[_ColumnRow]
    types: Types
    missing: Mapping[int, Mapping[str, str]]
    generated: bool

    def table(self) -> SourceTable:
        row = next(row for row in self.rows if row.oid == row.root)
        leaves = [leaf for leaf in self.rows if leaf.kind != "p"]
        key = self._key(row)
        shown = {name: text for leaf in leaves for name, text in self.missing.get(leaf.oid, {}).items()}
        streamed = [column for column in self.columns if self._is_streamed(column)]
        attnums = {column.name: column.attnum for column in streamed}
        keyless = row.kind == "p" and row.replica_identity == "f" and not key
        made_of = self.types.closure(column.type for column in streamed)
        return SourceTable(
            oid=row.oid,
            schema=row.schema,
            name=row.name,
            kind=row.kind,
            persistence=row.persistence,
            identity=row.identity if key or row.replica_identity == "f" else "n",
            key=key,
            key_index=row.key_index if key else 0,
            late_key=row.late_key,
            columns=tuple(self._column(column, key, shown.get(column.name)) for column in streamed),
            hidden={column.attnum: column.name for column in self.columns if not self._is_streamed(column)},
            leaves=tuple(leaf.leaf(self.missing.get(leaf.oid, {}), attnums, keyless=keyless) for leaf in leaves),
            filter=self.published.filter_digest,
            membership=self.published.membership,
            file=row.relfilenode,
            attnums=row.attnums,
            parents=tuple(row.parents),
            enums={part.oid: tuple(part.labels) for part in made_of if part.kind == "e"},
            composites={
                part.oid: tuple((name, oid, typmod) for name, oid, typmod in part.attributes)
                for part in made_of
                if part.kind == "c"
            },
            part_versions={part.oid: tuple(part.versions) for part in made_of if part.versions},
            part_names={part.oid: part.name for part in made_of if part.versions},
        )

    def _key(self, row: _HeapRow) -> tuple[str, ...]:
        """Return the key's columns, or none where one is generated and so in no old row that the stream brings."""
        unsent = {column.name for column in self.columns if column.generated and not self._is_streamed(column)}
        return () if unsent & set(row.key) else tuple(row.key)

    def _is_streamed(self, column: _ColumnRow) -> bool:
        if column.generated and not (self.generated and self.published.columns is not None):
            return False
        return self.published.columns is None or column.name in self.published.columns

    def _column(self, column: _ColumnRow, key: Sequence[str], missing_text: str | None) -> SourceColumn:
        return SourceColumn(
            name=column.name,
            attnum=column.attnum,
            type=self.types.tree(column.type, column.typmod),
            not_null=column.not_null,
            key=column.name in key,
            missing_text=missing_text,
            has_default=column.has_default,
            generated=column.generated,
            identity=column.identity,
            dimensions=column.dimensions,
            version=column.version,
            names_objects=self.types.naming(column.type),
            parts=frozenset(part.oid for part in self.types.closure([column.type])),
        )


def missing_values(conn: SourceSession, oids: Iterable[int]) -> dict[int, dict[str, str]]:
    """Read the missing values by relation and column. They lie at the leaves: a partitioned table has no rows itself."""
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for oid, column, text in conn.rows("catalog/missing", oids=list(oids)):
        found[oid][column] = text
    return found


def _members(rows: Iterable[tuple[Any, ...]]) -> dict[int, Published]:
    return {
        oid: Published(frozenset(columns), filter_digest, tuple(membership), listed)
        for oid, columns, filter_digest, membership, listed in rows
    }


@contextmanager
def one_snapshot(conn: SourceSession) -> Iterator[None]:
    """Read all inside from one snapshot; inside a transaction that is already open, from that one's."""
    with conn.snapshot() if conn.info.transaction_status == TransactionStatus.IDLE else nullcontext():
        yield
