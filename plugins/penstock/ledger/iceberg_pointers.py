"""Move many pointers of an Iceberg JDBC catalog in one step.

A pointer is a row of `iceberg_tables`. All of them are locked in one order and compared with what they must
show; then all move, or none does. Where a fresh table takes a name, and where tables are renamed, rows change their names. Source: Iceberg specification, "JDBC catalog" (table `iceberg_tables`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from types import MappingProxyType

import psycopg
from psycopg import errors as pg

from penstock.config.connections import Connection
from penstock.errors import LakeError
from penstock.jobs.pointers import TOLERANCE_SECONDS, Place, Pointer, Rename
from penstock.ledger.session import Transaction, connect, recordset, server_message

_NOT_SET_UP = (pg.UndefinedTable, pg.UndefinedColumn, pg.InsufficientPrivilege)
_TAKEN = (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)
_NOTHING: Mapping[Place, str | None] = MappingProxyType({})
_NAMESAKE = pg.UniqueViolation


def same_database(one: Connection, other: Connection) -> bool:
    """Return whether two connections log in to the same database as the same role."""
    return all(getattr(one, part) == getattr(other, part) for part in ("host", "port", "database", "user"))


def move_pointers(
    transaction: Transaction,
    ledger: Connection,
    catalog: Connection,
    catalog_name: str,
    pointers: Sequence[Pointer],
    *,
    still: Mapping[Place, str | None] = _NOTHING,
    renames: Sequence[Rename] = (),
) -> None:
    """Move the pointers, or leave them where all have been moved before; then tables take their new names.

    It is done inside the ledger's transaction where the catalog is in its database, else just before its end. `still` is what the
    catalog must show of tables that do not move. Raises LakeError("publish-conflict") naming the tables that another session moved,
    LakeError("catalog-unreachable"), and LakeError("clock-skew") where the driver's clock was ahead of the ledger's.
    """
    _require_past(transaction, pointers)
    in_ledger = same_database(ledger, catalog)
    with nullcontext(transaction) if in_ledger else _opened(catalog, "penstock publish") as there:
        try:
            _move(there, catalog_name, pointers, still, renames)
        except _NOT_SET_UP as error:
            raise _unreachable(catalog, error) from None
        except _TAKEN as error:
            raise LakeError(
                "publish-conflict",
                f"expected the lake's pointers to be free, got: {server_message(error)}; nothing was published: publish again",
            ) from None
        except _NAMESAKE:
            kept = [".".join(each.fresh.kept) for each in pointers if each.fresh]
            kept += [".".join(each.to) for each in renames]
            raise LakeError(
                "publish-conflict",
                f"expected the names {', '.join(kept)} to be free for renamed and replaced tables, but one is taken; nothing was "
                "published: drop the table that has it, then publish again",
            ) from None


def _require_past(transaction: Transaction, pointers: Sequence[Pointer]) -> None:
    """See that no time in the staged metadata is yet to come: the next driver could not write until it has."""
    stamped = max((each.stamped for each in pointers if each.stamped is not None), default=None)
    if stamped is None:
        return
    ((ahead,),) = transaction.rows("iceberg_pointers/ahead", stamped=stamped)
    if ahead > TOLERANCE_SECONDS:
        raise LakeError(
            "clock-skew",
            f"expected snapshots of a time that has come by the ledger's clock, got some that are {ahead:.0f} s ahead of it; nothing was "
            "published: set the clock of the machine on which Spark's driver runs",
        )


def moved(catalog: Connection, catalog_name: str, pointers: Sequence[Pointer], renames: Sequence[Rename] = ()) -> bool:
    """Return whether every pointer shows its new place already; raises LakeError("catalog-unreachable")."""
    with _opened(catalog, "penstock publish") as there:
        return _all_moved(_shown(there, catalog_name, pointers, (), renames), pointers, renames)


def shown(catalog: Connection, catalog_name: str, places: Sequence[Place]) -> dict[Place, str]:
    """Return the metadata file that each of these tables shows, if it is there; raises LakeError("catalog-unreachable")."""
    return {(namespace, table): location for namespace, table, location in listed(catalog, catalog_name, places)}


def listed(catalog: Connection, catalog_name: str, places: Sequence[Place] | None = None) -> list[tuple[str, str, str]]:
    """Return namespace, name and metadata file of every table of the catalog, or of these that are there.

    Raises LakeError("catalog-unreachable").
    """
    namespaces, tables = (None if places is None else [place[part] for place in places] for part in (0, 1))
    chosen = {"catalog": catalog_name, "namespaces": namespaces, "tables": tables}
    with _opened(catalog, "penstock look") as there:
        return [(n, t, m) for n, t, m in there.rows("iceberg_pointers/catalog_tables", **chosen)]


def _move(
    transaction: Transaction,
    catalog_name: str,
    pointers: Sequence[Pointer],
    still: Mapping[Place, str | None],
    renames: Sequence[Rename],
) -> None:
    now = _shown(transaction, catalog_name, pointers, still, renames)
    if pointers and _all_moved(now, pointers, renames):
        return
    there = [each for each in renames if each.kind == "table" or each.places[0] in now]
    vacated = {each.places[0] for each in there}
    strange = [pointer.place for pointer in pointers if not _is_old(now, pointer, vacated)]
    strange += [place for place, location in still.items() if now.get(place) != location]
    strange += [place for place in vacated if place not in now]
    strange += [each.places[1] for each in there if each.places[1] in now and each.places[1] not in vacated]
    if strange or not _moved_all(transaction, catalog_name, pointers, there):
        names = ", ".join(".".join(place) for place in strange) or "a table"
        raise LakeError(
            "publish-conflict",
            f"expected the lake's tables as this run read them, but another session moved {names}; "
            "nothing was published: merge again",
        )


def _moved_all(
    transaction: Transaction, catalog_name: str, pointers: Sequence[Pointer], renames: Sequence[Rename]
) -> bool:
    """Change the rows and return whether each one was found; a name is free before another table takes it."""
    passing = [(each.places, ("penstock passing", f"{number}")) for number, each in enumerate(renames)]
    fresh = [(pointer, pointer.fresh) for pointer in pointers if pointer.fresh]
    steps = (
        [_change(each.place, each.place, each.old, each.new) for each in pointers if not each.fresh],
        [_change(before, between) for (before, _), between in passing],
        [_change(each.place, prepared.kept, each.old) for each, prepared in fresh if each.old],
        [_change(prepared.place, each.place, prepared.location, each.new) for each, prepared in fresh],
        [_change(between, after) for (_, after), between in passing],
    )
    change = partial(transaction.change, "iceberg_pointers/change_tables", catalog=catalog_name)
    return all(not step or change(changes=recordset(step)) == len(step) for step in steps)


def _change(place: Place, to: Place, shown: str | None = None, new: str | None = None) -> dict[str, str | None]:
    """Return what becomes of one row: its name, and its metadata file where there is a `new` one; it must show what `shown` says."""
    names = {"namespace": place[0], "name": place[1], "to_namespace": to[0], "to_name": to[1]}
    return {**names, "shown": shown, "new": new}


def _all_moved(now: Mapping[Place, str], pointers: Sequence[Pointer], renames: Sequence[Rename]) -> bool:
    names = dict(each.places for each in renames)
    places = [(pointer.place if pointer.fresh else names.get(pointer.place, pointer.place)) for pointer in pointers]
    return all(now.get(place) == pointer.new for place, pointer in zip(places, pointers, strict=True))


def _is_old(now: Mapping[Place, str], pointer: Pointer, vacated: Collection[Place]) -> bool:
    fresh = pointer.fresh
    if fresh is None:
        return now.get(pointer.place) == pointer.old
    free = pointer.old is None and pointer.place in vacated
    return (free or now.get(pointer.place) == pointer.old) and now.get(fresh.place) == fresh.location


def _shown(
    transaction: Transaction,
    catalog_name: str,
    pointers: Sequence[Pointer],
    still: Iterable[Place] = (),
    renames: Sequence[Rename] = (),
) -> dict[Place, str]:
    """Lock the pointers and return what they show, by namespace and table."""
    places = [pointer.place for pointer in pointers] + [each.fresh.place for each in pointers if each.fresh]
    places += (*still, *(place for each in renames for place in each.places))
    namespaces, tables = [place[0] for place in places], [place[1] for place in places]
    rows = transaction.rows(
        "iceberg_pointers/lock_pointers", catalog=catalog_name, namespaces=namespaces, tables=tables
    )
    return {(namespace, table): location for namespace, table, location in rows}


@contextmanager
def _opened(catalog: Connection, application: str) -> Iterator[Transaction]:
    """Open a transaction in a catalog that is a database of its own; raises LakeError("catalog-unreachable")."""
    try:
        with connect(catalog, application) as opened, opened.transaction():
            yield Transaction(opened)
    except (pg.OperationalError, *_NOT_SET_UP) as error:
        raise _unreachable(catalog, error) from None


def _unreachable(catalog: Connection, error: psycopg.Error) -> LakeError:
    return LakeError(
        "catalog-unreachable",
        f"expected the lake's catalog at {catalog.address} to answer and to have the table iceberg_tables, "
        f"got: {server_message(error)}; check the connection and make the catalog, then publish again",
    )
