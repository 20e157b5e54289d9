"""Columns and relations as plain data: what the ledger keeps in its JSON columns, and back."""

from __future__ import annotations

from typing import Any

from penstock.contract.manifest import vars_of
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.table_facts import TableFacts
from penstock.values.pgtype import PgType
from penstock.wire.messages import Relation, RelationColumn


def relation_to_json(relation: Relation) -> dict[str, Any]:
    """Return plain data of what the stream says of a relation, but for its oid."""
    return {
        "schema": relation.namespace,
        "name": relation.name,
        "replica_identity": relation.replica_identity,
        "columns": [_sent_to_json(column) for column in relation.columns],
    }


def _sent_to_json(column: RelationColumn) -> dict[str, Any]:
    data = vars_of(column)
    if not column.base:  # so that it is what the ledger has of a shape that came before bases were noted
        del data["base"]
    return data


def relation_from_json(oid: int, data: dict[str, Any]) -> Relation:
    """Read what `relation_to_json` wrote."""
    columns = tuple(RelationColumn(**column) for column in data["columns"])
    return Relation(oid, data["schema"], data["name"], data["replica_identity"], columns)


def column_to_json(column: MirrorColumn) -> dict[str, Any]:
    """Return plain data."""
    return {**vars_of(column), "type": column.type.to_json()}


def column_from_json(data: dict[str, Any]) -> MirrorColumn:
    """Read what `column_to_json` wrote."""
    return MirrorColumn(**{**data, "type": PgType.from_json(data["type"])})


def facts_to_json(facts: TableFacts) -> dict[str, Any]:
    """Return plain data, with the names of the ledger's columns."""
    columns = [column_to_json(column) for column in facts.columns]
    return {**vars_of(facts), "columns": columns, "accepted": facts.accepted.to_json()}
