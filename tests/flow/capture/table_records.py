"""A table as the ledger knows it, for the rules of captures."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from penstock.ledger.table_records import TableRecord


def table_record(oid: int, name: str, **known: Any) -> TableRecord:
    """Return the record of a table that is being merged; `known` is what matters of it."""
    plain: dict[str, Any] = dict.fromkeys(each.name for each in fields(TableRecord))
    plain |= {"pipeline": "shop", "oid": oid, "schema": "public", "name": name, "target": ("shop", "public", name)}
    plain |= {"state": "ready", "identity": "d", "columns": (), "catalog_digest": {}, "discard": False}
    return TableRecord(**{**plain, **known})
