"""Move many pointers of an Iceberg JDBC catalog in one step.

A pointer is a row of `iceberg_tables`. All of them are locked in one order and compared with what they must
show; then all move, or none does. Source: Iceberg specification, "JDBC catalog" (table `iceberg_tables`).
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import errors as pg

from penstock.connections import Connection
from penstock.errors import LakeError
from penstock.lake.plan import Pointer
from penstock.ledger.session import Transaction, connect, said

_NOT_SET_UP = (pg.UndefinedTable, pg.UndefinedColumn, pg.InsufficientPrivilege)
_TAKEN = (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)


def same_database(one: Connection, other: Connection) -> bool:
    """Tell whether two connections log in to the same database as the same role."""
    return all(getattr(one, part) == getattr(other, part) for part in ("host", "port", "database", "user"))


def move_elsewhere(catalog: Connection, catalog_name: str, pointers: Sequence[Pointer]) -> None:
    """Move the pointers in a transaction of the catalog's own database; raises as `move` does."""
    try:
        with connect(catalog, "penstock publish") as opened, opened.transaction():
            move(Transaction(opened), catalog, catalog_name, pointers)
    except pg.OperationalError as error:
        raise _unreachable(catalog, error) from None


def moved(catalog: Connection, catalog_name: str, pointers: Sequence[Pointer]) -> bool:
    """Tell whether every pointer shows its new place already; raises LakeError("catalog-unreachable")."""
    try:
        with connect(catalog, "penstock publish") as opened, opened.transaction():
            return _shown(Transaction(opened), catalog_name, pointers) == {_place(each): each.new for each in pointers}
    except (pg.OperationalError, *_NOT_SET_UP) as error:
        raise _unreachable(catalog, error) from None


def move(transaction: Transaction, catalog: Connection, catalog_name: str, pointers: Sequence[Pointer]) -> None:
    """Move the pointers inside a transaction; pointers that have all been moved by us before stay as they are.

    Raises LakeError("publish-conflict") naming the tables that somebody else moved, and
    LakeError("catalog-unreachable").
    """
    try:
        _move(transaction, catalog_name, pointers)
    except _NOT_SET_UP as error:
        raise _unreachable(catalog, error) from None
    except _TAKEN as error:
        raise LakeError(
            "publish-conflict",
            f"expected the lake's pointers to be free, got: {said(error)}; nothing was published: publish again",
        ) from None


def _move(transaction: Transaction, catalog_name: str, pointers: Sequence[Pointer]) -> None:
    now = _shown(transaction, catalog_name, pointers)
    if pointers and all(now.get(_place(pointer)) == pointer.new for pointer in pointers):
        return
    strange = [pointer for pointer in pointers if now.get(_place(pointer)) != pointer.old]
    olds, news = [pointer.old for pointer in pointers], [pointer.new for pointer in pointers]
    places = _places(catalog_name, pointers)
    if strange or transaction.change("move_pointers", olds=olds, news=news, **places) != len(pointers):
        names = ", ".join(f"{pointer.namespace}.{pointer.table}" for pointer in strange) or "a table"
        raise LakeError(
            "publish-conflict",
            f"expected the lake's tables as this run read them, but somebody else moved {names}; "
            "nothing was published: merge again",
        )


def _shown(transaction: Transaction, catalog_name: str, pointers: Sequence[Pointer]) -> dict[tuple[str, str], str]:
    """Lock the pointers and return what they show, by namespace and table."""
    rows = transaction.rows("lock_pointers", **_places(catalog_name, pointers))
    return {(namespace, table): location for namespace, table, location in rows}


def _places(catalog_name: str, pointers: Sequence[Pointer]) -> dict[str, str | list[str]]:
    return {
        "catalog": catalog_name,
        "namespaces": [pointer.namespace for pointer in pointers],
        "tables": [pointer.table for pointer in pointers],
    }


def _place(pointer: Pointer) -> tuple[str, str]:
    return pointer.namespace, pointer.table


def _unreachable(catalog: Connection, error: psycopg.Error) -> LakeError:
    return LakeError(
        "catalog-unreachable",
        f"expected the lake's catalog at {catalog.address} to answer and to have the table iceberg_tables, "
        f"got: {said(error)}; check the connection and make the catalog, then publish again",
    )
