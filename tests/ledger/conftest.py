"""One migrated ledger with an Iceberg catalog in its database; every test has a pipeline of its own in it."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.config.connections import Connection
from penstock.contract.manifest import ChangeCounts, FileEntry
from penstock.jobs.pointers import Pointer
from penstock.ledger import Ledger, new_attempt
from penstock.ledger.loads import NewBuild, NewRead
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.merges import NewCut
from penstock.ledger.records import CutRecord, WindowRecord
from penstock.ledger.table_records import LoadRecord
from penstock.ledger.windows import WindowContent
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, TableFacts
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType
from penstock.wire.messages import Relation, RelationColumn
from stack.servers import lake_catalog
from stack.servers.postgres import Database, Server
from tests.shapes.tables import shape

START = Lsn.parse("0/1000")
INTEGER = PgType(23, -1, "pg_catalog", "int4", "b")
ORDERS = Relation(
    16385, "shop", "orders", "d", (RelationColumn("id", 23, -1, True), RelationColumn("note", 25, -1, False))
)

_numbers = itertools.count(1)


def connection_to(database: Database) -> Connection:
    server = database.server
    return Connection("penstock_ledger", "127.0.0.1", server.port, "postgres", server.password, database.name)


@pytest.fixture(scope="session")
def control(postgres16: Server) -> Iterator[Database]:
    """A control database as in production: the ledger and the lake's catalog side by side."""
    with postgres16.temporary_database("control") as database:
        Ledger(connection_to(database)).migrate()
        lake_catalog.create_tables(database.dsn())
        yield database


@pytest.fixture
def connection(control: Database) -> Connection:
    return connection_to(control)


@pytest.fixture
def ledger(connection: Connection) -> Iterator[Ledger]:
    """The ledger, with one connection for the test's own thread to save time."""
    ledger = Ledger(connection)
    with ledger.session():
        yield ledger


@pytest.fixture
def name() -> str:
    return f"p{next(_numbers)}"


@pytest.fixture
def running(ledger: Ledger, name: str) -> str:
    """A pipeline that stands at START."""
    bootstrap(ledger, name)
    return name


@pytest.fixture
def ready(ledger: Ledger, running: str) -> str:
    """A running pipeline whose tables 1 and 2 are complete through START."""
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    copy(ledger, running, 1, 2)
    publish(ledger, running, START, [PublishedTable(1, 11, "first"), PublishedTable(2, 12, "first")])
    return running


def bootstrap(ledger: Ledger, name: str, point: Lsn = START) -> None:
    ledger.pipelines.register(name, database="app", slot=f"slot_{name}", publication="pub")
    intend(ledger, name)
    ledger.pipelines.record_slot(name, consistent_point=point)
    ledger.pipelines.finish_bootstrap(name)


def intend(ledger: Ledger, name: str) -> None:
    ledger.pipelines.intend_slot(
        name, system_identifier=(1 << 64) - 1, timeline=1, database="app", publication_oid=16400, made=True
    )


def plan(ledger: Ledger, name: str, from_: int, upto: int, attempt: str | None = None) -> str:
    attempt = attempt or new_attempt()
    ledger.windows.plan(
        name,
        from_lsn=Lsn(from_),
        upto_lsn=Lsn(upto),
        attempt=attempt,
        source_time=datetime(2026, 11, 21, tzinfo=UTC),
        settings_digest="settings",
    )
    return attempt


def stage(ledger: Ledger, name: str, from_: int, attempt: str, **changes: Any) -> WindowRecord:
    measured = {part: changes.pop(part, default) for part, default in (("digest", "any:"), ("seconds", 0.5))}
    content = replace(WindowContent([], {}, transactions=1, messages=0), **changes)
    return ledger.windows.stage(name, from_lsn=Lsn(from_), attempt=attempt, content=content, **measured)


def capture(ledger: Ledger, name: str, from_: int, upto: int, **changes: Any) -> WindowRecord:
    """One whole window, confirmed."""
    window = stage(ledger, name, from_, plan(ledger, name, from_, upto), **changes)
    ledger.windows.confirm(name, through=window.upto_lsn)
    return window


def entry(oid: int, *, version: int = 1, rows: int = 3, size: int = 100, max_xid: int | None = 700) -> FileEntry:
    path = f"p/{oid}.{version}.parquet"
    return FileEntry(path, oid, version, rows, size, 1, 2, ("id",), counts=ChangeCounts(inserts=rows), max_xid=max_xid)


def facts(oid: int, table: str, **changes: Any) -> TableFacts:
    columns = (MirrorColumn("id", 1, INTEGER, key=True), MirrorColumn("n", 2, INTEGER, missing_text="7"))
    known: dict[str, Any] = {"target": ("ns", "shop", table), "identity": "d", "columns": columns}
    known |= {"accepted": Accepted(shape(schema="shop", name=table))}
    return TableFacts(oid=oid, schema="shop", name=table, **(known | changes))


def copy(
    ledger: Ledger, name: str, *oids: int, copy_id: str = "first", lsn: Lsn = START, snapshot: str = "700:705:701"
) -> None:
    start_copy(ledger, name, *oids, copy_id=copy_id, lsn=lsn, snapshot=snapshot)
    for oid in oids:
        ledger.loads.finish_copy(name, copy_id=copy_id, oid=oid, files=[entry(oid, version=0)])


def start_copy(
    ledger: Ledger, name: str, *oids: int, copy_id: str = "c", lsn: Lsn = START, snapshot: str = "700:705:701"
) -> list[LoadRecord]:
    """Begin the first copies of tables, of such too that the lake has had before."""
    for oid in oids:
        set_state(ledger, name, oid, "new", before="ready")
    reads = [NewRead(oid) for oid in oids]
    return ledger.loads.start_reads(name, copy_id=copy_id, snapshot=snapshot, lsn=lsn, reads=reads)


def copy_again(ledger: Ledger, name: str, order: NewBuild, copy_id: str = "second", lsn: Lsn = START) -> None:
    """Begin the copy of a resync, or begin it again."""
    reads = [NewRead(order.facts.oid, "resync", build=order)]
    ledger.loads.start_reads(name, copy_id=copy_id, snapshot="900:900:", lsn=lsn, reads=reads)


def set_state(ledger: Ledger, name: str, oid: int, state: str, *, before: str | None = None) -> None:
    """Put a table into a state, whatever led there, where it is in the one `before`."""
    with ledger.tables.transaction() as transaction:
        transaction.connection.execute(
            "update penstock.table set state = %s where pipeline = %s and oid = %s and state = coalesce(%s, state)",
            [state, name, oid, before],
        )


def publish(ledger: Ledger, name: str, lsn: Lsn, tables: list[PublishedTable], **changes: Any) -> str:
    attempt = ledger.merges.begin(name)
    publish_cut(ledger, name, NewCut(attempt, lsn, tables, cuts_snapshot_id=9), **changes)
    return attempt


def publish_cut(ledger: Ledger, name: str, new: NewCut, **changes: Any) -> CutRecord:
    """Publish a cut without pointers, in a catalog of the ledger's own database; `changes` may be of the cut or of the call."""
    catalog: dict[str, Any] = {"catalog": ledger.connection, "catalog_name": "lake", "pointers": []}
    catalog |= {part: changes.pop(part) for part in (*catalog, "still", "halted") if part in changes}
    return ledger.merges.publish(name, replace(new, **changes), **catalog)


class Lake:
    """Rows of `iceberg_tables` in a catalog of the test's own."""

    def __init__(self, database: Database, catalog: str) -> None:
        self.database = database
        self.catalog = catalog

    def add(self, *tables: str) -> list[Pointer]:
        """Make tables that point to `<table>-0`; return the moves to `<table>-1`."""
        for table in tables:
            self.database.execute(
                "insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
                " values (%s, 'ns', %s, %s, 'TABLE')",
                self.catalog,
                table,
                f"{table}-0",
            )
        return [Pointer(("ns", table), f"{table}-0", f"{table}-1") for table in tables]

    def shows(self) -> dict[str, tuple[str, str | None]]:
        """Return what every table points to, and pointed to before."""
        rows = self.database.execute(
            "select table_name, metadata_location, previous_metadata_location from iceberg_tables where catalog_name = %s",
            self.catalog,
        )
        return {table: (now, before) for table, now, before in rows}

    def move(self, table: str, to: str) -> None:
        """Do what another session may do."""
        self.database.execute(
            "update iceberg_tables set metadata_location = %s where catalog_name = %s and table_name = %s",
            to,
            self.catalog,
            table,
        )


@pytest.fixture
def lake_rows(control: Database, name: str) -> Lake:
    return Lake(control, f"lake_{name}")


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls at the same moment, each in its thread; return results, or the errors that they raised."""

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(outcome, calls))
