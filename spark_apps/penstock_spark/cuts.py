"""The table of cuts: one row for each, staged next to the tables that it speaks of.

The driver writes the file itself, with Iceberg's own writer: to plan and run a Spark job for one row took a tenth of a
large merge and a third of a small one.
"""

import json
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.jobs.plans import MET, MergePlan, TableResult
from penstock.jobs.pointers import Fresh, Pointer, place_of, possible, rebuilt, replaced
from penstock.lake import properties
from penstock.lake.ddl import CUTS_COLUMNS, CUTS_TABLE, create_namespaces
from penstock.lsn import Lsn
from penstock_spark.failures import OwnFailureError, own_failure
from penstock_spark.iceberg_table import IcebergTable, planned
from penstock_spark.lake_table import LakeTable, commit_marked
from penstock_spark.session import java
from penstock_spark.staging import Staging

_log = logging.getLogger("penstock.merge")


def cuts_target(plan: MergePlan) -> tuple[str, ...]:
    """Return the name of the pipeline's table of cuts."""
    return (*plan.namespace.split("."), CUTS_TABLE)


@dataclass(frozen=True)
class Cuts:
    """Hold the table of cuts that takes the next row; `anew` is why it is begun anew, None where it goes on."""

    table: LakeTable
    there: IcebergTable
    anew: LakeError | None = None


def open_cuts(session: SparkSession, plan: MergePlan) -> Cuts:
    """Return the table of cuts as the last cut has left it, or one that is begun anew where the plan says that it may be.

    Raises LakeError: "cuts-unreadable" where its files are gone or damaged; "foreign-commit" when another writer wrote to it,
    dropped it or a column of it, or when catalog or ledger were put back to an earlier time.
    """
    table = LakeTable(session, plan.catalog, cuts_target(plan))
    try:
        return Cuts(table, _as_published(table, plan))
    except LakeError as error:
        if not plan.cuts_anew:
            raise
        fresh = LakeTable(session, plan.catalog, rebuilt(plan.namespace, table.target, plan.attempt))
        _log.warning("%s; it is begun anew", error)
        return Cuts(fresh, _made(fresh, plan), error)


def _as_published(table: LakeTable, plan: MergePlan) -> IcebergTable:
    with _readable(table):
        if plan.cuts_shown is not None:
            table.require_whole(plan.cuts_shown)
        there = table.find()
        if there is None and plan.cuts_expected_snapshot is None:
            return _made(table, plan)
        ours = _ours(table, there, plan)
        if plan.cuts_anew:
            _require_files(ours)
    return ours


def _ours(table: LakeTable, there: IcebergTable | None, plan: MergePlan) -> IcebergTable:
    if there is None or not there.is_ours(plan.cuts_expected_snapshot):
        raise LakeError(
            "foreign-commit",
            f"expected {table.sql_name} at snapshot {plan.cuts_expected_snapshot}, as the last cut has left it, got "
            f"{'no such table' if there is None else f'snapshot {there.main}'}: another writer changed it, or the catalog or the "
            "ledger was put back to an earlier time; see the runbook",
        )
    known = {column.name for column in there.columns}
    missing = [f"{column.name} {column.type}" for column in CUTS_COLUMNS if column.name not in known]
    if missing:
        raise LakeError(
            "foreign-commit",
            f"expected {table.sql_name} with the columns that Penstock made, but some are gone; "
            f"add them again: {', '.join(missing)}",
        )
    return there


def _require_files(there: IcebergTable) -> None:
    """See that the table's data files are there, which a merge does not read; raises what Iceberg raises."""
    for task in planned(there.java.newScan()):
        there.java.io().newInputFile(task.file().location()).newStream().close()


def _made(table: LakeTable, plan: MergePlan) -> IcebergTable:
    for statement in create_namespaces(plan.catalog, [table.target[:-1]]):
        table.session.sql(statement)
    table.create(CUTS_COLUMNS, properties.for_new_table(plan.pipeline, {}))
    return IcebergTable(table.load())


@contextmanager
def _readable(table: LakeTable) -> Iterator[None]:
    """Raise LakeError("cuts-unreadable") for a file of the table that is gone or damaged."""
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        failure = own_failure(error, table.session, ".".join(table.target), ())
        if not isinstance(failure, OwnFailureError) or failure.slug != "lake-unreadable" or failure.refused:
            raise
        raise LakeError(
            "cuts-unreadable",
            f"expected to read the table of cuts, {table.sql_name}, got: {failure.cause}; put its files back, or resync a table, "
            "which begins the table of cuts anew",
        ) from None


def record_cut(cuts: Cuts, plan: MergePlan, tables: Sequence[TableResult]) -> tuple[Pointer, int]:
    """Stage one more row of `_penstock_cuts`; returns its pointer and snapshot. Raises LakeError("cuts-unreadable")."""
    marks = properties.watermark(plan.pipeline, plan.upto_lsn, plan.attempt)
    paused = [table.oid for table in tables if table.paused_slug is not None]
    names = {each.oid: each.to for each in possible(plan.renames, paused) if each.kind == "table"}
    row = {
        "cut_lsn": plan.upto_lsn,
        "lsn": str(Lsn(plan.upto_lsn)),
        "published_at": datetime.now(UTC).isoformat(),
        "attempt": plan.attempt,
        "tables": [_state(plan, table, names.get(table.oid, table.target)) for table in tables],
        "era": plan.era,
        "source_time": plan.source_time,
        "conflicts": [met for table in tables if (met := _met(table, names.get(table.oid, table.target)))],
    }
    with _readable(cuts.table):
        staged = Staging(cuts.table, cuts.there, marks)
        _append(staged, row)
        pointer, snapshot = staged.stage()
    return (_in_place(pointer, plan) if cuts.anew else pointer), snapshot


def _in_place(staged: Pointer, plan: MergePlan) -> Pointer:
    """Return the pointer that gives a table which was begun anew its name, and the table that has it another one."""
    target = cuts_target(plan)
    kept = place_of(replaced(plan.namespace, target, plan.attempt))
    fresh = Fresh(staged.place, staged.old or "", kept)
    return replace(staged, place=place_of(target), old=plan.cuts_shown, fresh=fresh)


def _append(staged: Staging, row: Mapping[str, Any]) -> None:
    """Commit one row to the transaction, in a file of its own.

    Source: Iceberg specification, "JSON single-value serialization" (fields by id, times as ISO 8601 with their zone).
    """
    table = staged.there.java
    schema = table.schema()
    struct = json.loads(java("org.apache.iceberg.SchemaParser").toJson(schema))
    value = java("org.apache.iceberg.SingleValueParser").fromJson(schema.asStruct(), json.dumps(_by_id(struct, row)))
    file = table.io().newOutputFile(table.locationProvider().newDataLocation(f"{uuid.uuid4()}.parquet"))
    parquet = java("org.apache.iceberg.FileFormat").PARQUET
    writer = java("org.apache.iceberg.InternalData").write(parquet, file).schema(schema).build()
    writer.add(value)
    writer.close()
    written = java("org.apache.iceberg.DataFiles").builder(table.spec()).withInputFile(file.toInputFile())
    row_file = written.withMetrics(writer.metrics()).build()
    commit_marked(staged.transaction.newAppend().appendFile(row_file), staged.marks)


def _by_id(type_: Any, value: Any) -> Any:
    """Return a value with its fields under their ids, as `type_` (of a schema's JSON) has them."""
    if value is None or not isinstance(type_, dict):
        return value
    if type_["type"] == "list":
        return [_by_id(type_["element"], each) for each in value]
    return {str(field["id"]): _by_id(field["type"], value.get(field["name"])) for field in type_["fields"]}


def _met(table: TableResult, target: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what the merge of a table met besides rows, None where it met what it should, or is not in the cut."""
    counts = {name: table.counts.get(name, 0) for name in MET}
    return {"name": ".".join(target), **counts} if any(counts.values()) and not table.paused_slug else None


def _state(plan: MergePlan, table: TableResult, target: tuple[str, ...]) -> dict[str, Any]:
    paused = table.paused_slug is not None
    return {
        "name": ".".join(target),
        "snapshot_id": None if paused else table.snapshot_id,
        "complete_through": plan.from_lsn if paused else plan.upto_lsn,
        "state": "paused" if paused else "ready",
    }
