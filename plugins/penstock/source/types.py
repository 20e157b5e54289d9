"""Column types from `pg_type`, as trees (a domain over its base, an array over its element), and which the pipeline file has as text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.config.model import Pipeline
from penstock.shapes.source_table import SourceTable
from penstock.source.patterns import chosen_by
from penstock.source.session import SourceSession
from penstock.values.lake_types import element_type, lake_type_of
from penstock.values.pgtype import PgType


@dataclass(frozen=True, slots=True)
class TypeRow:
    """Hold one row of the statement `types`: a type, and the oids of what it is made of.

    `names_objects`: its text is the name that another object has at that moment, or anything else that is not in the value.
    """

    oid: int
    schema: str
    name: str
    kind: str
    base: int | None
    base_typmod: int
    element: int | None
    names_objects: bool
    subtype: int | None
    labels: list[str]
    attributes: list[tuple[str, int, int]]
    versions: list[str]

    def parts(self) -> list[int]:
        """Return the oids of the types that this one is made of."""
        direct = (oid for oid in (self.base, self.element, self.subtype) if oid is not None)
        return [*direct, *(type_oid for _, type_oid, _ in self.attributes)]


@dataclass(frozen=True, slots=True)
class Types:
    """Build type trees from rows that hold every part of every type asked for."""

    rows: Mapping[int, TypeRow] = field(default_factory=dict)

    def tree(self, oid: int, typmod: int) -> PgType:
        """Return the tree of one column's type. A domain's base has the domain's typmod, an element its array's."""
        row = self.rows[oid]
        base = self.tree(row.base, row.base_typmod) if row.base is not None else None
        element = self.tree(row.element, typmod) if row.element is not None else None
        return PgType(oid, typmod, row.schema, row.name, row.kind, base, element)

    def closure(self, oids: Iterable[int]) -> list[TypeRow]:
        """Return the types and all that they are made of, each once, by oid."""
        found: dict[int, TypeRow] = {}
        waiting = list(oids)
        while waiting:
            oid = waiting.pop()
            if oid not in found:
                found[oid] = self.rows[oid]
                waiting.extend(found[oid].parts())
        return [found[oid] for oid in sorted(found)]

    def naming(self, oid: int) -> str | None:
        """Return the name of the type, itself or one that it is made of, whose text names another object; None where none does."""
        return next((row.name for row in self.closure([oid]) if row.names_objects), None)


def read_types(conn: SourceSession, oids: Iterable[int]) -> Types:
    """Read the types with these oids and all that they are made of; raises SourceError."""
    return Types({row.oid: row for row in conn.records(TypeRow, "types/types", oids=sorted(set(oids)))})


def as_chosen(pipeline: Pipeline, table: SourceTable) -> SourceTable:
    """Return a table whose columns say whether they are text in the lake."""
    if not pipeline.tables.columns:
        return table
    columns = tuple(
        replace(column, as_text=is_text(pipeline, (table.schema, table.name), column.name, column.type))
        for column in table.columns
    )
    return replace(table, columns=columns)


def is_text(pipeline: Pipeline, table: tuple[str, str], column: str, type: PgType) -> bool:
    """Return whether text is chosen for a column of this name and type."""
    return is_array(type) and any(
        column in each.columns and chosen_by(each)(*table) for each in pipeline.tables.columns
    )


def is_array(type: PgType) -> bool:
    """Return whether the lake has a type as an array."""
    return element_type(lake_type_of(type)) is not None
