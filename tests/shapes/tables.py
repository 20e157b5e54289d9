"""A table as the source describes it, and as the ledger knows it, for all who judge by them."""

from dataclasses import fields
from typing import Any

from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.shapes.accepted import Accepted
from penstock.shapes.mirror_column import MirrorColumn, column_plan
from penstock.shapes.source_table import Leaf, Shape, SourceColumn, SourceTable
from penstock.values.pgtype import PgType

INT = PgType(23, -1, "pg_catalog", "int4", "b")
BIGINT = PgType(20, -1, "pg_catalog", "int8", "b")
TEXT = PgType(25, -1, "pg_catalog", "text", "b")
ID = SourceColumn("id", 1, INT, not_null=True, key=True, version="700")
HEAP = Leaf(
    oid=100,
    schema="public",
    name="t",
    kind="r",
    persistence="p",
    identity="d",
    key=("id",),
    file=200,
    blocks=1,
    bytes=8192,
    ranged=True,
)


def source_table(oid: int = 100, name: str = "t", **other: Any) -> SourceTable:
    """Return a plain table with a key, published by its name; `other` is what matters of it."""
    plain: dict[str, Any] = {"schema": "public", "kind": "r", "persistence": "p", "identity": "d", "key": ("id",)}
    plain |= {"columns": (ID,), "hidden": {}, "part_versions": {}, "leaves": (HEAP,), "filter": None, "file": 200}
    plain |= {"parents": (), "enums": {}, "composites": {}, "membership": (f"table {oid}",)}
    return SourceTable(oid=oid, name=name, **{**plain, **other})


def shape(**other: Any) -> Shape:
    """Return the shape of such a table."""
    return source_table(**other).shape


def planned(table: SourceTable) -> tuple[MirrorColumn, ...]:
    """Return the lake's columns of a table that was copied as it is."""
    return tuple(map(column_plan, table.columns))


def known_as(table: SourceTable, **known: Any) -> TableRecord:
    """Return the record of a table that was accepted as it is; `known` is what else matters of it."""
    facts = {"identity": table.identity, "columns": planned(table), "accepted": Accepted(table.shape)}
    return table_record(table.oid, table.name, **{**facts, **known})


def table_record(oid: int, name: str, **known: Any) -> TableRecord:
    """Return the record of a table that is being merged; `known` is what matters of it."""
    plain: dict[str, Any] = {
        "pipeline": "shop",
        "oid": oid,
        "schema": "public",
        "name": name,
        "target": ("shop", "public", name),
    }
    plain |= {"state": "ready", "identity": "d", "columns": (), "accepted": Accepted(shape())}
    return TableRecord(**{**plain, **known})


def load_record(oid: int, name: str, **known: Any) -> LoadRecord:
    """Return the record of rows that were read; `known` is what matters of it."""
    plain: dict[str, Any] = dict.fromkeys(each.name for each in fields(LoadRecord))
    plain |= {"oid": oid, "schema": "public", "name": name, "files": (), "whole": False}
    return LoadRecord(**{**plain, **known})
