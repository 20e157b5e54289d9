"""Land histories, merge them with the real application code, publish, and read the lake."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from penstock.contract.manifest import ChangeCounts, FileRef
from penstock.contract.schema import copy_schema, landing_schema
from penstock.jobs.plans import MergePlan, MergeResult, TablePlan, TableResult
from penstock.lake.columns import lake_column
from penstock.landing.zone import LandingZone
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.parsed import parse, parsed_type
from penstock.values.pgtype import PgType
from penstock_spark import merge
from tests.spark.histories import UNCHANGED, Event, Transaction

_numbers = itertools.count(1)
_attnums = itertools.count(1)


def pg_type(name: str) -> PgType:
    """Return a built-in type by its name, such as `int4`, `text`, `numeric(10,2)` or `int4[]`."""
    if name.endswith("[]"):
        element = pg_type(name.removesuffix("[]"))
        return PgType(0, element.typmod, "pg_catalog", f"_{element.name}", "b", element=element)
    base, _, rest = name.partition("(")
    typmod = -1
    if base == "numeric" and rest:
        precision, scale = (int(part) for part in rest.rstrip(")").split(","))
        typmod = (precision << 16 | scale) + 4
    return PgType(0, typmod, "pg_catalog", base, "b")


def column(name: str, type_name: str = "text", *, key: bool = False, missing: str | None = None) -> MirrorColumn:
    return MirrorColumn(name, next(_attnums), pg_type(type_name), key, missing)


@dataclass
class Table:
    """One source table as its merges see it, with what has been landed for it and not yet merged."""

    columns: tuple[MirrorColumn, ...]
    target: tuple[str, ...]
    folder: Path
    identity: str = "d"
    oid: int = field(default_factory=lambda: next(_numbers))
    files: list[FileRef] = field(default_factory=list)
    copy_files: list[FileRef] | None = None
    copy_snapshot: str | None = None
    snapshot: int | None = None

    def land(
        self, transactions: Iterable[Transaction], clock: Iterable[int], names: Sequence[str] | None = None
    ) -> None:
        """Write one landing file with these transactions; `names` are the columns of an older relation version."""
        self.files.append(self._write(transactions, clock, names))

    def land_copy(self, rows: Sequence[Mapping[str, Any]], snapshot: str | None = None) -> None:
        """Write the rows of a copy, which replaces whatever the target has."""
        names = [column.name for column in self.columns]
        known = [_texts(row, names) or {} for row in rows]
        texts = pa.record_batch([pa.array([row[name] for row in known], pa.string()) for name in names], names=names)
        self.copy_files = [self.copied(f"copy{next(_numbers)}", texts, values=False)] if rows else []
        self.copy_snapshot = snapshot

    def copied(self, name: str, texts: pa.RecordBatch, *, values: bool = True) -> FileRef:
        """Land one file of rows as a copy does: as values where they can be parsed."""
        zone = LandingZone.open(self.folder.as_uri(), {})
        typed = {each.name: lake_column(each).type for each in self.columns if values and parsed_type(each.type)}
        rows = [
            parse(each, typed[n]) if n in typed else each for n, each in zip(texts.schema.names, texts, strict=True)
        ]
        writer = zone.copy_writer(f"{self.oid}-{name}.parquet", texts.schema.names, typed)
        landed = pa.table(rows, names=texts.schema.names).cast(copy_schema(texts.schema.names, typed))
        for batch in landed.to_batches(max_chunksize=20_000):
            writer.write(batch)
        entry = writer.close(oid=self.oid)
        return FileRef(
            zone.uri(entry.path),
            entry.rows,
            entry.bytes,
            entry.columns,
            counts=entry.counts,
            typed=entry.typed,
        )

    def order(self) -> TablePlan:
        return TablePlan(
            oid=self.oid,
            schema="public",
            table=self.target[-1],
            target=self.target,
            identity=self.identity,
            columns=self.columns,
            files=tuple(self.files),
            copy_files=None if self.copy_files is None else tuple(self.copy_files),
            copy_snapshot=self.copy_snapshot,
            expected_snapshot=self.snapshot,
        )

    def merged(self, result: TableResult) -> None:
        self.files, self.copy_files, self.copy_snapshot = [], None, None
        if result.pointer:
            self.snapshot = result.snapshot_id

    def _write(self, transactions: Iterable[Transaction], clock: Iterable[int], names: Sequence[str] | None) -> FileRef:
        names = tuple(names or (column.name for column in self.columns))
        rows = [
            _row(event, names, lsn, ordinal, transaction.xid)
            for transaction, lsn in zip(transactions, clock, strict=False)
            for ordinal, event in enumerate(transaction.events)
        ]
        path = self.folder / f"{self.oid}.{next(_numbers)}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=landing_schema(names)), path, compression="zstd")
        uri = path.as_uri() if "%" not in path.as_uri() else f"file://{path}"
        return FileRef(uri, len(rows), path.stat().st_size, names, counted(rows))


def counted(rows: Sequence[dict[str, Any]]) -> ChangeCounts:
    """Count landed rows by kind of change."""
    ops, kinds = Counter(row["op"] for row in rows), Counter(row["old_kind"] for row in rows)
    return ChangeCounts(
        inserts=ops["I"],
        updates=ops["U"],
        deletes=ops["D"],
        truncates=ops["T"],
        unchanged=sum(row["unchanged"] is not None for row in rows),
        old_key=kinds["K"],
        old_full=kinds["O"],
    )


def _row(event: Event, names: Sequence[str], lsn: int, ordinal: int, xid: int | None) -> dict[str, Any]:
    unchanged = [name for name, value in (event.new or {}).items() if value is UNCHANGED]
    return {
        "commit_lsn": lsn,
        "ordinal": ordinal,
        "op": event.op,
        "xid": xid,
        "new": _texts(event.new, names),
        "old": _texts(event.old, names),
        "old_kind": None if event.old is None else "O" if event.full else "K",
        "unchanged": unchanged or None,
    }


def _texts(row: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, str | None] | None:
    if row is None:
        return None
    texts = {name: row.get(name) for name in names}
    return {name: None if value is None or value is UNCHANGED else str(value) for name, value in texts.items()}


def _text(value: Any) -> str | None:
    """Write a value of the lake as PostgreSQL does."""
    if isinstance(value, list):
        return "{" + ",".join(_text(element) or "NULL" for element in value) + "}"
    if isinstance(value, float):
        return "NaN" if value != value else str(value).removesuffix(".0")
    return None if value is None else str(value)


@dataclass
class Workbench:
    """A pipeline of tables in a namespace of its own."""

    spark: SparkSession
    environment: dict[str, str]
    connect: Any  # () -> psycopg connection to the catalog's database
    catalog: str
    folder: Path
    namespace: str = field(default_factory=lambda: f"bench{next(_numbers)}")
    tables: list[Table] = field(default_factory=list)
    position: int = 100
    cuts_snapshot: int | None = None
    reading: SparkSession | None = None
    lent: ExitStack = field(default_factory=ExitStack)

    def table(self, *columns: MirrorColumn, name: str | None = None, identity: str | None = None) -> Table:
        target = (self.namespace, "public", name or f"t{next(_numbers)}")
        has_key = any(column.key for column in columns)
        made = Table(columns, target, self.folder, identity or ("d" if has_key else "f"))
        self.tables.append(made)
        return made

    def clock(self) -> Iterable[int]:
        """Yield the commit LSNs of transactions to come."""
        while True:
            self.position += 8
            yield self.position

    def land(self, table: Table, *transactions: Transaction, names: Sequence[str] | None = None) -> None:
        table.land(transactions, self.clock(), names)

    def plan(self, **changes: Any) -> MergePlan:
        attempt = f"a{next(_numbers)}"
        plan = MergePlan(
            pipeline=self.namespace,
            attempt=attempt,
            catalog=self.catalog,
            namespace=self.namespace,
            from_lsn=0,
            upto_lsn=self.position,
            tables=tuple(table.order() for table in self.tables),
            cuts_expected_snapshot=self.cuts_snapshot,
        )
        return replace(MergePlan.loads(plan.dumps()), **changes)

    def prepare(self, **changes: Any) -> MergeResult:
        """Run the Spark part only: nothing is visible afterwards."""
        result = merge.run(self.spark, self.plan(**changes), self.environment)
        return MergeResult.loads(result.dumps())

    def publish(self, result: MergeResult) -> bool:
        """Move every pointer in one transaction; False, and nothing moved, when one is not where it was."""
        assert result.cuts is not None
        pointers = [*(table.pointer for table in result.tables if table.pointer), result.cuts]
        with self.connect() as connection, connection.transaction() as transaction:
            moved: int = sum(
                connection.execute(
                    """
                    update iceberg_tables set metadata_location = %s, previous_metadata_location = %s
                    where catalog_name = %s and table_namespace = %s and table_name = %s and metadata_location = %s
                    """,
                    (pointer.new, pointer.old, self.catalog, *pointer.place, pointer.old),
                ).rowcount
                for pointer in pointers
            )
            if moved != len(pointers):
                transaction.force_rollback = True
        if moved == len(pointers):
            self.cuts_snapshot = result.cuts_snapshot_id
            for table, outcome in zip(self.tables, result.tables, strict=True):
                table.merged(outcome)
        return moved == len(pointers)

    def merge(self, **changes: Any) -> list[TableResult]:
        """Merge what was landed, and publish it."""
        result = self.prepare(**changes)
        assert self.publish(result)
        return list(result.tables)

    def merge_of(
        self, table: Table, *transactions: Transaction, names: Sequence[str] | None = None
    ) -> list[TableResult]:
        """Land these transactions of a table, merge and publish them."""
        self.land(table, *transactions, names=names)
        return self.merge()

    def rows(self, table: Table) -> Counter[tuple[Any, ...]]:
        """Return the published rows as texts, a value that does not fit as its misfit."""
        found = self.session().table(self.name(table)).collect()
        names = [column.name for column in table.columns]
        return Counter(
            tuple((row["_misfits"] or {}).get(name, _text(value)) for name, value in zip(names, row, strict=False))
            for row in found
        )

    def misfits(self, table: Table) -> list[dict[str, str]]:
        """Return the published misfits, row by row, of the rows that have any."""
        frame = self.session().table(self.name(table)).where("_misfits is not null").select("_misfits")
        return [row["_misfits"] for row in frame.collect()]

    def name(self, table: Table) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in (self.catalog, *table.target))

    def session(self) -> SparkSession:
        """Return a session that sees what is published now, one for the workbench's life."""
        if self.reading is None:
            from penstock_spark.session import worker  # noqa: PLC0415

            self.reading = self.lent.enter_context(worker(self.spark, self.catalog, self.environment))
        return self.reading

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.lent.close()
