"""Move many pointers of an Iceberg JDBC catalog in one step.

A pointer is a row of `iceberg_tables`. All of them are locked in one order and compared with what they must
show; then all move, or none does. Where a fresh table takes a name, two rows change their names. Source: Iceberg specification, "JDBC catalog" (table `iceberg_tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import psycopg
from psycopg import errors as pg

from penstock.connections import Connection
from penstock.errors import LakeError
from penstock.jobs.pointers import Place, Pointer
from penstock.ledger.session import Transaction, connect, said

_NOT_SET_UP = (pg.UndefinedTable, pg.UndefinedColumn, pg.InsufficientPrivilege)
_TAKEN = (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)
_NOTHING: Mapping[Place, str | None] = MappingProxyType({})
_NAMESAKE = pg.UniqueViolation


def same_database(one: Connection, other: Connection) -> bool:
    """Return whether two connections log in to the same database as the same role."""
    return all(getattr(one, part) == getattr(other, part) for part in ("host", "port", "database", "user"))


def move_elsewhere(
    catalog: Connection, catalog_name: str, pointers: Sequence[Pointer], still: Mapping[Place, str | None] = _NOTHING
) -> None:
    """Move the pointers in a transaction of the catalog's own database; raises as `move` does."""
    try:
        with connect(catalog, "penstock publish") as opened, opened.transaction():
            move(Transaction(opened), catalog, catalog_name, pointers, still)
    except pg.OperationalError as error:
        raise _unreachable(catalog, error) from None


def moved(catalog: Connection, catalog_name: str, pointers: Sequence[Pointer]) -> bool:
    """Return whether every pointer shows its new place already; raises LakeError("catalog-unreachable")."""
    try:
        with connect(catalog, "penstock publish") as opened, opened.transaction():
            return _all_moved(_shown(Transaction(opened), catalog_name, pointers), pointers)
    except (pg.OperationalError, *_NOT_SET_UP) as error:
        raise _unreachable(catalog, error) from None


def shown(catalog: Connection, catalog_name: str, places: Sequence[Place]) -> dict[Place, str]:
    """Return the metadata file that each of these tables shows, if it is there; raises LakeError("catalog-unreachable")."""
    named = {"namespaces": [namespace for namespace, _ in places], "tables": [table for _, table in places]}
    try:
        with connect(catalog, "penstock merge") as opened, opened.transaction():
            rows = Transaction(opened).rows("iceberg_pointers/shown_pointers", catalog=catalog_name, **named)
            return {(namespace, table): location for namespace, table, location in rows}
    except (pg.OperationalError, *_NOT_SET_UP) as error:
        raise _unreachable(catalog, error) from None


def listed(catalog: Connection, catalog_name: str) -> list[tuple[str, str, str]]:
    """Return namespace, name and metadata file of every table of the catalog; raises LakeError("catalog-unreachable")."""
    try:
        with connect(catalog, "penstock maintain") as opened, opened.transaction():
            return [
                (n, t, m)
                for n, t, m in Transaction(opened).rows("iceberg_pointers/catalog_tables", catalog=catalog_name)
            ]
    except (pg.OperationalError, *_NOT_SET_UP) as error:
        raise _unreachable(catalog, error) from None


def move(
    transaction: Transaction,
    catalog: Connection,
    catalog_name: str,
    pointers: Sequence[Pointer],
    still: Mapping[Place, str | None] = _NOTHING,
) -> None:
    """Move the pointers inside a transaction; pointers that have all been moved by us before stay as they are.

    `still` is what the catalog must show of tables that do not move. Raises LakeError("publish-conflict") naming the
    tables that another session moved, and LakeError("catalog-unreachable").
    """
    try:
        _move(transaction, catalog_name, pointers, still)
    except _NOT_SET_UP as error:
        raise _unreachable(catalog, error) from None
    except _TAKEN as error:
        raise LakeError(
            "publish-conflict",
            f"expected the lake's pointers to be free, got: {said(error)}; nothing was published: publish again",
        ) from None
    except _NAMESAKE:
        kept = ", ".join(f"{each.fresh.kept_namespace}.{each.fresh.kept_table}" for each in pointers if each.fresh)
        raise LakeError(
            "publish-conflict",
            f"expected the names {kept} to be free for the replaced tables, but one is taken; nothing was "
            "published: drop the table that has it, then publish again",
        ) from None


def _move(
    transaction: Transaction, catalog_name: str, pointers: Sequence[Pointer], still: Mapping[Place, str | None]
) -> None:
    now = _shown(transaction, catalog_name, pointers, still)
    if pointers and _all_moved(now, pointers):
        return
    strange = [pointer.place for pointer in pointers if not _is_old(now, pointer)]
    strange += [place for place, location in still.items() if now.get(place) != location]
    if strange or not _moved_all(transaction, catalog_name, pointers):
        names = ", ".join(".".join(place) for place in strange) or "a table"
        raise LakeError(
            "publish-conflict",
            f"expected the lake's tables as this run read them, but another session moved {names}; "
            "nothing was published: merge again",
        )


def _moved_all(transaction: Transaction, catalog_name: str, pointers: Sequence[Pointer]) -> bool:
    """Change the rows and return whether each one was found; a name is free before another table takes it."""
    steps = (
        ("iceberg_pointers/move_pointers", [pointer for pointer in pointers if not pointer.fresh]),
        ("iceberg_pointers/keep_old_tables", [pointer for pointer in pointers if pointer.fresh and pointer.old]),
        ("iceberg_pointers/take_places", [pointer for pointer in pointers if pointer.fresh]),
    )
    return all(transaction.change(step, catalog=catalog_name, **_lists(some)) == len(some) for step, some in steps)


def _lists(pointers: Sequence[Pointer]) -> dict[str, list[str | None]]:
    """Return the pointers as columns, as the statements take them."""
    fresh = [pointer.fresh for pointer in pointers if pointer.fresh]
    return {
        "namespaces": [pointer.namespace for pointer in pointers],
        "tables": [pointer.table for pointer in pointers],
        "olds": [pointer.old for pointer in pointers],
        "news": [pointer.new for pointer in pointers],
        "kept_namespaces": [each.kept_namespace for each in fresh],
        "kept_tables": [each.kept_table for each in fresh],
        "fresh_namespaces": [each.namespace for each in fresh],
        "fresh_tables": [each.table for each in fresh],
        "locations": [each.location for each in fresh],
    }


def _all_moved(now: Mapping[Place, str], pointers: Sequence[Pointer]) -> bool:
    return all(now.get(pointer.place) == pointer.new for pointer in pointers)


def _is_old(now: Mapping[Place, str], pointer: Pointer) -> bool:
    fresh = pointer.fresh
    return now.get(pointer.place) == pointer.old and (fresh is None or now.get(fresh.place) == fresh.location)


def _shown(
    transaction: Transaction, catalog_name: str, pointers: Sequence[Pointer], still: Iterable[Place] = ()
) -> dict[Place, str]:
    """Lock the pointers and return what they show, by namespace and table."""
    places = [pointer.place for pointer in pointers] + [each.fresh.place for each in pointers if each.fresh]
    places += still
    namespaces, tables = [place[0] for place in places], [place[1] for place in places]
    rows = transaction.rows(
        "iceberg_pointers/lock_pointers", catalog=catalog_name, namespaces=namespaces, tables=tables
    )
    return {(namespace, table): location for namespace, table, location in rows}


def _unreachable(catalog: Connection, error: psycopg.Error) -> LakeError:
    return LakeError(
        "catalog-unreachable",
        f"expected the lake's catalog at {catalog.address} to answer and to have the table iceberg_tables, "
        f"got: {said(error)}; check the connection and make the catalog, then publish again",
    )
