"""The table of cuts: one row for each, staged next to the tables that it speaks of.

The driver writes the file itself, with Iceberg's own writer: to plan and run a Spark job for one row took a tenth of a
large merge and a third of a small one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.jobs.merge_plan import MET, MergePlan, TableResult
from penstock.jobs.pointers import Pointer, possible
from penstock.lake import properties
from penstock.lake.ddl import CUTS_COLUMNS, CUTS_TABLE
from penstock.lsn import Lsn
from penstock_spark.lake_table import LakeTable, commit_marked
from penstock_spark.session import java
from penstock_spark.staging import Staging


def cuts_target(plan: MergePlan) -> tuple[str, ...]:
    """Return the name of the pipeline's table of cuts."""
    return (*plan.namespace.split("."), CUTS_TABLE)


def record_cut(session: SparkSession, plan: MergePlan, tables: Sequence[TableResult]) -> tuple[Pointer, int]:
    """Stage one more row of `_penstock_cuts`; returns its pointer and snapshot.

    Raises LakeError("foreign-commit") when another writer wrote to the table, or dropped a column of it.
    """
    cuts = LakeTable(session, plan.catalog, cuts_target(plan))
    there = cuts.look()
    if there is None and plan.cuts_expected_snapshot is None:
        cuts.create(CUTS_COLUMNS, properties.for_new_table(plan.pipeline, {}))
        there = cuts.look()
    if there is None or not there.is_ours(plan.cuts_expected_snapshot):
        raise LakeError(
            "foreign-commit",
            f"expected {cuts.sql_name} at snapshot {plan.cuts_expected_snapshot}, got commits of another writer; "
            "see the runbook",
        )
    known = {column.name for column in there.columns}
    missing = [f"{column.name} {column.type}" for column in CUTS_COLUMNS if column.name not in known]
    if missing:
        raise LakeError(
            "foreign-commit",
            f"expected {cuts.sql_name} with the columns that Penstock made, but some are gone; "
            f"add them again: {', '.join(missing)}",
        )
    marks = properties.watermark(plan.pipeline, plan.upto_lsn, plan.attempt)
    paused = [table.oid for table in tables if table.paused_slug is not None]
    names = {each.oid: each.to for each in possible(plan.renames, paused) if each.kind == "table"}
    staged = Staging(cuts, there, marks)
    _append(
        staged,
        {
            "cut_lsn": plan.upto_lsn,
            "lsn": str(Lsn(plan.upto_lsn)),
            "published_at": datetime.now(UTC).isoformat(),
            "attempt": plan.attempt,
            "tables": [_state(plan, table, names.get(table.oid, table.target)) for table in tables],
            "era": plan.era,
            "source_time": plan.source_time,
            "conflicts": [met for table in tables if (met := _met(table, names.get(table.oid, table.target)))],
        },
    )
    return staged.stage()


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
