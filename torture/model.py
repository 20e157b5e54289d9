"""What the source looks like now, read back from its catalog: the ground on which the grammar chooses.

Nothing here is shared with the library's own reading of the catalog: it also says what a comparison has to expect.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg

# functions that write out keys of partitions and the like would wait for a table's lock
_TABLES = """
select c.oid::int8, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       parent.relname, pg_get_expr(c.relpartbound, 0), (
         select case p.partstrat when 'r' then 'RANGE' when 'l' then 'LIST' else 'HASH' end
           || ' (' || string_agg(a.attname, ', ' order by a.attnum) || ')'
         from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid and a.attnum = any(p.partattrs)
         where p.partrelid = c.oid group by p.partstrat)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
left join pg_inherits i on i.inhrelid = c.oid left join pg_class parent on parent.oid = i.inhparent
where n.nspname in ('public', 'aside') and c.relkind in ('r', 'p') order by c.relname, n.nspname
"""
_COLUMNS = """
select a.attrelid::int8, a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated::text, a.attidentity::text,
       a.atthasdef, a.attnotnull, t.typtype::text, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null)
from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
join pg_type t on t.oid = a.atttypid
where n.nspname in ('public', 'aside') and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
order by a.attrelid, a.attnum
"""
_INDEXES = """
select i.indrelid::int8, i.indexrelid::regclass::text, i.indisprimary, i.indisreplident, i.indisunique, not i.indimmediate,
       array_agg(a.attname order by a.attnum)
from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where n.nspname in ('public', 'aside') and c.relkind in ('r', 'p')
group by 1, 2, 3, 4, 5, 6 order by 1, 2
"""
_LABELS = """
select t.typname, array_agg(e.enumlabel order by e.enumsortorder) from pg_enum e join pg_type t on t.oid = e.enumtypid
group by 1
union all
select c.relname, array_agg(a.attname::text order by a.attnum) from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relkind = 'c' and c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped
group by 1 order by 1
"""
_PUBLISHED = """
select n.nspname, c.relname, r.prqual is not null, (
         select array_agg(a.attname order by a.attnum) from pg_attribute a
         where a.attrelid = r.prrelid and a.attnum = any(r.prattrs))
from pg_publication p join pg_publication_rel r on r.prpubid = p.oid join pg_class c on c.oid = r.prrelid
join pg_namespace n on n.oid = c.relnamespace where p.pubname = %s order by 1, 2
"""


def quoted(name: str) -> str:
    """Write a name as SQL does when it leaves nothing to chance."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Column:
    """Describe one column; `base` is the type below a domain, `kind` pg_type's `typtype`."""

    name: str
    type: str
    generated: str
    identity: str
    default: bool
    not_null: bool
    kind: str
    base: str

    @property
    def sql(self) -> str:
        """Return the quoted name."""
        return quoted(self.name)

    @property
    def free(self) -> bool:
        """Return whether a statement may set it."""
        return not self.generated and self.identity != "a"


@dataclass(frozen=True)
class Index:
    """Describe one index; `columns` in the table's order; `late`: a deferrable constraint's."""

    name: str
    primary: bool
    identifies: bool
    unique: bool
    late: bool
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Describe one table or partition; `bound` is a partition's, `partitioned` the root's key."""

    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    parent: str | None
    bound: str | None
    partitioned: str | None
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]

    @property
    def sql(self) -> str:
        """Return the qualified, quoted name."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def free(self) -> list[Column]:
        """Return the columns that a statement may set."""
        return [column for column in self.columns if column.free]

    @property
    def key(self) -> tuple[str, ...]:
        """Return the columns of the primary key or of the identity's index; empty without one."""
        wanted = [each for each in self.indexes if each.identifies] if self.identity == "i" else []
        wanted += [each for each in self.indexes if each.primary]
        return wanted[0].columns if wanted else ()

    @property
    def late(self) -> bool:
        """Return whether two rows may have one key until a transaction ends."""
        return any(each.late for each in self.indexes)

    def column(self, name: str) -> Column:
        """Return a column by name."""
        return next(each for each in self.columns if each.name == name)


@dataclass(frozen=True)
class Published:
    """Say what the publication carries of a table: all rows or not, and which columns, where they are listed."""

    filtered: bool
    columns: tuple[str, ...] | None


@dataclass(frozen=True)
class Model:
    """Hold the tables of the source, the labels of its enums, the attributes of its composite types, and what is published."""

    tables: tuple[Table, ...]
    labels: dict[str, tuple[str, ...]]
    published: dict[tuple[str, str], Published]

    @cached_property
    def by_name(self) -> dict[tuple[str, str], Table]:
        """Return the tables by schema and name."""
        return {(table.schema, table.name): table for table in self.tables}

    @property
    def roots(self) -> list[Table]:
        """Return what applications know as a table: no partitions."""
        return [table for table in self.tables if table.parent is None and table.schema == "public"]

    def children(self, table: Table) -> list[Table]:
        """Return the partitions right below a table."""
        return [each for each in self.tables if each.parent == table.name]

    def leaves(self, table: Table) -> list[Table]:
        """Return the relations that hold its rows."""
        if table.kind != "p":
            return [table]
        return [leaf for child in self.children(table) for leaf in self.leaves(child)]

    def root(self, table: Table) -> Table:
        """Return the top of the tree that a partition belongs to."""
        while table.parent is not None:
            table = next(each for each in self.tables if each.name == table.parent)
        return table

    def fresh(self, stem: str) -> str:
        """Return a name that no table has yet."""
        taken = {table.name for table in self.tables}
        return next(name for number in range(1, 10_000) if (name := f"{stem}{number}") not in taken)


def read(conn: psycopg.Connection[Any], publication: str) -> Model:
    """Read the source's catalog."""
    columns: dict[int, list[Column]] = {}
    for oid, *rest in conn.execute(_COLUMNS).fetchall():
        columns.setdefault(oid, []).append(Column(*rest))
    indexes: dict[int, list[Index]] = {}
    for oid, name, primary, identifies, unique, late, names in conn.execute(_INDEXES).fetchall():
        indexes.setdefault(oid, []).append(Index(name, primary, identifies, unique, late, tuple(names)))
    tables = tuple(
        Table(*(*row, tuple(columns.get(row[0], ())), tuple(indexes.get(row[0], ()))))
        for row in conn.execute(_TABLES).fetchall()
    )
    published = {
        (schema, name): Published(filtered, None if names is None else tuple(names))
        for schema, name, filtered, names in conn.execute(_PUBLISHED, (publication,)).fetchall()
    }
    return Model(tables, {name: tuple(labels) for name, labels in conn.execute(_LABELS).fetchall()}, published)
