"""Tables of a real server, followed into a lake of folders: catalog, copy, slot, decoder, landing zone and engine, without Spark or a ledger.

The server says what happened, what equals what, and what its rows are at the end.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psycopg
import pyarrow as pa

from penstock.compare.pg_text import row_texts
from penstock.config.connections import Connection
from penstock.config.model import Capture
from penstock.contract.manifest import FileEntry, FileRef
from penstock.engine import duck, vectors
from penstock.engine.files import Files
from penstock.engine.target import scan_sql
from penstock.flow.capture.window import land
from penstock.jobs.plans import CopyPlan
from penstock.landing.zone import LandingZone
from penstock.lsn import Lsn
from penstock.shapes.mirror_column import column_plan
from penstock.shapes.source_table import SourceTable
from penstock.source import peek, session, slot
from penstock.source.catalog_snapshot import read_catalog
from penstock.source.copy import plan_ranges
from penstock.source.text_rows import rendered, rendered_rows
from penstock.wire.columnar import ColumnarDecoder
from penstock_spark.copy import land as land_range
from stack.servers.postgres import Database
from tests.engine.folder_lake import FolderLake, FolderTable
from tests.pipeline_env import connection

Rows = Counter[tuple[str | None, ...]]
_NAME = "followed"


@dataclass
class Followed:
    """Follow every table of a database that has been made before `begin`."""

    database: Database
    lake: FolderLake
    writer: psycopg.Connection[Any]
    tables: dict[str, SourceTable] = field(default_factory=dict)
    targets: dict[int, FolderTable] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    @contextmanager
    def of(cls, database: Database, folder: Path) -> Iterator[Self]:
        with database.connect(options="-c synchronous_commit=on") as writer:
            yield cls(database, FolderLake(folder, options={"stop_on_conflict": True}), writer)

    @property
    def source(self) -> Connection:
        return connection(self.database, "source")

    @property
    def zone(self) -> LandingZone:
        return LandingZone.open(str(self.lake.folder), {})

    def begin(self) -> None:
        """Publish all tables, make the slot, and copy what they hold in its snapshot."""
        self.writer.execute(f"create publication {_NAME} for all tables with (publish_via_partition_root)")
        with session.connect(self.source, what="test") as conn:
            found = read_catalog(conn, _NAME, sizes=True).tables
        self.tables = {table.name: table for table in found}
        for table in found:
            self.targets[table.oid] = self.lake.table(*map(column_plan, table.columns), identity=table.identity)
        with slot.create_exporting(self.source, _NAME, timeout=60) as exported:
            ranges = tuple(plan_ranges(found, range_bytes=1 << 30, folder="copy"))
            plan = CopyPlan(
                pipeline=_NAME,
                attempt="copy",
                landing_uri=str(self.lake.folder),
                snapshot_name=exported.snapshot_name,
                ranges=ranges,
                result_folder="copy",
                batch_bytes=1 << 20,
                parallel=1,
            )
            for each in ranges:
                entry = FileEntry.from_json(land_range(plan, each, source=self.source, options={}))
                target = self.targets[each.oid]
                target.copy_files = [*(target.copy_files or []), self._ref(entry)]
        self.lake.merge()

    def capture(self) -> None:
        """Land what was committed since; a merge brings all that was landed."""
        with session.connect(self.source, what="test") as conn:
            ((upto, horizon),) = conn.execute(
                "select pg_current_wal_flush_lsn()::text, pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
            ).fetchall()
            messages = peek.peek(self.source, peek.Request(_NAME, _NAME, Lsn.parse(upto)), Capture())
            decoder = ColumnarDecoder(xid_horizon=horizon)
            landed = land(messages, decoder, self.zone, f"windows/{next(self.numbers)}", lambda *_: 1)
            slot.advance(conn, _NAME, Lsn.parse(upto))
        for entry in landed.files:
            self.targets[entry.oid].files.append(self._ref(entry))

    def merge(self) -> dict[str, str]:
        """Merge what was landed; return why tables were paused."""
        results = zip(self.tables, self.lake.merge(), strict=True)
        return {name: str(each.paused_reason) for name, each in results if each.paused_slug}

    def unlike(self) -> dict[str, tuple[Rows, Rows]]:
        """Return by table the rows that only the server has, and those that only the lake has, as the server's texts."""
        found = {}
        with rendered(self.source, seconds=60) as texts:
            for name, table in self.tables.items():
                heaps = [(leaf.schema, leaf.name) for leaf in table.leaves]
                named = [column.name for column in table.columns]
                here = _counted(rendered_rows(texts, heaps, named))
                there = _counted(_lake_rows(self.targets[table.oid], named))
                if here != there:
                    found[name] = (here - there, there - here)
        return found

    def _ref(self, entry: FileEntry) -> FileRef:
        return entry.at(self.zone.uri(entry.path))


def _counted(tables: Iterator[pa.Table]) -> Rows:
    return Counter(
        row for table in tables for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )


def _lake_rows(table: FolderTable, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the lake's rows as the server's texts, made by what compares the two."""
    if not table.data:
        return
    order = table.order_of([])
    gone = vectors.gone(Files().lake, order.target, range(len(order.target)))
    values = ", ".join(f'values.t{at} as "{name}"' for at, name in enumerate(names))
    with duck.connect(order.resources, Files()) as db:
        query = f"select file_index, file_row_number, {values}, tm as _misfits from {scan_sql(db, order, range(len(names)))} as values"
        for batch in db.connection.sql(query).to_arrow_reader():
            places = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            there = pa.array([position not in gone.get(file, ()) for file, position in places], pa.bool_())
            live = batch.drop_columns(["file_index", "file_row_number"]).filter(there)
            yield pa.table(row_texts(live, names), list(names))
