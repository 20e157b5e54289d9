"""Read lake tables without Spark: through PyIceberg, one data file at a time, deletion vectors applied.

PyIceberg is imported where it is used: with what it brings it takes a second, and every DAG file would pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL
from sqlalchemy.exc import SQLAlchemyError

from penstock.config.connections import Connection
from penstock.errors import LakeError, PenstockError
from penstock.lake import properties
from penstock.lake.columns import MISFITS
from penstock.store_trouble import Trouble, trouble_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

Target = tuple[str, ...]
_COMPACTION = "replace"


def _sql_catalog(connection: Connection) -> dict[str, str]:
    """Return PyIceberg's properties of a JDBC catalog in PostgreSQL. They hold the password: never log them."""
    place = {"host": connection.host, "port": str(connection.port)}  # as words, because there may be several of each
    url = URL.create(
        "postgresql+psycopg",
        username=connection.user,
        password=connection.secret,
        database=connection.database,
        query={**connection.options, **place},
    )
    return {"type": "sql", "uri": url.render_as_string(hide_password=False), "init_catalog_tables": "false"}


@dataclass(frozen=True, slots=True)
class LakeTable:
    """Read one table at its current snapshot, or at an older one; `empty` is from before it had any."""

    table: Table
    snapshot_id: int | None
    empty: bool = False

    @property
    def folder(self) -> str:
        """Return the folder below which the table keeps its files."""
        return str(self.table.location())

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that the snapshot shows."""
        return tuple(field.name for field in self._scan().projection().fields)

    def is_ours(self, expected: int | None) -> bool:
        """Return whether main is at the expected snapshot, compactions since then aside."""
        later = self._committed_since(expected)
        return later is not None and all(map(_compacts, later))

    def as_of_cut(self, published: int | None) -> LakeTable | None:
        """Return the table as its readers saw it after a cut, before the next: at what lies on the cut's snapshot.

        Compactions, and commits that are not Penstock's, count as part of it. None where main does not come from that
        snapshot: the table was rolled back or replaced.
        """
        later = self._committed_since(published)
        if later is None:
            return None
        seen = published
        for snapshot in reversed(later):
            if _merged(snapshot):
                break
            seen = snapshot.snapshot_id
        return LakeTable(self.table, seen, empty=seen is None)

    @property
    def rows(self) -> int:
        """Count the rows as the snapshot's summary does, deleted ones too."""
        snapshot = self._scan().snapshot()
        return int(snapshot.summary.get("total-records", 0)) if snapshot and snapshot.summary else 0

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in no order, or some columns of them, misfits included; memory holds one data file's.

        Raises LakeError("lake-unreadable").
        """
        from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415
        from pyiceberg.table import ALWAYS_TRUE  # noqa: PLC0415

        if self.empty:
            return
        scan = self._scan()
        if columns is not None:
            scan = scan.select(*columns, *({MISFITS} & set(self.columns)))
        reader = ArrowScan(self.table.metadata, self.table.io, scan.projection(), ALWAYS_TRUE)
        with _readable(self.table.name()):
            for task in scan.plan_files():
                yield from reader.to_record_batches([task])

    def _committed_since(self, published: int | None) -> list[Snapshot] | None:
        """Return main's snapshots after this one, the newest first; None where main does not come from it."""
        later: list[Snapshot] = []
        snapshot = self.table.current_snapshot()
        while snapshot is not None and snapshot.snapshot_id != published:
            later.append(snapshot)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.table.snapshot_by_id(parent)
        return later if (snapshot is None) == (published is None) else None

    def _scan(self) -> Any:
        # Named explicitly, the current snapshot would show the schema it was written with, not today's.
        current = self.table.current_snapshot()
        is_current = self.snapshot_id is None or (current is not None and current.snapshot_id == self.snapshot_id)
        return self.table.scan(snapshot_id=None if is_current else self.snapshot_id)


@dataclass(frozen=True, slots=True)
class LakeReader:
    """Find tables in a catalog."""

    catalog: Catalog

    def table(self, target: Target, snapshot_id: int | None = None) -> LakeTable | None:
        """Return a table, or None where the catalog has none of this name; raises LakeError."""
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415

        try:
            with _answering(), _readable(target):
                return LakeTable(self.catalog.load_table(target), snapshot_id)
        except NoSuchTableError:
            return None

    def drop(self, target: Target) -> None:
        """Take a table's name away, if it is there; its files stay (`penstock.flow.load.run.discard` sees to them). Raises LakeError."""
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415

        with _answering(), suppress(NoSuchTableError):
            self.catalog.drop_table(target)


@contextmanager
def lake_reader(catalog: str, connection: Connection) -> Iterator[LakeReader]:
    """Open a catalog in PostgreSQL by the name that Spark knows it by, which is part of every table's key; raises LakeError.

    What an object store needs PyIceberg finds in the environment.
    """
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    with _answering():
        opened = load_catalog(catalog, **_sql_catalog(connection))
    try:
        yield LakeReader(opened)
    finally:
        opened.close()


def _compacts(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation.value == _COMPACTION


def _merged(snapshot: Snapshot) -> bool:
    summary = snapshot.summary
    return summary is not None and not _compacts(snapshot) and properties.ATTEMPT in summary.additional_properties


@contextmanager
def _readable(target: Target) -> Iterator[None]:
    """Turn whatever a store or a file's content makes the readers raise into LakeError("lake-unreadable")."""
    from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415

    try:
        yield
    except (NoSuchTableError, SQLAlchemyError, PenstockError):
        raise
    except Exception as error:  # a damaged file: each format's reader has errors of its own
        # Arrow may quote the bytes that it could not read
        if trouble_of([type(error).__name__, str(error)]) is Trouble.BUSY:
            raise LakeError(
                "lake-unreachable",
                f"expected the lake's store to answer for {'.'.join(target)}, got {type(error).__name__}: {Trouble.BUSY.value}; it is "
                "tried again",
            ) from error
        reason = f"{error.strerror or type(error).__name__}" if isinstance(error, OSError) else type(error).__name__
        raise LakeError(
            "lake-unreadable",
            f"expected to read the lake's files of {'.'.join(target)}, got: {reason}; "
            "check the store's address, credentials and rights, and that the file is there",
        ) from error


@contextmanager
def _answering() -> Iterator[None]:
    """Turn what the catalog's database makes the reader raise into LakeError("catalog-unreachable")."""
    try:
        yield
    except SQLAlchemyError as error:  # whose own message may repeat the address with the password in it
        raise LakeError(
            "catalog-unreachable",
            f"expected the catalog's database to answer, got {type(error).__name__}; check the connection of the catalog",
        ) from None
