"""What a table looks like by the catalog, as far as the stream does not announce a change of it. Pure.

A shape is equal to itself after a way through JSON, so that the ledger can keep it and the next window can compare. Beside values it
has the versions of the catalog's own rows, which show also what was changed and changed back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.codec import JsonForm
from penstock.shapes.partition_bounds import Bound

SHAPE_LAYOUT = 4
"""Counted up with each change of what a shape has: the ledger's shapes are then all compared, and replaced."""


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """Describe one column of the stream: `type` is its oid, `version` that of its catalog row: equal or not, without an order.

    `has_missing`: rows that are older than the column show a value other than NULL.
    """

    attnum: int
    name: str
    type: int
    typmod: int
    not_null: bool
    key: bool
    has_missing: bool
    version: str


@dataclass(frozen=True, slots=True)
class LeafShape:
    """Describe one relation that holds rows, by its file's number.

    `chain` are the versions of the `pg_inherits` rows above it; `identity` and `key` (sorted) are its own. `altered_by` is who altered
    one that may have logged less than whole old rows since. `bound` has its columns by attnum.
    """

    oid: int
    schema: str
    name: str
    file: int
    chain: tuple[str, ...]
    persistence: str
    identity: str
    key: tuple[str, ...]
    altered_by: int | None
    bound: Bound


@dataclass(frozen=True, slots=True)
class Shape(JsonForm):
    """Describe one table: what must stay the same between two windows, or else be noticed.

    `columns` and `hidden`, those that the stream does not carry, are by attnum; `attnums` counts all that there ever were. `filter` is
    equal as long as the publication's row filter is. `membership` names what makes the table a member of the publication. `enums`,
    `composites` and `part_versions`, the versions of the catalog's rows of a type, are by the types' oids, `leaves` by theirs.
    """

    schema: str
    name: str
    kind: str
    persistence: str
    file: int
    columns: Mapping[int, ColumnShape]
    hidden: Mapping[int, str]
    attnums: int
    identity: str
    key_index: int
    filter: str | None
    membership: tuple[str, ...]
    enums: Mapping[int, tuple[str, ...]]
    composites: Mapping[int, tuple[tuple[str, int, int], ...]]
    part_versions: Mapping[int, tuple[str, ...]]
    parents: tuple[int, ...]
    leaves: Mapping[int, LeafShape]

    @property
    def qualified(self) -> str:
        """Name the table for a message."""
        return f"{self.schema}.{self.name}"
